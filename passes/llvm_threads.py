"""How lower-to-llvm lowers barriers and shuffles: instructions of the GPU, calls of the host's driver."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.threads import WARP_SIZE
from xgpu.passes.base import walk
from xgpu.passes.llvm_builder import LlvmBuilder, Lowering
from xgpu.passes.refusals import refuse

HOST_BARRIER = "xgpu_host_barrier"
"""``void()``: returns when all threads of the block have called it."""
HOST_SHUFFLE = "xgpu_host_shuffle_xor"
"""``i32(i32 value, i32 distance)``: returns the value of the warp's thread whose number differs by ``distance``."""
HOST_SHUFFLE_FROM = "xgpu_host_shuffle_idx"
"""``i32(i32 value, i32 lane)``: returns the value of the warp's thread of this number."""
_HOST_FUNCTIONS = {
    HOST_BARRIER: "!llvm.func<void ()>",
    HOST_SHUFFLE: "!llvm.func<i32 (i32, i32)>",
    HOST_SHUFFLE_FROM: "!llvm.func<i32 (i32, i32)>",
}
_SHUFFLES = {"xor": (HOST_SHUFFLE, "bfly"), "idx": (HOST_SHUFFLE_FROM, "idx")}
"""The modes of shuffles: what the host's function and the GPU's instruction are called."""


def declare_host_functions(module: ir.Module) -> None:
    """Declare the driver's functions that the barriers and shuffles of ``module`` will call."""
    called = {HOST_BARRIER} if walk(module.operation, "gpu.barrier") else set()
    called |= {_SHUFFLES[mode][0] for op in walk(module.operation, "gpu.shuffle") if (mode := _mode(op)) in _SHUFFLES}
    for name, type_ in _HOST_FUNCTIONS.items():
        if name in called:
            with ir.InsertionPoint.at_block_begin(module.body):
                ir.Operation.create(
                    "llvm.func",
                    attributes={
                        "sym_name": ir.StringAttr.get(name),
                        "function_type": ir.TypeAttr.get(ir.Type.parse(type_)),
                    },
                    regions=1,
                )


def _call(name: str, operands: Sequence[ir.Value], results: Sequence[ir.Type]) -> Sequence[ir.Value]:
    call = ir.Operation.create(
        "llvm.call",
        results=list(results),
        operands=list(operands),
        attributes={
            "callee": ir.FlatSymbolRefAttr.get(name),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )
    return list(call.results)


def _barrier(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    if b.target == "host":
        _call(HOST_BARRIER, [], [])
    else:
        segments = ir.DenseI32ArrayAttr.get([0, 0])
        ir.Operation.create("nvvm.barrier", attributes={"operandSegmentSizes": segments})
    return []


def _mode(op: ir.Operation) -> str:
    """Return the mode of a `gpu.shuffle`: which lane a lane's second operand names."""
    return str(op.attributes["mode"]).split("<", 1)[1].removesuffix(">").split()[-1]


def _shuffle(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    """A shuffle of all lanes of the warp; whether the other lane is valid is not asked."""
    value, by = list(op.operands)[:2]
    if _mode(op) not in _SHUFFLES or value.type != b.i32 or next(iter(op.results[1].uses), None) is not None:
        refuse("lower-to-llvm", op, "expected the value of a shuffle of i32 by xor or idx")
    host, kind = _SHUFFLES[_mode(op)]
    if b.target == "host":
        (shuffled,) = _call(host, [value, by], [b.i32])
    else:
        # Bits that a lane's number keeps (none), and the largest number: the whole warp.
        clamp = b.constant(WARP_SIZE - 1, b.i32)
        shuffled = ir.Operation.create(
            "nvvm.shfl.sync",
            results=[b.i32],
            operands=[b.constant(-1, b.i32), value, by, clamp],
            attributes={"kind": ir.Attribute.parse(f"#nvvm.shfl_kind<{kind}>")},
        ).results[0]
    return [shuffled, b.constant(1, b.i1)]


THREAD_LOWERINGS: dict[str, Lowering] = {"gpu.barrier": _barrier, "gpu.shuffle": _shuffle}
"""The lowerings by operation name."""
