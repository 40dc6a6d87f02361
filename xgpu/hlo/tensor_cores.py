"""The matrix products that tensor cores compute as a program asks for them: by their elements and precision."""

from xgpu import ir
from xgpu.dtypes import DType, dtype_named
from xgpu.hlo.chlo import RAGGED
from xgpu.hlo.chlo import precisions as ragged_precisions
from xgpu.structure import dtype_of

MULTIPLIED = (("bf16",), ("f16",), ("f32",), ("f8e4m3fn", "f8e5m2"), ("s8", "u8"))
"""Types of elements that are multiplied with each other; f32 rounded to tf32."""
_TF32_EXPONENT_BITS, TF32_MANTISSA_BITS = 8, 10
PRECISION = "precision_config"
ALGORITHM = "algorithm"
_RESULTS = {"f32": ("f32", "bf16", "f16", "f8e4m3fn", "f8e5m2"), "s32": ("s32", "u32", "s16", "u16", "s8", "u8")}
"""Types of results by that of sums, which are rounded once, or wrapped."""


def as_tf32(value: ir.Value) -> ir.Value:
    """Write the numbers of tf32 that tensor cores multiply for those of f32."""
    rounded: ir.Value = ir.stablehlo.reduce_precision(value, _TF32_EXPONENT_BITS, TF32_MANTISSA_BITS)
    return rounded


def sum_type(left: DType) -> DType:
    """Return the type in which products of such elements are added up."""
    return dtype_named("f32" if left.is_float else "s32")


def product_problem(op: ir.Operation) -> str | None:
    """Return why tensor cores do not compute a product in its types and precision; None if they do."""
    left, right, result = (dtype_of(value) for value in (op.operands[0], op.operands[1], op.results[0]))
    together = next((names for names in MULTIPLIED if left.hlo in names), ())
    if right.hlo not in together:
        kinds = ", ".join(" or ".join(names) for names in MULTIPLIED)
        return f"expected operands of one of {kinds}, got {left} and {right}"
    results = _RESULTS[sum_type(left).hlo]
    if result.hlo not in results:
        return f"expected a result of {', '.join(results)}, got {result}"
    if ALGORITHM in op.attributes:
        return _algorithm_problem(ir.stablehlo.DotAlgorithm(op.attributes[ALGORITHM]), left, right)
    if PRECISION in op.attributes and (what := _inexact(left)):
        asked = _precisions(op)
        if any(each != "DEFAULT" for each in asked):
            return f"expected precision DEFAULT, with which {what}, got {', '.join(asked)}"
    if left.hlo == right.hlo == "f8e5m2":
        # XLA multiplies these as f16, whose products are exact.
        return f"expected an operand other than f8e5m2, as {_inexact(left)}"
    return None


def _precisions(op: ir.Operation) -> list[str]:
    """Return the precision that a product asks for, for each operand; none if it says nothing."""
    if op.name == RAGGED:
        return ragged_precisions(op)
    given = op.attributes.get(PRECISION)
    return [] if given is None else [ir.stablehlo.PrecisionAttr(each).value for each in ir.ArrayAttr(given)]


def _inexact(left: DType) -> str | None:
    """Return what tensor cores do with elements that a program may not want; None for what it wants in any case."""
    if left.hlo == "f32":
        return "operands of f32 may be taken for tf32"
    return "products of 8 bits may be added up in few bits" if left.is_float and left.bits == 8 else None


def _algorithm_problem(algorithm: ir.stablehlo.DotAlgorithm, left: DType, right: DType) -> str | None:
    names = ["tf32" if each.hlo == "f32" else each.mlir for each in (left, right)]
    wanted = (*names, sum_type(left).mlir, 1, 1, 1)
    got = (
        *map(str, (algorithm.lhs_precision_type, algorithm.rhs_precision_type, algorithm.accumulation_type)),
        *(algorithm.lhs_component_count, algorithm.rhs_component_count, algorithm.num_primitive_operations),
    )
    if got != wanted:
        return f"expected the algorithm {_text(wanted)}, got {_text(got)}"
    if left.is_float and left.bits == 8 and not algorithm.allow_imprecise_accumulation:
        return f"expected an algorithm with which {_inexact(left)}"
    return None


def _text(algorithm: tuple[object, ...]) -> str:
    left, right, total, *counts = algorithm
    return f"{left} x {right} -> {total}, of {', '.join(map(str, counts))} parts"
