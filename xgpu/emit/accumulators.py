"""Accumulators, the functions that combine them and the exchange between warps, for reductions and scans.

The *accumulators* of heroes are the scalars of their results, hero after hero.
"""

from collections.abc import Sequence

from xgpu import ir
from xgpu.emit.base import Fusion
from xgpu.emit.builders import Values, apply_map, scalar_type
from xgpu.emit.kernel_builder import Tensor, filling, put
from xgpu.emit.reduction_tiling import MOST_ELEMENTS, Groups, power_of_two_below
from xgpu.emit.scalar.combiner import emit_combiner
from xgpu.structure import dtype_of


class Accumulators:
    """The heroes of a fusion, each of which combines elements, and their accumulators."""

    def __init__(self, fusion: Fusion):
        self.fusion = fusion
        self.heroes = fusion.heroes

    @property
    def results(self) -> list[ir.Value]:
        """The heroes' results, one for each accumulator."""
        return [value for hero in self.heroes for value in hero.results]

    @property
    def accumulator_types(self) -> list[ir.Type]:
        """The scalar types of the accumulators."""
        return [scalar_type(dtype_of(value)) for value in self.results]

    @property
    def accumulator_bytes(self) -> list[int]:
        """The bytes of each accumulator."""
        return [-(-dtype_of(value).storage_bits // 8) for value in self.results]

    @property
    def longest_vector(self) -> int:
        """The bound of the options on neighbouring elements that a thread reads at once, a power of two."""
        return power_of_two_below(min(MOST_ELEMENTS, self.fusion.options.max_elements_per_thread or MOST_ELEMENTS))

    def combiner(self, number: int) -> str:
        """Return the name of a hero's combiner, which has the hero's number among all of the fusion."""
        return combiner_name(self.fusion.name, self.fusion.heroes.index(self.heroes[number]))

    def emit_combiners(self) -> None:
        """Write the function of each hero that combines its accumulators."""
        for number, hero in enumerate(self.heroes):
            emit_combiner_function(self.combiner(number), hero)


def combiner_name(fusion: str, number: int) -> str:
    """Return the name of the combiner of a fusion's operation ``number``."""
    return f"{fusion}__combiner{f'_{number}' if number else ''}"


def emit_combiner_function(name: str, op: ir.Operation) -> None:
    """Write the function that combines scalars as the region of an operation does."""
    types = [scalar_type(dtype_of(value)) for value in op.results]
    type_ = ir.FunctionType.get([*types, *types], types)
    function = ir.func.FuncOp(name, type_, visibility="private")  # type: ignore[call-arg]
    with ir.InsertionPoint(function.add_entry_block()), op.location:
        ir.func.return_(emit_combiner(op.regions[0].blocks[0], list(function.entry_block.arguments)))


def exchange_warps(
    threads: Groups, position: Values, own: Sequence[ir.Value], tiles: Sequence[Tensor]
) -> tuple[ir.Value, ...]:
    """Give each lane what a warp of its group has, one after the other in turn; all lanes of a warp have its own."""
    with filling(threads.tile_writing(), position, tiles) as each:
        put(own, tiles, each.result_arguments)
    address = apply_map(threads.tile_reading(), position)
    return tuple(tile.extract(address) for tile in tiles)
