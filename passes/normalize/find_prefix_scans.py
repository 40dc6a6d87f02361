"""The pass `find-prefix-scans`."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.hlo.scan_op import binary_function, build_scan, combine_elements, is_elementwise, is_identity
from xgpu.hlo.stablehlo_builder import Value, broadcast, hlo, inline_block, shape_of
from xgpu.indexing.window_numbers import window_numbers, window_padding
from xgpu.passes.framework.base import ModuleRewrite
from xgpu.records import dataclass
from xgpu.structure import element_of, replace_op


@dataclass(frozen=True)
class FindPrefixScans(ModuleRewrite):
    """Converts reductions over windows that all start at the first element, or end at the last, to scans.

    Examples are the sums of all elements up to each, with or without itself, from either end. Where the region is not
    elementwise, or the arrays' types are not its own, the operation stays. Needs: attributes of windows without empty
    lists.

    ```mlir
    %0 = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[7, 0]]> : tensor<1x2xi64>,
        window_dimensions = array<i64: 8>}> ({ ... add ... }) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    ```
    becomes
    ```mlir
    %0 = "xgpu.scan"(%x) ({ ... add ... }) {dimension = 0, reverse = false}
        : (tensor<8xf32>) -> tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "find-prefix-scans"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.reduce_window",))

    def rewrite(self, op: ir.Operation) -> None:
        """Rewrite the windows of one operation if they are prefixes."""
        window = _Prefix.of(op)
        if window is not None and _has_own_types(op) and is_elementwise(op.regions[0].blocks[0]):
            replace_op(op, _scan_of_window(op, window))


@dataclass(frozen=True)
class _Prefix:
    """Windows along ``dimension`` that hold all elements up to one, or, in ``reverse``, from one on.

    That element is ``shift`` before the window's own place, counted from where the scan starts; ``size`` is how many
    windows there are.
    """

    dimension: int
    reverse: bool
    shift: int
    size: int

    @classmethod
    def of(cls, op: ir.Operation) -> "_Prefix | None":
        """Return what the windows of a `stablehlo.reduce_window` are, None if they are no prefixes."""
        shape, result = shape_of(op.operands[0]), shape_of(op.results[0])
        windows = window_numbers(op, "window_dimensions", len(shape))
        padding = window_padding(op, len(shape))
        one = [1] * len(shape)
        names = ("window_strides", "base_dilations", "window_dilations")
        if any(window_numbers(op, name, len(shape)) != one for name in names):
            return None
        along = [i for i in range(len(shape)) if (windows[i], padding[i]) != (1, (0, 0))]
        if len(along) != 1 or 0 in shape or windows[along[0]] == 1:
            return None
        (i,) = along
        for is_reverse, before in zip((False, True), padding[i], strict=True):
            shift = before - windows[i] + 1
            # The first element is in all windows that hold any, and no window reaches beyond the last one.
            if before >= result[i] - 1 and shift >= max(0, result[i] - shape[i]):
                return cls(i, is_reverse, shift, result[i])
        return None


def _has_own_types(op: ir.Operation) -> bool:
    """Whether the region takes elements of the arrays' types, and the results have them too."""
    count = len(op.results)
    own = [element_of(value) for value in list(op.operands)[:count]]
    arguments = [element_of(argument) for argument in op.regions[0].blocks[0].arguments]
    return arguments == [*own, *own] and [element_of(value) for value in op.results] == own


def _scan_of_window(op: ir.Operation, window: _Prefix) -> list[Value]:
    count, block = len(op.results), op.regions[0].blocks[0]
    inputs, starts = list(op.operands)[:count], list(op.operands)[count:]
    scanned = build_scan(inputs, window.dimension, window.reverse, _region(block, window.reverse))
    if not is_identity(binary_function(block), starts[0]):
        shape = shape_of(inputs[0])
        scanned = combine_elements(block, [*(broadcast(start, shape) for start in starts), *scanned])
    return [_shifted(value, start, window) for value, start in zip(scanned, starts, strict=True)]


def _region(block: ir.Block, is_reverse: bool) -> Callable[[list[Value]], Sequence[Value]]:
    """Return what emits the region of a scan, whose first scalars are of what the scan has taken in already.

    From the last element on, these are the later ones in a window: only one commutative operation may take them first.
    """
    if not is_reverse or binary_function(block) is not None:
        return lambda values: inline_block(block, values)
    count = len(block.arguments) // 2
    return lambda values: inline_block(block, [*values[count:], *values[:count]])


def _shifted(value: Value, start: Value, window: _Prefix) -> Value:
    """Return a scan with ``start`` for as many windows as hold no element, and without what no window ends at."""
    shape = shape_of(value)
    before = [window.shift if i == window.dimension else 0 for i in range(len(shape))]
    after = [window.size - shape[i] - window.shift if i == window.dimension else 0 for i in range(len(shape))]
    if not any((*before, *after)):
        return value
    low, high = (after, before) if window.reverse else (before, after)
    return hlo.pad(value, start, low, high, [0] * len(shape))
