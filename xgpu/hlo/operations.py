"""The table of the operations that kernels are made of: all facts about each that any part of the compiler asks for.

What implements an operation is in tables of their own, next to the code: its indexing map in `xgpu.indexing.hlo_maps`,
its scalar code in `xgpu.emit.scalar`. `implemented` compares their names with this table when they are imported, so
that nothing is planned that cannot be emitted.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from xgpu import ir
from xgpu.records import dataclass
from xgpu.structure import element_of, is_constant

AccessKind = Literal["elementwise", "indexing", "piecewise", "reduce", "contract", "generator"]


@dataclass(frozen=True)
class Operation:
    """Facts about an operation of StableHLO, CHLO or our own.

    ``kind`` is how it uses what it reads, see `xgpu.indexing.hlo_maps.access_kind`. ``instructions`` are those for an
    element of its result in f32, about. Of elementwise operations ``numbers`` says which have scalar code.
    ``is_view``: XLA folds it into what reads it, such as a matrix product. ``spreads``: Shardy partitions it right,
    whichever dimensions of its arrays are spread over devices. ``branches``: its code has a branch to what rare
    arguments need, such as large angles.
    """

    kind: AccessKind
    instructions: int = 1
    numbers: Literal["real", "complex", "both"] = "real"
    is_view: bool = False
    spreads: bool = False
    branches: bool = False


OPERATIONS: Mapping[str, Operation] = {
    "chlo.acos": Operation("elementwise", instructions=60),
    "chlo.acosh": Operation("elementwise", instructions=60),
    "chlo.asin": Operation("elementwise", instructions=60),
    "chlo.asinh": Operation("elementwise", instructions=60),
    "chlo.atan": Operation("elementwise", instructions=60),
    "chlo.atanh": Operation("elementwise", instructions=60),
    "chlo.bessel_i1e": Operation("elementwise", instructions=60),
    "chlo.cosh": Operation("elementwise", instructions=60),
    "chlo.digamma": Operation("elementwise", instructions=60, branches=True),
    "chlo.erf": Operation("elementwise", instructions=60),
    "chlo.erf_inv": Operation("elementwise", instructions=60, branches=True),
    "chlo.erfc": Operation("elementwise", instructions=60),
    "chlo.lgamma": Operation("elementwise", instructions=60, branches=True),
    "chlo.ragged_dot": Operation("contract"),
    "chlo.sinh": Operation("elementwise", instructions=60),
    "stablehlo.abs": Operation("elementwise", numbers="both", spreads=True),
    "stablehlo.add": Operation("elementwise", numbers="both", spreads=True),
    "stablehlo.and": Operation("elementwise", spreads=True),
    "stablehlo.atan2": Operation("elementwise", instructions=40, spreads=True, branches=True),
    "stablehlo.bitcast_convert": Operation("elementwise", numbers="both"),
    "stablehlo.broadcast_in_dim": Operation("indexing", is_view=True, spreads=True),
    "stablehlo.cbrt": Operation("elementwise", instructions=10, spreads=True),
    "stablehlo.ceil": Operation("elementwise", spreads=True),
    "stablehlo.clamp": Operation("elementwise", spreads=True),
    "stablehlo.compare": Operation("elementwise", numbers="both", spreads=True),
    "stablehlo.complex": Operation("elementwise", numbers="complex", spreads=True),
    "stablehlo.concatenate": Operation("piecewise", instructions=8),
    "stablehlo.constant": Operation("generator", is_view=True, spreads=True),
    "stablehlo.convert": Operation("elementwise", numbers="both", spreads=True),
    "stablehlo.convolution": Operation("contract"),
    "stablehlo.cosine": Operation("elementwise", instructions=40, numbers="both", spreads=True, branches=True),
    "stablehlo.count_leading_zeros": Operation("elementwise"),
    "stablehlo.divide": Operation("elementwise", instructions=10, numbers="both", spreads=True),
    "stablehlo.dot_general": Operation("contract", spreads=True),
    "stablehlo.dynamic_slice": Operation("indexing"),
    "stablehlo.dynamic_update_slice": Operation("piecewise", instructions=8),
    "stablehlo.exponential": Operation("elementwise", instructions=20, spreads=True),
    "stablehlo.exponential_minus_one": Operation("elementwise", instructions=20, numbers="both", spreads=True),
    "stablehlo.floor": Operation("elementwise", spreads=True),
    "stablehlo.gather": Operation("indexing", instructions=10),
    "stablehlo.imag": Operation("elementwise", numbers="complex", spreads=True),
    "stablehlo.iota": Operation("generator", is_view=True),
    "stablehlo.is_finite": Operation("elementwise", spreads=True),
    "stablehlo.log": Operation("elementwise", instructions=20, spreads=True),
    "stablehlo.log_plus_one": Operation("elementwise", instructions=20, spreads=True),
    "stablehlo.logistic": Operation("elementwise", instructions=20, numbers="both", spreads=True),
    "stablehlo.map": Operation("elementwise"),
    "stablehlo.maximum": Operation("elementwise", spreads=True),
    "stablehlo.minimum": Operation("elementwise", spreads=True),
    "stablehlo.multiply": Operation("elementwise", numbers="both", spreads=True),
    "stablehlo.negate": Operation("elementwise", numbers="both", spreads=True),
    "stablehlo.not": Operation("elementwise", spreads=True),
    "stablehlo.or": Operation("elementwise", spreads=True),
    "stablehlo.pad": Operation("piecewise", instructions=8),
    "stablehlo.popcnt": Operation("elementwise", spreads=True),
    "stablehlo.power": Operation("elementwise", instructions=100, numbers="both", spreads=True, branches=True),
    "stablehlo.real": Operation("elementwise", numbers="complex", spreads=True),
    "stablehlo.reduce": Operation("reduce", spreads=True),
    "stablehlo.reduce_precision": Operation("elementwise"),
    "stablehlo.reduce_window": Operation("reduce"),
    "stablehlo.remainder": Operation("elementwise", instructions=10, spreads=True, branches=True),
    "stablehlo.reshape": Operation("indexing", is_view=True),
    "stablehlo.reverse": Operation("indexing"),
    "stablehlo.round_nearest_afz": Operation("elementwise", spreads=True),
    "stablehlo.round_nearest_even": Operation("elementwise", spreads=True),
    "stablehlo.rsqrt": Operation("elementwise", instructions=10, numbers="both", spreads=True),
    "stablehlo.select": Operation("elementwise", numbers="both", spreads=True),
    "stablehlo.shift_left": Operation("elementwise", spreads=True),
    "stablehlo.shift_right_arithmetic": Operation("elementwise", spreads=True),
    "stablehlo.shift_right_logical": Operation("elementwise", spreads=True),
    "stablehlo.sign": Operation("elementwise", numbers="both", spreads=True),
    "stablehlo.sine": Operation("elementwise", instructions=40, numbers="both", spreads=True, branches=True),
    "stablehlo.slice": Operation("indexing"),
    "stablehlo.sqrt": Operation("elementwise", instructions=10, spreads=True),
    "stablehlo.subtract": Operation("elementwise", numbers="both", spreads=True),
    "stablehlo.tan": Operation("elementwise", instructions=40, numbers="both", spreads=True, branches=True),
    "stablehlo.tanh": Operation("elementwise", instructions=20, numbers="both", spreads=True),
    "stablehlo.transpose": Operation("indexing", is_view=True, spreads=True),
    "stablehlo.xor": Operation("elementwise", spreads=True),
    "xgpu.bessel_i0e": Operation("elementwise", instructions=60),
    "xgpu.scan": Operation("reduce", instructions=60),
}
"""Every operation, by name.

Those that spread were checked against XLA with Shardy of jaxlib 0.12.0.1, whose last pass moves other elements than it
should for some of the others (``reverse``), and ends the process for some (``reduce_window``).
"""

FORWARDED = ("stablehlo.reshape", "stablehlo.broadcast_in_dim", "stablehlo.transpose")
"""Operations that, on arrays of rank 0, only rename their operand."""
IN_REGIONS = (*FORWARDED, "stablehlo.constant", "stablehlo.return")
"""Operations of a region that take no scalar code of their own."""


def implemented[T](table: Mapping[str, T], names: Iterable[str]) -> Mapping[str, T]:
    """Return a table of implementations by operation, which must have just these names; raises `LookupError` if not."""
    if different := sorted(set(table) ^ set(names)):
        raise LookupError(f"in one of the tables of operations and not in the other: {', '.join(different)}")
    return table


def elementwise(numbers: Literal["real", "complex"]) -> list[str]:
    """Return the elementwise operations that have scalar code for such numbers; those with a region make their own."""
    return [
        name
        for name, each in OPERATIONS.items()
        if each.kind == "elementwise" and each.numbers in (numbers, "both") and name != "stablehlo.map"
    ]


def without_code(op: ir.Operation) -> str | None:
    """Return why an operation that is computed element by element has no scalar code; None if it has.

    That of one with a region is its region's, which is on arrays of rank 0 and takes only constants from outside.
    """
    if not len(op.regions):
        return _without_own_code(op)
    own = set[ir.Value]()
    for block in op.regions[0].blocks:
        own.update(block.arguments)
        for each in (view.operation for view in block.operations):
            outer = [value for value in each.operands if value not in own and not is_constant(value)]
            if outer:
                return "its region uses a value from outside it"
            own.update(each.results)
            if each.name not in IN_REGIONS and (reason := _without_own_code(each)) is not None:
                return f"in its region, {each.name}: {reason}"
    return None


def _without_own_code(op: ir.Operation) -> str | None:
    operation = OPERATIONS.get(op.name)
    if operation is None or operation.kind != "elementwise" or len(op.regions):
        return "there is no scalar code for it"
    if operation.numbers == "real" and any(_is_complex(value) for value in (*op.operands, *op.results)):
        return "there is no scalar code for it on complex numbers"
    return _LIMITS[op.name](op) if op.name in _LIMITS else None


def direction_of(op: ir.Operation) -> str:
    """Return how a comparison compares: ``LT``, ``EQ`` ..."""
    return str(ir.stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value)


def is_total_order(op: ir.Operation) -> bool:
    """Whether a comparison orders floats by their bits: each NaN, and zeros of both signs, have places of their own."""
    attributes = op.attributes
    if "compare_type" not in attributes:
        return False
    return bool(ir.stablehlo.ComparisonTypeAttr(attributes["compare_type"]).value == "TOTALORDER")


def _order_limit(op: ir.Operation) -> str | None:
    if not _is_complex(op.operands[0]):
        return None
    direction = direction_of(op)
    if direction in ("EQ", "NE"):
        return None
    return f"complex numbers have no order: expected the direction EQ or NE, got {direction}"


def _bits_limit(op: ir.Operation) -> str | None:
    same = element_of(op.operands[0]) == element_of(op.results[0])
    is_complex = _is_complex(op.operands[0]) or _is_complex(op.results[0])
    return "the bits of complex numbers cannot be taken for those of others" if is_complex and not same else None


def _precision_limit(op: ir.Operation) -> str | None:
    element = str(element_of(op.results[0]))
    return None if element in ("f16", "bf16", "f32", "f64") else f"reduce_precision of {element} is not supported"


_LIMITS: Mapping[str, Callable[[ir.Operation], str | None]] = {
    "stablehlo.bitcast_convert": _bits_limit,
    "stablehlo.compare": _order_limit,
    "stablehlo.reduce_precision": _precision_limit,
}
"""The checks of operations that have scalar code, but not for all types or attributes."""


def _is_complex(value: ir.Value) -> bool:
    return isinstance(element_of(value), ir.ComplexType)
