"""Checks before every access of a host-lowered kernel: what ``--sanitize`` adds. `access_checks` says what they do."""

import math
from collections.abc import Iterator, Sequence

from xgpu import ir
from xgpu.dialects.attributes import AWAITS as AWAITS_ATTRIBUTE
from xgpu.dialects.attributes import INPUTS, OVERWRITES, int_array_of, int_of
from xgpu.errors import CompilerError
from xgpu.records import dataclass
from xgpu.structure import walk
from xgpu.target.host.access_checks import ATOMIC, AWAITS, CHECK, READS, WRITES
from xgpu.target.host.block.calls import REGISTER_FUNCTIONS, callee_of
from xgpu.target.host.context import SCRATCH_BYTES, ContextTile, context_of, defined_functions, is_tile, size_of
from xgpu.target.host.labels import SourceOperation, place_of
from xgpu.target_machine import HOST_CHECKED_PREFIX, create_call

# Operation -> the number of its pointer operand; atomic updates read and write.
_ACCESSES = {"llvm.load": 0, "llvm.store": 1, "llvm.atomicrmw": 0, "llvm.cmpxchg": 0}
_SAME_OBJECT = {"llvm.getelementptr", "llvm.bitcast", "llvm.addrspacecast"}
_DYNAMIC = -1
WORD_BYTES = 4


@dataclass(frozen=True)
class CheckedAccess:
    """A checked operation: where it is, its kind (bits of `access_checks`), its bytes, those of an element."""

    place: SourceOperation
    kind: int
    size: int
    element: int


@dataclass(frozen=True)
class MemoryObject:
    """An array that accesses are checked against.

    ``parameter`` is the number of the kernel's buffer that it is, else None; ``offset`` where in the context it is if
    it is a tile; ``size`` its bytes, those that the kernel states for a buffer (0: unknown). ``granule`` bytes of it
    are always accessed together. ``is_overwritten`` says that several threads may store to the same element. ``common``
    are the bytes of the context, from the first to the end, that it and other tiles lie in, if these share memory.
    """

    name: str
    size: int
    granule: int
    is_readonly: bool = False
    is_overwritten: bool = False
    parameter: int | None = None
    offset: int | None = None
    common: tuple[int, int] | None = None

    @property
    def is_shared(self) -> bool:
        """Whether it is a tile."""
        return self.offset is not None


@dataclass(frozen=True)
class Checks:
    """The numbered accesses of a kernel, and the memory that they are made to, for its checks.

    Where threads wait at different places, ``sites`` are the accesses that stand for calls of the runtime: the last.
    """

    accesses: tuple[CheckedAccess, ...]
    memories: tuple[MemoryObject, ...]
    sites: int = 0

    def constants(self) -> list[tuple[int, str]]:
        """Return number and symbol of the constants, whose addresses only the machine code knows."""
        return [(n, m.name) for n, m in enumerate(self.memories) if m.parameter is None and m.offset is None]


def insert_checks(
    module: ir.Module,
    kernel: ir.Operation,
    tiles: Sequence[ContextTile],
    buffers: Sequence[tuple[int, bool]],
    in_blocks: bool = False,
) -> Checks:
    """Add a check to every access of a module whose functions all have a context, before its tiles are addressed.

    ``buffers`` tells of each of the kernel's buffers its bytes and whether it is read-only. ``in_blocks``: threads wait
    at different places. Memory on the stack is not checked. Raises CompilerError for other operations that access
    memory.
    """
    inserter = _Inserter(module, kernel, tiles, buffers, in_blocks)
    for function in defined_functions(module):
        inserter.function(function)
    inserter.declare(module)
    return inserter.checks()


class _Inserter:
    def __init__(
        self,
        module: ir.Module,
        kernel: ir.Operation,
        tiles: Sequence[ContextTile],
        buffers: Sequence[tuple[int, bool]],
        in_blocks: bool,
    ):
        self._i64 = ir.IntegerType.get_signless(64)
        # The functions of the runtime for blocks take all numbers as i64.
        self._i32 = self._i64 if in_blocks else ir.IntegerType.get_signless(32)
        self._check_name = f"{HOST_CHECKED_PREFIX}check" if in_blocks else CHECK
        self._pointer = ir.llvm.PointerType.get()
        self._buffers = buffers
        self._inputs = int_of(kernel.attributes[INPUTS]) if INPUTS in kernel.attributes else None
        overwritten = kernel.attributes.get(OVERWRITES)
        self._overwritten = int_array_of(overwritten) if overwritten is not None else ()
        self._tiles = tiles
        self._constants = [
            op.operation
            for op in module.body.operations
            if op.operation.name == "llvm.mlir.global" and not is_tile(op.operation)
        ]
        names = [*(tile.name for tile in tiles), *(_name(constant) for constant in self._constants)]
        self._numbers: dict[ir.Value | str, int] = {name: len(buffers) + n for n, name in enumerate(names)}
        parameters = kernel.regions[0].blocks[0].arguments
        self._numbers.update({parameters[number]: number for number in range(len(buffers))})
        # Per memory, by what its accesses are divisible; those of unknown memory count for all.
        self._granules: dict[int, int] = {}
        if in_blocks:
            # Copies and products access tiles by whole words.
            self._granules = {len(buffers) + n: WORD_BYTES for n in range(len(tiles))}
        self._accesses: list[CheckedAccess] = []

    def function(self, function: ir.Operation) -> None:
        """Check the accesses of one function."""
        state = ir.AsmState(function)
        context = context_of(function)
        accesses = [(op, place_of(op, state)) for op in walk(function) if op.name in _ACCESSES]
        for op, place in accesses:
            position = _ACCESSES[op.name]
            number = self._memory_of(op.operands[position])
            if number is not None:
                with ir.InsertionPoint(op), op.location:
                    op.operands[position] = self._check(op, place, op.operands[position], number, context)

    def _memory_of(self, pointer: ir.Value) -> int | None:
        """Return the number of the memory that a pointer points into, ``_DYNAMIC`` if unknown, None for the stack."""
        while not isinstance(pointer, ir.BlockArgument):
            op = pointer.owner
            assert isinstance(op, ir.Operation | ir.OpView)
            operation = op.operation
            if operation.name == "llvm.alloca":
                return None
            if operation.name == "llvm.mlir.addressof":
                name = ir.FlatSymbolRefAttr(operation.attributes["global_name"]).value
                return self._numbers.get(name, _DYNAMIC)
            if operation.name == "llvm.call" and callee_of(operation) in REGISTER_FUNCTIONS:
                return None
            if operation.name not in _SAME_OBJECT:
                return _DYNAMIC
            pointer = operation.operands[0]
        return self._numbers.get(pointer, _DYNAMIC)

    def _check(
        self, op: ir.Operation, place: SourceOperation, pointer: ir.Value, number: int, context: ir.Value
    ) -> ir.Value:
        type_ = op.results[0].type if op.name == "llvm.load" else op.operands[1 - _ACCESSES[op.name]].type
        size, element = size_of(type_), size_of(type_.element_type if isinstance(type_, ir.VectorType) else type_)
        if size > SCRATCH_BYTES:
            raise CompilerError(
                f"'{place.text}': an access of {size} bytes cannot be checked, only up to {SCRATCH_BYTES}"
            )
        alignment = _integer(op, "alignment") or 1 << (size - 1).bit_length()
        self._granules[number] = math.gcd(self._granules.get(number, 0), size, alignment)
        kind = {"llvm.load": READS, "llvm.store": WRITES}.get(op.name, READS | WRITES | ATOMIC)
        kind |= ATOMIC if _integer(op, "ordering") else 0
        kind |= AWAITS if AWAITS_ATTRIBUTE in op.attributes else 0
        self._accesses.append(CheckedAccess(place, kind, size, element))
        wide = [self._constant(value, self._i64) for value in (size, alignment)]
        narrow = [self._constant(value, self._i32) for value in (kind, len(self._accesses) - 1)]
        operands = [context, self._constant(number, self._i32), pointer, *wide, *narrow]
        return create_call(self._check_name, operands, [self._pointer]).result

    def _constant(self, value: int, type_: ir.Type) -> ir.Value:
        attributes: dict[str, ir.Attribute] = {"value": ir.IntegerAttr.get(type_, value)}
        return ir.Operation.create("llvm.mlir.constant", [type_], attributes=attributes).results[0]

    def declare(self, module: ir.Module) -> None:
        """Declare the function that checks."""
        types = [self._pointer, self._i32, self._pointer, self._i64, self._i64, self._i32, self._i32]
        attributes = {
            "sym_name": ir.StringAttr.get(self._check_name),
            "function_type": ir.TypeAttr.get(ir.llvm.FunctionType.get(self._pointer, types)),
        }
        with ir.InsertionPoint.at_block_begin(module.body):
            ir.Operation.create("llvm.func", attributes=attributes, regions=1)

    def checks(self) -> Checks:
        """Return the checks inserted."""
        memories = []
        for number, (size, is_readonly) in enumerate(self._buffers):
            flags = is_readonly, number - (self._inputs or 0) in self._overwritten
            memories.append(
                MemoryObject(self._buffer_name(number), size, self._granule(number), *flags, parameter=number)
            )
        memories += self._tile_memories(len(memories))
        for constant in self._constants:
            size = size_of(ir.TypeAttr(constant.attributes["global_type"]).value)
            memories.append(MemoryObject(_name(constant), size, self._granule(len(memories)), is_readonly=True))
        return Checks(tuple(self._accesses), tuple(memories))

    def _tile_memories(self, first: int) -> Iterator[MemoryObject]:
        """Yield the tiles, of which the first has the number ``first``; those that share memory have one granule."""
        common = [_common(tile, self._tiles) for tile in self._tiles]
        for tile, its in zip(self._tiles, common, strict=True):
            beside = [first + number for number, each in enumerate(common) if each == its]
            granule = math.gcd(*map(self._granule, beside))
            yield MemoryObject(
                tile.name, tile.size, granule, offset=tile.offset, common=its if len(beside) > 1 else None
            )

    def _buffer_name(self, number: int) -> str:
        if self._inputs is None:
            return f"buffer {number}"
        return f"input {number}" if number < self._inputs else f"output {number - self._inputs}"

    def _granule(self, number: int) -> int:
        return math.gcd(self._granules.get(number, 0), self._granules.get(_DYNAMIC, 0)) or 1


def _common(tile: ContextTile, tiles: Sequence[ContextTile]) -> tuple[int, int]:
    """Return the bytes in which a tile lies, all tiles that share some with it, with those, and so on."""
    first, end = tile.offset, tile.offset + tile.size
    while True:
        inside = [each for each in tiles if each.offset < end and first < each.offset + each.size]
        wider = min(each.offset for each in inside), max(each.offset + each.size for each in inside)
        if wider == (first, end):
            return wider
        first, end = wider


def _name(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def _integer(op: ir.Operation, name: str) -> int:
    attribute = op.attributes.get(name)
    return 0 if attribute is None else int(attribute.value)  # type: ignore[attr-defined]
