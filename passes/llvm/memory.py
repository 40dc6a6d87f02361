"""Makes the operations of the LLVM dialect on memory at the current insertion point: addresses, accesses, atomics.

Atomic operations are relaxed and hold for all threads of the device: ``syncscope("device") monotonic``.
"""

from collections.abc import Mapping

from xgpu import ir
from xgpu.dialects.attributes import FLAGS
from xgpu.passes.support.arith_builder import element_type

GLOBAL_SPACE, SHARED_SPACE, CONSTANT_SPACE = 1, 3, 4
SYNC_SCOPE = "syncscope"
_DEVICE_SCOPE = "device"
_MONOTONIC = 2
_DYNAMIC_INDEX = -(2**31)
ATOMIC_OPERATIONS = {
    "xchg": 0,
    "add": 1,
    "and": 3,
    "or": 5,
    "xor": 6,
    "max": 7,
    "min": 8,
    "umax": 9,
    "umin": 10,
    "fadd": 11,
}
"""The numbers of the operations of `llvm.atomicrmw` that passes use."""


def i64_attribute(value: int) -> ir.IntegerAttr:
    """Return ``value : i64``."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def pointer_type(space: int) -> ir.Type:
    """Return the type of pointers into an address space."""
    return ir.llvm.PointerType.get(space)


def address_of(name: str, space: int) -> ir.Value:
    """Return the address of a global of the module."""
    attributes: dict[str, ir.Attribute] = {"global_name": ir.FlatSymbolRefAttr.get(name)}
    made = ir.Operation.create("llvm.mlir.addressof", results=[pointer_type(space)], attributes=attributes)
    return made.results[0]


def element_pointer(pointer: ir.Value, element: ir.Type, index: ir.Value | int, inbounds: bool = True) -> ir.Value:
    """Return the address of an element after ``pointer``; ``index`` is an integer."""
    attributes: dict[str, ir.Attribute] = {
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([index if isinstance(index, int) else _DYNAMIC_INDEX]),
        "elem_type": ir.TypeAttr.get(element),
    }
    if inbounds:
        attributes[FLAGS] = ir.StringAttr.get("inbounds")
    operands = [pointer] if isinstance(index, int) else [pointer, index]
    made = ir.Operation.create("llvm.getelementptr", results=[pointer.type], operands=operands, attributes=attributes)
    return made.results[0]


def load(pointer: ir.Value, type_: ir.Type, alignment: int, invariant: bool = False) -> ir.Value:
    """Load a value; ``alignment`` is in bytes, and nothing ever writes what is ``invariant``."""
    attributes: dict[str, ir.Attribute] = {"alignment": i64_attribute(alignment)}
    if invariant:
        attributes["invariant"] = ir.UnitAttr.get()
    return ir.Operation.create("llvm.load", results=[type_], operands=[pointer], attributes=attributes).results[0]


def store(value: ir.Value, pointer: ir.Value, alignment: int) -> None:
    """Store a value; ``alignment`` is in bytes."""
    ir.Operation.create("llvm.store", operands=[value, pointer], attributes={"alignment": i64_attribute(alignment)})


def _atomic(alignment: int, *orderings: str) -> Mapping[str, ir.Attribute]:
    return {
        "alignment": i64_attribute(alignment),
        SYNC_SCOPE: ir.StringAttr.get(_DEVICE_SCOPE),
        **{name: i64_attribute(_MONOTONIC) for name in orderings or ("ordering",)},
    }


def atomic_load(pointer: ir.Value, type_: ir.Type) -> ir.Value:
    """Load an integer of 8 to 128 bits that other threads may update at the same time."""
    attributes = dict(_atomic(ir.IntegerType(type_).width // 8))
    return ir.Operation.create("llvm.load", results=[type_], operands=[pointer], attributes=attributes).results[0]


def atomic_store(value: ir.Value, pointer: ir.Value) -> None:
    """Store an integer or float of 8 to 128 bits, undivided."""
    attributes = dict(_atomic(value.type.width // 8))
    ir.Operation.create("llvm.store", operands=[value, pointer], attributes=attributes)


def atomic_update(operation: str, pointer: ir.Value, value: ir.Value) -> None:
    """Replace what is in memory by ``operation`` (of `ATOMIC_OPERATIONS`) of it and ``value``.

    ``value`` may be a vector of floats to add: each element is then updated on its own, which is less than LLVM's
    language promises, and expand-atomics makes of it what it means here.
    """
    type_ = value.type
    count = type_.shape[0] if isinstance(type_, ir.VectorType) else 1
    attributes = dict(_atomic(count * element_type(type_).width // 8))  # type: ignore[attr-defined]
    attributes["bin_op"] = i64_attribute(ATOMIC_OPERATIONS[operation])
    ir.Operation.create("llvm.atomicrmw", results=[type_], operands=[pointer, value], attributes=attributes)


def compare_exchange(pointer: ir.Value, expected: ir.Value, new: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Write ``new`` if memory holds ``expected``, both integers; return what it held and whether that was so."""
    boolean = ir.IntegerType.get_signless(1)
    type_ = ir.llvm.StructType.get_literal([new.type, boolean])
    attributes = dict(_atomic(ir.IntegerType(new.type).width // 8, "success_ordering", "failure_ordering"))
    operands = [pointer, expected, new]
    pair = ir.Operation.create("llvm.cmpxchg", results=[type_], operands=operands, attributes=attributes).results[0]
    seen, success = (
        ir.Operation.create(
            "llvm.extractvalue",
            results=[each],
            operands=[pair],
            attributes={"position": ir.DenseI64ArrayAttr.get([position])},
        ).results[0]
        for position, each in enumerate((new.type, boolean))
    )
    return seen, success
