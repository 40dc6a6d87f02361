"""Copies: boxes of arrays of all ranks with all swizzles, consecutive bytes, and those of single threads."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from tests.py.runtime.block.kernels import Array, at, constants, host_kernel, kernel, memory, placed
from xgpu.errors import KernelFault

# Shape, box, where the box begins, and the swizzle: boxes that are inside, cross every edge, or lie outside.
BOXES: list[tuple[Sequence[int], Sequence[int], Sequence[int], str]] = [
    ((40,), (16,), (20,), "none"),
    ((40,), (32,), (24,), "none"),
    ((20, 24), (8, 8), (4, 8), "32"),
    ((20, 24), (16, 16), (-3, 12), "64"),
    ((20, 40), (16, 32), (15, -5), "128"),
    ((20, 40), (4, 8), (20, 8), "none"),
    ((4, 6, 8), (2, 4, 8), (3, -1, 4), "32"),
    ((3, 4, 5, 12), (2, 2, 2, 8), (2, -1, 4, 8), "none"),
    ((2, 3, 2, 3, 8), (2, 2, 2, 2, 4), (1, 2, -1, 0, 6), "none"),
]


def expected_box(array: Array, box: Sequence[int], first: Sequence[int]) -> Array:
    """Return a box of an array, with zeros for what is out of bounds."""
    result = np.zeros(box, array.dtype)
    for index in itertools.product(*map(range, box)):
        place = tuple(start + offset for start, offset in zip(first, index, strict=True))
        if all(0 <= each < size for each, size in zip(place, array.shape, strict=True)):
            result[index] = array[place]
    return result


def permuted(box: Array, swizzle: str) -> Array:
    """Return the bytes of a box as they lie in shared memory."""
    stored, result = box.reshape(-1).view(np.uint8), memory((1024 * -(-box.nbytes // 1024),), np.uint8)
    width = 0 if swizzle == "none" else int(swizzle)
    for byte, value in enumerate(stored):
        result[byte ^ (byte // 128 % (width // 16) * 16) if width else byte] = value
    return result


def box_kernel(shape: Sequence[int], box: Sequence[int], first: Sequence[int], swizzle: str) -> str:
    """Copy a box of f32 to shared memory, its bytes from there to one output, and the box to another array."""
    size = int(np.prod(box)) * 4
    strides = [int(np.prod(shape[d + 1 :])) * 4 for d in range(len(shape) - 1)]
    numbers = ", ".join(f"%first{d}" for d in range(len(shape)))
    types = ", ".join(["i32"] * len(shape))

    def encode(name: str, place: int) -> str:
        return f"""{at(f"map_{name}", "maps", str(place), 1)}
  "xgpu.encode_tensor_map"(%map_{name}, %staging, %{name}) {{element = f32,
      shape = array<i64: {", ".join(map(str, shape))}>, strides = array<i64{":" if strides else ""} {
            ", ".join(map(str, strides))
        }>, box = array<i64: {", ".join(map(str, box))}>, swizzle = "{swizzle}"}}
      : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()"""

    starts = "\n".join(f"  %first{d} = arith.constant {value} : i32" for d, value in enumerate(first))
    total = 1024 * -(-size // 1024)
    body = f"""{constants(0, 1, 4)}
{starts}
  %bytes = arith.constant {size} : i32
{at("staging", "shared", str(total))}
{at("barrier", "shared", str(total + 128))}
{encode("a", 0)}
{encode("b", 128)}
  gpu.barrier
  %is_first = arith.cmpi eq, %t, %c0 : i32
  scf.if %is_first {{
    "xgpu.acquire_tensor_map"(%map_a) : (!llvm.ptr<1>) -> ()
    "xgpu.acquire_tensor_map"(%map_b) : (!llvm.ptr<1>) -> ()
    "xgpu.mbarrier_init"(%barrier) {{count = 1 : i64}} : (!llvm.ptr<3>) -> ()
    "xgpu.fence"() {{kind = "mbarrier_init"}} : () -> ()
    "xgpu.mbarrier_expect"(%barrier, %bytes) : (!llvm.ptr<3>, i32) -> ()
    "xgpu.tensor_load"(%shared, %map_a, %barrier, {numbers}) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, {types}) -> ()
    "xgpu.mbarrier_wait"(%barrier, %c0) : (!llvm.ptr<3>, i32) -> ()
    "xgpu.tensor_store"(%map_b, %shared, {numbers}) : (!llvm.ptr<1>, !llvm.ptr<3>, {types}) -> ()
    "xgpu.bulk_store"(%out, %shared, %bytes) : (!llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()
    "xgpu.bulk_commit"() : () -> ()
    "xgpu.bulk_wait"() {{pending = 0 : i64, until = "done"}} : () -> ()
  }}"""
    return kernel(body, ["a", "maps", "out", "b"], shared=total + 136, attributes=", xgpu.inputs = 1 : i64")


@pytest.mark.parametrize(("shape", "box", "first", "swizzle"), BOXES)
def test_boxes(shape: Sequence[int], box: Sequence[int], first: Sequence[int], swizzle: str) -> None:
    array = placed(np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape))
    expected = expected_box(array, box, first)
    out, copied = memory((1024 * -(-expected.nbytes // 1024),), np.uint8), memory(shape, np.float32)
    kernel_of_box = host_kernel(box_kernel(shape, box, first, swizzle), sanitize=True)
    kernel_of_box.launch([array, memory((256,), np.uint8), out, copied])
    np.testing.assert_array_equal(out[: expected.nbytes], permuted(expected, swizzle)[: expected.nbytes])
    back = np.zeros(shape, np.float32)
    inside = [slice(max(start, 0), max(start + size, 0)) for start, size in zip(first, box, strict=True)]
    back[tuple(inside)] = array[tuple(inside)]
    np.testing.assert_array_equal(copied, back)


def test_maps_of_arrays_that_are_larger_than_their_memory() -> None:
    text = box_kernel((20, 24), (8, 8), (4, 8), "32")
    arrays = [memory((19, 24), np.float32), memory((256,), np.uint8), memory((1024,), np.uint8)]
    with pytest.raises(KernelFault, match=r"byte 0\) of input 0, which has 1824 bytes"):
        host_kernel(text, sanitize=True).launch([*arrays, memory((20, 24), np.float32)])


COPY = """  %t16 = arith.muli %t, %c16 : i32
  %to = llvm.getelementptr %shared[%t16] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
  %from = llvm.getelementptr %in[%t16] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
  %valid = arith.muli %t, %c4 : i32
  %limited = arith.minui %valid, %c16 : i32
  "xgpu.async_copy"(%to, %from, %limited) {bytes = 16 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()"""
READ = """  %read = llvm.load %to : !llvm.ptr<3> -> vector<4xi32>
  %result = llvm.getelementptr %out[%t16] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
  llvm.store %read, %result : vector<4xi32>, !llvm.ptr<1>"""


def run_copies(body: str, sanitize: bool = False) -> tuple[Array, Array]:
    """Run a kernel of 32 threads that copy 16 bytes each, the first ones fewer; return its result and the right one."""
    source, out = placed(np.arange(1, 129, dtype=np.int32)), memory((128,), np.int32)
    text = kernel(f"{constants(0, 1, 4, 16)}\n{body}", ["in", "out"], attributes=", xgpu.inputs = 1 : i64")
    host_kernel(text, sanitize).launch([source, out])
    expected = source.copy()
    for thread in range(4):
        expected[4 * thread + thread : 4 * thread + 4] = 0
    return out, expected


WAIT = '"xgpu.async_commit"() : () -> ()\n  "xgpu.async_wait"() {pending = 0 : i64} : () -> ()'


def test_copies_of_threads() -> None:
    out, expected = run_copies(f"{COPY}\n  {WAIT}\n{READ}", sanitize=True)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("change", [("", ""), ("pending = 0", "pending = 1"), ('"xgpu.async_commit"() : () -> ()', "")])
def test_copies_are_made_at_the_wait_that_covers_them(change: tuple[str, str]) -> None:
    wait = WAIT.replace(*change) if change[0] else ""
    out, _ = run_copies(f"{COPY}\n  {wait}\n{READ}")
    assert (out == -1).all()
    with pytest.raises(KernelFault, match="which a copy that thread"):
        run_copies(f"{COPY}\n  {wait}\n{READ}", sanitize=True)


def test_arrivals_with_copies() -> None:
    """Lane 0 waits for the copies of all, by an mbarrier."""
    body = f"""{at("barrier", "shared", "512")}
  %is_first = arith.cmpi eq, %t, %c0 : i32
  scf.if %is_first {{
    "xgpu.mbarrier_init"(%barrier) {{count = 32 : i64}} : (!llvm.ptr<3>) -> ()
    "xgpu.fence"() {{kind = "mbarrier_init"}} : () -> ()
  }}
  gpu.barrier
{COPY}
  "xgpu.mbarrier_arrive_copies"(%barrier) : (!llvm.ptr<3>) -> ()
  "xgpu.mbarrier_wait"(%barrier, %c0) : (!llvm.ptr<3>, i32) -> ()
{READ}"""
    out, expected = run_copies(body, sanitize=True)
    np.testing.assert_array_equal(out, expected)
