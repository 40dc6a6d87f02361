"""Operations of the xgpu dialect that copy between global and shared memory while threads go on.

They appear where kernels stop being functional, and take pointers. A copy takes effect no later than the wait that
covers it, and nothing is known of its destination before that wait.
"""

import math
from collections.abc import Iterator, Mapping

from xgpu import ir
from xgpu.dialects.attributes import INTEGER, INTEGERS, TYPE, choice
from xgpu.dialects.base import GLOBAL_POINTER, I32, SHARED_POINTER, Attribute, DeclaredOp, Values, declare
from xgpu.dialects.namespace import XgpuDialect
from xgpu.dialects.traits import Traits
from xgpu.indexing.tiles.tensor_views import MAX_BOX, MAX_STRIDE_BYTES, MAX_TENSOR_RANK, MAX_TENSOR_SIZE, STRIDE_BYTES

TENSOR_MAP_BYTES = 128
"""Size and alignment of a tensor map."""
SWIZZLES = {"none": 0, "32": 32, "64": 64, "128": 128}
"""Bytes of a row within which a swizzle permutes chunks of 16 bytes, by its name."""

TENSOR_ELEMENTS = ("i8", "i16", "i32", "i64", "f16", "bf16", "tf32", "f32", "f64")
"""Element types of arrays with a tensor map; an 8-bit float is copied as i8. Those of tf32 are f32 in memory."""

_COORDINATES = Values(
    "coordinates", I32, "The box's first element in the array, outermost first; may be out of bounds.", variadic=True
)
_MAP = Values("map", GLOBAL_POINTER, "The array's tensor map, which this thread has acquired.")
_BARRIER = Values("barrier", SHARED_POINTER, "The mbarrier of this block that the bytes complete at.")


@ir.register_operation(XgpuDialect)
@declare
class AsyncCopyOp(DeclaredOp):
    """Starts to copy a few bytes from global to shared memory; a thread copies for itself (``cp.async``).

    Bytes after the first ``valid`` are not read; zeros are written for them. `xgpu.async_commit` puts the copies
    started before into a group, `xgpu.async_wait` waits for groups. Both pointers are multiples of ``bytes``.

    ```mlir
    "xgpu.async_copy"(%to, %from, %valid) {bytes = 16 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.async_copy"
    TRAITS = Traits(asynchronous=True)
    OPERANDS = (
        Values("to", SHARED_POINTER, "Where to write."),
        Values("source", GLOBAL_POINTER, "Where to read."),
        Values("valid", I32, "How many bytes to read, from 0 to `bytes`."),
    )
    ATTRIBUTES = (Attribute("bytes", INTEGER, "The bytes to write: 4, 8 or 16."),)
    bytes: int

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The size is one that the instruction has."""
        yield from _one_of(self, "bytes", (4, 8, 16))


@ir.register_operation(XgpuDialect)
@declare
class AsyncCommitOp(DeclaredOp):
    """Makes a group of those `xgpu.async_copy` of this thread that are in none yet; it may be empty.

    ```mlir
    "xgpu.async_commit"() : () -> ()
    ```
    """

    OPERATION_NAME = "xgpu.async_commit"
    TRAITS = Traits(asynchronous=True)


@ir.register_operation(XgpuDialect)
@declare
class AsyncWaitOp(DeclaredOp):
    """Waits until at most ``pending`` of this thread's groups of copies, the last ones, are under way.

    The copies of the others are then seen by this thread, and by others after a barrier.

    ```mlir
    "xgpu.async_wait"() {pending = 2 : i64} : () -> ()
    ```
    """

    OPERATION_NAME = "xgpu.async_wait"
    TRAITS = Traits(asynchronous=True)
    ATTRIBUTES = (Attribute("pending", INTEGER, "Groups that need not be complete, from 0."),)
    pending: int

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The number is not negative."""
        yield from _pending(self)


@ir.register_operation(XgpuDialect)
@declare
class EncodeTensorMapOp(DeclaredOp):
    """Writes the tensor map of an array: what `xgpu.tensor_load` and `xgpu.tensor_store` know of its boxes.

    All lanes of one warp execute it. The array has ``shape``, outermost first, and ``strides`` in bytes for each
    dimension but the innermost, whose elements are neighbours. A box of ``box`` elements lies in shared memory row
    after row, without gaps; with a swizzle of n bytes, which its rows then take at most, the chunk of 16 bytes at
    address ``a`` is found at ``a xor ((a / 128 mod (n / 16)) * 16)``. Elements out of bounds are read as zero and not
    written. Elements of tf32 are those of an array of f32, rounded on their way to shared memory, to the nearest and
    to even. Threads, of this block or others, use the map after `xgpu.acquire_tensor_map`.

    ```mlir
    "xgpu.encode_tensor_map"(%map, %staging, %array) {element = bf16, shape = array<i64: 4096, 1024>,
        strides = array<i64: 2048>, box = array<i64: 128, 64>, swizzle = "128"}
        : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.encode_tensor_map"
    TRAITS = Traits(collective=True)
    OPERANDS = (
        Values("map", GLOBAL_POINTER, "Where to write the map: 128 bytes, so aligned."),
        Values("staging", SHARED_POINTER, "Memory of the same size and alignment, for this operation alone."),
        Values("array", GLOBAL_POINTER, "The array's first element, a multiple of 16 bytes."),
    )
    ATTRIBUTES = (
        Attribute("element", TYPE, "The elements' type."),
        Attribute("shape", INTEGERS, "The array's shape, of 1 to 5 dimensions."),
        Attribute("strides", INTEGERS, "Bytes from one element to the next, for each dimension but the innermost."),
        Attribute("box", INTEGERS, "The boxes' shape, at most 256 in each dimension."),
        Attribute("swizzle", choice(*SWIZZLES), "How the box's chunks of 16 bytes are permuted."),
    )
    element: ir.Type
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: str

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The array and the box are ones that the hardware has, as the driver's documentation of tensor maps says."""
        rank = len(self.shape)
        if str(self.element) not in TENSOR_ELEMENTS:
            yield f"attribute 'element': expected one of {', '.join(TENSOR_ELEMENTS)}, got {self.element}"
        elif not 1 <= rank <= MAX_TENSOR_RANK or any(not 1 <= size <= MAX_TENSOR_SIZE for size in self.shape):
            yield f"attribute 'shape': expected 1 to 5 sizes of 1 to 2^32, got {self.shape}"
        elif len(self.strides) != rank - 1 or any(
            each % STRIDE_BYTES or not 0 < each < MAX_STRIDE_BYTES for each in self.strides
        ):
            yield f"attribute 'strides': expected {rank - 1} multiples of 16, below 2^40, got {self.strides}"
        elif len(self.box) != rank or any(not 1 <= size <= MAX_BOX for size in self.box):
            yield f"attribute 'box': expected {rank} sizes of 1 to 256, got {self.box}"
        else:
            yield from self._row_problems()

    def _row_problems(self) -> Iterator[str]:
        row, limit = self.box[-1] * element_bytes(self.element), SWIZZLES[self.swizzle]
        if row % STRIDE_BYTES:
            yield f"attribute 'box': expected rows of a multiple of 16 bytes, got {row}"
        elif limit and row > limit:
            yield f"attribute 'box': expected rows of at most {limit} bytes for this swizzle, got {row}"

    @property
    def box_bytes(self) -> int:
        """The bytes of a box in shared memory."""
        return math.prod(self.box) * element_bytes(self.element)


@ir.register_operation(XgpuDialect)
@declare
class AcquireTensorMapOp(DeclaredOp):
    """Makes a tensor map that the kernel has written be seen by this thread's copies.

    ```mlir
    "xgpu.acquire_tensor_map"(%map) : (!llvm.ptr<1>) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.acquire_tensor_map"
    TRAITS = Traits(asynchronous=True)
    OPERANDS = (Values("map", GLOBAL_POINTER, "The map, written before a barrier that this thread has passed."),)


@ir.register_operation(XgpuDialect)
@declare
class TensorLoadOp(DeclaredOp):
    """Starts to copy a box of an array to shared memory (TMA); one thread executes it for all.

    The bytes of the whole box, of elements out of bounds too, complete at the mbarrier, which expects them.

    ```mlir
    "xgpu.tensor_load"(%to, %map, %barrier, %row, %column)
        : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.tensor_load"
    TRAITS = Traits(asynchronous=True)
    OPERANDS = (Values("to", SHARED_POINTER, "Where the box goes, aligned to 128 bytes."), _MAP, _BARRIER, _COORDINATES)
    coordinates: list[ir.Value]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """There are as many coordinates as a tensor map may have dimensions."""
        yield from _rank(self.coordinates)


@ir.register_operation(XgpuDialect)
@declare
class TensorLoadMulticastOp(DeclaredOp):
    """Starts to copy a box of an array to the same place in several blocks of the cluster (TMA).

    In each of them the bytes complete at the mbarrier at the same place in that block.

    ```mlir
    "xgpu.tensor_load_multicast"(%to, %map, %barrier, %blocks, %row, %column)
        : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32, i32) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.tensor_load_multicast"
    TRAITS = Traits(asynchronous=True)
    OPERANDS = (
        Values("to", SHARED_POINTER, "Where the box goes in each block, aligned to 128 bytes."),
        _MAP,
        _BARRIER,
        Values("blocks", I32, "Bit r stands for the cluster's block of rank r."),
        _COORDINATES,
    )
    coordinates: list[ir.Value]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """There are as many coordinates as a tensor map may have dimensions."""
        yield from _rank(self.coordinates)


@ir.register_operation(XgpuDialect)
@declare
class TensorStoreOp(DeclaredOp):
    """Starts to copy a box from shared memory into an array (TMA); one thread executes it for all.

    What other threads wrote into the box they have fenced (`xgpu.fence`, kind ``async``) before a barrier.
    `xgpu.bulk_commit` and `xgpu.bulk_wait` tell when it is done.

    ```mlir
    "xgpu.tensor_store"(%map, %from, %row, %column) : (!llvm.ptr<1>, !llvm.ptr<3>, i32, i32) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.tensor_store"
    TRAITS = Traits(asynchronous=True)
    OPERANDS = (_MAP, Values("source", SHARED_POINTER, "The box, aligned to 128 bytes."), _COORDINATES)
    coordinates: list[ir.Value]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """There are as many coordinates as a tensor map may have dimensions."""
        yield from _rank(self.coordinates)


@ir.register_operation(XgpuDialect)
@declare
class BulkLoadOp(DeclaredOp):
    """Starts to copy consecutive bytes from global to shared memory (TMA without a tensor map).

    ```mlir
    "xgpu.bulk_load"(%to, %from, %bytes, %barrier) : (!llvm.ptr<3>, !llvm.ptr<1>, i32, !llvm.ptr<3>) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.bulk_load"
    TRAITS = Traits(asynchronous=True)
    OPERANDS = (
        Values("to", SHARED_POINTER, "Where to write, a multiple of 16 bytes."),
        Values("source", GLOBAL_POINTER, "Where to read, a multiple of 16 bytes."),
        Values("bytes", I32, "How many, a multiple of 16."),
        _BARRIER,
    )


@ir.register_operation(XgpuDialect)
@declare
class BulkStoreOp(DeclaredOp):
    """Starts to copy consecutive bytes from shared to global memory (TMA without a tensor map).

    ```mlir
    "xgpu.bulk_store"(%to, %from, %bytes) : (!llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.bulk_store"
    TRAITS = Traits(asynchronous=True)
    OPERANDS = (
        Values("to", GLOBAL_POINTER, "Where to write, a multiple of 16 bytes."),
        Values("source", SHARED_POINTER, "Where to read, a multiple of 16 bytes."),
        Values("bytes", I32, "How many, a multiple of 16."),
    )


@ir.register_operation(XgpuDialect)
@declare
class BulkCommitOp(DeclaredOp):
    """Makes a group of those stores of this thread, `xgpu.tensor_store` and `xgpu.bulk_store`, that are in none yet.

    ```mlir
    "xgpu.bulk_commit"() : () -> ()
    ```
    """

    OPERATION_NAME = "xgpu.bulk_commit"
    TRAITS = Traits(asynchronous=True)


@ir.register_operation(XgpuDialect)
@declare
class BulkWaitOp(DeclaredOp):
    """Waits until at most ``pending`` of this thread's groups of stores, the last ones, are under way.

    Of the others the whole is ``done``, or what they copy was ``read``, so that its memory may be written again.

    ```mlir
    "xgpu.bulk_wait"() {pending = 0 : i64, until = "read"} : () -> ()
    ```
    """

    OPERATION_NAME = "xgpu.bulk_wait"
    TRAITS = Traits(asynchronous=True)
    ATTRIBUTES = (
        Attribute("pending", INTEGER, "Groups that need not be complete, from 0."),
        Attribute("until", choice("read", "done"), "What to wait for."),
    )
    pending: int
    until: str

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The number is not negative."""
        yield from _pending(self)


COPY_OPS: tuple[type[DeclaredOp], ...] = (
    *(AsyncCopyOp, AsyncCommitOp, AsyncWaitOp),
    *(EncodeTensorMapOp, AcquireTensorMapOp, TensorLoadOp, TensorLoadMulticastOp, TensorStoreOp),
    *(BulkLoadOp, BulkStoreOp, BulkCommitOp, BulkWaitOp),
)
"""The operations of this file."""


def copied_as(element: ir.Type) -> ir.Type:
    """Return the type of a tensor map for elements of a type: an integer for floats that no tensor map has."""
    if str(element) in TENSOR_ELEMENTS:
        return element
    return ir.IntegerType.get_signless(8 * element_bytes(element))


def element_bytes(type_: ir.Type) -> int:
    """Return the bytes of an integer or float of whole bytes, or of one of tf32, which is an f32 in memory."""
    return 4 if isinstance(type_, ir.FloatTF32Type) else int(type_.width) // 8  # type: ignore[attr-defined]


def _one_of(op: DeclaredOp, name: str, values: tuple[int, ...]) -> Iterator[str]:
    if getattr(op, name) not in values:
        yield f"attribute '{name}': expected one of {', '.join(map(str, values))}, got {getattr(op, name)}"


def _pending(op: AsyncWaitOp | BulkWaitOp) -> Iterator[str]:
    if op.pending < 0:
        yield f"attribute 'pending': expected a number from 0, got {op.pending}"


def _rank(coordinates: list[ir.Value]) -> Iterator[str]:
    if not 1 <= len(coordinates) <= MAX_TENSOR_RANK:
        yield f"expected 1 to {MAX_TENSOR_RANK} coordinates, got {len(coordinates)}"
