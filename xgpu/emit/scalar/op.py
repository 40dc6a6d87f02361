"""The input of a scalar builder: one operation at one point, with its operands' values there."""

from collections.abc import Callable
from functools import cached_property

from xgpu import ir
from xgpu.dtypes import DType, dtype_of_element
from xgpu.records import dataclass
from xgpu.structure import dtype_of


@dataclass(frozen=True)
class ScalarOp:
    """An operation of a fusion, or of a combiner, and the values of its operands at the indices being emitted.

    Values are signless scalars; what an integer means is in ``operand_dtype`` and ``dtype``. ``indices`` are those of
    the result's element, for the few operations that depend on them; a combiner has none.
    """

    op: ir.Operation
    operands: tuple[ir.Value, ...]
    indices: tuple[ir.Value, ...] = ()

    @cached_property
    def dtype(self) -> DType:
        """Element type of the first result."""
        return dtype_of(self.op.results[0])

    @cached_property
    def operand_dtype(self) -> DType:
        """Element type of the first operand."""
        return dtype_of(self.op.operands[0])

    @cached_property
    def type(self) -> ir.Type:
        """MLIR type of the first result's scalar."""
        return ir.Type.parse(self.dtype.signless)

    def constant(self, value: float | int) -> ir.Value:
        """Return a constant of the result's type."""
        return constant(self.type, value)


Builder = Callable[[ScalarOp], ir.Value]
"""Emits an operation at the current insertion point and returns the value of its only result."""


def element_dtype(type_: ir.Type) -> DType:
    """Return the element type of a tensor type."""
    return dtype_of_element(ir.ShapedType(type_).element_type)


def constant(type_: ir.Type, value: float | int) -> ir.Value:
    """Return a constant of the scalar type ``type_``; integers wrap to its width."""
    if isinstance(type_, ir.IntegerType):
        half = 1 << (type_.width - 1)
        return constant_of(type_, ir.IntegerAttr.get(type_, (int(value) + half) % (2 * half) - half))
    if isinstance(type_, ir.IndexType):
        return constant_of(type_, ir.IntegerAttr.get(type_, int(value)))
    return constant_of(type_, ir.FloatAttr.get(type_, float(value)))


def constant_of(type_: ir.Type, value: ir.Attribute) -> ir.Value:
    """Return ``arith.constant`` of an attribute."""
    return ir.Operation.create("arith.constant", results=[type_], attributes={"value": value}).results[0]


def compare_floats(predicate: str, left: ir.Value, right: ir.Value) -> ir.Value:
    """Return ``arith.cmpf`` with a predicate such as ``"olt"``."""
    return ir.arith.cmpf(getattr(ir.arith.CmpFPredicate, predicate.upper()), left, right)


def compare_integers(predicate: str, left: ir.Value, right: ir.Value) -> ir.Value:
    """Return ``arith.cmpi`` with a predicate such as ``"slt"``."""
    return ir.arith.cmpi(getattr(ir.arith.CmpIPredicate, predicate), left, right)
