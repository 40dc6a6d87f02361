"""Shared parts of the emitters of updates in place: a thread for a run of the updates' elements, checked start indices.

An output is the memory of the operand that is updated, a parameter that the kernel does not touch.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from xgpu import ir
from xgpu.analysis.subgraphs import partition
from xgpu.dtypes import DType
from xgpu.emit import requirements
from xgpu.emit.base import Fusion, LaunchDimensions
from xgpu.emit.builders import Values
from xgpu.emit.families.loop import runs_over
from xgpu.emit.family import EmitterClass, Family
from xgpu.emit.scalar.op import compare_integers, constant
from xgpu.emit.schedule import Schedule
from xgpu.emit.subgraph_function import SubgraphFunctions
from xgpu.fusion.grouping.families import Heroes, Results
from xgpu.indexing.access import Shape
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.reasons import Reason
from xgpu.records import dataclass


@dataclass(frozen=True)
class UpdatedElements:
    """Runs of ``run`` elements of an array of ``shape``, in row-major order, one for each thread."""

    shape: Shape
    run: int
    threads_per_block: int

    def launch_dimensions(self) -> LaunchDimensions:
        """Blocks along x that cover the array once."""
        return LaunchDimensions.covering(math.prod(self.shape), self.threads_per_block, self.run)

    def map(self) -> IndexingMap:
        """Return (thread, block)[element of the run] -> indices."""
        return runs_over(self.shape, self.launch_dimensions(), self.run).simplify()


def inputs_read(fusion: Fusion, parameters: Sequence[ir.Value]) -> Values:
    """Return those parameters, of the fusion or of its kernel, that are no memory of an output."""
    return [value for number, value in enumerate(parameters) if number not in fusion.aliases]


def prologue(fusion: Fusion, name: str, roots: Values) -> SubgraphFunctions:
    """Return the functions that compute ``roots``, values of one shape, from the parameters that may be read."""
    read = inputs_read(fusion, list(fusion.body.arguments))
    return SubgraphFunctions(f"{fusion.name}__{name}", partition(fusion.body, roots), read)


def checked_index(value: ir.Value, dtype: DType, bound: int) -> tuple[ir.Value, ir.Value | None]:
    """Return an integer as an index, and whether it lies in [0, ``bound``]; None if no value of its type lies outside.

    The index itself is within the bounds in any case, so that it can be computed with, and its range is known, without
    regard to the test. Both are done in the integer's own type: as an unsigned number, a negative one is too large.
    """
    largest = 2**dtype.bits - 1
    limit = min(bound, 2 ** (dtype.bits - dtype.is_signed) - 1)
    if limit == largest:
        return ir.arith.index_castui(ir.IndexType.get(), value), None
    upper = constant(value.type, limit)
    inside = compare_integers("ule", value, upper)
    return ir.arith.index_castui(ir.IndexType.get(), ir.arith.minui(value, upper)), inside


def all_of(conditions: list[ir.Value | None]) -> ir.Value | None:
    """Return whether all conditions hold; None if there is none."""
    result: ir.Value | None = None
    for condition in conditions:
        if condition is not None:
            result = condition if result is None else ir.arith.andi(result, condition)
    return result


def updates(
    text: str,
    name: str,
    key: Callable[[ir.Operation], Hashable | None],
    pays: Callable[[ir.Operation], bool],
    emitter: EmitterClass,
    facts: Callable[[Fusion], Any],
    schedule: type[Schedule],
) -> Family:
    """Return the family of operations called ``name`` that update arrays in place; ``text`` says which those are."""
    return Family(
        heroes=Heroes(text, key, (name,), pays, Results.UPDATED),
        why=Reason("it updates arrays in their own memory"),
        emitter=emitter,
        facts=facts,
        schedule=schedule,
        results=requirements.hero_results,
        aliases=requirements.heroes_operands,
    )
