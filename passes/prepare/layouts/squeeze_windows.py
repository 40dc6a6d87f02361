"""The pass `squeeze-windows`."""

from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.hlo.stablehlo_builder import reshape, shape_of, tensor
from xgpu.indexing.access import integers
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.interval import Interval
from xgpu.indexing.window_numbers import take_window_dimensions
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import defining_op, element_of, users_of

_FIRST = Interval(0, 0)
_RESHAPES = frozenset(("stablehlo.reshape", "stablehlo.broadcast_in_dim"))


@dataclass(frozen=True)
class SqueezeWindows(OperationRewrite):
    """Leaves out dimensions of windows along which arrays and results have one element.

    Libraries add such a dimension for a channel or a batch, and reshape to the other one afterwards. Passes that follow
    dimensions from one value to the next end at a reshape. Needs: drop-empty-windows.

    ```mlir
    %0 = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<8x9xf32>) -> tensor<8x1x9xf32>
    %1 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 1, 1, 3>}> ...
    %2 = stablehlo.reshape %1 : (tensor<8x1x7xf32>) -> tensor<8x7xf32>
    ```
    becomes
    ```mlir
    %2 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 1, 3>}> ...
    ```
    """

    NAME: ClassVar[str] = "squeeze-windows"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.reduce_window",))

    def rewrite(self, op: ir.Operation) -> None:
        """Rewrite one operation, if it has such dimensions and others."""
        count = len(op.results)
        shape, result = shape_of(op.operands[0]), shape_of(op.results[0])
        kept = [number for number, sizes in enumerate(zip(shape, result, strict=True)) if sizes != (1, 1)]
        if len(kept) in (0, len(shape)) or not _are_trivial(op, set(range(len(shape))) - set(kept)):
            return
        arrays = [_squeezed(value, kept) for value in list(op.operands)[:count]]
        new = op.clone()
        take_window_dimensions(new, kept)
        for number, array in enumerate(arrays):
            new.operands[number] = array
        for old, made in zip(op.results, new.results, strict=True):
            made.set_type(tensor([result[number] for number in kept], element_of(old)))
            _replace(old, made)
        op.erase()


def _are_trivial(op: ir.Operation, dimensions: set[int]) -> bool:
    """Whether windows have one element along some dimensions, that of the array: none of them lies on padding alone."""
    windows = accesses(op)[0].map
    if any(windows.results[number].interval(windows.dims, windows.symbols) != _FIRST for number in dimensions):
        return False
    return all(
        bound.contains_interval(position.interval(windows.dims, windows.symbols))
        for position, bound in windows.constraints
        if not dimensions.isdisjoint(set[int]().union(*position.variables()))
    )


def _squeezed(value: ir.Value, kept: Sequence[int]) -> ir.Value:
    """Return a value with the dimensions that are kept alone: what it was made of by adding the others, if so."""
    shape = [shape_of(value)[number] for number in kept]
    op = defining_op(value)
    if op is not None and op.name in _RESHAPES and shape_of(op.operands[0]) == shape:
        is_spread = op.name == "stablehlo.broadcast_in_dim" and integers(op, "broadcast_dimensions") != list(kept)
        if not is_spread:
            return op.operands[0]
    return reshape(value, shape)


def _replace(old: ir.Value, new: ir.Value) -> None:
    """Have users of ``old`` read ``new``, those that only reshape to its shape at once."""
    shape = shape_of(new)
    for user in users_of(old):
        if user.name == "stablehlo.reshape" and shape_of(user.results[0]) == shape:
            user.results[0].replace_all_uses_with(new)
            user.erase()
    if users_of(old):
        old.replace_all_uses_with(reshape(new, shape_of(old)))
