"""The attributes of the xgpu dialect, and the discardable attributes it hangs on functions and arguments.

`MAP` holds an `IndexingMap` as ``#xgpu.map<...>``; its body is the map's own text form.
"""

import re
from collections.abc import Mapping

from xgpu import ir
from xgpu.dialects.base import AttributeKind
from xgpu.errors import InvalidInput
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval

# Their values, places and meanings are declared in `xgpu.dialects.discardable`.
LEVEL = "xgpu.level"
EMITTER = "xgpu.emitter"
SCHEDULE = "xgpu.schedule"
ALIASES = "xgpu.aliases"
HERO = "xgpu.hero"
COMMUTATIVE = "xgpu.commutative"
FIRST_EXTREME = "xgpu.first_extreme"
ORDERED = "xgpu.ordered"
HELD = "xgpu.held"
ELEMENTWISE = "xgpu.elementwise"
RECURRENCE = "xgpu.recurrence"
ROTATED = "xgpu.rotated"
HOST = "xgpu.host"
TRIPS = "xgpu.trips"
PRODUCT = "xgpu.product"
BY_WARP_GROUPS, BY_WARPS, BY_THREADS = "wgmma", "mma", "fma"
"""The values of `PRODUCT`: the instructions that multiply."""
JOINED = "xgpu.joined"
PROLOGUE = "xgpu.prologue"
LEFT, RIGHT = "left", "right"
"""The values of `PROLOGUE`: the operand that is computed."""
CANDIDATE = "xgpu.candidate"
MEASURED = "xgpu.measured"
EXPECTED = "xgpu.expected"
FALLBACK = "xgpu.fallback"
COUNTED = "the host counts iterations"
"""The value of `FALLBACK` for what only says how often a loop runs: see `TRIPS`."""
GRADE = "xgpu.grade"
WEIGHT = "xgpu.weight"
RARE = "xgpu.rare"
VISIBLE = "xgpu.visible"
HIDDEN = "xgpu.hidden"
PLACE = "xgpu.place"
SHARED, FRAGMENTS, COMPUTED = "shared", "fragments", "computed"
"""The values of `PLACE`."""
WARPS = "xgpu.warps"
LAYOUT = "xgpu.layout"
PANEL = "xgpu.panel"
SWIZZLE = "xgpu.swizzle"
STAGES = "xgpu.stages"
PREFETCH = "xgpu.prefetch"
COPY = "xgpu.copy"
PLAIN, ASYNC, BULK = "plain", "async", "bulk"
"""The values of `COPY`."""
MULTICAST = "xgpu.multicast"
MEET = "xgpu.barrier"
OFFSET = "xgpu.offset"
KERNEL = "xgpu.kernel"
GRID = "xgpu.grid"
BLOCK = "xgpu.block"
CLUSTER = "xgpu.cluster"
INPUTS = "xgpu.inputs"
OVERWRITES = "xgpu.overwrites"
SCRATCH = "xgpu.scratch"
WORKSPACE = "xgpu.workspace"
SHARED_BYTES = "xgpu.shared_bytes"
SHARED_OFFSET = "xgpu.shared_offset"
RESIDENT = "xgpu.resident"
INDEX_BITS = "xgpu.index_bits"
COLD = "xgpu.cold"
MANY_RESTS = "xgpu.many_rests"
UNROLL = "xgpu.unroll"
EARLY = "early"
"""The value of `UNROLL` for loops whose variables number elements of vectors that threads hold in registers."""
FULL = "full"
"""The value of `UNROLL` for loops that are to be written out where that is not too much code."""
UNROLLED_OPERATIONS = 1024
"""Operations that a loop without `UNROLL` may have once it is unrolled, functions written out."""
FUNCTION_OPERATIONS = 32
"""Operations that a long function counts as there, such as a sine, which is expanded later."""
AWAITS = "xgpu.awaits"
CONVERGENT = "xgpu.convergent"
FLAGS = "xgpu.flags"
RANGE = "xgpu.range"
ELEMENT_TYPE = "xgpu.element"
CALLED = "xgpu.called"
ACCESS = "xgpu.access"
BYTES = "llvm.dereferenceable"
"""Argument attribute of a pointer to an array: the size of the array in bytes. LLVM's own."""
ALIGNMENT = "llvm.align"
"""Argument attribute of a pointer: its alignment. LLVM's own."""

_MAP_PREFIX = b"map<"


_MOST_MAPS = 1 << 16
_maps: dict[bytes, IndexingMap] = {}
"""Maps by the data of their attributes. A map that was made here is what its text would be parsed as."""


def map_attribute(map_: IndexingMap) -> ir.Attribute:
    """Return ``map_`` as an attribute of the current context."""
    data = f"map<{map_}>".encode()
    _note_map(data, map_)
    return ir.OpaqueAttr.get("xgpu", data, ir.NoneType.get())


def map_of(attribute: ir.Attribute) -> IndexingMap:
    """Return the map that ``attribute`` holds; raises `InvalidInput` if its text is malformed."""
    # To print it would take several times as long.
    data = ir.OpaqueAttr(attribute).data
    found = _maps.get(data)
    if found is None:
        found = IndexingMap.parse(data[len(_MAP_PREFIX) : -1].decode())
        _note_map(data, found)
    return found


def _note_map(data: bytes, map_: IndexingMap) -> None:
    if len(_maps) >= _MOST_MAPS:
        _maps.clear()
    _maps[data] = map_


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


_SCHEDULE_PREFIX = b"schedule<"
_ENTRY = re.compile(r"([a-z_]+) = (true|false|-?\d{1,18})")


def schedule_attribute(values: Mapping[str, int]) -> ir.Attribute:
    """Return ``#xgpu.schedule<name = value, ...>``; values are numbers, and booleans."""
    entries = ", ".join(f"{name} = {str(value).lower()}" for name, value in values.items())
    return ir.OpaqueAttr.get("xgpu", f"schedule<{entries}>".encode(), ir.NoneType.get())


def schedule_values(attribute: ir.Attribute) -> dict[str, int]:
    """Return the numbers and booleans that a schedule holds, by name; raises `InvalidInput` if it is malformed."""
    is_schedule = isinstance(attribute, ir.OpaqueAttr) and attribute.dialect_namespace == "xgpu"
    data = ir.OpaqueAttr(attribute).data if is_schedule else b""
    if not data.startswith(_SCHEDULE_PREFIX):
        raise InvalidInput("expected #xgpu.schedule<name = number, ...>")
    text = data[len(_SCHEDULE_PREFIX) : -1].decode(errors="replace").strip()
    entries = [_ENTRY.fullmatch(entry.strip()) for entry in text.split(",")] if text else []
    found = [(match[1], match[2]) for match in entries if match is not None]
    if len(found) != len(entries) or len(dict(found)) != len(found):
        raise InvalidInput("expected #xgpu.schedule<name = number, ...>, each name once")
    return {name: value == "true" if value in ("true", "false") else int(value) for name, value in found}


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
STRING = AttributeKind(
    "a string",
    lambda attribute: isinstance(attribute, ir.StringAttr),
    lambda text: ir.StringAttr.get(text),
    lambda attribute: ir.StringAttr(attribute).value,
)
TYPE = AttributeKind(
    "a type",
    lambda attribute: isinstance(attribute, ir.TypeAttr),
    lambda type_: ir.TypeAttr.get(type_),
    lambda attribute: ir.TypeAttr(attribute).value,
)
INTEGERS = AttributeKind(
    "array<i64: ...>",
    lambda attribute: isinstance(attribute, ir.DenseI64ArrayAttr),
    lambda values: int_array(tuple(values)),
    lambda attribute: int_array_of(attribute),
)
SCHEDULE_VALUES = AttributeKind(
    "#xgpu.schedule<name = value, ...>",
    lambda attribute: str(attribute).startswith("#xgpu.schedule<"),
    lambda value: value,
    lambda attribute: attribute,
)
BOOLEAN = AttributeKind(
    "true or false",
    lambda attribute: isinstance(attribute, ir.BoolAttr),
    lambda value: ir.BoolAttr.get(value),
    lambda attribute: ir.BoolAttr(attribute).value,
)


def choice(*words: str) -> AttributeKind:
    """Return the kind of attribute that is one of ``words``, a string."""
    return AttributeKind(
        "one of " + ", ".join(f'"{word}"' for word in words),
        lambda attribute: isinstance(attribute, ir.StringAttr) and ir.StringAttr(attribute).value in words,
        lambda word: ir.StringAttr.get(word),
        lambda attribute: ir.StringAttr(attribute).value,
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


def scratch_of(kernel: ir.Operation) -> int:
    """Return how many words a kernel has for messages of its blocks."""
    return int_of(kernel.attributes[SCRATCH]) if SCRATCH in kernel.attributes else 0


def workspace_of(kernel: ir.Operation) -> int:
    """Return how many bytes of memory of its own a kernel has, its last output."""
    return int_of(kernel.attributes[WORKSPACE]) if WORKSPACE in kernel.attributes else 0


def range_attributes(interval: Interval) -> ir.DictAttr:
    """Return the argument attributes of an index parameter that lies in ``interval``."""
    return ir.DictAttr.get({RANGE: int_array((interval.lower, interval.upper))})
