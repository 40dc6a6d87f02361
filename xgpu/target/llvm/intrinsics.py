"""The types that an LLVM intrinsic's name spells out, and the NVVM operations that are one intrinsic call.

``llvm.fma`` on floats is called ``@llvm.fma.f32``: the suffixes are the types at the positions listed here, ``"r"``
for the result and a number for an operand. An intrinsic that is in neither table has no suffix if it is called by
its full name (``llvm.call_intrinsic``) and is refused if it is an operation of its own (``llvm.intr.*``).
"""

Position = str | int

_ON_RESULT = """
    abs acos asin atan atan2 bitreverse bswap canonicalize ceil copysign cos cosh ctlz ctpop cttz exp exp10 exp2
    expect fabs floor fma fmuladd fshl fshr log log10 log2 maximum maximumnum maxnum minimum minimumnum minnum
    nearbyint pow rint round roundeven sadd.sat sin sinh smax smin sqrt sshl.sat ssub.sat tan tanh trunc uadd.sat
    umax umin ushl.sat usub.sat arithmetic.fence
""".split()
_ON_FIRST_OPERAND = """
    is.fpclass sadd.with.overflow smul.with.overflow ssub.with.overflow uadd.with.overflow umul.with.overflow
    usub.with.overflow vector.reduce.add vector.reduce.and vector.reduce.fmax vector.reduce.fmaximum
    vector.reduce.fmin vector.reduce.fminimum vector.reduce.mul vector.reduce.or vector.reduce.smax
    vector.reduce.smin vector.reduce.umax vector.reduce.umin vector.reduce.xor lifetime.start lifetime.end
""".split()
_ON_RESULT_AND_FIRST_OPERAND = "fptosi.sat fptoui.sat llrint llround lrint lround scmp ucmp".split()
_ON_RESULT_AND_SECOND_OPERAND = "ldexp powi".split()

# Base name without "llvm." -> positions of the types in the name.
OVERLOADS: dict[str, tuple[Position, ...]] = {
    **dict.fromkeys(_ON_RESULT, ("r",)),
    **dict.fromkeys(_ON_FIRST_OPERAND, (0,)),
    **dict.fromkeys(_ON_RESULT_AND_FIRST_OPERAND, ("r", 0)),
    **dict.fromkeys(_ON_RESULT_AND_SECOND_OPERAND, ("r", 1)),
    "vector.reduce.fadd": (1,),
    "vector.reduce.fmul": (1,),
    "memcpy": (0, 1, 2),
    "memmove": (0, 1, 2),
    "memset": (0, 2),
    "assume": (),
    "debugtrap": (),
    "trap": (),
}

# Attributes of an operation that are trailing constant operands of the call: (attribute, LLVM type).
IMMEDIATES: dict[str, tuple[str, str]] = {
    "abs": ("is_int_min_poison", "i1"),
    "ctlz": ("is_zero_poison", "i1"),
    "cttz": ("is_zero_poison", "i1"),
    "is.fpclass": ("bit", "i32"),
    "memcpy": ("isVolatile", "i1"),
    "memmove": ("isVolatile", "i1"),
    "memset": ("isVolatile", "i1"),
}
