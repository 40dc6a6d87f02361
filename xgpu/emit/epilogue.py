"""Epilogues: the functions from the values of a kernel's heroes to its results, by how their indices follow."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.analysis.heroes import Form, forms_of
from xgpu.emit.base import Fusion
from xgpu.emit.builders import Values, apply_map
from xgpu.emit.kernel_builder import KernelBuilder, put
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.structure import producer


@dataclass(frozen=True)
class Epilogue:
    """The function of the results of one form: ``numbers`` are their positions among those of the fusion."""

    numbers: tuple[int, ...]
    form: Form
    functions: SubgraphFunctions


class Epilogues:
    """The functions that make the results ``numbers`` of a fusion from the values ``heroes``, all of one shape.

    A result that follows no hero has the heroes' shape and is computed at their indices. The functions' names start
    with the fusion's name and ``label``.
    """

    def __init__(
        self,
        fusion: Fusion,
        heroes: Sequence[ir.Value],
        numbers: Sequence[int] | None = None,
        label: str = "epilogue",
    ):
        self._aliases = fusion.aliases
        makers = list(dict.fromkeys(map(producer, heroes)))
        known = fusion.facts.followers if makers == fusion.heroes else forms_of(fusion.body, makers)
        same = Form.of_hero(heroes[0])
        by_form: dict[Form, list[int]] = {}
        for number in range(len(fusion.results)) if numbers is None else numbers:
            by_form.setdefault(known.get(fusion.results[number], same), []).append(number)
        self._all = []
        for count, (form, own) in enumerate(by_form.items()):
            roots = [fusion.results[number] for number in own]
            name = f"{label}{f'_{count}' if count else ''}"
            functions = SubgraphFunctions.of(fusion, name, roots, dict.fromkeys(heroes, form.backward), known)
            self._all.append(Epilogue(tuple(own), form, functions))

    def output_map(self, output: int, heroes: IndexingMap) -> IndexingMap:
        """Return the map to the indices of an output that follow from those of the heroes, which a map leads to."""
        form = next(each.form for each in self._all if output in each.numbers)
        return heroes.compose(form.forward).simplify()

    def emit_stores(self, kernel: KernelBuilder, indices: Values, heroes: Sequence[ir.Value]) -> None:
        """Compute the results for the heroes' values at ``indices`` and store them.

        All are computed before the first is stored: one may overwrite what others are computed from.
        """
        inputs, computed = kernel.present_inputs(self._aliases), list[tuple[Epilogue, Values, Values]]()
        for each in self._all:
            where = apply_map(each.form.forward, indices)
            computed.append((each, where, each.functions.emit_call([*inputs, *where, *heroes])))
        for each, where, scalars in computed:
            put(scalars, [kernel.outputs[number] for number in each.numbers], where)

    def emit(self) -> None:
        """Write the functions at the current insertion point."""
        for each in self._all:
            each.functions.emit()
