"""Makes operations of the LLVM dialect for lower-to-llvm: types as LLVM has them, constants, plain operations."""

from collections.abc import Callable, Mapping, Sequence

from xgpu import ir
from xgpu.dialects.attributes import FLAGS
from xgpu.errors import CompilerError
from xgpu.hlo.source_location import source_of
from xgpu.passes.support.arith_builder import element_type, like
from xgpu.target_machine import TargetMachine


class LlvmBuilder:
    """Creates LLVM operations at the current insertion point and location, for one function.

    ``index`` values become integers of ``index_bits``; pointers lose address spaces that the machine does not have.
    """

    def __init__(self, machine: TargetMachine, index_bits: int):
        self.machine = machine
        self.index = ir.IntegerType.get_signless(index_bits)
        self.i1 = ir.IntegerType.get_signless(1)
        self.i32 = ir.IntegerType.get_signless(32)
        self._types: dict[ir.Type, ir.Type] = {}

    def type(self, type_: ir.Type) -> ir.Type:
        """Return ``type_`` as it is at the llvm level."""
        found = self._types.get(type_)
        if found is None:
            found = self._types[type_] = self._convert(type_)
        return found

    def _convert(self, type_: ir.Type) -> ir.Type:
        if isinstance(type_, ir.IndexType):
            return self.index
        if isinstance(type_, ir.VectorType):
            return ir.VectorType.get(type_.shape, self.type(type_.element_type))
        if isinstance(type_, ir.llvm.PointerType) and not self.machine.has_address_spaces:
            return ir.llvm.PointerType.get()
        return type_

    def op(
        self,
        name: str,
        operands: Sequence[ir.Value],
        result: ir.Type,
        attributes: Mapping[str, ir.Attribute] | None = None,
    ) -> ir.Value:
        """Create ``llvm.<name>`` with one result and return that."""
        op = ir.Operation.create(
            f"llvm.{name}", results=[result], operands=list(operands), attributes=dict(attributes or {})
        )
        return op.results[0]

    def binary(self, name: str, left: ir.Value, right: ir.Value) -> ir.Value:
        """Create an operation of two operands whose result has their type."""
        return self.op(name, [left, right], left.type)

    def compare(self, predicate: str, left: ir.Value, right: ir.Value) -> ir.Value:
        """Create an integer comparison: eq, ne, slt, sle, sgt, sge, ult, ule, ugt or uge."""
        number = "eq ne slt sle sgt sge ult ule ugt uge".split().index(predicate)
        attributes = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)}
        return self.op("icmp", [left, right], like(left.type, self.i1), attributes)

    def constant(self, value: int, type_: ir.Type) -> ir.Value:
        """Create an integer constant, of a scalar type or splat over a vector."""
        return self.op("mlir.constant", [], type_, {"value": integer_attribute(value, type_)})


Lowering = Callable[[LlvmBuilder, ir.Operation], Sequence[ir.Value]]
"""Makes the operations that replace one operation, and returns the values of its results."""


def width(type_: ir.Type) -> int:
    """Return the bits of an integer type, or of a vector's elements."""
    return ir.IntegerType(element_type(type_)).width


def integer_attribute(value: int, type_: ir.Type) -> ir.Attribute:
    """Return the attribute of an integer constant; raises `CompilerError` if the type cannot hold it."""
    element = element_type(type_)
    bits = ir.IntegerType(element).width
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        problem = f"pass 'lower-to-llvm': the constant {value} does not fit i{bits}, the width of index"
        where = ir.Location.current
        raise CompilerError(problem, source_of(where) if where else None)
    # The attribute takes a signed number of 64 bits.
    value &= (1 << bits) - 1
    signed = value - (1 << bits) if value >> (bits - 1) else value
    attribute = ir.IntegerAttr.get(element, signed)
    return ir.DenseElementsAttr.get_splat(type_, attribute) if isinstance(type_, ir.VectorType) else attribute


def wrap_flags(op: ir.Operation) -> dict[str, ir.Attribute]:
    """Return the flags of an LLVM operation made from ``op``, which may have ``overflowFlags``."""
    attribute = op.attributes.get("overflowFlags")
    if attribute is None:
        return {}
    words = [word for word in ("nsw", "nuw") if word in str(attribute)]
    return {FLAGS: ir.StringAttr.get(" ".join(words))} if words else {}


def fast_math(op: ir.Operation) -> dict[str, ir.Attribute]:
    """Return ``fastmathFlags`` of an LLVM operation made from ``op``, which may have ``fastmath``."""
    attribute = op.attributes.get("fastmath")
    text = "" if attribute is None else str(attribute)
    if not text or text == "#arith.fastmath<none>":
        return {}
    return {"fastmathFlags": ir.Attribute.parse(text.replace("#arith.", "#llvm."))}


def mark(*names: str) -> Callable[[ir.Operation], dict[str, ir.Attribute]]:
    """Return a function that copies the unit attributes ``names`` of an operation that has them."""

    def copy(op: ir.Operation) -> dict[str, ir.Attribute]:
        return {name: ir.UnitAttr.get() for name in names if name in op.attributes}

    return copy
