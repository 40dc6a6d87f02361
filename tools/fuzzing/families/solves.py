"""Random triangular systems and Cholesky factors that are exact: of small integers, with powers of two to divide by."""

from xgpu.dtypes import DType, dtype_named
from xgpu.tools.fuzzing.builder import Builder
from xgpu.tools.fuzzing.facts import COMPLEX, Facts, on_grid
from xgpu.tools.fuzzing.operands import value_of_type
from xgpu.tools.fuzzing.ops import Shape, TensorType

_ROWS = (1, 2, 2, 3, 3, 4, 4, 5, 6, 8, 9, 12)
_REAL = tuple(map(dtype_named, ("f32", "f64")))


def triangular_system(builder: Builder, value: int) -> int | None:
    """The solutions of triangular systems, whose matrices have numbers in the other triangle too."""
    random = builder.random
    dtype = random.choice((*_REAL, *_REAL, *COMPLEX))
    shape, columns = _matrices(builder), random.choice((1, 1, 2, 5, 8))
    rows, is_left = shape[-1], random.random() < 0.5
    is_unit = dtype in COMPLEX or random.random() < 0.5
    matrix, divisors = (_numbers(builder, dtype, shape, lowest) for lowest in (-1, 1))
    sides = (*shape[:-2], *((rows, columns) if is_left else (columns, rows)))
    right = value_of_type(builder, TensorType(dtype, sides))
    known = builder.facts_of(right)
    if known.grid is None or not known.exact or known.special:
        return None
    # Each element is a sum of those before it, or of products with an inverse, whose elements grow as they do.
    most = rows * (3.0 if dtype in COMPLEX else 2.0) ** rows * max(1.0, known.magnitude)
    facts = on_grid(dtype, -most, most, known.grid + (0 if is_unit else rows))
    if facts is None:
        return None
    turned = random.choice(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    flags = {"left_side": is_left, "lower": random.random() < 0.5, "unit_diagonal": is_unit}
    texts = {name: str(flag).lower() for name, flag in flags.items()}
    texts["transpose_a"] = f"#stablehlo<transpose {turned}>"
    return builder.one("solution", (matrix, divisors, right), facts, flags=texts)


def cholesky(builder: Builder, value: int) -> int | None:
    """The factor of a product of a triangular matrix and its transpose, whose diagonal is one."""
    dtype = builder.random.choice(_REAL)
    matrix = _numbers(builder, dtype, _matrices(builder), -1)
    facts = builder.facts_of(matrix)
    return builder.one("factor", (matrix,), Facts(-1, 1, 1.0, facts.grid), lower=builder.random.random() < 0.5)


def _matrices(builder: Builder) -> Shape:
    rows = builder.random.choice(_ROWS)
    return (*builder.random.choice(((), (), (1,), (3,), (2, 5), (33,))), rows, rows)


def _numbers(builder: Builder, dtype: DType, shape: Shape, lowest: int) -> int:
    """Return an argument of the integers -1 to 1, or of those from 1 to 2."""
    facts = on_grid(dtype, lowest, max(1, 2 * lowest), 0, nonzero=lowest > 0, pristine=True)
    return builder.argument(dtype, shape, facts)
