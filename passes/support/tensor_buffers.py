"""Finds the memory behind every tensor of a function, and checks that one copy of each is enough.

A tensor with value semantics can live in one place only if no one reads or updates an old value after an update. The
walk below follows program order through `scf` regions, gives each buffer a version that every update changes, and
refuses a use of another version than the current one.
"""

from collections.abc import Iterator
from dataclasses import field
from typing import Literal, NoReturn, cast

from xgpu import ir
from xgpu.dialects.block.memory import SharedMemoryOp
from xgpu.dialects.threads import AllocateSharedOp, AtomicRmwOp, SyncThreadsOp, SyncWarpOp
from xgpu.dialects.traits import traits_of
from xgpu.passes.support.refusals import refuse
from xgpu.records import dataclass
from xgpu.structure import producer

_TERMINATORS = frozenset(("scf.yield", "scf.condition", "func.return"))
_REGION_OPS = frozenset(("scf.for", "scf.if", "scf.while"))


@dataclass(eq=False)
class TensorBuffer:
    """Memory that holds a tensor: a parameter, a constant or a tile, and the version it holds at this point.

    ``source`` is the value that stands for the memory: the tensor, or its address once there is one. What other threads
    of the block write is read after a barrier if it ``is_synchronized``. ``offset`` is where a tile says that
    it begins.
    """

    source: ir.Value
    name: str
    writable: bool
    is_tile: bool = False
    offset: int | None = None
    version: int = 0
    passed_to_call: bool = False
    is_synchronized: bool = False
    type: ir.RankedTensorType = field(init=False)
    """Shape and element type of the tensor."""

    def __post_init__(self) -> None:
        self.type = ir.RankedTensorType(self.source.type)


@dataclass(frozen=True)
class BufferUse:
    """A read, a write, a constant or an allocated tile, with the buffer it is about."""

    op: ir.Operation
    buffer: TensorBuffer


@dataclass(frozen=True)
class _Version:
    buffer: TensorBuffer
    number: int


@dataclass
class _Frame:
    """State of the walk through a region operation."""

    before: list[int]
    entry: list[int]
    # Of each finished region: the tensors its terminator passes on, by position, and the versions at its end.
    passed: list[dict[int, _Version]] = field(default_factory=list)
    after: list[list[int]] = field(default_factory=list)


@dataclass(frozen=True)
class _Event:
    kind: Literal["op", "begin", "end"]
    op: ir.Operation
    region: int = 0


def is_tensor(value: ir.Value) -> bool:
    """Tell whether ``value`` is a ranked tensor."""
    return isinstance(value.type, ir.RankedTensorType)


def _has_tensors(op: ir.Operation) -> bool:
    return any(is_tensor(value) for value in (*op.operands, *op.results))


def _is_allocation(op: ir.OpView) -> bool:
    return op.operation.name == AllocateSharedOp.OPERATION_NAME


def _offset_of(tile: ir.Value) -> int | None:
    return cast(AllocateSharedOp, producer(tile).opview).offset


def fail(op: ir.Operation, message: str) -> NoReturn:
    """Raise `CompilerError` about ``op``."""
    refuse("lower-tensors", op, message)


def _events(function: ir.Operation) -> Iterator[_Event]:
    """Yield the operations in program order, and the beginning and end of each region; no recursion, any depth."""
    stack = [iter([_Event("op", op.operation) for op in function.regions[0].blocks[0].operations])]
    while stack:
        event = next(stack[-1], None)
        if event is None:
            stack.pop()
            continue
        yield event
        if event.kind != "op" or not len(event.op.regions):
            continue
        nested: list[_Event] = []
        for index, region in enumerate(event.op.regions):
            nested.append(_Event("begin", event.op, index))
            nested += [_Event("op", op.operation) for block in region.blocks for op in block.operations]
            nested.append(_Event("end", event.op, index))
        stack.append(iter(nested))


class TensorBuffers:
    """The buffers of one function: those given, its constants, and its ``tiles``.

    ``accesses``, ``calls`` and ``barriers`` are what uses them, in program order, ``structural`` the operations that
    hand tensors on, ``memories`` those that make shared memory without a type.
    """

    def __init__(self, function: ir.Operation, buffers: list[TensorBuffer]):
        tiles = [op.operation.results[0] for op in function.regions[0].blocks[0].operations if _is_allocation(op)]
        self.tiles = [
            TensorBuffer(tile, f"tile {number}", True, is_tile=True, offset=_offset_of(tile))
            for number, tile in enumerate(tiles)
        ]
        buffers = [*buffers, *self.tiles]
        self.accesses: list[BufferUse] = []
        self.barriers: list[ir.Operation] = []
        self.calls: list[ir.Operation] = []
        self.structural: list[ir.Operation] = []
        self.memories: list[ir.Operation] = []
        self._versions = {buffer.source: _Version(buffer, 0) for buffer in buffers}
        self._writable = [buffer for buffer in buffers if buffer.writable]
        self._updates = 0
        self._frames: list[_Frame] = []
        for event in _events(function):
            if event.kind != "op" and event.op.name == AtomicRmwOp.OPERATION_NAME:
                # Its body passes no tensors on.
                continue
            if event.kind == "begin":
                self._begin(event.op, event.region)
            elif event.kind == "end":
                self._end(event.op, event.region)
            else:
                self._visit(event.op)

    def buffer_of(self, value: ir.Value) -> TensorBuffer:
        """Return the buffer behind a tensor value."""
        return self._versions[value].buffer

    def _visit(self, op: ir.Operation) -> None:
        name, traits = op.name, traits_of(op.name)
        if traits.reads is not None:
            self.accesses.append(BufferUse(op, self._current(op, op.operands[traits.reads]).buffer))
        elif traits.updates is not None:
            self._write(op, op.operands[traits.updates])
        elif name == "arith.constant":
            if is_tensor(op.results[0]):
                buffer = TensorBuffer(op.results[0], "a constant", writable=False)
                self._versions[buffer.source] = _Version(buffer, 0)
                self.accesses.append(BufferUse(op, buffer))
        elif name == AllocateSharedOp.OPERATION_NAME:
            self._allocate(op)
        elif name == SharedMemoryOp.OPERATION_NAME:
            self.memories.append(op)
        elif name in (SyncThreadsOp.OPERATION_NAME, SyncWarpOp.OPERATION_NAME):
            self._synchronize(op)
        elif traits.call:
            self._call(op)
        elif name in _TERMINATORS:
            self._terminate(op)
        elif name in _REGION_OPS:
            versions = [buffer.version for buffer in self._writable]
            self._frames.append(_Frame(versions, versions))
        elif len(op.regions) or (name.startswith(("tensor.", "xgpu.")) and _has_tensors(op)):
            fail(op, "expected only scalar and vector accesses to tensors, scf.for, scf.if and scf.while here")

    def _current(self, op: ir.Operation, value: ir.Value) -> _Version:
        version = self._versions.get(value)
        if version is None:
            fail(op, f"expected a parameter, a constant or an update of one, got {value}")
        if version.number != version.buffer.version:
            fail(op, f"uses an old value of {version.buffer.name}, whose memory was updated before")
        return version

    def _write(self, op: ir.Operation, destination: ir.Value) -> None:
        buffer = self._current(op, destination).buffer
        if not buffer.writable:
            fail(op, f"updates {buffer.name}, which is read-only")
        self.accesses.append(BufferUse(op, buffer))
        self._set(op.results[0], self._update(buffer))

    def _allocate(self, op: ir.Operation) -> None:
        if op.results[0] not in self._versions:
            fail(op, "expected to be executed once by every thread: directly in the function's body")
        self.accesses.append(BufferUse(op, self.buffer_of(op.results[0])))

    def _synchronize(self, op: ir.Operation) -> None:
        buffers = [self._current(op, tile).buffer for tile in op.operands]
        for result, buffer in zip(op.results, buffers, strict=True):
            if not buffer.writable:
                fail(op, f"expected tiles that the function allocates, or outputs, got {buffer.name}")
            buffer.is_synchronized = True
            self._set(result, self._update(buffer))
        self.barriers.append(op)

    def _update(self, buffer: TensorBuffer) -> _Version:
        self._updates += 1
        buffer.version = self._updates
        return _Version(buffer, buffer.version)

    def _set(self, value: ir.Value, version: _Version) -> None:
        self._versions[value] = version

    def _call(self, op: ir.Operation) -> None:
        self.calls.append(op)
        for operand in op.operands:
            if is_tensor(operand):
                buffer = self._current(op, operand).buffer
                if buffer.writable:
                    fail(op, f"passes {buffer.name}, which this kernel updates, to a function that expects an input")
                buffer.passed_to_call = True

    def _tensors(self, op: ir.Operation, skip: int) -> dict[int, _Version]:
        """Return the current versions of the tensor operands after the first ``skip``, by position."""
        operands = list(op.operands)[skip:]
        return {position: self._current(op, value) for position, value in enumerate(operands) if is_tensor(value)}

    def _terminate(self, op: ir.Operation) -> None:
        passed = self._tensors(op, skip=1 if op.name == "scf.condition" else 0)
        if passed:
            self.structural.append(op)
        if op.name != "func.return":
            self._frames[-1].passed.append(passed)

    def _begin(self, op: ir.Operation, region: int) -> None:
        frame = self._frames[-1]
        arguments = list(op.regions[region].blocks[0].arguments) if len(op.regions[region].blocks) else []
        if op.name == "scf.if":
            for buffer, number in zip(self._writable, frame.before, strict=True):
                buffer.version = number
        elif op.name == "scf.while" and region == 1:
            for position, version in frame.passed[0].items():
                self._set(arguments[position], version)
        else:
            # What a loop carries may be of a later iteration: not the initial value any more.
            inits = self._tensors(op, skip=_carried_operand(op))
            for position, version in inits.items():
                argument = arguments[position + (op.name == "scf.for")]
                writable = version.buffer.writable
                self._set(argument, self._update(version.buffer) if writable else version)
            frame.entry = [buffer.version for buffer in self._writable]

    def _end(self, op: ir.Operation, region: int) -> None:
        frame = self._frames[-1]
        if len(frame.passed) == region:
            frame.passed.append({})
        frame.after.append([buffer.version for buffer in self._writable])
        if region == len(op.regions) - 1:
            self._frames.pop()
            self._finish(op, frame)

    def _finish(self, op: ir.Operation, frame: _Frame) -> None:
        """Check what the regions pass on and give the results their versions."""
        results = {i: self._result_buffer(op, i, frame) for i, value in enumerate(op.results) if is_tensor(value)}
        if results or any(frame.passed):
            self.structural.append(op)
        ends = [frame.after[-1]] if op.name != "scf.if" else frame.after
        for position, buffer in enumerate(self._writable):
            updated = any(end[position] != frame.entry[position] for end in ends)
            # After a branch nobody may use the old value any more; a loop would, in its next iteration.
            if updated and buffer not in results.values() and op.name != "scf.if":
                fail(op, f"an update of {buffer.name} in its body is not among its results")
            buffer.version = frame.before[position]
            if updated:
                self._update(buffer)
        for index, buffer in results.items():
            self._set(op.results[index], _Version(buffer, buffer.version))

    def _result_buffer(self, op: ir.Operation, index: int, frame: _Frame) -> TensorBuffer:
        if op.name == "scf.while":
            for position, version in self._inits(op).items():
                self._expect_same(op, version.buffer, frame.passed[1][position].buffer)
            return frame.passed[0][index].buffer
        buffer = frame.passed[0][index].buffer
        other = self._inits(op)[index] if op.name == "scf.for" else frame.passed[1][index]
        self._expect_same(op, other.buffer, buffer)
        return buffer

    def _inits(self, op: ir.Operation) -> dict[int, _Version]:
        operands = list(op.operands)[_carried_operand(op) :]
        return {position: self._versions[value] for position, value in enumerate(operands) if is_tensor(value)}

    def _expect_same(self, op: ir.Operation, expected: TensorBuffer, got: TensorBuffer) -> None:
        if expected is not got:
            fail(op, f"expected {expected.name} to be passed on, got {got.name}: a tensor must stay in its memory")


def _carried_operand(op: ir.Operation) -> int:
    """Return the position of the first carried value among the operands of a loop."""
    return 3 if op.name == "scf.for" else 0
