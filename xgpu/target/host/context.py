"""The memory in which one host driver runs blocks one after the other: its layout, and the shared memory in it.

A context holds a header, the tiles of the block that runs, and the frames of its threads' coroutines. Every driver call
has one of its own, so blocks that run at the same time share nothing.
"""

import ctypes
from collections.abc import Iterator

from xgpu import ir
from xgpu.device import DEVICES
from xgpu.dialects.attributes import FLAGS, SHARED_BYTES, SHARED_OFFSET, int_of
from xgpu.errors import CompilerError
from xgpu.records import dataclass
from xgpu.structure import walk
from xgpu.target_machine import HOST

ALIGNMENT = 1024
"""Bytes to which a context, and the shared memory in it, are aligned."""
FRAME_ALIGNMENT = 64
WARP = HOST.warp_size
PIECES = 8
"""The most i32 values that the threads of a warp exchange in one step."""
SCRATCH_BYTES = 512
"""Size of the memory for accesses that a checked kernel must not make; none is larger than 128 numbers."""


class Header(ctypes.Structure):
    """The start of a context. Threads store what they wait for in ``site`` (0: nothing more to do) and then suspend.

    Epochs count up from 1 with every block and every barrier; ``first_epoch`` is that of the block's start. Turns count
    up with every warp that begins to run, and with each of its barriers; ``first_turn`` is that of the begin. Lanes
    store what they give to a shuffle in ``write_slots``, and read from ``read_slots`` what others gave: ``PIECES``
    numbers a lane. If the threads of a block do not meet, ``diverged`` is 1, and two ``threads`` and their ``sites``
    say where. Where threads wait at different places a block has a ``state`` (`xgpu.target.host.block`), and ``stop``
    says why not all came to their end.
    """

    _fields_ = [
        ("block", ctypes.c_int64),
        ("site", ctypes.c_int32),
        ("thread", ctypes.c_int32),
        ("block_index", ctypes.c_int32 * 3),
        ("epoch", ctypes.c_int32),
        ("first_epoch", ctypes.c_int32),
        ("turn", ctypes.c_int32),
        ("first_turn", ctypes.c_int32),
        ("diverged", ctypes.c_int32),
        ("threads", ctypes.c_int32 * 2),
        ("sites", ctypes.c_int32 * 2),
        ("read_slots", ctypes.c_void_p),
        ("write_slots", ctypes.c_void_p),
        ("checks", ctypes.c_void_p),
        ("state", ctypes.c_void_p),
        ("stop", ctypes.c_int32),
        ("stop_thread", ctypes.c_int32),
        ("stop_site", ctypes.c_int64),
        ("stop_value", ctypes.c_int64),
        ("stop_rank", ctypes.c_int64),
        ("slots", ctypes.c_int32 * (2 * WARP * PIECES)),
    ]


def round_up(value: int, multiple: int) -> int:
    """Return the least multiple of ``multiple`` that is not below ``value``."""
    return -(-value // multiple) * multiple


def offset_of(field: str) -> int:
    """Return where in a context a field of its header is, in bytes."""
    return int(getattr(Header, field).offset)


SCRATCH = round_up(ctypes.sizeof(Header), SCRATCH_BYTES)
OPAQUE = SCRATCH + SCRATCH_BYTES
"""Offset of memory of as many bytes, for a value on its way from one operation to another."""
SHARED = round_up(OPAQUE + SCRATCH_BYTES, ALIGNMENT)
"""Offset of the shared memory in a context."""
UNWRITTEN_BYTE = 0xFF
"""Initial content of shared memory in a block: NaN in every type of float. All before it is zero."""
MOST_SHARED = max(each.shared_bytes_optin for each in DEVICES.values())
"""The most bytes of shared memory that a block has on any device."""


@dataclass(frozen=True)
class ContextTile:
    """A block's array in shared memory: its global's name, its offset in a context and its size, in bytes."""

    name: str
    offset: int
    size: int


def is_tile(op: ir.Operation) -> bool:
    """Whether an operation of a module declares a tile: a global that kernels write."""
    return op.name == "llvm.mlir.global" and "constant" not in op.attributes


def place_tiles(module: ir.Module, kernel: ir.Operation) -> tuple[ContextTile, ...]:
    """Lay out the module's tiles in a context, those first that say where they begin.

    The dynamic one, of no size, comes last and takes xgpu.shared_bytes.

    Raises CompilerError for a tile with an initial value or an alignment above ``ALIGNMENT``, and for more bytes than
    any device has.
    """
    tiles = [op.operation for op in module.body.operations if is_tile(op.operation)]
    dynamic = int_of(kernel.attributes[SHARED_BYTES]) if SHARED_BYTES in kernel.attributes else 0
    placed, end = [], SHARED
    for tile in sorted(tiles, key=lambda op: (not size_of(_tile_type(op)), SHARED_OFFSET not in op.attributes)):
        name = ir.StringAttr(tile.attributes["sym_name"]).value
        if _has_value(tile):
            raise CompilerError(f"the global '{name}' is written and has an initial value: tiles have none on the GPU")
        alignment = int_of(tile.attributes["alignment"]) if "alignment" in tile.attributes else 16
        if alignment > ALIGNMENT:
            raise CompilerError(
                f"the tile '{name}' is aligned to {alignment} bytes, on the host at most to {ALIGNMENT}"
            )
        start, size = round_up(end, max(alignment, 16)), size_of(_tile_type(tile))
        if SHARED_OFFSET in tile.attributes:
            start = SHARED + int_of(tile.attributes[SHARED_OFFSET])
        placed.append(ContextTile(name, start, size or dynamic))
        end = max(end, start + size)
    needed = max((tile.offset + tile.size - SHARED for tile in placed), default=0)
    if needed > MOST_SHARED:
        raise CompilerError(f"the tiles take {needed} bytes of shared memory, no device has over {MOST_SHARED}")
    return tuple(placed)


def address_tiles(module: ir.Module, tiles: tuple[ContextTile, ...]) -> None:
    """Replace the tiles' addresses by places in the context, every function's last parameter, and remove the tiles."""
    offsets = {tile.name: tile.offset for tile in tiles}
    for function in defined_functions(module):
        context = context_of(function)
        for op in walk(function, "llvm.mlir.addressof"):
            name = ir.FlatSymbolRefAttr(op.attributes["global_name"]).value
            if name in offsets:
                with ir.InsertionPoint(op), op.location:
                    address = byte_address(context, offsets[name])
                op.results[0].replace_all_uses_with(address)
                op.erase()
    for tile in [op.operation for op in module.body.operations if is_tile(op.operation)]:
        tile.erase()


def add_context(module: ir.Module) -> None:
    """Give every function of the module a last parameter, the context, and pass it on in every call."""
    functions = list(defined_functions(module))
    names = {ir.StringAttr(function.attributes["sym_name"]).value for function in functions}
    for function in functions:
        context = add_parameter(function)
        for call in walk(function, "llvm.call"):
            callee = call.attributes.get("callee")
            if callee is not None and ir.FlatSymbolRefAttr(callee).value in names:
                _pass_on(call, context)


def _pass_on(call: ir.Operation, context: ir.Value) -> None:
    operands = [*call.operands, context]
    attributes = dict(call.attributes.items())
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([len(operands), 0])
    types = [result.type for result in call.results]
    new = ir.Operation.create("llvm.call", types, operands, attributes, loc=call.location, ip=ir.InsertionPoint(call))
    for old, value in zip(call.results, new.results, strict=True):
        old.replace_all_uses_with(value)
    call.erase()


def add_parameter(function: ir.Operation) -> ir.Value:
    """Give a function a last parameter, a pointer, and return it."""
    pointer = ir.llvm.PointerType.get()
    type_ = ir.llvm.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs = [*type_.inputs, pointer]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.llvm.FunctionType.get(type_.return_type, inputs))
    if "arg_attrs" in function.attributes:
        given = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([*given, ir.DictAttr.get({})])
    return function.regions[0].blocks[0].add_argument(pointer, function.location)


def context_of(function: ir.Operation) -> ir.Value:
    """Return the context of a function that ``add_context`` gave one."""
    arguments = function.regions[0].blocks[0].arguments
    return arguments[len(arguments) - 1]


def byte_address(base: ir.Value, offset: int) -> ir.Value:
    """Create the address ``offset`` bytes after ``base``, inside the same object."""
    pointer, i8 = ir.llvm.PointerType.get(), ir.IntegerType.get_signless(8)
    attributes = {
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([offset]),
        "elem_type": ir.TypeAttr.get(i8),
        FLAGS: ir.StringAttr.get("inbounds"),
    }
    return ir.Operation.create("llvm.getelementptr", [pointer], [base], attributes).results[0]


def defined_functions(module: ir.Module) -> Iterator[ir.Operation]:
    """Yield every function of an ``llvm``-level module that has a body."""
    for op in module.body.operations:
        if op.operation.name == "llvm.func" and len(op.operation.regions[0].blocks):
            yield op.operation


def size_of(type_: ir.Type) -> int:
    """Return the bytes that a value of an ``llvm``-level type takes in memory; raises CompilerError for structs."""
    if isinstance(type_, ir.llvm.ArrayType):
        return int(type_.num_elements) * size_of(type_.element_type)
    if isinstance(type_, ir.VectorType):
        return -(-int(type_.shape[0]) * _bits(type_.element_type) // 8)
    return -(-_bits(type_) // 8)


def _bits(type_: ir.Type) -> int:
    if isinstance(type_, ir.IntegerType | ir.FloatType):
        return int(type_.width)
    if isinstance(type_, ir.llvm.PointerType):
        return 64
    raise CompilerError(f"the size of {type_} is not known: expected integers, floats, pointers, vectors or arrays")


def _tile_type(tile: ir.Operation) -> ir.Type:
    return ir.TypeAttr(tile.attributes["global_type"]).value


def _has_value(tile: ir.Operation) -> bool:
    """Whether a global starts with a value other than undef or poison."""
    blocks = list(tile.regions[0].blocks)
    if "value" in tile.attributes or not blocks:
        return "value" in tile.attributes
    return any(
        op.operation.name not in ("llvm.mlir.undef", "llvm.mlir.poison", "llvm.return") for op in blocks[0].operations
    )
