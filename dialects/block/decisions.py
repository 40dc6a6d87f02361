"""The decisions about a kernel of level ``tiles`` whose emitter is ``block``: attributes that the planning passes set.

A person may set each of them first; the passes keep what they find. An operation whose results are several tiles,
``xgpu.steps``, has an array with one entry for each of them: no strides, no swizzle and the offset -1 for those that
are not in shared memory. What they mean together:

- What steps carry in shared memory is one tile. What a step computes for it (what it yields) has the same offset and
  strides: it is written into the tile itself. Where that would be too early for what still reads the tile,
  chain-tiles has put a copy at the end of the step: a ``stablehlo.convert`` to the same type. What the steps take is
  written into the tile before the first step, unless it lies there already.
- Fragments are read element by element, by operations whose results lie alike (equal `xgpu.warps`, equal shapes, made
  by products of equal types). A number of each row, which a reduction makes of rows that warps have whole, is in all
  threads of the row, and a broadcast along its row reads it there. Left operands of warp groups that are computed for
  them lie as these read them. Where anything else reads such a tile, chain-tiles has put a copy of it in shared memory.
- What is computed where it is read reads its operands there and then: arrays, tiles in shared memory, fragments at the
  same element.
- Steps of one stage copy a tile where its operation stands, and wait for it before all threads meet next. Of ``n``
  stages, the first ``n - 1`` steps' tiles are copied where the steps begin, and a step begins (before the barrier of
  its first operation) by waiting for its own tiles, which are in buffer ``step mod n``; where the operation stands, the
  tile of step ``step + n - 1`` is copied, into buffer ``(step + n - 1) mod n``. After the last step all copies have
  been waited for. With a prefetch of ``p`` steps, that is ``step + p``, and the first ``p`` steps in the beginning.
- What TMA copies arrives at an mbarrier of its buffer, which all threads wait for where a step begins.
- A barrier on what ends a step comes after all of the step, before the next one; none is needed after the last.
"""

from collections.abc import Callable, Sequence

from xgpu import ir
from xgpu.device import MOST_CLUSTER_BLOCKS
from xgpu.dialects import attributes
from xgpu.dialects.attribute_checks import Discardable, OperationSet, int64s, one_of, unit_problem

_TILES = OperationSet("an operation of a block that makes tiles")
_STEPS = OperationSet("an `xgpu.steps`", frozenset(("xgpu.steps",)))
_READS = OperationSet("an `xgpu.tile`", frozenset(("xgpu.tile",)))
_PRODUCTS = OperationSet("a `stablehlo.dot_general`", frozenset(("stablehlo.dot_general",)))
_MOST_STAGES = 64
_MOST_STRIDE = 1 << 20
_MOST_BITS = 20

type _Check = Callable[[ir.Attribute], str | None]


def _for_each(check: _Check) -> _Check:
    """Return the check of an attribute of one tile, or of an array of such, one for each tile of ``xgpu.steps``."""

    def problem(attribute: ir.Attribute) -> str | None:
        if not isinstance(attribute, ir.ArrayAttr):
            return check(attribute)
        return next((found for each in attribute if (found := check(each)) is not None), None)

    return problem


def _numbers(expected: str, holds: Callable[[Sequence[int]], bool]) -> _Check:
    def problem(attribute: ir.Attribute) -> str | None:
        values = int64s(attribute)
        return None if values is not None and holds(values) else f"expected {expected}"

    return problem


def _up_to_stages(what: str) -> _Check:
    def problem(attribute: ir.Attribute) -> str | None:
        is_number = isinstance(attribute, ir.IntegerAttr) and str(attribute.type) == "i64"
        fits = is_number and 1 <= attributes.int_of(attribute) <= _MOST_STAGES
        return None if fits else f"expected a number of {what} from 1 to {_MOST_STAGES}, of type i64"

    return problem


def _offset_problem(attribute: ir.Attribute) -> str | None:
    if isinstance(attribute, ir.IntegerAttr):
        return None if str(attribute.type) == "i64" and attribute.value >= 0 else "expected a number of bytes, of i64"
    values = int64s(attribute)
    fits = values is not None and min(values, default=0) >= -1
    return None if fits else "expected a number of bytes, or array<i64: ...> of them or -1"


DECISIONS: tuple[Discardable, ...] = (
    Discardable(
        attributes.PLACE,
        _TILES,
        _for_each(one_of(attributes.SHARED, attributes.FRAGMENTS, attributes.COMPUTED)),
        "Where a tile is: `shared`, in shared memory; `fragments`, in registers, as the accumulators of the product"
        " that it follows, or as the left operand that it is computed for; `computed`, nowhere: its elements are"
        " computed where they are read. Set by chain-tiles.",
    ),
    Discardable(
        attributes.WARPS,
        _PRODUCTS,
        _numbers("array<i64: down, across>", lambda values: len(values) == 2 and min(values) >= 1),
        "How many warps share the rows of a product, and how many its columns. Set by chain-tiles.",
    ),
    Discardable(
        attributes.LAYOUT,
        _TILES,
        _for_each(
            _numbers(
                "array<i64: ...> of strides from 0 to 2^20",
                lambda values: all(0 <= each <= _MOST_STRIDE for each in values),
            )
        ),
        "The strides of a tile in shared memory, in elements, one for each dimension; of tiles of steps that are not in"
        " shared memory, none. Set by assign-layouts.",
    ),
    Discardable(
        attributes.PANEL,
        _TILES,
        _for_each(
            _numbers(
                "array<i64: dimension, width, stride>, or none of them",
                lambda values: not values or (len(values) == 3 and min(values) >= 0 and max(values) <= _MOST_STRIDE),
            )
        ),
        "The panels of a tile in shared memory, whose rows are not in one piece: of a dimension, `width` elements"
        " follow each other by its stride, and the next panel begins `stride` elements after this one. Set by"
        " assign-layouts, with the strides.",
    ),
    Discardable(
        attributes.SWIZZLE,
        _TILES,
        _for_each(
            _numbers(
                "array<i64: bits, base, shift> from 0 to 20, or none of them",
                lambda values: not values or (len(values) == 3 and min(values) >= 0 and max(values) <= _MOST_BITS),
            )
        ),
        "Element `o` of a tile in shared memory is at `o xor (((o >> shift) & (2^bits - 1)) << base)`. Set by"
        " swizzle-tiles.",
    ),
    Discardable(
        attributes.STAGES,
        _STEPS,
        _up_to_stages("buffers"),
        "How many buffers each tile has that a step reads: its copies are started that many steps, less one, ahead. Set"
        " by pipeline-tiles.",
    ),
    Discardable(
        attributes.PREFETCH,
        _STEPS,
        _up_to_stages("steps"),
        "How many steps ahead copies are started, if not as many as there are buffers, less one. With fewer, products"
        " of warp groups that steps only add up go on until the next step has started its own. Set by pipeline-tiles.",
    ),
    Discardable(
        attributes.COPY,
        _READS,
        one_of(attributes.PLAIN, attributes.ASYNC, attributes.BULK),
        "How a tile gets into shared memory: `plain`, by loads and stores; `async`, by cp.async; `bulk`, by TMA, tiles"
        " of steps with several buffers, which is not chosen. Set by pipeline-tiles.",
    ),
    Discardable(
        attributes.MULTICAST,
        _READS,
        _numbers(
            f"array<i64: ...> of masks of at most {MOST_CLUSTER_BLOCKS} blocks",
            lambda values: (
                len(values) <= MOST_CLUSTER_BLOCKS and all(0 <= each < 1 << MOST_CLUSTER_BLOCKS for each in values)
            ),
        ),
        "For each block of a cluster, by rank, the blocks for which it copies the tile, a bit for each; 0 if another"
        " one does it for this one. Goes with the copy `bulk`; it is planned, but not lowered. Set by multicast-tiles.",
    ),
    Discardable(
        attributes.MEET,
        _TILES,
        unit_problem,
        "All threads of the block meet before this operation; on what ends a step, before the next step begins. Set by"
        " schedule-tiles.",
    ),
    Discardable(
        attributes.OFFSET,
        _TILES,
        _offset_problem,
        "Where in the block's shared memory a tile begins, in bytes; of tiles of steps that are not there, -1. Tiles"
        " that are copied ahead have one buffer after the other. Set by place-tiles.",
    ),
)
"""The attributes, in the order in which the passes set them."""
