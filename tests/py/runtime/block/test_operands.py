"""Operands that no hardware takes: launches end with an error, and sanitized ones access nothing but the arrays."""

import re

import numpy as np
import pytest

from tests.py.runtime.block.kernels import at, constants, host_kernel, kernel, memory
from xgpu.errors import KernelFault
from xgpu.target.host.block.state import TRANSFERS

FAR = 1 << 30
MBARRIER = f"""{at("barrier", "shared", "512")}
    "xgpu.mbarrier_init"(%barrier) {{count = 1 : i64}} : (!llvm.ptr<3>) -> ()
    "xgpu.fence"() {{kind = "mbarrier_init"}} : () -> ()
    "xgpu.mbarrier_expect"(%barrier, %n) : (!llvm.ptr<3>, i32) -> ()"""
WAIT = '    "xgpu.mbarrier_wait"(%barrier, %c0) : (!llvm.ptr<3>, i32) -> ()'
STORED = """    "xgpu.bulk_commit"() : () -> ()
    "xgpu.bulk_wait"() {pending = 0 : i64, until = "done"} : () -> ()"""
LAYOUT = "{group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}"


def one_thread(body: str, number: int, here: int = 0, there: int = 0) -> str:
    """Return what one thread does with ``%here`` in shared memory, ``%there`` in an array, and the number ``%n``."""
    return f"""{constants(0, 1)}
  %n = arith.constant {number} : i32
{at("here", "shared", str(here))}
{at("there", "a", str(there), 1)}
  %is_first = arith.cmpi eq, %t, %c0 : i32
  scf.if %is_first {{
{body}
  }}"""


def bulk_load(count: int, here: int = 0, there: int = 0) -> str:
    load = (
        """    "xgpu.bulk_load"(%here, %there, %n, %barrier) : (!llvm.ptr<3>, !llvm.ptr<1>, i32, !llvm.ptr<3>) -> ()"""
    )
    return one_thread(f"{MBARRIER}\n{load}\n{WAIT}", count, here, there)


def bulk_store(count: int, here: int = 0, there: int = 0) -> str:
    store = """    "xgpu.bulk_store"(%there, %here, %n) : (!llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()"""
    return one_thread(f"{store}\n{STORED}", count, here, there)


def async_copy(valid: int = 16, here: int = 0, there: int = 0) -> str:
    copy = """    "xgpu.async_copy"(%here, %there, %n) {bytes = 16 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()"""
    wait = """    "xgpu.async_commit"() : () -> ()\n    "xgpu.async_wait"() {pending = 0 : i64} : () -> ()"""
    return one_thread(f"{copy}\n{wait}", valid, here, there)


def box(operation: str, here: int = 0, map_at: int = 0, coordinates: int = 2) -> str:
    """Return the load or store of a box of 8 x 32, whose map is looked for at a place."""
    numbers, types = ", ".join(["%c0"] * coordinates), ", ".join(["i32"] * coordinates)
    if operation == "tensor_load":
        moves = f"""{MBARRIER}
    "xgpu.tensor_load"(%here, %used, %barrier, {numbers}) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, {types}) -> ()
{WAIT}"""
    else:
        moves = f"""    "xgpu.tensor_store"(%used, %here, {numbers}) : (!llvm.ptr<1>, !llvm.ptr<3>, {types}) -> ()
{STORED}"""
    acquire = '    "xgpu.acquire_tensor_map"(%used) : (!llvm.ptr<1>) -> ()\n'
    return f"""{at("staging", "shared", "896")}
{at("used", "maps", str(map_at), 1)}
  "xgpu.encode_tensor_map"(%maps, %staging, %a) {{element = f32, shape = array<i64: 16, 64>,
      strides = array<i64: 256>, box = array<i64: 8, 32>, swizzle = "none"}}
      : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
  gpu.barrier
{one_thread(f"{acquire}{moves}", 1024, here)}"""


def product(a: int = 0, b: int = 0) -> str:
    return f"""  %true = arith.constant true
  %zeros = arith.constant dense<0.0> : vector<32xf32>
{at("left", "shared", str(a))}
{at("right", "shared", str(b))}
  "xgpu.warpgroup_fence"() : () -> ()
  %d = "xgpu.warpgroup_mma"(%zeros, %left, %right, %true) {{a_element = bf16, b_element = bf16, a_layout = {LAYOUT},
      b_layout = {LAYOUT}}} : (vector<32xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<32xf32>
  "xgpu.warpgroup_commit"() : () -> ()
  %r = "xgpu.warpgroup_wait"(%d) {{pending = 0 : i64}} : (vector<32xf32>) -> vector<32xf32>"""


def fault(body: str, sanitize: bool, threads: int = 32, shared: int = 1024) -> str:
    """Run a kernel, which faults; return what is said."""
    text = kernel(body, ["a", "maps"], block=(threads, 1, 1), shared=shared)
    with pytest.raises(KernelFault) as caught:
        host_kernel(text, sanitize).launch([memory((16, 64), np.float32), memory((256,), np.uint8)])
    return str(caught.value)


@pytest.mark.parametrize("sanitize", [False, True])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (bulk_load(-16), "at bulk load, which expects multiples of 16 bytes, .*, got -16 bytes"),
        (bulk_load(16, here=1016), "at bulk load, which expects multiples of 16 bytes"),
        (bulk_store(-16), "at bulk store, which expects multiples of 16 bytes, .*, got -16 bytes"),
        (bulk_store(16, here=FAR), "at bulk store, which expects .*one place in the block's shared memory"),
        (bulk_store(16, there=8), "at bulk store, which expects multiples of 16 bytes"),
        (async_copy(-1), "at async copy, which expects .* no more valid bytes than all, got -1"),
        (async_copy(here=FAR), "at async copy, which expects .*one in the block's shared memory"),
        (async_copy(here=4), "at async copy, which expects aligned places"),
        (box("tensor_load", map_at=128), "at acquire tensor map, which expects a tensor map that xgpu.encode"),
        (box("tensor_load", coordinates=3), "at tensor load, which expects a tensor map .* for as many coordinates"),
        (box("tensor_load", here=64), "at tensor load, which expects .* its box .* at a multiple of 128 bytes"),
        (box("tensor_store", coordinates=1), "at tensor store, which expects a tensor map .* for as many coordinates"),
        (box("tensor_store", here=FAR), "at tensor store, which expects .* its box in the block's shared memory"),
    ],
)
def test_operands_that_end_a_launch(body: str, words: str, sanitize: bool) -> None:
    message = fault(body, sanitize)
    assert "cannot go on" in message and re.search(words, message)


@pytest.mark.parametrize(
    ("body", "operation", "where"),
    [
        (bulk_load(16, there=FAR), "bulk_load", "memory that is no array's"),
        (bulk_load(64, there=4080), "bulk_load", r"element 4080 (byte 4080) of buffer 0, which has 4096 bytes"),
        (bulk_store(16, there=FAR), "bulk_store", "memory that is no array's"),
        (async_copy(there=FAR), "async_copy", "memory that is no array's"),
        (box("tensor_load", map_at=FAR), "acquire_tensor_map", "memory that is no array's"),
    ],
)
def test_memory_that_is_no_arrays(body: str, operation: str, where: str) -> None:
    message = fault(body, sanitize=True)
    assert f"copies to or from {where}" in message and f'"xgpu.{operation}"' in message


@pytest.mark.parametrize("sanitize", [False, True])
@pytest.mark.parametrize("body", [product(a=FAR), product(b=FAR), product(a=8), product(b=16384 - 1024 * 7)])
def test_products_of_what_is_not_in_shared_memory(body: str, sanitize: bool) -> None:
    message = fault(body, sanitize, threads=128, shared=16384)
    assert "at warpgroup mma, which expects whole warp groups of 128 threads, operands at multiples of 16" in message


@pytest.mark.parametrize("sanitize", [False, True])
def test_more_copies_than_may_be_under_way(sanitize: bool) -> None:
    loads = f"""    %more = arith.constant {TRANSFERS + 1} : index
    scf.for %i = %i0 to %more step %i1 {{
      "xgpu.bulk_load"(%here, %there, %c0, %barrier) : (!llvm.ptr<3>, !llvm.ptr<1>, i32, !llvm.ptr<3>) -> ()
    }}"""
    message = fault(one_thread(f"{MBARRIER}\n{loads}", 16), sanitize)
    assert f"is at bulk load while {TRANSFERS} of them are under way, the most that the host keeps" in message
