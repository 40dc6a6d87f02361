"""lower-to-llvm for copies between global and shared memory on NVIDIA GPUs (PTX ISA, "Data movement")."""

from collections.abc import Iterator, Sequence
from typing import cast

from xgpu import ir
from xgpu.dialects.block.copies import SWIZZLES, AsyncCopyOp, AsyncWaitOp, BulkWaitOp, EncodeTensorMapOp
from xgpu.passes.llvm.builder import LlvmBuilder, Lowering
from xgpu.passes.llvm.gpu_ptx import fixed, ptx, requiring

_ELEMENT_CODES = {"i8": 0, "i16": 1, "i32": 2, "i64": 4, "f16": 6, "f32": 7, "f64": 9, "bf16": 10, "tf32": 11}
_SWIZZLE_CODES = {name: code for code, name in enumerate(SWIZZLES)}
"""The values of a tensor map's fields for element types and swizzles (PTX ISA, tensormap.replace)."""

_WHOLE_WARP = "bar.warp.sync 0xFFFFFFFF;"
_PUBLISH = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 128;"


def _async_copy(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    size = cast(AsyncCopyOp, op.opview).bytes
    # Only copies of 16 bytes can pass by the L1 cache, which has no use for what goes to shared memory.
    cache = "cg" if size == 16 else "ca"
    return ptx(b, f"cp.async.{cache}.shared.global [$0], [$1], {size}, $2;", list(op.operands))


def _async_wait(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    return ptx(b, f"cp.async.wait_group {cast(AsyncWaitOp, op.opview).pending};")


def _replace(name: str, bits: int, value: int | str, ordinal: int | None = None) -> str:
    """Return the text by which one lane sets a field of a tensor map, or that of a dimension."""
    at = "" if ordinal is None else f"{ordinal}, "
    return f"@first tensormap.replace.tile.{name}.shared::cta.b1024.b{bits} [$1], {at}{value};"


def _fields(op: EncodeTensorMapOp) -> Iterator[str]:
    """Yield the texts that set a tensor map's fields. Dimensions are numbered from the innermost one."""
    yield _replace("global_address", 64, "$2")
    yield _replace("rank", 32, len(op.shape) - 1)
    for number, (size, box) in enumerate(zip(reversed(op.shape), reversed(op.box), strict=True)):
        # A size of 2^32 is the number 0.
        yield _replace("global_dim", 32, size & 0xFFFFFFFF, number)
        yield _replace("box_dim", 32, box, number)
        yield _replace("element_stride", 32, 1, number)
    for number, stride in enumerate(reversed(op.strides)):
        yield _replace("global_stride", 64, stride, number)
    yield _replace("elemtype", 32, _ELEMENT_CODES[str(op.element)])
    yield _replace("interleave_layout", 32, 0)
    yield _replace("swizzle_mode", 32, _SWIZZLE_CODES[op.swizzle])
    yield _replace("fill_mode", 32, 0)


def _encode(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    """The warp clears the map in shared memory, a word a lane; one lane sets its fields; the warp copies it."""
    text = (
        "{ .reg .pred first;",
        ".reg .b32 lane, word;",
        "mov.u32 lane, %laneid;",
        "setp.eq.u32 first, lane, 0;",
        "mad.lo.u32 word, lane, 4, $1;",
        "st.shared.b32 [word], 0;",
        _WHOLE_WARP,
        *_fields(cast(EncodeTensorMapOp, op.opview)),
        _WHOLE_WARP,
        f"{_PUBLISH} }}",
    )
    return ptx(b, "\n\t".join(text), list(op.operands), together=True)


def _generic(b: LlvmBuilder, pointer: ir.Value) -> ir.Value:
    """Return the address that instructions on tensor maps take: one of no state space."""
    return b.op("addrspacecast", [pointer], ir.llvm.PointerType.get())


def _acquire(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    return ptx(b, "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", [_generic(b, op.operands[0])])


def _box(map_: str, first: int, rank: int) -> str:
    """Return the text of a box: its tensor map and coordinates, registers from ``first`` on, outermost first."""
    coordinates = ", ".join(f"${first + number}" for number in reversed(range(rank)))
    return f"[{map_}, {{{coordinates}}}]"


_LOAD = "cp.async.bulk.tensor.{0}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"


def _tensor_load(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    to, map_, barrier, *coordinates = op.operands
    rank = len(coordinates)
    text = f"{_LOAD.format(rank)} [$0], {_box('$1', 3, rank)}, [$2];"
    return ptx(b, text, [to, _generic(b, map_), barrier, *coordinates])


def _tensor_load_multicast(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    to, map_, barrier, blocks, *coordinates = op.operands
    rank = len(coordinates)
    text = f"{_LOAD.format(rank)}.multicast::cluster [$0], {_box('$1', 4, rank)}, [$2], $3;"
    mask = b.op("trunc", [blocks], ir.IntegerType.get_signless(16))
    return ptx(b, text, [to, _generic(b, map_), barrier, mask, *coordinates])


def _tensor_store(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    map_, source, *coordinates = op.operands
    rank = len(coordinates)
    text = f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group {_box('$0', 2, rank)}, [$1];"
    return ptx(b, text, [_generic(b, map_), source, *coordinates])


def _bulk_wait(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    view = cast(BulkWaitOp, op.opview)
    return ptx(b, f"cp.async.bulk.wait_group{'.read' if view.until == 'read' else ''} {view.pending};")


_BULK_LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];"

GPU_COPY_LOWERINGS: dict[str, Lowering] = {
    "xgpu.async_copy": requiring("cp.async", _async_copy),
    "xgpu.async_commit": requiring("cp.async", fixed("cp.async.commit_group;")),
    "xgpu.async_wait": requiring("cp.async", _async_wait),
    "xgpu.encode_tensor_map": requiring("tensormap.replace", _encode),
    "xgpu.acquire_tensor_map": requiring("bulk", _acquire),
    "xgpu.tensor_load": requiring("bulk", _tensor_load),
    "xgpu.tensor_load_multicast": requiring("bulk", _tensor_load_multicast),
    "xgpu.tensor_store": requiring("bulk", _tensor_store),
    "xgpu.bulk_load": requiring("bulk", fixed(_BULK_LOAD)),
    "xgpu.bulk_store": requiring("bulk", fixed("cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;")),
    "xgpu.bulk_commit": requiring("bulk", fixed("cp.async.bulk.commit_group;")),
    "xgpu.bulk_wait": requiring("bulk", _bulk_wait),
}
"""The lowerings by operation name."""
