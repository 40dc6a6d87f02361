"""The attributes of the xgpu dialect, and the discardable attributes it hangs on functions and arguments.

`MAP_ATTRIBUTE` holds an `IndexingMap` as ``#xgpu.map<...>``; its body is the map's own text form.
"""

from functools import lru_cache

from xgpu import ir
from xgpu.dialects.base import AttributeKind
from xgpu.errors import InvalidInput
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval

KERNEL = "xgpu.kernel"
"""Unit attribute of a kernel's entry function."""
GRID = "xgpu.grid"
"""Blocks of the launch, as array<i64: x, y, z>."""
BLOCK = "xgpu.block"
"""Threads of a block, as array<i64: x, y, z>."""
INPUTS = "xgpu.inputs"
"""How many leading tensor parameters of a kernel are read-only inputs; the others are outputs."""
INDEX_BITS = "xgpu.index_bits"
"""Width of index arithmetic in a kernel's module: 32 or 64."""
ALIASES = "xgpu.aliases"
"""Of each output of a kernel, the number of the input whose memory it starts as, or -1, as array<i64: ...>.

The kernel updates such an output in place and never reads that input."""
OVERWRITES = "xgpu.overwrites"
"""Numbers of the outputs of a kernel to whose elements several threads may store, as array<i64: ...>.

Which of them is the last is not defined, so that this is no race."""
SHARED_BYTES = "xgpu.shared_bytes"
"""Bytes of dynamic shared memory that a launch must ask for; a kernel without it asks for none."""
EMITTER = "xgpu.emitter"
"""Name of the emitter that made a kernel, or that the planner chose for a fusion."""
COLD = "xgpu.cold"
"""Unit attribute of a function that is seldom called: it stays a call, which costs its callers no code or registers."""
LEFT = "xgpu.left"
"""Attribute of an operation that the planner leaves to XLA though kernels could make it: why, a string."""
GRADE = "xgpu.grade"
"""Attribute of a function of f32 whose result is then rounded to a narrower type: that type's width, 16 for bf16."""
MANY_RESTS = "xgpu.many_rests"
"""Unit attribute of a loop of which a partial vector, if split off, is met so often that it is unrolled as well."""
UNROLL = "xgpu.unroll"
"""Discardable attribute of a loop: ``"none"`` keeps it rolled, ``"full"`` asks LLVM to unroll it."""
FLAGS = "xgpu.flags"
"""Discardable attribute of an LLVM operation: its overflow or no-wrap flags as LLVM spells them, "nsw nuw", "inbounds".

The bindings can neither set nor read the flags that the operation itself has."""
FIRST_EXTREME = "xgpu.first_extreme"
"""Attribute of a reduction that finds the largest (``GT``) or smallest (``LT``) element and its position.

Positions rise in the order of the elements and from the initial one, so of equal elements the first is to be kept.
"""
COMMUTATIVE = "xgpu.commutative"
"""Unit attribute of a reduction whose region gives the same whichever of two elements comes first."""
ORDERED = "xgpu.ordered"
"""Unit attribute of a scatter whose updates with the same place must be made one after the other, in their order."""
RECURRENCE = "xgpu.recurrence"
"""Unit attribute of a loop that is one kernel."""
LEVEL = "xgpu.level"
"""Module attribute: the level that the module is at, a string."""
BYTES = "llvm.dereferenceable"
"""Argument attribute of a pointer to an array: the bytes of the array. LLVM's own."""
ALIGNMENT = "llvm.align"
"""Argument attribute of a pointer: what its address is a multiple of. LLVM's own."""
RANGE = "xgpu.range"
"""Argument attribute of an index parameter: its inclusive range, as array<i64: lower, upper>."""
ELEMENT_TYPE = "xgpu.element"
"""Argument attribute of a tensor parameter whose elements are held as integers of their bits: their complex type."""

_MAP_PREFIX = b"map<"


@lru_cache(maxsize=65536)
def _parse_map(text: bytes) -> IndexingMap:
    return IndexingMap.parse(text[len(_MAP_PREFIX) : -1].decode())


def map_attribute(map_: IndexingMap) -> ir.Attribute:
    """Return ``map_`` as an attribute of the current context."""
    return ir.OpaqueAttr.get("xgpu", f"map<{map_}>".encode(), ir.NoneType.get())


def map_of(attribute: ir.Attribute) -> IndexingMap:
    """Return the map that ``attribute`` holds; raises `InvalidInput` if its text is malformed."""
    # To print it would take several times as long.
    return _parse_map(ir.OpaqueAttr(attribute).data)


def _is_map(attribute: ir.Attribute) -> bool:
    if not isinstance(attribute, ir.OpaqueAttr):
        return False
    return attribute.dialect_namespace == "xgpu" and attribute.data.startswith(_MAP_PREFIX)


def _map_problem(attribute: ir.Attribute) -> str | None:
    try:
        map_of(attribute)
    except InvalidInput as error:
        return error.message
    return None


MAP = AttributeKind("an indexing map", _is_map, map_attribute, map_of, _map_problem)
SYMBOL = AttributeKind(
    "a function's symbol",
    lambda attribute: isinstance(attribute, ir.FlatSymbolRefAttr),
    lambda name: ir.FlatSymbolRefAttr.get(name),
    lambda attribute: ir.FlatSymbolRefAttr(attribute).value,
)
INTEGER = AttributeKind(
    "an integer of type i64",
    lambda attribute: isinstance(attribute, ir.IntegerAttr) and str(attribute.type) == "i64",
    lambda value: int_attribute(value),
    lambda attribute: int_of(attribute),
)

BOOLEAN = AttributeKind(
    "true or false",
    lambda attribute: isinstance(attribute, ir.BoolAttr),
    lambda value: ir.BoolAttr.get(value),
    lambda attribute: ir.BoolAttr(attribute).value,
)


def int_array(values: tuple[int, ...]) -> ir.Attribute:
    """Return ``array<i64: values>``."""
    return ir.DenseI64ArrayAttr.get(list(values))


def int_array_of(attribute: ir.Attribute) -> tuple[int, ...]:
    """Return the values of an ``array<i64: ...>`` attribute."""
    return tuple(ir.DenseI64ArrayAttr(attribute))


def int_attribute(value: int) -> ir.Attribute:
    """Return ``value : i64``."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def int_of(attribute: ir.Attribute) -> int:
    """Return the value of an integer attribute."""
    return ir.IntegerAttr(attribute).value


def range_attributes(interval: Interval) -> ir.DictAttr:
    """Return the argument attributes of an index parameter that lies in ``interval``."""
    return ir.DictAttr.get({RANGE: int_array((interval.lower, interval.upper))})
