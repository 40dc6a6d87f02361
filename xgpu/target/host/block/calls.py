"""The calls of the runtime in a kernel whose threads wait at different places, made ready for that runtime.

Each call gets two more operands: the context, and the number of its site, from 1. Barriers and shuffles become such
calls too. Where a thread may have to wait, a call of `HOST_PAUSE` follows, at which `coroutine` suspends it.
"""

from xgpu import ir
from xgpu.passes.llvm.builder import LlvmBuilder
from xgpu.passes.llvm.memory import store
from xgpu.structure import defining_op, walk
from xgpu.target.host.access_checks import READS, WRITES
from xgpu.target.host.context import context_of, defined_functions
from xgpu.target.host.labels import SourceOperation, place_of
from xgpu.target_machine import (
    HOST,
    HOST_BARRIER,
    HOST_BLOCK_PREFIX,
    HOST_PAUSE,
    HOST_SHUFFLES,
    HOST_WARP_BARRIER,
    create_call,
)

REGISTER_FUNCTIONS = frozenset(f"{HOST_BLOCK_PREFIX}{name}" for name in ("registers", "lane_operands", "lane_result"))
"""The functions that return memory of the runtime, which is no array's."""
SITE_KINDS = {"load matrix": READS, "warpgroup mma": READS, "store matrix": WRITES}
"""The effects on memory of sites that do not copy."""
_OF_WARPS = frozenset(
    f"{HOST_BLOCK_PREFIX}{name}"
    for name in ("elect", "encode_tensor_map", "load_matrix", "store_matrix", "mma", "mma_f64", "warpgroup_mma")
)
type Sites = tuple[tuple[str, SourceOperation], ...]


def block_calls(function: ir.Operation) -> list[ir.Operation]:
    """Return the calls of the runtime in a function, in the order of the text."""
    return [call for call in walk(function, "llvm.call") if (callee_of(call) or "").startswith(HOST_BLOCK_PREFIX)]


def callee_of(call: ir.Operation) -> str | None:
    """Return the name of the function that is called, None if it is called by its address."""
    callee = call.attributes.get("callee")
    return None if callee is None else ir.FlatSymbolRefAttr(callee).value


def whole_warps_of(module: ir.Module) -> str | None:
    """Return an operation of a module that whole warps do together, None if there is none."""
    for function in defined_functions(module):
        for call in walk(function, "llvm.call"):
            name = callee_of(call) or ""
            if name in _OF_WARPS:
                return f"xgpu.{name.removeprefix(HOST_BLOCK_PREFIX)}"
            if name in HOST_SHUFFLES.values():
                return "gpu.shuffle"
            if name == HOST_WARP_BARRIER:
                return "xgpu.sync_warp"
    return None


def complete_calls(module: ir.Module, prefix: str) -> Sites:
    """Complete the calls of a module whose functions all have a context; return name and place of each site.

    ``prefix`` is that of the functions that are then called.
    """
    with ir.Location.unknown():
        for function in defined_functions(module):
            _expand_barriers(function)
        sites: list[tuple[str, SourceOperation]] = []
        for function in defined_functions(module):
            state = ir.AsmState(function)
            calls = [(call, place_of(call, state)) for call in block_calls(function)]
            for call, place in calls:
                name = (callee_of(call) or "").removeprefix(HOST_BLOCK_PREFIX)
                sites.append((name.replace("_", " "), place))
                _complete(call, context_of(function), len(sites), prefix + name)
        _declare(module, prefix)
    return tuple(sites)


def _expand_barriers(function: ir.Operation) -> None:
    b, i64 = LlvmBuilder(HOST, 32), ir.IntegerType.get_signless(64)
    modes = {name: mode for mode, name in HOST_SHUFFLES.items()}
    for call in walk(function, "llvm.call"):
        callee = callee_of(call)
        with ir.InsertionPoint(call), call.location:
            if callee == HOST_BARRIER:
                create_call(HOST_PAUSE, [create_call(f"{HOST_BLOCK_PREFIX}barrier", [], [i64]).results[0]], [])
            elif callee == HOST_WARP_BARRIER:
                create_call(HOST_PAUSE, [create_call(f"{HOST_BLOCK_PREFIX}warp_barrier", [], [i64]).results[0]], [])
            elif callee in modes:
                value, by = (b.op("zext", [operand], i64) for operand in call.operands)
                create_call(HOST_PAUSE, [create_call(f"{HOST_BLOCK_PREFIX}shuffle", [value], [i64]).results[0]], [])
                taken = create_call(f"{HOST_BLOCK_PREFIX}shuffle_{modes[callee]}", [by], [i64]).results[0]
                call.results[0].replace_all_uses_with(b.op("trunc", [taken], b.i32))
            else:
                continue
        call.erase()


def _complete(call: ir.Operation, context: ir.Value, site: int, name: str) -> None:
    with ir.InsertionPoint(call), call.location:
        number = LlvmBuilder(HOST, 32).constant(site, ir.IntegerType.get_signless(64))
        new = create_call(name, [*call.operands, context, number], [result.type for result in call.results])
    for old, value in zip(call.results, new.results, strict=True):
        old.replace_all_uses_with(value)
    call.erase()


def _declare(module: ir.Module, prefix: str) -> None:
    """Declare the functions as they are now called."""
    for op in [op.operation for op in module.body.operations]:
        if op.name == "llvm.func":
            name = ir.StringAttr(op.attributes["sym_name"]).value
            if name.startswith((HOST_BLOCK_PREFIX, prefix)) or name == HOST_PAUSE:
                op.erase()
    types: dict[str, ir.Type] = {HOST_PAUSE: ir.Type.parse("!llvm.func<void (i64)>")}
    for function in defined_functions(module):
        for call in walk(function, "llvm.call"):
            name = callee_of(call) or ""
            if name.startswith(prefix):
                operands = [operand.type for operand in call.operands]
                types[name] = ir.llvm.FunctionType.get(call.results[0].type, operands)
    for name, type_ in types.items():
        with ir.InsertionPoint.at_block_begin(module.body):
            attributes = {"sym_name": ir.StringAttr.get(name), "function_type": ir.TypeAttr.get(type_)}
            ir.Operation.create("llvm.func", attributes=attributes, regions=1)


def check_accumulators(module: ir.Module) -> None:
    """Add a check to each block that uses accumulators, of products or of a wait, for anything but these."""
    for function in defined_functions(module):
        tracked = _accumulators(function)
        checked: set[tuple[ir.Value, ir.Block]] = set()
        uses = [(op, value) for op in walk(function) for value in op.operands if value in tracked and not _keeps(op)]
        for op, value in uses:
            if (value, op.block) not in checked:
                checked.add((value, op.block))
                with ir.InsertionPoint(op), op.location:
                    _create_check(value)


def _accumulators(function: ir.Operation) -> set[ir.Value]:
    """Return the values that may stand for accumulators that products are added to: loaded after a call, or passed."""
    names = {f"{HOST_BLOCK_PREFIX}{name}" for name in ("warpgroup_mma", "warpgroup_result")}
    tracked: set[ir.Value] = set()
    for block in function.regions[0].blocks:
        is_next = False
        for op in block.operations:
            if op.operation.name == "llvm.load" and is_next:
                tracked.add(op.operation.results[0])
            is_next = op.operation.name == "llvm.call" and callee_of(op.operation) in names
    waiting = list(tracked)
    while waiting:
        for argument in _passed_to(waiting.pop()):
            if argument not in tracked:
                tracked.add(argument)
                waiting.append(argument)
    return tracked


def _passed_to(value: ir.Value) -> list[ir.Value]:
    """Return the arguments of blocks that a value is given on as."""
    found = []
    for use in value.uses:
        op = use.owner.operation
        if op.name == "llvm.br":
            found.append(op.successors[0].arguments[use.operand_number])
        elif op.name == "llvm.cond_br":
            condition, first, _ = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
            number = use.operand_number - condition
            target, position = (0, number) if number < first else (1, number - first)
            found.append(op.successors[target].arguments[position])
    return found


def _keeps(op: ir.Operation) -> bool:
    """Whether an operation only gives a value on: to another block, to a product, or to a wait."""
    if op.name in ("llvm.br", "llvm.cond_br"):
        return True
    if op.name != "llvm.store":
        return False
    address = defining_op(op.operands[1])
    return address is not None and callee_of(address) in REGISTER_FUNCTIONS


def _create_check(value: ir.Value) -> None:
    """Create a check of accumulators, which are given as those of a product are."""
    b, i64 = LlvmBuilder(HOST, 32), ir.IntegerType.get_signless(64)
    registers = create_call(f"{HOST_BLOCK_PREFIX}registers", [], [ir.llvm.PointerType.get()]).results[0]
    store(value, registers, 4)
    columns = b.constant(2 * ir.VectorType(value.type).shape[0], i64)
    create_call(f"{HOST_BLOCK_PREFIX}check_accumulators", [columns], [i64])
