"""Kernels whose threads wait for each other, share memory and update elements together, on the host."""

from typing import Any

import numpy as np
import pytest

from tests.py.runtime.host.host_kernels import (
    BARRIER,
    at,
    compare,
    constants,
    kernel,
    reverse,
    row_sum,
    shuffle,
    tile,
)
from xgpu.runtime.host_executor import HostKernel

type Array = np.ndarray[Any, Any]


@pytest.mark.parametrize("threads", [1, 32, 33, 96, 100, 1024])
@pytest.mark.parametrize("sanitize", [False, True])
def test_barrier(threads: int, sanitize: bool) -> None:
    blocks = 3
    x, out = np.arange(blocks * threads, dtype=np.float32), np.zeros(blocks * threads, np.float32)
    HostKernel(reverse(threads, blocks), sanitize=sanitize).launch([x, out])
    assert (out.reshape(blocks, threads) == x.reshape(blocks, threads)[:, ::-1]).all()


def test_blocks_on_several_cores_share_nothing() -> None:
    x, out = np.arange(4096 * 256, dtype=np.float32), np.zeros(4096 * 256, np.float32)
    kernel_ = HostKernel(reverse(256, 4096))
    for _ in range(3):
        out[:] = 0
        kernel_.launch([x, out])
        assert (out.reshape(-1, 256) == x.reshape(-1, 256)[:, ::-1]).all()


@pytest.mark.parametrize(("threads", "columns"), [(32, 5), (64, 64), (256, 1000), (1024, 3000)])
@pytest.mark.parametrize("sanitize", [False, True])
def test_row_sum(threads: int, columns: int, sanitize: bool) -> None:
    x = np.random.default_rng(0).integers(-1000, 1000, (7, columns)).astype(np.int32)
    out = np.zeros(7, np.int32)
    HostKernel(row_sum(threads, columns, 7), sanitize=sanitize).launch([x, out])
    assert (out == x.sum(1)).all()


@pytest.mark.parametrize("distance", [1, 2, 4, 8, 16, 31])
def test_shuffle(distance: int) -> None:
    body = f"""{constants(distance)}
{at("p", "in", "tx", "i32")}
  %x = llvm.load %p : !llvm.ptr -> i32
{shuffle("y", "x", f"c{distance}")}
{at("q", "out", "tx", "i32")}
  llvm.store %y, %q : i32, !llvm.ptr"""
    x, out = np.arange(96, dtype=np.int32) ** 2, np.zeros(96, np.int32)
    HostKernel(kernel(body, block=(96, 1, 1))).launch([x, out])
    lanes = np.arange(96)
    assert (out == x[lanes ^ distance]).all()


def test_distances_may_differ_between_lanes_and_be_large() -> None:
    body = f"""{shuffle("y", "tx", "tx")}
{at("q", "out", "tx", "i32")}
  llvm.store %y, %q : i32, !llvm.ptr"""
    out = np.zeros(64, np.int32)
    HostKernel(kernel(body, inputs="", block=(64, 1, 1))).launch([out])
    assert (out == np.repeat([0, 32], 32)).all()


@pytest.mark.parametrize(("given", "expected"), [("tx", np.tile(np.arange(32) ^ 6, 2)), ("bx", np.repeat([0, 1], 32))])
def test_what_a_shuffle_gives_is_shuffled_at_once(given: str, expected: Array) -> None:
    """The operand of each call is replaced before the call itself: of the second, and of one of a block's number."""
    body = f"""{constants(2, 4, 32)}
{shuffle("x", given, "c2")}
{shuffle("y", "x", "c4")}
  %first = llvm.mul %bx, %c32 : i32
  %t = llvm.add %first, %tx : i32
{at("q", "out", "t", "i32")}
  llvm.store %y, %q : i32, !llvm.ptr"""
    out = np.zeros(64, np.int32)
    HostKernel(kernel(body, inputs="", grid=(2, 1, 1))).launch([out])
    assert (out == expected).all()


@pytest.mark.parametrize("count", [1, 3, 8, 9, 20])
def test_several_values_are_exchanged_together(count: int) -> None:
    """Independent shuffles are one step of up to eight; what lies between them is done before."""
    lines = [constants(*{1, *range(count)})]
    for number in range(count):
        lines += [f"  %x{number} = llvm.add %tx, %c{number} : i32", shuffle(f"y{number}", f"x{number}", "c1")]
    for number in range(count):
        total = f"%t{number - 1}" if number else "%tx"
        lines += [
            f"  %m{number} = llvm.mul %y{number}, %c{number} : i32",
            f"  %t{number} = llvm.add {total}, %m{number} : i32",
        ]
    lines += [at("q", "out", "tx", "i32"), f"  llvm.store %t{count - 1}, %q : i32, !llvm.ptr"]
    out = np.zeros(32, np.int32)
    HostKernel(kernel("\n".join(lines), inputs="")).launch([out])
    lanes = np.arange(32)
    assert (out == lanes + sum(((lanes ^ 1) + number) * number for number in range(count))).all()


def test_shuffles_in_a_loop() -> None:
    """Each turn of the loop exchanges what the one before gave: the sum of a warp in every lane."""
    body = f"""{constants(0, 1, 16)}
  llvm.br ^head(%tx, %c16 : i32, i32)
^head(%acc: i32, %d: i32):
{compare("more", "ne", "d", "c0")}
  llvm.cond_br %more, ^body, ^after
^body:
{shuffle("other", "acc", "d")}
  %sum = llvm.add %acc, %other : i32
  %half = llvm.lshr %d, %c1 : i32
  llvm.br ^head(%sum, %half : i32, i32)
^after:
{at("q", "out", "tx", "i32")}
  llvm.store %acc, %q : i32, !llvm.ptr"""
    out = np.zeros(64, np.int32)
    HostKernel(kernel(body, inputs="", block=(64, 1, 1))).launch([out])
    assert (out == np.repeat([496, 1520], 32)).all()


def test_block_of_three_dimensions() -> None:
    """Lanes are counted with x fastest, then y, then z."""
    body = f"""{constants(1, 4, 24)}
  %plane = llvm.mul %tz, %c4 : i32
  %row = llvm.add %plane, %ty : i32
  %rows = llvm.mul %row, %c4 : i32
  %t = llvm.add %rows, %tx : i32
{shuffle("y", "t", "c1")}
  {BARRIER}
{at("q", "out", "t", "i32")}
  llvm.store %y, %q : i32, !llvm.ptr"""
    out = np.zeros(64, np.int32)
    HostKernel(kernel(body, inputs="", block=(4, 4, 4))).launch([out])
    assert (out == np.arange(64) ^ 1).all()


def test_grid_of_three_dimensions() -> None:
    body = f"""{constants(2, 5)}
  {BARRIER}
  %plane = llvm.mul %bz, %c2 : i32
  %row = llvm.add %plane, %by : i32
  %rows = llvm.mul %row, %c5 : i32
  %b = llvm.add %rows, %bx : i32
{at("q", "out", "b", "i32")}
  llvm.store %b, %q : i32, !llvm.ptr"""
    out = np.zeros(30, np.int32)
    HostKernel(kernel(body, inputs="", grid=(5, 2, 3), block=(1, 1, 1))).launch([out])
    assert (out == np.arange(30)).all()


def test_stack_across_a_barrier() -> None:
    body = f"""{constants(1, 3, 4)}
  %stack = llvm.alloca %c4 x i32 : (i32) -> !llvm.ptr
  %i = llvm.and %tx, %c3 : i32
{at("mine", "stack", "i", "i32")}
  llvm.store %tx, %mine : i32, !llvm.ptr
  {BARRIER}
  %y = llvm.load %mine : !llvm.ptr -> i32
{at("q", "out", "tx", "i32")}
  llvm.store %y, %q : i32, !llvm.ptr"""
    for sanitize in (False, True):
        out = np.zeros(64, np.int32)
        HostKernel(kernel(body, inputs="", block=(64, 1, 1)), sanitize=sanitize).launch([out])
        assert (out == np.arange(64)).all()


def test_dynamic_shared_memory_comes_after_the_tiles() -> None:
    module = f"""{tile("small", 3, "i8")}
llvm.mlir.global external @dynamic() {{addr_space = 0 : i32, alignment = 16 : i64}} : !llvm.array<0 x i8>"""
    body = f"""{constants(0, 7)}
  %small = llvm.mlir.addressof @small : !llvm.ptr
  %dynamic = llvm.mlir.addressof @dynamic : !llvm.ptr
  %zero = llvm.mlir.constant(0 : i8) : i8
{compare("is_first", "eq", "tx", "c0")}
  llvm.cond_br %is_first, ^clear, ^go
^clear:
  llvm.store %zero, %small : i8, !llvm.ptr
  llvm.br ^go
^go:
{at("mine", "dynamic", "tx", "i32")}
  llvm.store %tx, %mine : i32, !llvm.ptr
  {BARRIER}
  %other = llvm.xor %tx, %c7 : i32
{at("theirs", "dynamic", "other", "i32")}
  %y = llvm.load %theirs : !llvm.ptr -> i32
  %s = llvm.load %small : !llvm.ptr -> i8
  %w = llvm.zext %s : i8 to i32
  %z = llvm.add %y, %w : i32
{at("q", "out", "tx", "i32")}
  llvm.store %z, %q : i32, !llvm.ptr"""
    text = kernel(body, inputs="", block=(8192, 1, 1), module=module, attributes=", xgpu.shared_bytes = 32768 : i64")
    for sanitize in (False, True):
        out = np.zeros(8192, np.int32)
        HostKernel(text, sanitize=sanitize).launch([out])
        assert (out == np.arange(8192) ^ 7).all()


def test_shared_memory_without_a_barrier() -> None:
    """Each thread uses its own element; the threads still run in a plain loop."""
    body = f"""  %tile = llvm.mlir.addressof @tile : !llvm.ptr
{at("mine", "tile", "tx", "i32")}
  llvm.store %tx, %mine : i32, !llvm.ptr
  %y = llvm.load %mine : !llvm.ptr -> i32
{at("q", "out", "tx", "i32")}
  llvm.store %y, %q : i32, !llvm.ptr"""
    for sanitize in (False, True):
        out = np.zeros(32, np.int32)
        text = HostKernel(kernel(body, inputs="", module=tile("tile", 32, "i32")), sanitize=sanitize)
        text.launch([out])
        assert (out == np.arange(32)).all()
        assert "coro" not in text.llvm_ir


def test_shared_memory_starts_as_nan() -> None:
    """So that a read of what nobody wrote shows in a result."""
    body = f"""  %tile = llvm.mlir.addressof @tile : !llvm.ptr
{at("mine", "tile", "tx")}
  %y = llvm.load %mine : !llvm.ptr -> f32
{at("q", "out", "tx")}
  llvm.store %y, %q : f32, !llvm.ptr"""
    out = np.zeros(32, np.float32)
    HostKernel(kernel(body, inputs="", module=tile("tile", 32))).launch([out])
    assert np.isnan(out).all()


@pytest.mark.parametrize(
    ("operation", "type_", "dtype"),
    [("add", "i32", np.int32), ("fadd", "f32", np.float32), ("add", "i64", np.int64), ("fadd", "f64", np.float64)],
)
def test_atomic_addition_of_blocks_on_several_cores(operation: str, type_: str, dtype: Any) -> None:
    number = {"add": 1, "fadd": 11}[operation]
    one = "1.0" if operation == "fadd" else "1"
    body = f"""{constants(7)}
  %one = llvm.mlir.constant({one} : {type_}) : {type_}
  %i = llvm.and %tx, %c7 : i32
{at("p", "out", "i", type_)}
  %old = "llvm.atomicrmw"(%p, %one) <{{bin_op = {number} : i64, ordering = 2 : i64}}> :
      (!llvm.ptr, {type_}) -> {type_}"""
    for sanitize in (False, True):
        out = np.zeros(8, dtype)
        HostKernel(kernel(body, inputs="", grid=(2048, 1, 1), block=(64, 1, 1)), sanitize=sanitize).launch([out])
        assert (out == 2048 * 8).all()


@pytest.mark.parametrize(("type_", "dtype"), [("i32", np.int32), ("i64", np.int64), ("i8", np.uint8)])
def test_compare_and_swap_loop(type_: str, dtype: Any) -> None:
    """The largest number of blocks that ran: old = max(old, number)."""
    convert = {"i8": "trunc %bx : i32 to i8", "i32": "or %bx, %bx : i32", "i64": "zext %bx : i32 to i64"}[type_]
    body = f"""  %number = llvm.{convert}
  %first = "llvm.load"(%out) <{{ordering = 2 : i64, alignment = {np.dtype(dtype).itemsize} : i64}}> :
      (!llvm.ptr) -> {type_}
  llvm.br ^try(%first : {type_})
^try(%old: {type_}):
  %larger = llvm.icmp "ugt" %number, %old : {type_}
  %new = llvm.select %larger, %number, %old : i1, {type_}
  %pair = "llvm.cmpxchg"(%out, %old, %new) <{{success_ordering = 2 : i64, failure_ordering = 2 : i64}}> :
      (!llvm.ptr, {type_}, {type_}) -> !llvm.struct<({type_}, i1)>
  %seen = llvm.extractvalue %pair[0] : !llvm.struct<({type_}, i1)>
  %done = llvm.extractvalue %pair[1] : !llvm.struct<({type_}, i1)>
  llvm.cond_br %done, ^end, ^try(%seen : {type_})
^end:"""
    out = np.zeros(1, dtype)
    HostKernel(kernel(body, inputs="", grid=(256, 1, 1), block=(64, 1, 1))).launch([out])
    assert out[0] == 255
