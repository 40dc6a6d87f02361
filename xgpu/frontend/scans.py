"""Rewrites prefix sums and the like as scans: windows that end at each element, and CHLO's associative scans."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xgpu import ir
from xgpu.frontend.mhlo import replace
from xgpu.frontend.scan_op import (
    binary_function,
    build_scan,
    combine_elements,
    function_of,
    is_elementwise,
    is_identity,
)
from xgpu.frontend.stablehlo_builder import Value, broadcast, element_of, hlo, inline_block, reshape, shape_of

_CHLO_SCAN = "chlo.scan"
_WINDOW = "stablehlo.reduce_window"


def rewrite_chlo_scans(module: ir.Module) -> None:
    """Rewrite, in place, each `chlo.scan` that says it is associative, and works element by element.

    Others stay, and become loops when CHLO is written as StableHLO.
    """
    for op in _operations(module, _CHLO_SCAN):
        count = len(op.results) // 2
        if _is_associative(op, count):
            with op.location, ir.InsertionPoint(op):
                replace(op, _scan_of_chlo(op, count))


def rewrite_prefix_windows(module: ir.Module) -> None:
    """Rewrite each `stablehlo.reduce_window` whose windows all start at the first element, or end at the last.

    Such are the sums of all elements up to each, with or without itself, from either end. Where the region is not
    elementwise, or the arrays' types are not its own, the operation stays.
    """
    for op in _operations(module, _WINDOW):
        window = _Prefix.of(op)
        if window is not None and _has_own_types(op) and is_elementwise(op.regions[0].blocks[0]):
            with op.location, ir.InsertionPoint(op):
                replace(op, _scan_of_window(op, window))


def _operations(module: ir.Module, name: str) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def collect(op: ir.Operation) -> ir.WalkResult:
        if op.name == name:
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    return found


def _is_associative(op: ir.Operation, count: int) -> bool:
    """Whether the results are the carried values, and the body combines them element by element."""
    block = op.regions[0].blocks[0]
    terminator = list(block.operations)[-1].operation
    outputs, carried = list(terminator.operands)[:count], list(terminator.operands)[count:]
    if not _flag(op, "is_associative") or len(op.operands) != 2 * count or outputs != carried:
        return False
    shapes = [shape_of(value) for value in list(op.operands)[:count]]
    return all(shape == shapes[0] for shape in shapes) and is_elementwise(block)


def _flag(op: ir.Operation, name: str) -> bool:
    return name in op.attributes and bool(ir.BoolAttr(op.attributes[name]).value)


def _scan_of_chlo(op: ir.Operation, count: int) -> list[Value]:
    """Return the scans and, without the dimension, their last slices."""
    axis, is_reverse = ir.IntegerAttr(op.attributes["dimension"]).value, _flag(op, "is_reverse")
    inputs, starts = list(op.operands)[:count], list(op.operands)[count:]
    shape, block = shape_of(inputs[0]), op.regions[0].blocks[0]

    def combine(values: list[Value]) -> list[Value]:
        # The element comes first in this region, and the carried value second.
        return combine_elements(block, [*values[count:], *values[:count]])[:count]

    if 0 in shape:
        return [*inputs, *starts]
    scanned = build_scan(inputs, axis, is_reverse, combine)
    others = [i for i in range(len(shape)) if i != axis]
    outputs = scanned
    if not is_identity(_function(block), starts[0]):
        outputs = combine([*(broadcast(start, shape, others) for start in starts), *scanned])
    return [*outputs, *(_last(value, axis, is_reverse) for value in outputs)]


def _function(block: ir.Block) -> str | None:
    """Return the `binary_function` of the region of a CHLO scan, which returns its result twice."""
    *body, terminator = (op.operation for op in block.operations)
    if len(body) != 1 or len(terminator.operands) != 2:
        return None
    return function_of(body[0], block.arguments)


def _last(value: Value, axis: int, is_reverse: bool) -> Value:
    """Return the last slice along a dimension, or the first, without the dimension."""
    shape = shape_of(value)
    starts, ends = [0] * len(shape), list(shape)
    starts[axis], ends[axis] = (0, 1) if is_reverse else (shape[axis] - 1, shape[axis])
    part = hlo.slice(value, starts, ends, [1] * len(shape))
    return reshape(part, [size for i, size in enumerate(shape) if i != axis])


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
        """Return the windows of a `stablehlo.reduce_window` as prefixes, None if they are not."""
        shape, result = shape_of(op.operands[0]), shape_of(op.results[0])
        windows = _numbers(op, "window_dimensions", len(shape))
        low, high = _padding(op, len(shape))
        one = [1] * len(shape)
        names = ("window_strides", "base_dilations", "window_dilations")
        if any(_numbers(op, name, len(shape)) != one for name in names):
            return None
        along = [i for i in range(len(shape)) if (windows[i], low[i], high[i]) != (1, 0, 0)]
        if len(along) != 1 or 0 in shape or windows[along[0]] == 1:
            return None
        (i,) = along
        for is_reverse, before in ((False, low[i]), (True, high[i])):
            shift = before - windows[i] + 1
            # The first element is in all windows that hold any, and no window reaches beyond the last one.
            if before >= result[i] - 1 and shift >= max(0, result[i] - shape[i]):
                return cls(i, is_reverse, shift, result[i])
        return None


def _numbers(op: ir.Operation, name: str, count: int) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name])) if name in op.attributes else [1] * count


def _padding(op: ir.Operation, count: int) -> tuple[list[int], list[int]]:
    """Return the padding before and after each dimension."""
    if "padding" not in op.attributes:
        return [0] * count, [0] * count
    given = ir.DenseIntElementsAttr(op.attributes["padding"])
    numbers = [int(given[i]) for i in range(2 * count)]
    return numbers[::2], numbers[1::2]


def _has_own_types(op: ir.Operation) -> bool:
    """Whether the region takes elements of the arrays' types, and the results have them too."""
    count = len(op.results)
    own = [element_of(value) for value in list(op.operands)[:count]]
    arguments = [element_of(argument) for argument in op.regions[0].blocks[0].arguments]
    return arguments == [*own, *own] and [element_of(value) for value in op.results] == own


def _scan_of_window(op: ir.Operation, window: _Prefix) -> list[Value]:
    count, block = len(op.results), op.regions[0].blocks[0]
    inputs, starts = list(op.operands)[:count], list(op.operands)[count:]
    scanned = build_scan(inputs, window.dimension, window.reverse, _region(block))
    if not is_identity(binary_function(block), starts[0]):
        shape = shape_of(inputs[0])
        scanned = combine_elements(block, [*(broadcast(start, shape) for start in starts), *scanned])
    return [_shifted(value, start, window) for value, start in zip(scanned, starts, strict=True)]


def _region(block: ir.Block) -> Callable[[list[Value]], Sequence[Value]]:
    return lambda values: inline_block(block, values)


def _shifted(value: Value, start: Value, window: _Prefix) -> Value:
    """Return a scan with ``start`` for as many windows as hold no element, and without what no window ends at."""
    shape = shape_of(value)
    before = [window.shift if i == window.dimension else 0 for i in range(len(shape))]
    after = [window.size - shape[i] - window.shift if i == window.dimension else 0 for i in range(len(shape))]
    if not any((*before, *after)):
        return value
    low, high = (after, before) if window.reverse else (before, after)
    return hlo.pad(value, start, low, high, [0] * len(shape))
