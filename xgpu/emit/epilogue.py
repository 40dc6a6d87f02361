"""What a kernel does with the values of its heroes: the functions of its results, by how their indices follow."""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass

from xgpu import ir
from xgpu.dialects.xgpu import PureCallOp
from xgpu.emit.base import Fusion
from xgpu.emit.builders import Values, apply_map, insert
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.fusion.heroes import Form, forms_of
from xgpu.fusion.regions import maker
from xgpu.partition.subgraphs import partition


@dataclass(frozen=True)
class Epilogue:
    """The function of the results of one form: ``numbers`` are their positions among those of the fusion."""

    numbers: tuple[int, ...]
    form: Form
    functions: SubgraphFunctions

    def emit_stores(
        self, inputs: Values, indices: Values, heroes: Values, outputs: MutableMapping[int, ir.Value]
    ) -> None:
        """Compute the results for the heroes' values at ``indices`` and put them into ``outputs``, by number."""
        where = apply_map(self.form.forward, indices)
        types = self.functions.result_types(self.functions.partition.subgraphs[0])
        scalars = PureCallOp.build(self.functions.names[0], [*inputs, *where, *heroes], types)
        for number, scalar in zip(self.numbers, scalars, strict=True):
            outputs[number] = insert(scalar, outputs[number], where)


def epilogues(
    fusion: Fusion, heroes: Sequence[ir.Value], numbers: Sequence[int], label: str = "epilogue"
) -> list[Epilogue]:
    """Return the epilogues that make the results ``numbers`` of a fusion from the values ``heroes``, all of one shape.

    A result that follows no hero has the heroes' shape and is computed at their indices. The functions' names start
    with the fusion's name and ``label``.
    """
    known = forms_of(fusion.body, [maker(value) for value in heroes])
    same = Form.of_hero(heroes[0])
    by_form: dict[Form, list[int]] = {}
    for number in numbers:
        by_form.setdefault(known.get(fusion.results[number], same), []).append(number)
    return list(_make(fusion, heroes, by_form, label))


def _make(
    fusion: Fusion, heroes: Sequence[ir.Value], by_form: Mapping[Form, Sequence[int]], label: str
) -> Iterator[Epilogue]:
    for count, (form, numbers) in enumerate(by_form.items()):
        roots = [fusion.results[number] for number in numbers]
        parts = partition(fusion.body, roots, dict.fromkeys(heroes, form.backward))
        name = f"{fusion.name}__{label}{f'_{count}' if count else ''}"
        yield Epilogue(tuple(numbers), form, SubgraphFunctions(name, parts, list(fusion.body.arguments)))
