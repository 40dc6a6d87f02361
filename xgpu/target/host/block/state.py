"""The state of a running block whose threads wait at different places: structures behind its shared memory.

A thread that cannot go on waits for a 32-bit word to change: the number of a phase or of a round. So the scheduler need
not know what it is that a thread waits for.
"""

import ctypes
from ctypes import POINTER, Structure, c_float, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

from xgpu.indexing.tiles.tensor_views import MAX_TENSOR_RANK
from xgpu.passes.llvm.host_block import FRAGMENT_OFFSET, MAP_FORM, PRODUCT_FORM
from xgpu.target.host.context import WARP, Header

NAMED_BARRIERS = 16
MOST_MBARRIERS = 512
TRANSFERS = 2048
"""Copies of the tensor memory accelerator that may be under way in a block."""
COPIES_PER_THREAD = 256
PRODUCTS = 256
"""Products of a warp group that may be under way."""
ACCUMULATORS = 8
"""Matrices of accumulators of a warp group that may be under way."""
GROUP_THREADS = 128
GROUP_ROWS, MOST_COLUMNS, MOST_CONTRACTED = 64, 256, 32
MAPS = 8
"""Tensor maps that a thread may have acquired."""
LANE_BYTES = 64

STOPS = (
    "no stop",
    "deadlock",
    "diverged",
    "no mbarrier",
    "too many",
    "misused",
    "overrun",
)
"""The reasons why a launch stopped; the numbers are positions."""
DEADLOCK, DIVERGED, NO_MBARRIER, TOO_MANY, MISUSED, OVERRUN_STOP = range(1, len(STOPS))


class ThreadCopy(Structure):
    """Some bytes that a thread copies for itself, in its group of this number."""

    _fields_ = [
        ("to", c_void_p),
        ("source", c_void_p),
        ("bytes", c_int32),
        ("valid", c_int32),
        ("group", c_int64),
        ("site", c_int64),
    ]


class Store(Structure):
    """A copy from shared to global memory, in its thread's group of this number; of bytes if ``map`` is null."""

    _fields_ = [
        ("to", c_void_p),
        ("source", c_void_p),
        ("map", c_void_p),
        ("bytes", c_int64),
        ("group", c_int64),
        ("site", c_int64),
        ("coordinates", c_int32 * 5),
    ]


STORES_PER_THREAD = 64


class Thread(Structure):
    """A thread: it waits while the word that ``waits_for`` points to is ``value``; ``site`` says where (0: ended).

    ``turn`` is which half of its warp's memory the operation takes that the warp does now. Copies and stores are rings
    of those that are in no group that was waited for.
    """

    _fields_ = [
        ("waits_for", POINTER(c_uint32)),
        ("value", c_uint32),
        ("site", c_int32),
        ("wait_site", c_int32),
        ("turn", c_int32),
        ("cluster_round", c_uint32),
        ("has_arrived", c_int32),
        ("is_fenced", c_int32),
        ("first_copy", c_int64),
        ("next_copy", c_int64),
        ("copy_group", c_int64),
        ("first_store", c_int64),
        ("next_store", c_int64),
        ("store_group", c_int64),
        ("next_product", c_int64),
        ("product_group", c_int64),
        ("acquires", POINTER(c_int32)),
        ("maps", c_uint64 * MAPS),
        ("next_map", c_int64),
    ]


class Barrier(Structure):
    """A barrier: its rounds, and how many have arrived in this one; ``expected`` is what the first of them said."""

    _fields_ = [("round", c_uint32), ("count", c_uint32), ("expected", c_uint32), ("site", c_uint32)]


class Mbarrier(Structure):
    """An mbarrier: its phase, the arrivals that are missing in it, bytes that are expected and that are under way.

    ``is_awaited`` says that somebody waits for the phase, so that what completes it is done. ``deferred`` are arrivals
    that come with copies of threads. The copies that complete at it are a list, oldest first, of numbers from 1.
    """

    _fields_ = [
        ("address", c_uint64),
        ("phase", c_uint32),
        ("count", c_uint32),
        ("pending", c_int32),
        ("is_awaited", c_int32),
        ("deferred", c_int32),
        ("first_transfer", c_int32),
        ("last_transfer", c_int32),
        ("bytes", c_int64),
        ("under_way", c_int64),
        ("site", c_int64),
        ("maker", c_int32),
        ("made_at", c_int32),
        ("is_fenced", c_int32),
    ]


class Transfer(Structure):
    """A copy to shared memory that completes at an mbarrier; of bytes if ``map`` is null. ``is_taken``: not free.

    ``next`` is the number of the next one of its mbarrier, or of those that are free, 0 if there is none.
    """

    _fields_ = [
        ("is_taken", c_int32),
        ("mbarrier", c_int32),
        ("next", c_int32),
        ("to", c_void_p),
        ("source", c_void_p),
        ("map", c_void_p),
        ("bytes", c_int64),
        ("site", c_int64),
        ("thread", c_int32),
        ("who", c_int32),
        ("is_arrival", c_int32),
        ("coordinates", c_int32 * 5),
    ]


class Meeting(Structure):
    """Rounds of operations that some threads do together, and how many have come to this one, at the same site."""

    _fields_ = [("round", c_uint32), ("count", c_uint32), ("site", c_int64)]


class Warp(Structure):
    """A warp: the operations that all its lanes do, and the lanes' operands."""

    _fields_ = [
        ("meeting", Meeting),
        ("lanes", (c_uint8 * LANE_BYTES) * (2 * WARP)),
    ]


class ProductForm(Structure):
    """Columns, element types and layouts of a product; see `MatrixLayout`."""

    _fields_ = [(name, c_int64) for name in PRODUCT_FORM]


class GroupProduct(Structure):
    """A product of a warp group; ``a`` is null if it is in ``fragments``."""

    _fields_ = [
        ("a", c_void_p),
        ("b", c_void_p),
        ("group", c_int64),
        ("site", c_int64),
        ("accumulator", c_int32),
        ("accumulates", c_int32),
        ("arrived", c_int32),
        ("form", ProductForm),
        ("fragments", c_uint32 * (4 * GROUP_THREADS)),
    ]


class Accumulator(Structure):
    """Accumulators of a warp group while products add to them; ``serial`` is 0 if it is free.

    What threads hold meanwhile is NaN with the serial number in its bits.
    """

    _fields_ = [
        ("serial", c_int32),
        ("products", c_int32),
        ("fetched", c_int32),
        ("columns", c_int32),
        ("values", c_float * (GROUP_ROWS * MOST_COLUMNS)),
    ]


class WarpGroup(Structure):
    """A warp group: its waits, and the products that are under way."""

    _fields_ = [
        ("meeting", Meeting),
        ("first_product", c_int64),
        ("next_product", c_int64),
        ("last_serial", c_int64),
        ("left", c_float * (GROUP_ROWS * MOST_CONTRACTED)),
        ("right", c_float * (MOST_CONTRACTED * MOST_COLUMNS)),
        ("accumulators", Accumulator * ACCUMULATORS),
        ("products", GroupProduct * PRODUCTS),
    ]


class BlockState(Structure):
    """A block of a cluster while it runs; ``first`` is the context of the cluster's first block.

    ``go`` and ``stay`` are words that threads wait for that need not wait, and that have ended. ``highest_transfer`` is
    how many copies were under way at once, ``free_transfer`` the number of the first that is free again.
    """

    _fields_ = [
        ("context", POINTER(Header)),
        ("first", c_void_p),
        ("stride", c_int64),
        ("rank", c_int64),
        ("blocks", c_int64),
        ("count", c_int64),
        ("shared", c_void_p),
        ("shared_bytes", c_int64),
        ("go", c_uint32),
        ("stay", c_uint32),
        ("threads", POINTER(Thread)),
        ("copies", POINTER(ThreadCopy)),
        ("stores", POINTER(Store)),
        ("warps", POINTER(Warp)),
        ("groups", POINTER(WarpGroup)),
        ("barriers", Barrier * NAMED_BARRIERS),
        ("cluster", Barrier),
        ("mbarrier_count", c_int64),
        ("highest_transfer", c_int64),
        ("free_transfer", c_int64),
        ("registers", c_uint8 * (2 * FRAGMENT_OFFSET)),
        ("mbarriers", Mbarrier * MOST_MBARRIERS),
        ("transfers", Transfer * TRANSFERS),
    ]


class GivenForm(Structure):
    """Rank, bytes of an element and of a swizzle, shape, strides and boxes of a tensor map, as a kernel gives them.

    Elements that are rounded are f32, of which tf32 is copied.
    """

    _fields_ = [
        *((name, c_int64) for name in MAP_FORM[0]),
        *((name, c_int64 * MAX_TENSOR_RANK) for name in MAP_FORM[1]),
    ]


class TensorMap(Structure):
    """A tensor map on this machine: an array, its shape and strides, outermost first, and its boxes."""

    _fields_ = [
        ("mark", c_uint64),
        ("array", c_void_p),
        ("rank", c_uint8),
        ("element", c_uint8),
        ("swizzle", c_uint16),
        ("is_rounded", c_uint8),
        *((name, c_int64 * MAX_TENSOR_RANK) for name in ("shape", "strides")),
        ("box", c_uint16 * MAX_TENSOR_RANK),
        *((name, c_int32) for name in ("unit", "clock", "run")),
    ]


MAP_MARK = 0x70616D2075706778
MBARRIER_MARK = 0x75706778


def state_bytes(threads: int) -> int:
    """Return the bytes of the state of a block of so many threads."""
    warps, groups = -(-threads // WARP), -(-threads // GROUP_THREADS)
    per_thread = (
        ctypes.sizeof(Thread) + COPIES_PER_THREAD * ctypes.sizeof(ThreadCopy) + STORES_PER_THREAD * ctypes.sizeof(Store)
    )
    parts = ctypes.sizeof(BlockState) + threads * per_thread
    return parts + warps * ctypes.sizeof(Warp) + groups * ctypes.sizeof(WarpGroup)
