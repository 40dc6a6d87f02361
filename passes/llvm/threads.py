"""The lowering of barriers and shuffles: as the machine has them, be it by functions of its runtime."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.threads import SyncWarpOp
from xgpu.passes.llvm.builder import LlvmBuilder, Lowering
from xgpu.passes.support.refusals import refuse
from xgpu.structure import is_used, walk
from xgpu.target_machine import HOST_BLOCK_PREFIX, TargetMachine

_MODES = frozenset(("xor", "idx"))


def declare_functions(module: ir.Module, machine: TargetMachine) -> None:
    """Declare those functions of the machine's runtime that ``module`` calls."""
    calls = walk(module.operation, "llvm.call") if machine.functions else []
    types: dict[str, ir.Type] = {}
    for op in calls:
        name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value if "callee" in op.attributes else ""
        if name in machine.functions:
            types[name] = ir.Type.parse(machine.functions[name])
        elif name.startswith(HOST_BLOCK_PREFIX):
            result = op.results[0].type
            types[name] = ir.llvm.FunctionType.get(result, [operand.type for operand in op.operands])
    for name, type_ in types.items():
        with ir.InsertionPoint.at_block_begin(module.body):
            attributes = {"sym_name": ir.StringAttr.get(name), "function_type": ir.TypeAttr.get(type_)}
            ir.Operation.create("llvm.func", attributes=attributes, regions=1)


def _barrier(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    b.machine.barrier()
    return []


def _warp_barrier(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    b.machine.warp_barrier()
    return []


def _mode(op: ir.Operation) -> str:
    """Return the mode of a `gpu.shuffle`: which lane a lane's second operand names."""
    return str(op.attributes["mode"]).split("<", 1)[1].removesuffix(">").split()[-1]


def _shuffle(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    """A shuffle of all lanes of the warp; whether the other lane is valid is not asked."""
    value, by = list(op.operands)[:2]
    if _mode(op) not in _MODES or value.type != b.i32 or is_used(op.results[1]):
        refuse("lower-to-llvm", op, "expected the value of a shuffle of i32 by xor or idx")
    return [b.machine.shuffle(_mode(op), value, by), b.constant(1, b.i1)]


THREAD_LOWERINGS: dict[str, Lowering] = {
    "gpu.barrier": _barrier,
    SyncWarpOp.OPERATION_NAME: _warp_barrier,
    "gpu.shuffle": _shuffle,
}
"""The lowerings by operation name."""
