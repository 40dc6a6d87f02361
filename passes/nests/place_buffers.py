"""The pass `place-buffers`."""

from typing import ClassVar, cast

from xgpu import ir
from xgpu.dialects.nests.accesses import elements_of
from xgpu.dialects.nests.loops import NewOp
from xgpu.errors import InvalidInput, Unsupported
from xgpu.hlo.source_location import source_of
from xgpu.nests.held_buffers import MAX_ITERATIONS, MAX_REGISTERS, asked, is_unrolled, obstacle
from xgpu.nests.structure import PAR, BufferAccess, accesses_in, all_launches_of, ancestors
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import walk

_MEMORY = "memory"


@dataclass(frozen=True)
class PlaceBuffers(Pass):
    """Chooses the memory of each new buffer: registers, shared memory, or global memory.

    A buffer made by a thread's iteration is in registers: its indices must be known once short seq loops are unrolled.
    A buffer made by a block is in shared memory, unless all threads compute its contents alike and no thread changes it
    alone. Where each iteration of its loops has an element of its own, or a row of them, `hold-buffers` decides:
    threads may hold them, which ``#register`` asks for. A buffer made outside of all kernels is in global memory. A
    program may choose (``#register``, ``#shared``, ``#scratch``) where that is possible.
    Needs assign-bands.

    ```mlir
    %tile = "xgpu.new"() {called = "tile"} : () -> memref<32x32xf32>
    // becomes
    %tile = "xgpu.new"() {called = "tile", memory = "shared"} : () -> memref<32x32xf32>
    ```
    """

    NAME: ClassVar[str] = "place-buffers"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((NewOp.OPERATION_NAME,))

    def apply(self, module: ir.Module) -> None:
        """Write the memory of every buffer of ``module``."""
        accesses: dict[ir.Value, list[BufferAccess]] = {}
        for access in accesses_in(module.operation):
            accesses.setdefault(access.buffer, []).append(access)
        products = [launch for launch in all_launches_of(module) if launch.emitter is not None]
        placed = {op for launch in products for op in walk(launch.operation, NewOp.OPERATION_NAME)}
        for op in walk(module.operation, NewOp.OPERATION_NAME):
            if op in placed:
                continue
            new = cast(NewOp, op.opview)
            memory = _memory(new, accesses.get(new.buffer, []))
            if memory is not None:
                op.attributes[_MEMORY] = ir.StringAttr.get(memory)


def _memory(new: NewOp, accesses: list[BufferAccess]) -> str | None:
    """Return where a buffer lies; None for one of a block of which the maps of its loops decide."""
    at = source_of(new.operation)
    around = list(ancestors(new.operation))
    if around[0].name == "func.func":
        return _given(new, "scratch")
    fits = elements_of(new.buffer) <= MAX_REGISTERS and all(
        is_unrolled(access, access.map.results) for access in accesses
    )
    if any(_runs_threads(each) for each in around):
        if not fits:
            raise Unsupported(
                f"'{new.called}' of a thread: expected at most {MAX_REGISTERS} elements at indices that are known when"
                f" seq loops of at most {MAX_ITERATIONS} iterations are unrolled",
                at,
            )
        return _given(new, "register")
    is_uniform = fits and not any(access.writes and _is_of_thread(access) for access in accesses)
    if new.memory == "scratch":
        raise InvalidInput(f"'{new.called}' is made by a block: expected #shared or #register", at)
    if is_uniform or new.memory == "shared":
        return new.memory or "register"
    problem = _not_held(new, accesses)
    if new.memory is None:
        return "shared" if problem else None
    if problem:
        raise InvalidInput(
            f"'{new.called}' is shared by the threads that change it: it cannot be in registers: {problem}", at
        )
    return "threads"


def _not_held(new: NewOp, accesses: list[BufferAccess]) -> str | None:
    """Return why no thread can hold elements of a block's buffer."""
    if new.pad is not None:
        return "its rows are padded"
    if (problem := obstacle(accesses)) is not None:
        return problem
    loop = asked(accesses)
    return f"the program says which iterations of '{loop.called}' a thread has" if loop is not None else None


def _given(new: NewOp, memory: str) -> str:
    if new.memory not in (None, memory):
        raise InvalidInput(
            f"'{new.called}': expected #{memory} where it is made, got #{new.memory}", source_of(new.operation)
        )
    return memory


def _runs_threads(op: ir.Operation) -> bool:
    return op.name == PAR and ir.StringAttr(op.attributes["band"]).value != "block"


def _is_of_thread(access: BufferAccess) -> bool:
    return any(_runs_threads(each) for each in ancestors(access.op))
