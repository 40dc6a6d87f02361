"""The functions of values that the loop language has, each the StableHLO or CHLO operation that it stands for."""

from xgpu.records import dataclass


@dataclass(frozen=True)
class ValueFunction:
    """A function: its operation, how many values it takes, and whether it gives a truth value."""

    operation: str
    arity: int
    gives_truth: bool = False


FUNCTIONS: dict[str, ValueFunction] = {
    "abs": ValueFunction("stablehlo.abs", 1),
    "atan2": ValueFunction("stablehlo.atan2", 2),
    "cbrt": ValueFunction("stablehlo.cbrt", 1),
    "ceil": ValueFunction("stablehlo.ceil", 1),
    "clamp": ValueFunction("stablehlo.clamp", 3),
    "cos": ValueFunction("stablehlo.cosine", 1),
    "count_leading_zeros": ValueFunction("stablehlo.count_leading_zeros", 1),
    "erf": ValueFunction("chlo.erf", 1),
    "exp": ValueFunction("stablehlo.exponential", 1),
    "expm1": ValueFunction("stablehlo.exponential_minus_one", 1),
    "floor": ValueFunction("stablehlo.floor", 1),
    "is_finite": ValueFunction("stablehlo.is_finite", 1, gives_truth=True),
    "log": ValueFunction("stablehlo.log", 1),
    "log1p": ValueFunction("stablehlo.log_plus_one", 1),
    "logistic": ValueFunction("stablehlo.logistic", 1),
    "max": ValueFunction("stablehlo.maximum", 2),
    "min": ValueFunction("stablehlo.minimum", 2),
    "popcount": ValueFunction("stablehlo.popcnt", 1),
    "pow": ValueFunction("stablehlo.power", 2),
    "remainder": ValueFunction("stablehlo.remainder", 2),
    "round": ValueFunction("stablehlo.round_nearest_even", 1),
    "rsqrt": ValueFunction("stablehlo.rsqrt", 1),
    "sign": ValueFunction("stablehlo.sign", 1),
    "sin": ValueFunction("stablehlo.sine", 1),
    "sqrt": ValueFunction("stablehlo.sqrt", 1),
    "tan": ValueFunction("stablehlo.tan", 1),
    "tanh": ValueFunction("stablehlo.tanh", 1),
}
"""Every function by its name in programs; ``select``, conversions, which types name, and bits are apart from these."""

BITS = "as_"
"""The beginning of the name of a function that takes a value's bits for those of another type: ``as_u16``, say."""

MMA: dict[str, bool] = {"mma": True, "no_mma": False}
"""Pragmas that ask for tensor cores, or for none."""

BLOCK_BARRIER = "block_barrier"
"""The pragma of a loop before which the whole block waits, where threads wait."""

PAIR = "pair"
"""The function that makes a u32 of two values of 16 bits, the first one lowest."""

OPERATORS: dict[str, str] = {
    "+": "stablehlo.add",
    "-": "stablehlo.subtract",
    "*": "stablehlo.multiply",
    "/": "stablehlo.divide",
    "%": "stablehlo.remainder",
    "&": "stablehlo.and",
    "|": "stablehlo.or",
    "^": "stablehlo.xor",
    "and": "stablehlo.and",
    "or": "stablehlo.or",
    "<<": "stablehlo.shift_left",
}
"""Operators between values of one type; ``>>`` depends on the type, and comparisons are apart."""

COMPARISONS: dict[str, str] = {"<": "LT", "<=": "LE", ">": "GT", ">=": "GE", "==": "EQ", "!=": "NE"}
"""Comparisons, with StableHLO's names for them."""

COMBINERS: dict[str, str] = {
    "+=": "add",
    "*=": "multiply",
    "max=": "maximum",
    "min=": "minimum",
    "&=": "and",
    "|=": "or",
    "^=": "xor",
}
"""Assignments that combine, with the combiner of `xgpu.accumulate`."""
