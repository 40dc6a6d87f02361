"""The lowering of the operations of arith and math, on scalars and on vectors of one dimension."""

from collections.abc import Callable, Sequence
from functools import partial

from xgpu import ir
from xgpu.passes.llvm.builder import LlvmBuilder, Lowering, fast_math, integer_attribute, mark, width, wrap_flags
from xgpu.passes.support.arith_builder import element_type, like
from xgpu.passes.support.refusals import refuse

_Carry = Callable[[ir.Operation], dict[str, ir.Attribute]]


def _nothing(op: ir.Operation) -> dict[str, ir.Attribute]:
    return {}


def _plain(name: str, carry: _Carry, b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    """One LLVM operation of the same operands and result."""
    return [b.op(name, list(op.operands), op.results[0].type, carry(op))]


def _poison_flag(name: str, flag: str, b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    """An intrinsic that is defined for every operand: for zero, or for the smallest integer."""
    no = ir.IntegerAttr.get(b.i1, 0)
    return [b.op(name, list(op.operands), op.results[0].type, {flag: no})]


def _compare(name: str, carry: _Carry, b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    """A comparison; the predicates have the same numbers in both dialects."""
    return [b.op(name, list(op.operands), op.results[0].type, {"predicate": op.attributes["predicate"], **carry(op)})]


def _constant(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    value, type_ = op.attributes["value"], op.results[0].type
    if isinstance(type_, ir.RankedTensorType):
        refuse("lower-to-llvm", op, f"expected a scalar or a vector, got {type_}; run lower-tensors first")
    if isinstance(value, ir.IntegerAttr) and isinstance(value.type, ir.IndexType):
        value = integer_attribute(value.value, type_)
    elif isinstance(value, ir.DenseIntElementsAttr) and isinstance(element_type(value.type), ir.IndexType):
        elements = [integer_attribute(value[position], b.index) for position in range(len(value))]
        value = ir.DenseElementsAttr.get(elements, type_)
    return [b.op("mlir.constant", [], type_, {"value": value})]


def _resize(extend: str, b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    """index_cast and index_castui: between the width of index and another one."""
    source, type_ = op.operands[0], op.results[0].type
    if width(source.type) == width(type_):
        return [source]
    return [b.op(extend if width(source.type) < width(type_) else "trunc", [source], type_)]


def _floor_divide(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    """Signed division rounded down: one less than LLVM's if that was inexact and the signs differ."""
    return [_adjusted_quotient(b, op, "slt", "sub")]


def _ceil_divide(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    """Signed division rounded up: one more than LLVM's if that was inexact and the signs are equal."""
    return [_adjusted_quotient(b, op, "sge", "add")]


def _adjusted_quotient(b: LlvmBuilder, op: ir.Operation, signs: str, adjust: str) -> ir.Value:
    x, y = op.operands
    type_ = x.type
    zero = b.constant(0, type_)
    quotient = b.binary("sdiv", x, y)
    remainder = b.binary("srem", x, y)
    inexact = b.compare("ne", remainder, zero)
    wrong_side = b.compare(signs, b.binary("xor", x, y), zero)
    adjusted = b.binary(adjust, quotient, b.constant(1, type_))
    return b.op("select", [b.binary("and", inexact, wrong_side), adjusted, quotient], type_)


def _ceil_divide_unsigned(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    x, y = op.operands
    type_ = x.type
    quotient = b.binary("udiv", x, y)
    inexact = b.compare("ne", b.binary("urem", x, y), b.constant(0, type_))
    return [b.op("select", [inexact, b.binary("add", quotient, b.constant(1, type_)), quotient], type_)]


def _add_with_carry(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    x, y = op.operands
    total = b.binary("add", x, y)
    return [total, b.compare("ult", total, x)]


def _subtract_with_borrow(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    x, y = op.operands
    return [b.binary("sub", x, y), b.compare("ult", x, y)]


def _wide_multiply(extend: str, b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    """The product's lower and upper half, by a multiplication of twice the width."""
    type_ = op.operands[0].type
    bits = width(type_)
    wide = like(type_, ir.IntegerType.get_signless(2 * bits))
    product = b.binary("mul", *[b.op(extend, [operand], wide) for operand in op.operands])
    low = b.op("trunc", [product], type_)
    upper = b.binary("lshr", product, b.constant(bits, wide))
    return [low, b.op("trunc", [upper], type_)]


def _convert_float(name: str, b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    mode = op.attributes.get("roundingmode")
    if mode is not None and ir.IntegerAttr(mode).value != 0:
        refuse("lower-to-llvm", op, f"expected to round to nearest, got rounding mode {mode}")
    return _plain(name, fast_math, b, op)


def _bitcast(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    source, type_ = op.operands[0], op.results[0].type
    return [source if source.type == type_ else b.op("bitcast", [source], type_)]


def _select(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    return _plain("select", _nothing, b, op)


def _poison(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    return [b.op("mlir.poison", [], op.results[0].type)]


_WRAPPING = {"addi": "add", "subi": "sub", "muli": "mul", "shli": "shl", "trunci": "trunc"}
_EXACT = {"divsi": "sdiv", "divui": "udiv", "shrsi": "ashr", "shrui": "lshr"}
_NONNEGATIVE = {"extui": "zext", "uitofp": "uitofp"}
_BARE = {
    "andi": "and",
    "ori": "or",
    "xori": "xor",
    "remsi": "srem",
    "remui": "urem",
    "extsi": "sext",
    "sitofp": "sitofp",
    "fptosi": "fptosi",
    "fptoui": "fptoui",
    "maxsi": "intr.smax",
    "minsi": "intr.smin",
    "maxui": "intr.umax",
    "minui": "intr.umin",
}
_FAST = {f"{name}f": f"f{name}" for name in ("add", "sub", "mul", "div", "rem", "neg")} | {
    f"{name}f": f"intr.{name}" for name in "maximum minimum maxnum minnum maximumnum minimumnum".split()
}
_MATH = {name: f"intr.{name}" for name in "sqrt fma floor ceil trunc round roundeven copysign".split()} | {
    "absf": "intr.fabs"
}

SCALAR_LOWERINGS: dict[str, Lowering] = {
    **{f"arith.{name}": partial(_plain, llvm, wrap_flags) for name, llvm in _WRAPPING.items()},
    **{f"arith.{name}": partial(_plain, llvm, mark("isExact")) for name, llvm in _EXACT.items()},
    **{f"arith.{name}": partial(_plain, llvm, mark("nonNeg")) for name, llvm in _NONNEGATIVE.items()},
    **{f"arith.{name}": partial(_plain, llvm, _nothing) for name, llvm in _BARE.items()},
    **{f"arith.{name}": partial(_plain, llvm, fast_math) for name, llvm in _FAST.items()},
    "arith.cmpi": partial(_compare, "icmp", _nothing),
    "arith.cmpf": partial(_compare, "fcmp", fast_math),
    "arith.constant": _constant,
    "arith.extf": partial(_convert_float, "fpext"),
    "arith.truncf": partial(_convert_float, "fptrunc"),
    "arith.bitcast": _bitcast,
    "arith.select": _select,
    "arith.index_cast": partial(_resize, "sext"),
    "arith.index_castui": partial(_resize, "zext"),
    "arith.floordivsi": _floor_divide,
    "arith.ceildivsi": _ceil_divide,
    "arith.ceildivui": _ceil_divide_unsigned,
    "arith.addui_extended": _add_with_carry,
    "arith.subui_extended": _subtract_with_borrow,
    "arith.mulsi_extended": partial(_wide_multiply, "sext"),
    "arith.mului_extended": partial(_wide_multiply, "zext"),
    **{f"math.{name}": partial(_plain, llvm, fast_math) for name, llvm in _MATH.items()},
    "math.ctpop": partial(_plain, "intr.ctpop", _nothing),
    "math.absi": partial(_poison_flag, "intr.abs", "is_int_min_poison"),
    "math.ctlz": partial(_poison_flag, "intr.ctlz", "is_zero_poison"),
    "math.cttz": partial(_poison_flag, "intr.cttz", "is_zero_poison"),
    "ub.poison": _poison,
}
"""The lowerings by operation name."""
