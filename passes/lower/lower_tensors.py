"""The pass lower-tensors."""

import hashlib
import math
from functools import partial
from typing import ClassVar

from xgpu import ir
from xgpu.dialects.attributes import ALIASES, ELEMENT_TYPE, INDEX_BITS, INPUTS, KERNEL, int_array_of, int_of
from xgpu.dialects.block.memory import ArrayPointerOp
from xgpu.dialects.messages import AwaitOp, PublishOp
from xgpu.dialects.threads import AllocateSharedOp, AtomicAddOp, AtomicRmwOp, SyncWarpOp
from xgpu.dialects.traits import traits_of
from xgpu.passes.framework.base import Pass, functions
from xgpu.passes.llvm.memory import (
    CONSTANT_SPACE,
    GLOBAL_SPACE,
    address_of,
    atomic_update,
    element_pointer,
    i64_attribute,
    load,
    pointer_type,
    store,
)
from xgpu.passes.llvm.uniform_values import UniformValues
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.atomic_updates import FLOAT_ADD, ElementAddress, Update, find_update, write_update
from xgpu.passes.support.memory_layout import (
    constant_in_memory,
    element_bits,
    from_memory,
    is_packed,
    memory_bytes,
    memory_type,
    to_memory,
)
from xgpu.passes.support.messages import read_message, write_message
from xgpu.passes.support.packed_accesses import place_in_byte, read_packed, write_packed
from xgpu.passes.support.shared_tiles import SharedTiles
from xgpu.passes.support.tensor_buffers import BufferUse, TensorBuffer, TensorBuffers, fail, is_tensor
from xgpu.records import dataclass
from xgpu.structure import replace_op, users_of

MAX_ACCESS_BYTES = 16
POINTER_ALIGNMENT = 16
# The hardware has 64 KiB of constant memory for a module; larger tables go to global memory.
MAX_CONSTANT_BYTES = 32 * 1024


@dataclass(frozen=True)
class LowerTensors(Pass):
    """Replaces tensors by pointers, and their accesses by loads and stores.

    Needs flatten-tensors (every tensor has one dimension), lower-predicated and lower-shuffles to have run. Tensor
    parameters become pointers to global memory, constants and tiles globals, and the tensors that loops, conditionals
    and functions hand on vanish, since an update is made in place. `xgpu.sync_threads` becomes `gpu.barrier`, an atomic
    update the instruction that does what its region says, or a loop, a message words that are stored, or loaded until
    they are there. An input whose memory is an output's
    (``xgpu.aliases``) must not be read. An i1 is a byte in memory, an 8-bit float is read and written as one, and
    elements of 2 and 4 bits are packed but in tiles: writing less than a byte of them reads it first, so one thread
    must write all its elements.

    ```mlir
    func.func @k(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32>
        attributes {xgpu.kernel, xgpu.inputs = 1 : i64} {
      %x = tensor.extract %a[%i] : tensor<8xf32>
      %r = tensor.insert %x into %b[%i] : tensor<8xf32>
      return %r : tensor<8xf32>
    }
    // becomes
    func.func @k(%a: !llvm.ptr<1> {llvm.noalias, llvm.readonly, ...}, %b: !llvm.ptr<1> {llvm.noalias, ...}) {
      %n = arith.index_cast %i : index to i32
      %p = llvm.getelementptr %a[%n] {xgpu.flags = "inbounds"} : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %x = llvm.load %p invariant <alignment = 4> : !llvm.ptr<1> -> f32
      %q = llvm.getelementptr %b[%n] {xgpu.flags = "inbounds"} : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %x, %q <alignment = 4> : f32, !llvm.ptr<1>
      return
    }
    ```
    """

    NAME: ClassVar[str] = "lower-tensors"

    def apply(self, module: ir.Module) -> None:
        constants = _Constants(module)
        for function in functions(module):
            _FunctionLowering(function, constants).run()


class _Constants:
    """Makes globals of the module's constant tensors; equal ones become one, named after its content."""

    def __init__(self, module: ir.Module):
        self._module = module
        self._names: dict[tuple[ir.Attribute, int], str] = {}
        self._constant_bytes = 0

    def address(self, op: ir.Operation, needs_global_space: bool) -> ir.Value:
        """Return the address of the constant ``op``, an operation made before it."""
        value = ir.DenseElementsAttr(op.attributes["value"])
        type_ = ir.RankedTensorType(value.type)
        size = memory_bytes(type_.element_type, math.prod(type_.shape), op)
        space = CONSTANT_SPACE
        if needs_global_space or self._constant_bytes + size > MAX_CONSTANT_BYTES:
            space = GLOBAL_SPACE
        name = self._names.get((value, space))
        if name is None:
            self._constant_bytes += size if space == CONSTANT_SPACE else 0
            name = self._names[value, space] = self._define(value, space, op)
        with ir.InsertionPoint(op), op.location:
            return address_of(name, space)

    def _define(self, value: ir.DenseElementsAttr, space: int, op: ir.Operation) -> str:
        value = constant_in_memory(value, op)
        type_ = ir.RankedTensorType(value.type)
        name = f"constant_{hashlib.sha256(str(value).encode()).hexdigest()[:12]}{'_global' * (space == GLOBAL_SPACE)}"
        array = ir.Type.parse(f"!llvm.array<{math.prod(type_.shape)} x {type_.element_type}>")
        ir.Operation.create(
            "llvm.mlir.global",
            attributes={
                "sym_name": ir.StringAttr.get(name),
                "global_type": ir.TypeAttr.get(array),
                "linkage": ir.Attribute.parse("#llvm.linkage<private>"),
                "constant": ir.UnitAttr.get(),
                "value": value,
                "addr_space": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), space),
                "alignment": i64_attribute(MAX_ACCESS_BYTES),
            },
            regions=1,
            loc=op.location,
            ip=ir.InsertionPoint.at_block_begin(self._module.body),
        )
        return name


class _FunctionLowering:
    """Lowers one function. Tensors keep their types until the end, so that they can be told from pointers."""

    def __init__(self, function: ir.func.FuncOp, constants: _Constants):
        self._function = function.operation
        self._constants = constants
        self._block = self._function.regions[0].blocks[0]
        attributes = self._function.attributes
        self._name = ir.StringAttr(attributes["sym_name"]).value
        self._is_kernel = KERNEL in attributes
        bits = int_of(attributes[INDEX_BITS]) if INDEX_BITS in attributes else 64
        self._index = ir.IntegerType.get_signless(bits)
        self._aliased: set[ir.Value] = set()
        self._of_one_kind: set[TensorBuffer] = set()
        self._uniform = UniformValues()

    def run(self) -> None:
        buffers = self._parameters()
        tensors = TensorBuffers(self._function, buffers)
        self._check_results(tensors, buffers)
        self._check_aliases(tensors, buffers)
        if tensors.tiles and not self._is_kernel:
            fail(self._function, "expected tiles to be allocated by the kernel alone")
        for op in tensors.structural:
            _drop_tensors(op, tensors)
        for op in tensors.barriers:
            _lower_barrier(op, tensors)
        # From here on the types of tensors are those of their addresses.
        for buffer in buffers:
            buffer.source.set_type(pointer_type(GLOBAL_SPACE))
        self._tiles = SharedTiles(self._function, tensors.tiles, tensors.memories)
        for number, op in enumerate(tensors.memories):
            with ir.InsertionPoint(op), op.location:
                replace_op(op, [self._tiles.raw_address(number)])
        updates = self._find_updates(tensors)
        for access, update in zip(tensors.accesses, updates, strict=True):
            with ir.InsertionPoint(access.op), access.op.location:
                self._lower_access(access, update)
        for op in tensors.calls:
            _lower_call(op)
        self._lower_signature(buffers)

    def _parameters(self) -> list[TensorBuffer]:
        """Return a buffer for each tensor parameter; a kernel's parameters after its inputs are writable."""
        inputs = len(self._block.arguments)
        if self._is_kernel:
            if INPUTS not in self._function.attributes:
                fail(self._function, f"expected attribute '{INPUTS}' on the kernel @{self._name}")
            inputs = int_of(self._function.attributes[INPUTS])
        buffers = []
        for position, argument in enumerate(self._block.arguments):
            if not is_tensor(argument):
                continue
            type_ = ir.RankedTensorType(argument.type)
            if type_.rank != 1 or not type_.has_static_shape:
                fail(
                    self._function, f"expected tensors of one static dimension, got {type_}; run flatten-tensors first"
                )
            element_bits(type_.element_type, self._function)
            buffers.append(TensorBuffer(argument, f"parameter {position} of @{self._name}", position >= inputs))
        return buffers

    def _check_results(self, tensors: TensorBuffers, buffers: list[TensorBuffer]) -> None:
        """A kernel returns its outputs, in order; no other function returns a tensor."""
        returned = [op for op in tensors.structural if op.name == "func.return"]
        got = [tensors.buffer_of(value) for op in returned for value in op.operands if is_tensor(value)]
        expected = [buffer for buffer in buffers if buffer.writable]
        if got != expected:
            names = [", ".join(buffer.name for buffer in each) or "nothing" for each in (expected, got)]
            fail(self._function, f"expected @{self._name} to return {names[0]}, got {names[1]}")

    def _check_aliases(self, tensors: TensorBuffers, buffers: list[TensorBuffer]) -> None:
        """No access is to an input whose memory is that of an output."""
        if ALIASES not in self._function.attributes:
            return
        aliases = int_array_of(self._function.attributes[ALIASES])
        self._aliased = {self._block.arguments[number] for number in aliases if number >= 0}
        used = {access.buffer.source: access.op for access in tensors.accesses}
        used |= {operand: op for op in tensors.calls for operand in op.operands}
        for buffer in buffers:
            if buffer.source in self._aliased and buffer.source in used:
                fail(used[buffer.source], f"reads {buffer.name}, which is updated in place as an output")

    def _find_updates(self, tensors: TensorBuffers) -> list[Update | None]:
        """Return what each access does if it is an atomic update; note the tensors with one kind of update only."""
        kinds: dict[TensorBuffer, set[str]] = {}
        updates: list[Update | None] = []
        for op, buffer in ((access.op, access.buffer) for access in tensors.accesses):
            update = find_update(op) if op.name == AtomicRmwOp.OPERATION_NAME else None
            updates.append(update)
            if traits_of(op.name).updates is not None:
                plain = FLOAT_ADD if op.name == AtomicAddOp.OPERATION_NAME else op.name
                kinds.setdefault(buffer, set()).add(update.kind if update else plain)
        self._of_one_kind = {buffer for buffer, names in kinds.items() if len(names) == 1}
        return updates

    def _lower_access(self, access: BufferUse, update: Update | None) -> None:
        op, buffer = access.op, access.buffer
        match op.name:
            case "arith.constant":
                self._place_constant(op, buffer)
            case AllocateSharedOp.OPERATION_NAME:
                self._place_tile(op, buffer)
            case AtomicRmwOp.OPERATION_NAME:
                assert update is not None
                self._update(op, buffer, update)
            case AtomicAddOp.OPERATION_NAME:
                self._add(op, buffer, *op.operands)
            case PublishOp.OPERATION_NAME:
                self._publish(op, buffer)
            case AwaitOp.OPERATION_NAME:
                self._await(op)
            case ArrayPointerOp.OPERATION_NAME:
                replace_op(op, [op.operands[0]])
            case "tensor.extract":
                self._read(op, buffer, op.operands[0], op.operands[1])
            case "tensor.insert":
                self._write(op, buffer, op.operands[0], op.operands[1], op.operands[2])
            case "vector.transfer_read":
                _check_transfer(op)
                self._read(op, buffer, op.operands[0], op.operands[1])
            case "vector.transfer_write":
                _check_transfer(op)
                self._write(op, buffer, op.operands[0], op.operands[1], op.operands[2])
            case _:
                fail(op, "expected only scalar and vector accesses to tensors here")

    def _place_constant(self, op: ir.Operation, buffer: TensorBuffer) -> None:
        if buffer.type.rank != 1:
            fail(op, f"expected a constant of one dimension, got {buffer.type}; run flatten-tensors first")
        element_bits(buffer.type.element_type, op)
        address = self._constants.address(op, buffer.passed_to_call or not self._is_read_alike(op))
        op.results[0].replace_all_uses_with(address)
        op.erase()

    def _is_read_alike(self, op: ir.Operation) -> bool:
        """Whether all threads of a warp read the same element at a time: constant memory serves one address at once."""
        return all(self._uniform.holds(index) for user in users_of(op.results[0]) for index in user.operands[1:2])

    def _place_tile(self, op: ir.Operation, buffer: TensorBuffer) -> None:
        buffer.source = self._tiles.address(buffer)
        op.results[0].replace_all_uses_with(buffer.source)
        op.erase()

    def _read(self, op: ir.Operation, buffer: TensorBuffer, tensor: ir.Value, index: ir.Value) -> None:
        type_ = op.results[0].type
        index = ir.arith.index_cast(self._index, index)
        if is_packed(b.element_type(type_)) and not buffer.is_tile:
            value = read_packed(
                type_, index, partial(element_pointer, tensor, b.integer_type(8)), partial(_load, buffer)
            )
        else:
            memory, alignment = _access_type(op, type_)
            pointer = element_pointer(tensor, b.element_type(memory), index)
            value = _load(buffer, pointer, memory, alignment)
            if memory != type_:
                value = from_memory(value, b.element_type(type_))
        op.results[0].replace_all_uses_with(value)
        op.erase()

    def _write(
        self, op: ir.Operation, buffer: TensorBuffer, value: ir.Value, tensor: ir.Value, index: ir.Value
    ) -> None:
        index = ir.arith.index_cast(self._index, index)
        if is_packed(b.element_type(value.type)) and not buffer.is_tile:
            address = partial(element_pointer, tensor, b.integer_type(8))
            write_packed(value, index, address, partial(_load, buffer), store)
        else:
            memory, alignment = _access_type(op, value.type)
            if memory != value.type:
                value = to_memory(value, b.element_type(memory).width)  # type: ignore[attr-defined]
            store(value, element_pointer(tensor, b.element_type(memory), index), alignment)
        op.results[0].replace_all_uses_with(buffer.source)
        op.erase()

    def _update(self, op: ir.Operation, buffer: TensorBuffer, update: Update) -> None:
        tensor, element = op.operands[0], buffer.type.element_type
        index = ir.arith.index_cast(self._index, op.operands[1])
        if is_packed(element) and not buffer.is_tile:
            pointer, shift = place_in_byte(element, index, partial(element_pointer, tensor, b.integer_type(8)))
            place = ElementAddress(pointer, element, element_bits(element, op), shift)
        else:
            memory = memory_type(element, op)
            place = ElementAddress(element_pointer(tensor, memory, index), element, memory.width)  # type: ignore[attr-defined]
        write_update(op, update, place, buffer in self._of_one_kind)
        op.results[0].replace_all_uses_with(buffer.source)
        op.erase()

    def _add(self, op: ir.Operation, buffer: TensorBuffer, values: ir.Value, tensor: ir.Value, index: ir.Value) -> None:
        index = ir.arith.index_cast(self._index, index)
        atomic_update("fadd", element_pointer(tensor, b.element_type(values.type), index), values)
        op.results[0].replace_all_uses_with(buffer.source)
        op.erase()

    def _publish(self, op: ir.Operation, buffer: TensorBuffer) -> None:
        board, index, *values = op.operands
        write_message(board, ir.arith.index_cast(self._index, index), values)
        op.results[0].replace_all_uses_with(buffer.source)
        op.erase()

    def _await(self, op: ir.Operation) -> None:
        board, index = op.operands
        types = [result.type for result in op.results]
        replace_op(op, read_message(board, ir.arith.index_cast(self._index, index), types))

    def _lower_signature(self, buffers: list[TensorBuffer]) -> None:
        attributes = self._function.attributes
        described = {buffer.source: buffer for buffer in buffers}
        given = ir.ArrayAttr(attributes["arg_attrs"]) if "arg_attrs" in attributes else None
        argument_attributes: list[ir.Attribute] = []
        for position, argument in enumerate(self._block.arguments):
            old = _entries(ir.DictAttr(given[position])) if given is not None else {}
            if argument in described:
                old.pop(ELEMENT_TYPE, None)
                old |= _pointer_attributes(described[argument], self._function, argument in self._aliased)
            argument_attributes.append(ir.DictAttr.get(old))
        attributes["arg_attrs"] = ir.ArrayAttr.get(argument_attributes)
        results = ir.FunctionType(ir.TypeAttr(attributes["function_type"]).value).results
        kept = [position for position, type_ in enumerate(results) if not isinstance(type_, ir.RankedTensorType)]
        if "res_attrs" in attributes:
            given_results = ir.ArrayAttr(attributes["res_attrs"])
            attributes["res_attrs"] = ir.ArrayAttr.get([given_results[position] for position in kept])
        inputs = [argument.type for argument in self._block.arguments]
        type_ = ir.FunctionType.get(inputs, [results[position] for position in kept])
        attributes["function_type"] = ir.TypeAttr.get(type_)


def _entries(attributes: ir.DictAttr) -> dict[str, ir.Attribute]:
    return {entry.name: entry.attr for entry in (attributes[index] for index in range(len(attributes)))}


def _pointer_attributes(buffer: TensorBuffer, function: ir.Operation, is_aliased: bool) -> dict[str, ir.Attribute]:
    """LLVM's attributes of a pointer parameter; ``is_aliased``: it shares memory with an output that is used."""
    size = memory_bytes(buffer.type.element_type, math.prod(buffer.type.shape), function)
    attributes: dict[str, ir.Attribute] = {"llvm.align": i64_attribute(POINTER_ALIGNMENT)}
    # What a barrier makes seen was written by other threads, by pointers that are not derived from this one.
    if not (is_aliased or buffer.is_synchronized):
        attributes["llvm.noalias"] = ir.UnitAttr.get()
    if size:
        attributes["llvm.dereferenceable"] = i64_attribute(size)
    if not buffer.writable:
        attributes["llvm.readonly"] = ir.UnitAttr.get()
    return attributes


def _access_type(op: ir.Operation, type_: ir.Type) -> tuple[ir.Type, int]:
    """Return the type in memory of a scalar or vector that is read or written, and its alignment in bytes.

    A vector access begins at a multiple of its length, so its alignment is that of the whole vector.
    """
    memory = b.like(type_, memory_type(b.element_type(type_), op))
    count = math.prod(type_.shape) if isinstance(type_, ir.VectorType) else 1
    size = count * b.element_type(memory).width // 8  # type: ignore[attr-defined]
    return memory, min(MAX_ACCESS_BYTES, size & -size)


def _load(buffer: TensorBuffer, pointer: ir.Value, type_: ir.Type, alignment: int) -> ir.Value:
    return load(pointer, type_, alignment, invariant=not buffer.writable)


def _check_transfer(op: ir.Operation) -> None:
    """A transfer is one contiguous access within bounds."""
    vector = op.results[0].type if op.name == "vector.transfer_read" else op.operands[0].type
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    in_bounds = [bool(ir.BoolAttr(each).value) for each in ir.ArrayAttr(op.attributes["in_bounds"])]
    is_identity = str(op.attributes["permutation_map"]) == "affine_map<(d0) -> (d0)>"
    if ir.VectorType(vector).rank != 1 or in_bounds != [True] or segments[-1] or not is_identity:
        fail(op, "expected a transfer of one dimension, in bounds, without mask or permutation")


def _drop_tensors(op: ir.Operation, tensors: TensorBuffers) -> None:
    """Rebuild ``op`` without the tensors among its operands, results and block arguments."""
    new = ir.Operation.create(
        op.name,
        results=[value.type for value in op.results if not is_tensor(value)],
        operands=[value for value in op.operands if not is_tensor(value)],
        attributes=dict(op.attributes.items()),
        regions=len(op.regions),
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    for old_region, new_region in zip(op.regions, new.regions, strict=True):
        for block in list(old_region.blocks):
            block.append_to(new_region)
            for position in reversed(range(len(block.arguments))):
                argument = block.arguments[position]
                if is_tensor(argument):
                    argument.replace_all_uses_with(tensors.buffer_of(argument).source)
                    block.erase_argument(position)
    kept = iter(new.results)
    for result in op.results:
        result.replace_all_uses_with(tensors.buffer_of(result).source if is_tensor(result) else next(kept))
    op.erase()


def _lower_barrier(op: ir.Operation, tensors: TensorBuffers) -> None:
    """Replace a barrier by one without tiles."""
    with ir.InsertionPoint(op), op.location:
        if op.name == SyncWarpOp.OPERATION_NAME:
            SyncWarpOp.build([])
        else:
            ir.Operation.create("gpu.barrier")
    for result in op.results:
        result.replace_all_uses_with(tensors.buffer_of(result).source)
    op.erase()


def _lower_call(op: ir.Operation) -> None:
    """Replace ``xgpu.pure_call`` by a call; its operands are pointers as soon as the signature is lowered."""
    if op.name == "func.call":
        return
    call = ir.Operation.create(
        "func.call",
        results=[value.type for value in op.results],
        operands=list(op.operands),
        attributes={"callee": op.attributes["callee"]},
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    for old, new in zip(op.results, call.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()
