"""The pass `turn-scans`."""

from collections.abc import Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.hlo.constants import is_number
from xgpu.hlo.scan_op import SCAN, binary_function, build_scan, identity_of, is_neutral, uniform
from xgpu.hlo.stablehlo_builder import Value, convert, hlo, inline_block, shape_of, splat_like
from xgpu.indexing.access import integer, integers
from xgpu.passes.framework.base import OperationRewrite
from xgpu.records import dataclass
from xgpu.structure import defining_op, element_of, is_argument, producer, replace_op, users_of

_REVERSE, _PAD, _SLICE, _CONCATENATE = (f"stablehlo.{name}" for name in "reverse pad slice concatenate".split())
_CONVERT, _ADD = "stablehlo.convert", "stablehlo.add"
_PADDING = ("edge_padding_low", "edge_padding_high", "interior_padding")
_FROM_ZERO = ("add", "or", "xor")


@dataclass(frozen=True)
class TurnScans(OperationRewrite):
    """Writes reversed scans of reversed arrays as scans from the other end, shifted ones as those of shifted arrays.

    A sum of all elements from each on is written so in many programs, and a sum of all elements before each: zeros, and
    then a scan without its last elements, or zeros and a scan, of which the last element is left out. What was a kernel
    for the scan and one to move it is one kernel, which reads at other places. The functions are those of one
    operation, so that elements may be combined in any order. Needs: nothing.

    ```mlir
    %0 = stablehlo.reverse %x, dims = [0] : tensor<8xf32>
    %1 = "xgpu.scan"(%0) ({ ... add ... }) {dimension = 0, reverse = false} : (tensor<8xf32>) -> tensor<8xf32>
    %2 = stablehlo.reverse %1, dims = [0] : tensor<8xf32>
    ```
    becomes
    ```mlir
    %2 = "xgpu.scan"(%x) ({ ... add ... }) {dimension = 0, reverse = true} : (tensor<8xf32>) -> tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "turn-scans"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_REVERSE, _PAD, _SLICE, _CONCATENATE))

    def rewrite(self, op: ir.Operation) -> None:
        """Rewrite an operation that moves a scan, if nothing else reads the scan."""
        found = _Scanned.moved_by(op)
        if found is None:
            return
        if op.name == _REVERSE:
            before = _behind_conversions(found.operand)
            if _reverses(op, found.dimension) and before is not None and _reverses(before, found.dimension):
                own = convert(before.operands[0], element_of(found.operand))
                found.replace(op, own, not found.reverse)
        elif (shift := _shift(op, found)) is not None:
            low, high = ([each if i == found.dimension else 0 for i in range(found.rank)] for each in shift)
            start = identity_of(found.function, element_of(found.operand))
            own = hlo.pad(found.operand, start, low, high, [0] * found.rank)
            found.replace(op, own, found.reverse)


@dataclass(frozen=True)
class _Scanned:
    """A scan by one operation that nothing else reads, and what follows it: conversions, the initial zero of a sum."""

    op: ir.Operation
    function: str
    following: Sequence[ir.Operation]

    @classmethod
    def moved_by(cls, op: ir.Operation) -> "_Scanned | None":
        """Return the scan that an operation moves, None if it moves something else."""
        value = next((each for each in op.operands if _uniform_of(each) is None), None)
        following: list[ir.Operation] = []
        while value is not None and not is_argument(value) and len(users_of(value)) == 1:
            op = producer(value)
            if op.name == SCAN and len(op.results) == 1:
                function = binary_function(op.regions[0].blocks[0])
                return None if function is None else cls(op, function, following[::-1])
            following.append(op)
            value = _operand_of(op)
        return None

    @property
    def operand(self) -> Value:
        return self.op.operands[0]

    @property
    def dimension(self) -> int:
        return integer(self.op, "dimension")

    @property
    def rank(self) -> int:
        return len(shape_of(self.operand))

    @property
    def reverse(self) -> bool:
        return bool(ir.BoolAttr(self.op.attributes["reverse"]).value)

    @property
    def starts_from_zero(self) -> bool:
        """Whether a first element of -0 becomes 0, as it does where a neutral one comes before."""
        is_sum = self.function == "add" and isinstance(element_of(self.operand), ir.FloatType)
        return not is_sum or any(op.name == _ADD for op in self.following)

    def replace(self, op: ir.Operation, operand: Value, reverse: bool) -> None:
        """Replace the operation that moves this scan by the scan of another array, with what follows it."""

        def region(values: list[Value]) -> Sequence[Value]:
            return inline_block(self.op.regions[0].blocks[0], values)

        (value,) = build_scan([operand], self.dimension, reverse, region)
        for each in self.following:
            is_sum = each.name == _ADD
            value = hlo.add(value, splat_like(0, value)) if is_sum else convert(value, element_of(each.results[0]))
        replace_op(op, [value])
        for each in (*reversed(self.following), self.op):
            each.erase()


def _uniform_of(value: Value) -> ir.Attribute | None:
    """Return the number that is every element of a value, None if they differ or are not known."""
    return None if is_argument(value) else uniform(producer(value))


def _operand_of(op: ir.Operation) -> Value | None:
    """Return what an operation converts, or adds a zero to; None for others."""
    if op.name == _CONVERT:
        return op.operands[0]
    if op.name != _ADD:
        return None
    others = [value for value in op.operands if _uniform_of(value) is None or not is_neutral("add", value)]
    return others[0] if len(others) == 1 else None


def _behind_conversions(value: Value) -> ir.Operation | None:
    op = defining_op(value)
    while op is not None and op.name == _CONVERT:
        op = defining_op(op.operands[0])
    return op


def _reverses(op: ir.Operation, dimension: int) -> bool:
    return op.name == _REVERSE and list(integers(op, "dimensions")) == [dimension]


def _shift(op: ir.Operation, scanned: _Scanned) -> tuple[int, int] | None:
    """Return by how many places an operation shifts a scan, as what a pad adds before and after it.

    None unless it puts neutral elements before the first one that is scanned, if any, and none behind the last.
    """
    start: Value | None = None
    if op.name == _CONCATENATE:
        shift, start = _joined(op, scanned.dimension)
    else:
        shift = _padding(op, scanned.dimension) if op.name == _PAD else _cut(op, scanned.dimension)
        start = op.operands[-1]
    if shift is None or start is None or shift == (0, 0):
        return None
    before, after = shift[::-1] if scanned.reverse else shift
    if before < 0 or after > 0:
        return None
    is_empty = before == 0 or (_is_neutral(scanned.function, start) and scanned.starts_from_zero)
    return shift if is_empty else None


def _is_neutral(function: str, value: Value) -> bool:
    """Whether a number is neutral, also a zero of another type that is converted, as which JAX pads with it."""
    op = defining_op(value)
    is_zero = op is not None and op.name == _CONVERT and is_number(value, 0)
    return is_neutral(function, value) or (function in _FROM_ZERO and is_zero)


def _padding(op: ir.Operation, dimension: int) -> tuple[int, int] | None:
    """Return what a pad adds along a dimension; None if it does anything else."""
    low, high, interior = (integers(op, name) for name in _PADDING)
    others = [*low[:dimension], *low[dimension + 1 :], *high[:dimension], *high[dimension + 1 :], *interior]
    return None if any(others) else (low[dimension], high[dimension])


def _cut(op: ir.Operation, dimension: int) -> tuple[int, int] | None:
    """Return what a slice along a dimension alone leaves out, as a pad that adds less than nothing."""
    shape, result = shape_of(op.operands[0]), shape_of(op.results[0])
    starts, limits, strides = (integers(op, name) for name in ("start_indices", "limit_indices", "strides"))
    if any(each != 1 for each in strides) or any(
        size != whole for i, (size, whole) in enumerate(zip(result, shape, strict=True)) if i != dimension
    ):
        return None
    return -starts[dimension], limits[dimension] - shape[dimension]


def _joined(op: ir.Operation, dimension: int) -> tuple[tuple[int, int] | None, Value | None]:
    """Return what a concatenation puts before and after the only operand that is no number, and that number."""
    numbers = [value for value in op.operands if _uniform_of(value) is not None]
    if len(op.operands) != 2 or len(numbers) != 1 or integer(op, "dimension") != dimension:
        return None, None
    size = shape_of(numbers[0])[dimension]
    return ((size, 0) if numbers[0] == op.operands[0] else (0, size)), numbers[0]
