"""A kernel whose threads wait for each other, rewritten as one LLVM coroutine for each thread of a block.

The coroutine lives as long as a driver call: it suspends at the start of every block, at barriers and at shuffles, each
time with the number of that site in the context, and a driver resumes the threads in turn (`block_driver`). Calls of
``void @xgpu_host_barrier()``, ``void @xgpu_host_warp_barrier()``, ``i32 @xgpu_host_shuffle_xor(i32 value, i32
distance)`` and ``i32 @xgpu_host_shuffle_idx(i32 value, i32 lane)`` are the sites. So are those of ``void
@xgpu_host_pause(i64)``, the only ones in kernels whose threads wait at different places: they suspend only if the
number is not 0.
"""

from collections.abc import Sequence

from xgpu import ir
from xgpu.dialects.attributes import KERNEL
from xgpu.errors import CompilerError
from xgpu.passes.llvm.builder import LlvmBuilder
from xgpu.records import dataclass
from xgpu.structure import walk
from xgpu.target.host.context import (
    FRAME_ALIGNMENT,
    PIECES,
    WARP,
    add_parameter,
    byte_address,
    context_of,
    defined_functions,
    offset_of,
)
from xgpu.target.host.frames import keep_values
from xgpu.target.llvm.ops import DYNAMIC_INDEX, Instruction, LlvmWriter
from xgpu.target_machine import HOST, HOST_BARRIER, HOST_PAUSE, HOST_SHUFFLES, HOST_WARP_BARRIER

BARRIER, WARP_BARRIER = HOST_BARRIER, HOST_WARP_BARRIER
SHUFFLE = HOST_SHUFFLES["xor"]
SHUFFLE_FROM = HOST_SHUFFLES["idx"]
_SHUFFLES = (SHUFFLE, SHUFFLE_FROM)
SYNC_FUNCTIONS = frozenset((BARRIER, WARP_BARRIER, HOST_PAUSE, *_SHUFFLES))
"""The functions at whose calls threads wait for each other."""

# Block x, y, z and the context: a kernel's last parameters.
_AFTER_THREAD = 4
# Operations that must not be moved: accesses to memory, calls, and terminators.
_FIXED = frozenset(
    f"llvm.{name}"
    for name in """load store atomicrmw cmpxchg fence call call_intrinsic inline_asm br cond_br switch return
    unreachable""".split()
)
_FIXED_PREFIXES = ("llvm.intr.mem", "llvm.intr.masked", "llvm.intr.lifetime", "llvm.intr.assume")


@dataclass(frozen=True)
class Site:
    """A place where threads wait for each other: one barrier, of a block or its warps, or shuffles done in one step."""

    calls: tuple[ir.Operation, ...]
    is_shuffle: bool
    is_of_warp: bool = False
    """Whether it is one where the threads of a warp wait."""


def sync_calls(function: ir.Operation) -> list[ir.Operation]:
    """Return the barriers and shuffles of a function, in the order of the text."""
    return [call for call in walk(function, "llvm.call") if _sync_callee(call)]


def find_sites(module: ir.Module, kernel: ir.Operation) -> list[Site]:
    """Return the kernel's barriers, those of warps, then its shuffles. Raises CompilerError for any elsewhere.

    Shuffles are done in as few steps as possible: operations are reordered, those that access memory stay in place.
    """
    for function in defined_functions(module):
        if function != kernel and sync_calls(function):
            name = ir.StringAttr(function.attributes["sym_name"]).value
            raise CompilerError(f"the function '{name}' has a barrier or shuffle: on the host only kernels may")
    barriers, of_warps, shuffles = [], list[Site](), []
    for block in kernel.regions[0].blocks:
        movable: list[ir.Operation] = []
        for op in [op.operation for op in block.operations]:
            callee = _sync_callee(op)
            if callee in (BARRIER, HOST_PAUSE):
                barriers.append(Site((op,), is_shuffle=False))
            if callee == WARP_BARRIER:
                of_warps.append(Site((op,), is_shuffle=False, is_of_warp=True))
            if callee in _SHUFFLES or (op.name not in _FIXED and not op.name.startswith(_FIXED_PREFIXES)):
                movable.append(op)
            else:
                shuffles += _steps(movable, op)
                movable = []
    return [*barriers, *of_warps, *shuffles]


def _sync_callee(op: ir.Operation) -> str | None:
    callee = op.attributes.get("callee") if op.name == "llvm.call" else None
    name = ir.FlatSymbolRefAttr(callee).value if callee is not None else None
    return name if name in SYNC_FUNCTIONS else None


def _steps(movable: Sequence[ir.Operation], following: ir.Operation) -> list[Site]:
    """Sort operations without effect so that shuffles none of which needs another's result stand together.

    Stage n holds what needs the results of n shuffles, one after the other: first all else, then the shuffles.
    """
    shuffles = {op for op in movable if op.name == "llvm.call"}
    if not shuffles:
        return []
    ready: dict[ir.Value, int] = {}
    stages: dict[int, tuple[list[ir.Operation], list[ir.Operation]]] = {}
    for op in movable:
        stage = max((ready.get(operand, 0) for operand in op.operands), default=0)
        stages.setdefault(stage, ([], []))[op in shuffles].append(op)
        ready.update((result, stage + (op in shuffles)) for result in op.results)
    sites = []
    for _, (others, together) in sorted(stages.items()):
        for op in (*others, *together):
            op.move_before(following)
        steps = (together[first : first + PIECES] for first in range(0, len(together), PIECES))
        sites += [Site(tuple(step), is_shuffle=True) for step in steps]
    return sites


def make_coroutine(kernel: ir.Operation, sites: Sequence[Site], block: Sequence[int]) -> None:
    """Rewrite a kernel with a context as a coroutine, whose sites are numbered from 1; ``block`` is its block's shape.

    It takes a frame as a further parameter and returns a pointer: to the frame, or, for a null frame, the number of
    bytes that a frame takes.
    """
    _Coroutine(kernel, block).rewrite(sites)


class _Coroutine:
    def __init__(self, kernel: ir.Operation, block: Sequence[int]):
        self._kernel = kernel
        self._block = block
        self._b = LlvmBuilder(HOST, 32)
        self._i8 = ir.IntegerType.get_signless(8)
        self._pointer = ir.llvm.PointerType.get()
        self._entry = kernel.regions[0].blocks[0]
        self._context = context_of(kernel)
        arguments = list(self._entry.arguments)
        self._thread, self._block_index = arguments[-7:-_AFTER_THREAD], arguments[-_AFTER_THREAD:-1]
        self._frame = add_parameter(kernel)
        self._suspensions: list[tuple[ir.Block, ir.Block]] = []

    def rewrite(self, sites: Sequence[Site]) -> None:
        """Split the kernel's blocks at its sites, and let the whole wait for each block of threads."""
        operations = [op.operation for op in self._entry.operations]
        with self._kernel.location:
            self._suspended, self._start, body = (self._entry.create_after() for _ in range(3))
            returns = walk(self._kernel, "llvm.return")
            for op in operations:
                body.append(op)
            handle = self._begin([op for op in operations if op.name == "llvm.alloca"])
            with ir.InsertionPoint(self._start):
                self._suspend(0, body)
            self._load_block_index(body)
            for op in returns:
                with ir.InsertionPoint(op):
                    _branch(self._start)
                op.erase()
            with ir.InsertionPoint(self._suspended):
                ir.Operation.create("coro.end", operands=[handle])
                ir.Operation.create("llvm.return", operands=[handle])
        self._split(sites)
        resumptions = {block: successor for block, successor in self._suspensions if block != self._start}
        keep_values(body, resumptions, self._context)
        self._set_attributes()

    def _split(self, sites: Sequence[Site]) -> None:
        """Let each block end at the last call of each site in it, and go on in a new one."""
        numbers = {site.calls[-1]: number for number, site in enumerate(sites, 1)}
        # All are looked up before any is replaced: an operation's hash is one of its operands too.
        numbered = [
            (block, [(op.operation, numbers.get(op.operation)) for op in block.operations])
            for block in self._kernel.regions[0].blocks
        ]
        for block, operations in numbered:
            current = block
            for op, number in operations:
                if current != block:
                    current.append(op)
                if number is not None:
                    with op.location:
                        current = self._wait(sites[number - 1], number)

    def _begin(self, allocations: Sequence[ir.Operation]) -> ir.Value:
        """Fill the entry: a null frame asks for a frame's size, any other is where the coroutine begins."""
        b, i64 = self._b, ir.IntegerType.get_signless(64)
        leave, begin = self._entry.create_after(), self._entry.create_after()
        with ir.InsertionPoint(self._entry):
            for allocation in allocations:
                count = allocation.operands[0].owner
                assert isinstance(count, ir.Operation | ir.OpView)
                # Only in the entry is memory on the stack a part of the frame.
                self._entry.append(count.operation.clone())
                allocation.operands[0] = self._entry.operations[len(self._entry.operations) - 1].results[0]
                self._entry.append(allocation)
            identity = ir.Operation.create("coro.id", [b.i1]).results[0]
            size = ir.Operation.create("coro.size", [i64]).results[0]
            address = b.op("ptrtoint", [self._frame], i64)
            asks = b.compare("eq", address, b.constant(0, i64))
            _branch(leave, begin, asks)
        with ir.InsertionPoint(leave):
            ir.Operation.create("llvm.return", operands=[b.op("inttoptr", [size], self._pointer)])
        with ir.InsertionPoint(begin):
            handle = ir.Operation.create("coro.begin", [self._pointer], [identity, self._frame]).results[0]
            self._lane = self._lane_number()
            _branch(self._start)
        return handle

    def _lane_number(self) -> ir.Value:
        b = self._b
        x, y, z = self._thread
        row = b.binary("add", y, b.binary("mul", z, b.constant(self._block[1], b.i32)))
        thread = b.binary("add", x, b.binary("mul", row, b.constant(self._block[0], b.i32)))
        return b.binary("and", thread, b.constant(WARP - 1, b.i32))

    def _load_block_index(self, body: ir.Block) -> None:
        """Read the number of the block to run, which the kernel takes as parameters, from the context."""
        with ir.InsertionPoint.at_block_begin(body):
            for axis, parameter in enumerate(self._block_index):
                field = byte_address(self._context, offset_of("block_index") + 4 * axis)
                parameter.replace_all_uses_with(self._load(field, self._b.i32))

    def _wait(self, site: Site, number: int) -> ir.Block:
        """Suspend at a site, and return the block in which the thread goes on."""
        resumed = self._entry.create_after()
        with ir.InsertionPoint(site.calls[-1]):
            if site.is_shuffle:
                self._give(site)
            if _sync_callee(site.calls[-1]) == HOST_PAUSE:
                self._pause(site.calls[-1].operands[0], number, resumed)
            else:
                self._suspend(number, resumed)
        with ir.InsertionPoint(resumed):
            if site.is_shuffle:
                self._take(site)
        for call in site.calls:
            call.erase()
        return resumed

    def _give(self, site: Site) -> None:
        slots = self._load(byte_address(self._context, offset_of("write_slots")), self._pointer)
        slot = self._slot(slots, self._lane)
        for piece, call in enumerate(site.calls):
            self._store(call.operands[0], byte_address(slot, 4 * piece))

    def _take(self, site: Site) -> None:
        b = self._b
        slots = self._load(byte_address(self._context, offset_of("read_slots")), self._pointer)
        for piece, call in enumerate(site.calls):
            by = call.operands[1]
            lane = b.binary("xor", self._lane, by) if _sync_callee(call) == SHUFFLE else by
            partner = b.binary("and", lane, b.constant(WARP - 1, b.i32))
            value = self._load(byte_address(self._slot(slots, partner), 4 * piece), b.i32)
            call.results[0].replace_all_uses_with(value)

    def _slot(self, slots: ir.Value, lane: ir.Value) -> ir.Value:
        """Return the address of a lane's first piece."""
        attributes = {
            "rawConstantIndices": ir.DenseI32ArrayAttr.get([DYNAMIC_INDEX]),
            "elem_type": ir.TypeAttr.get(ir.llvm.ArrayType.get(self._b.i32, PIECES)),
        }
        return self._b.op("getelementptr", [slots, lane], self._pointer, attributes)

    def _suspend(self, number: int, resumed: ir.Block) -> None:
        """Tell the driver the number of the site and suspend; the driver goes on at ``resumed``."""
        b = self._b
        self._store(b.constant(number, b.i32), byte_address(self._context, offset_of("site")))
        reason = ir.Operation.create("coro.suspend", [self._i8]).results[0]
        _branch(self._suspended, resumed, b.compare("ne", reason, b.constant(0, self._i8)))
        self._suspensions.append((ir.InsertionPoint.current.block, resumed))

    def _pause(self, must_wait: ir.Value, number: int, resumed: ir.Block) -> None:
        """Suspend if a number is not 0, and go on at ``resumed``."""
        waiting = self._entry.create_after()
        _branch(waiting, resumed, self._b.compare("ne", must_wait, self._b.constant(0, must_wait.type)))
        with ir.InsertionPoint(waiting):
            self._suspend(number, resumed)

    def _load(self, address: ir.Value, type_: ir.Type) -> ir.Value:
        return self._b.op("load", [address], type_)

    def _store(self, value: ir.Value, address: ir.Value) -> None:
        ir.Operation.create("llvm.store", operands=[value, address])

    def _set_attributes(self) -> None:
        attributes = self._kernel.attributes
        type_ = ir.llvm.FunctionType(ir.TypeAttr(attributes["function_type"]).value)
        attributes["function_type"] = ir.TypeAttr.get(ir.llvm.FunctionType.get(self._pointer, list(type_.inputs)))
        attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
        attributes["passthrough"] = ir.ArrayAttr.get([ir.StringAttr.get("presplitcoroutine")])
        del attributes[KERNEL]
        if "arg_attrs" in attributes:
            kept = [_kept_attributes(ir.DictAttr(each)) for each in ir.ArrayAttr(attributes["arg_attrs"])]
            attributes["arg_attrs"] = ir.ArrayAttr.get(kept)


def _kept_attributes(given: ir.DictAttr) -> ir.DictAttr:
    """Return what holds of a parameter still: it is null where the size is asked, and other threads write outputs."""
    names = {"llvm.align", "llvm.readonly", "llvm.noalias"} if "llvm.readonly" in given else {"llvm.align"}
    return ir.DictAttr.get({name: given[name] for name in names if name in given})


def _branch(on_true: ir.Block, on_false: ir.Block | None = None, condition: ir.Value | None = None) -> None:
    """Create a branch to a block without arguments, or a conditional one."""
    if on_false is None or condition is None:
        ir.Operation.create("llvm.br", successors=[on_true])
        return
    segments: dict[str, ir.Attribute] = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0])}
    ir.Operation.create("llvm.cond_br", operands=[condition], attributes=segments, successors=[on_true, on_false])


def _identity(w: LlvmWriter, op: ir.Operation) -> str:
    w.declare("llvm.coro.id", "token", ["i32", "ptr", "ptr", "ptr"])
    return f"call token @llvm.coro.id(i32 {FRAME_ALIGNMENT}, ptr null, ptr null, ptr null)"


def _size(w: LlvmWriter, op: ir.Operation) -> str:
    w.declare("llvm.coro.size.i64", "i64", [])
    return "call i64 @llvm.coro.size.i64()"


def _coroutine_begin(w: LlvmWriter, op: ir.Operation) -> str:
    identity, frame = op.operands
    w.declare("llvm.coro.begin", "ptr", ["token", "ptr"])
    return f"call ptr @llvm.coro.begin(token {w.value(identity)}, {w.typed(frame)})"


def _suspension(w: LlvmWriter, op: ir.Operation) -> str:
    w.declare("llvm.coro.suspend", "i8", ["token", "i1"])
    return "call i8 @llvm.coro.suspend(token none, i1 false)"


def _coroutine_end(w: LlvmWriter, op: ir.Operation) -> str:
    w.declare("llvm.coro.end", "void", ["ptr", "i1", "token"])
    return f"call void @llvm.coro.end({w.typed(op.operands[0])}, i1 false, token none)"


COROUTINE_INSTRUCTIONS: dict[str, Instruction] = {
    "coro.id": _identity,
    "coro.size": _size,
    "coro.begin": _coroutine_begin,
    "coro.suspend": _suspension,
    "coro.end": _coroutine_end,
}
"""Operations of a coroutine in text: MLIR has none for the type of tokens, so these stand for LLVM's."""
