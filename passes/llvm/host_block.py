"""lower-to-llvm for the operations of `xgpu.dialects.block` on the host: calls of its runtime.

Numbers are passed as i64, memory as pointers. Vectors go through memory that the runtime tells the address of, at once
before and after a call. A function after which the thread may have to wait returns a number, which a call of
`HOST_PAUSE` takes. Where a function is called from, the runtime is told later.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xgpu import ir
from xgpu.dialects.block.copies import SWIZZLES, AsyncCopyOp, EncodeTensorMapOp, element_bytes
from xgpu.dialects.block.matrices import ELEMENT_BITS, MatrixLayout, contracted
from xgpu.indexing.tiles.fragments import WARPGROUP_ROWS
from xgpu.indexing.tiles.tensor_views import MAX_TENSOR_RANK
from xgpu.passes.llvm.builder import LlvmBuilder, Lowering
from xgpu.passes.llvm.memory import element_pointer, load, store
from xgpu.target_machine import HOST_BLOCK_PREFIX, HOST_PAUSE, create_call

FENCES = ("async", "mbarrier_init", "cluster")
"""The kinds of fences; the runtime takes their positions."""
ELEMENTS = tuple(ELEMENT_BITS)
"""The types of matrices' elements; the runtime takes their positions."""
FRAGMENT_OFFSET = 512
"""The place of a thread's fragment of the left operand among its registers, in bytes, behind its accumulators."""
FORM_OFFSET = FRAGMENT_OFFSET + 16
"""The places among its registers at which a thread finds the numbers of a product's or tensor map's form, and those
that say where in an array a box begins."""
_LAYOUT_FORM = ("swizzle", "group", "panel", "transposed")
PRODUCT_FORM = (
    *("columns", "a_element", "b_element"),
    *(f"{operand}_{name}" for operand in ("a", "b") for name in (*_LAYOUT_FORM, "bytes")),
)
"""The numbers that say of what form a product of a warp group is; the bytes are those that its operands span."""
MAP_FORM = ("rank", "element", "is_rounded", "swizzle"), ("shape", "strides", "box")
"""Those of a tensor map: numbers, and rows of `MAX_TENSOR_RANK` numbers."""
LANE_PARTS = (0, 16, 32)
"""The places in its memory at which a lane gives the operands of a product of its warp, in bytes."""
_ALIGNMENT = 4

_Argument = ir.Value | int | bool


def _call(b: LlvmBuilder, name: str, *arguments: _Argument) -> ir.Value:
    """Call a function that returns a number."""
    i64 = ir.IntegerType.get_signless(64)
    return create_call(HOST_BLOCK_PREFIX + name, [_passed(b, each) for each in arguments], [i64]).results[0]


def _pointer(b: LlvmBuilder, name: str, *arguments: _Argument) -> ir.Value:
    """Call a function that returns a pointer."""
    operands = [_passed(b, each) for each in arguments]
    return create_call(HOST_BLOCK_PREFIX + name, operands, [ir.llvm.PointerType.get()]).results[0]


def _passed(b: LlvmBuilder, argument: _Argument) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    if isinstance(argument, int):
        return b.constant(int(argument), i64)
    if argument.type == b.i1:
        return b.op("zext", [argument], i64)
    return b.op("sext", [argument], i64) if argument.type == b.i32 else argument


def _waiting(b: LlvmBuilder, name: str, *arguments: _Argument) -> None:
    """Call a function after which the thread may have to wait."""
    create_call(HOST_PAUSE, [_call(b, name, *arguments)], [])


def _plain(name: str, *names: str, waits: bool = False) -> Lowering:
    """Return the lowering to a call with all operands, and then the values of attributes."""

    def lower(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
        attributes = [getattr(op.opview, each) for each in names]
        (_waiting if waits else _call)(b, name, *op.operands, *attributes)
        return []

    return lower


def _fence(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    _call(b, "fence", FENCES.index(op.opview.kind))  # type: ignore[attr-defined]
    return []


def _bulk_wait(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    wait: Any = op.opview
    _call(b, "bulk_wait", wait.pending, wait.until == "done")
    return []


def _async_copy(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    copy = op.opview
    assert isinstance(copy, AsyncCopyOp)
    _call(b, "async_copy", *op.operands, copy.bytes)
    return []


def _box(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    """Lower a copy of a box to a call with all operands but the coordinates, and how many those are."""
    coordinates: Sequence[ir.Value] = op.opview.coordinates  # type: ignore[attr-defined]
    registers = _pointer(b, "registers")
    for number, coordinate in enumerate(coordinates):
        store(coordinate, _at(registers, FORM_OFFSET + 4 * number), _ALIGNMENT)
    others = list(op.operands)[: -len(coordinates)]
    _call(b, op.name.removeprefix("xgpu."), *others, len(coordinates))
    return []


def _encode(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    map_ = op.opview
    assert isinstance(map_, EncodeTensorMapOp)
    rows = (map_.shape, map_.strides, map_.box)
    sizes = [size for row in rows for size in (*row, *[0] * (MAX_TENSOR_RANK - len(row)))]
    is_rounded = str(map_.element) == "tf32"
    kind = len(map_.shape), element_bytes(map_.element), is_rounded, SWIZZLES[map_.swizzle]
    _give_form(_pointer(b, "registers"), b, (*kind, *sizes))
    _waiting(b, "encode_tensor_map", *op.operands)
    return []


def _give_form(registers: ir.Value, b: LlvmBuilder, numbers: Sequence[int]) -> None:
    type_ = ir.VectorType.get([len(numbers)], ir.IntegerType.get_signless(64))
    values = ir.DenseElementsAttr.get(np.array(numbers, np.int64), type=type_)
    store(b.op("mlir.constant", [], type_, {"value": values}), _at(registers, FORM_OFFSET), _ALIGNMENT)


def _elect(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    _waiting(b, "elect")
    return [b.op("trunc", [_call(b, "is_elected")], b.i1)]


def _cluster_rank(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    return [b.op("trunc", [_call(b, "cluster_rank")], b.i32)]


def _cluster_pointer(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    return [_pointer(b, "cluster_pointer", *op.operands)]


def _at(pointer: ir.Value, offset: int) -> ir.Value:
    return element_pointer(pointer, ir.IntegerType.get_signless(8), offset)


def _matrices(type_: ir.Type) -> int:
    return int(ir.VectorType(type_).shape[0])


def _load_matrix(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    type_ = op.results[0].type
    _waiting(b, "load_matrix", op.operands[0], _matrices(type_), op.opview.transposed)  # type: ignore[attr-defined]
    return [load(_pointer(b, "lane_result"), type_, _ALIGNMENT)]


def _store_matrix(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    fragment, row = op.operands
    store(fragment, _pointer(b, "lane_operands"), _ALIGNMENT)
    transposed: bool = op.opview.transposed  # type: ignore[attr-defined]
    _waiting(b, "store_matrix", row, _matrices(fragment.type), transposed)
    return []


def _mma(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    product: Any = op.opview
    memory = _pointer(b, "lane_operands")
    for operand, offset in zip(op.operands, LANE_PARTS, strict=True):
        store(operand, _at(memory, offset), _ALIGNMENT)
    elements = [ELEMENTS.index(str(each)) for each in (product.a_element, product.b_element)]
    if str(product.a_element) == "f64":
        _waiting(b, "mma_f64")
    else:
        _waiting(b, "mma", *elements)
    return [load(_pointer(b, "lane_result"), op.results[0].type, _ALIGNMENT)]


def _layout(layout: MatrixLayout, rows: int, element: str) -> tuple[int, ...]:
    span = layout.span(rows, contracted(element), ELEMENT_BITS[element] // 8)
    return *(int(getattr(layout, name)) for name in _LAYOUT_FORM), span


def _warpgroup_mma(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    product: Any = op.opview
    c, a, b_pointer, accumulate = op.operands
    registers = _pointer(b, "registers")
    store(c, registers, _ALIGNMENT)
    if isinstance(a.type, ir.VectorType):
        store(a, _at(registers, FRAGMENT_OFFSET), _ALIGNMENT)
        a = b.op("mlir.zero", [], ir.llvm.PointerType.get())
    left, right = str(product.a_element), str(product.b_element)
    layouts = (*_layout(product.a_layout, WARPGROUP_ROWS, left), *_layout(product.b_layout, product.columns, right))
    _give_form(registers, b, (product.columns, ELEMENTS.index(left), ELEMENTS.index(right), *layouts))
    _call(b, "warpgroup_mma", a, b_pointer, accumulate)
    return [load(registers, c.type, _ALIGNMENT)]


def _warpgroup_wait(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    _waiting(b, "warpgroup_wait", op.opview.pending)  # type: ignore[attr-defined]
    finished = []
    for started in op.operands:
        registers = _pointer(b, "registers")
        store(started, registers, _ALIGNMENT)
        _call(b, "warpgroup_result", 2 * _matrices(started.type))
        finished.append(load(registers, started.type, _ALIGNMENT))
    return finished


_LOWERINGS: dict[str, Callable[[LlvmBuilder, ir.Operation], Sequence[ir.Value]]] = {
    "async_copy": _async_copy,
    "async_commit": _plain("async_commit"),
    "async_wait": _plain("async_wait", "pending"),
    "encode_tensor_map": _encode,
    "acquire_tensor_map": _plain("acquire_tensor_map"),
    "tensor_load": _box,
    "tensor_load_multicast": _box,
    "tensor_store": _box,
    "bulk_load": _plain("bulk_load"),
    "bulk_store": _plain("bulk_store"),
    "bulk_commit": _plain("bulk_commit"),
    "bulk_wait": _bulk_wait,
    "mbarrier_init": _plain("mbarrier_init", "count"),
    "mbarrier_expect": _plain("mbarrier_expect"),
    "mbarrier_arrive": _plain("mbarrier_arrive"),
    "mbarrier_arrive_remote": _plain("mbarrier_arrive_remote"),
    "mbarrier_arrive_copies": _plain("mbarrier_arrive_copies"),
    "mbarrier_wait": _plain("mbarrier_wait", waits=True),
    "fence": _fence,
    "named_barrier": _plain("named_barrier", "threads", "wait", waits=True),
    "elect": _elect,
    "set_registers": _plain("set_registers", "count", "more"),
    "cluster_rank": _cluster_rank,
    "cluster_arrive": _plain("cluster_arrive"),
    "cluster_wait": _plain("cluster_wait", waits=True),
    "cluster_pointer": _cluster_pointer,
    "load_matrix": _load_matrix,
    "store_matrix": _store_matrix,
    "mma": _mma,
    "warpgroup_mma": _warpgroup_mma,
    "warpgroup_fence": _plain("warpgroup_fence"),
    "warpgroup_commit": _plain("warpgroup_commit"),
    "warpgroup_wait": _warpgroup_wait,
}

HOST_BLOCK_LOWERINGS: dict[str, Lowering] = {f"xgpu.{name}": lowering for name, lowering in _LOWERINGS.items()}
"""The lowerings by operation name."""
