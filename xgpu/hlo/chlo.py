"""Operations of CHLO, JAX's client dialect, that stay operations of their own, and what is like them.

Beside functions of single elements these are `chlo.ragged_dot`, JAX's ``lax.ragged_dot``, a product of rows in groups,
each group by a matrix of its own; and the search for the largest elements.
"""

from xgpu import ir
from xgpu.hlo.legalization import run_mlir_passes
from xgpu.hlo.operations import OPERATIONS
from xgpu.hlo.source_location import unsupported
from xgpu.hlo.stablehlo_builder import (
    broadcast,
    convert,
    hlo,
    linear_index,
    reshape,
    scalar_at,
    shape_of,
    splat,
    tensor,
)
from xgpu.records import dataclass
from xgpu.structure import copy_operation, element_of

BESSEL_I0E = "xgpu.bessel_i0e"
"""The function that CHLO lacks: an operation of our own from the start, and a custom call in what JAX lowers."""
KEPT_FUNCTIONS = (
    *(name for name, each in OPERATIONS.items() if name.startswith("chlo.") and each.kind == "elementwise"),
    BESSEL_I0E,
)
"""Functions that stay one operation on real numbers, as `expand-math` does better than their expansions here.

In f32, cosh and sinh are within 3 units in the last place instead of 24, acos and asin 1.1 instead of 2.2 (in bf16 0.5
instead of 1.4, as one rounding is enough), erf_inv and erfc 5 instead of 65. digamma, lgamma and the Bessel functions
are a fifth to a tenth as many instructions. docs/accuracy.md has all of them.
"""
TOP_K = "chlo.top_k"
"""The largest elements of rows, for which XLA has kernels of its own that look at a row once: a sort does not."""
RAGGED = "chlo.ragged_dot"
RAGGED_DIMENSIONS = "ragged_dot_dimension_numbers"
_PRECISION = "precision_config"


@dataclass(frozen=True)
class RaggedDimensions:
    """The dimensions of the rows, a matrix, and of the matrices, one for each group: of either, those by its place.

    ``rows`` and ``contracted`` are those of the rows; ``group``, ``right_contracted`` and ``columns`` of the matrices.
    """

    rows: int
    contracted: int
    group: int
    right_contracted: int
    columns: int

    @classmethod
    def of(cls, op: ir.Operation) -> "RaggedDimensions | None":
        """Return the dimensions of a `ragged_dot`; None if its groups are not ones of rows, or there are batches."""
        numbers = ir.chlo.RaggedDotDimensionNumbers(op.attributes[RAGGED_DIMENSIONS])
        left, right, sizes = (ir.RankedTensorType(value.type).rank for value in op.operands)
        contracted, right_contracted = numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions
        (rows,), groups = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
        are_batches = len(numbers.lhs_batching_dimensions) > 0
        if (left, right, sizes, len(groups), len(contracted)) != (2, 3, 1, 1, 1) or rows in contracted or are_batches:
            return None
        (columns,) = {0, 1, 2} - {groups[0], right_contracted[0]}
        return cls(rows, contracted[0], groups[0], right_contracted[0], columns)


def expand_ragged(op: ir.Operation) -> ir.Value:
    """Return the result of a `ragged_dot` as a product for each group of all rows, of which those of the group count.

    Rows of no group are zero. Where groups are not ones of rows, MLIR's pass says what the operation is. Raises
    Unsupported for complex numbers then, for which that pass has no zero.
    """
    found = RaggedDimensions.of(op)
    if found is None:
        if isinstance(element_of(op.results[0]), ir.ComplexType):
            raise unsupported(op, "products of complex numbers in groups that are not ones of rows need XLA on a GPU")
        return _legalized(op)
    left, right, given = op.operands
    m, n = shape_of(op.results[0])
    sizes = convert(given, "i64")
    row, result, start = linear_index([m, 1], "i64"), _zeros(op.results[0]), None
    for group in range(shape_of(right)[found.group]):
        matrix = _matrix(right, found.group, group)
        contracted = found.right_contracted - (found.group < found.right_contracted)
        numbers = hlo.DotDimensionNumbers.get([], [], [found.contracted], [contracted])
        precision = _precision(op)
        own = hlo.dot_general(op.results[0].type, left, matrix, numbers, precision_config=precision)
        none, all_ = (splat(number, tensor([], "i64")) for number in (0, m))
        size = hlo.minimum(hlo.maximum(scalar_at(sizes, group), none), all_)
        end = size if start is None else hlo.add(start, size)
        inside = _below(row, broadcast(end, [m, 1]))
        if start is not None:
            inside = hlo.and_(inside, hlo.not_(_below(row, broadcast(start, [m, 1]))))
        result, start = hlo.select(broadcast(inside, [m, n], [0, 1]), own, result), end
    return result


def _zeros(value: ir.Value) -> ir.Value:
    if isinstance(element_of(value), ir.ComplexType):
        return hlo.convert(value.type, splat(0, tensor(shape_of(value), "f32")))
    return splat(0, ir.RankedTensorType(value.type))


def _legalized(op: ir.Operation) -> ir.Value:
    given = list(op.operands)
    type_ = ir.FunctionType.get([each.type for each in given], [op.results[0].type])
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function = ir.func.FuncOp("product", type_)
    block = function.add_entry_block()
    with ir.InsertionPoint(block):
        values: dict[ir.Value, ir.Value] = dict(zip(given, block.arguments, strict=True))
        ir.func.return_(list(copy_operation(op, values).results))
    run_mlir_passes(module, "func.func(chlo-legalize-to-stablehlo)")
    (function_,) = module.body.operations
    body = function_.operation.regions[0].blocks[0]
    values = dict(zip(body.arguments, given, strict=True))
    *operations, end = [each.operation for each in body.operations]
    for each in operations:
        copy_operation(each, values)
    return values[end.operands[0]]


def _matrix(right: ir.Value, dimension: int, group: int) -> ir.Value:
    shape = shape_of(right)
    start, end = [0] * 3, list(shape)
    start[dimension], end[dimension] = group, group + 1
    return reshape(hlo.slice(right, start, end, [1] * 3), [each for i, each in enumerate(shape) if i != dimension])


def _below(left: ir.Value, right: ir.Value) -> ir.Value:
    return hlo.compare(left, right, hlo.ComparisonDirectionAttr.get("LT"))


def precisions(op: ir.Operation) -> list[str]:
    """Return the precision that a `ragged_dot` asks for, for each operand; none if it says nothing."""
    given = op.attributes.get(_PRECISION)
    return [] if given is None else [ir.chlo.PrecisionAttr(each).value for each in ir.ArrayAttr(given)]


def _precision(op: ir.Operation) -> ir.ArrayAttr | None:
    return ir.ArrayAttr.get([hlo.PrecisionAttr.get(each) for each in precisions(op)]) if precisions(op) else None
