"""Tiles, barriers and shuffles through the whole pipeline, on the host against NumPy."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.dtypes import dtype_of_numpy
from xgpu.levels import pipeline
from xgpu.passes.framework.manager import run
from xgpu.runtime.host_executor import HostKernel, aligned_empty
from xgpu.runtime.packing import packed, unpacked
from xgpu.target_machine import HOST

type Array = np.ndarray[Any, Any]

TYPES = [
    np.bool_,
    ml_dtypes.int4,
    ml_dtypes.uint2,
    ml_dtypes.float4_e2m1fn,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    ml_dtypes.float8_e5m2,
    ml_dtypes.bfloat16,
    np.float16,
    np.float32,
    np.float64,
    np.complex64,
    np.complex128,
]


def launch(text: str, source: Array) -> Array:
    """Run a kernel of one input and one output of one type and shape; return the output."""
    dtype = dtype_of_numpy(source.dtype)
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        gpu = device(DEFAULT_DEVICE)
        run(module, [*pipeline.optimize(gpu), *pipeline.lower(), *pipeline.to_llvm(HOST, gpu)])
        kernel = HostKernel(module)
    memory = packed(source, dtype) if dtype.is_packed else source
    given, made = aligned_empty(memory.shape, memory.dtype), aligned_empty(memory.shape, memory.dtype)
    given[...], made[...] = memory, np.zeros_like(memory)
    kernel.launch([given, made])
    return unpacked(made, source.shape, dtype) if dtype.is_packed else made


def values_of(dtype: Any, count: int) -> Array:
    """Different values of a type, as far as it has so many."""
    numbers = np.arange(count) * 37 % 97
    if np.dtype(dtype).kind == "c":
        return (numbers - 40j + numbers[::-1] * 2j).astype(dtype)
    return (numbers % 2 == 0 if dtype == np.bool_ else numbers % 4).astype(dtype)


@pytest.mark.parametrize(("lane", "expected"), [("d0 + 29", -3), ("d0 * 0 + 31", None)], ids=["before", "last"])
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.complex128], ids=lambda dtype: np.dtype(dtype).name)
def test_shuffle_from_a_lane(dtype: Any, lane: str, expected: int | None) -> None:
    """Every thread gets the value of the lane that it names, whose number counts modulo 32."""
    xs = values_of(dtype, 64)
    element = dtype_of_numpy(xs.dtype).signless
    text = f"""
      func.func @k(%x: tensor<64x{element}>, %o: tensor<64x{element}>) -> tensor<64x{element}>
          attributes {{xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.block = array<i64: 64, 1, 1>,
          xgpu.grid = array<i64: 1, 1, 1>}} {{
        %t = gpu.thread_id x upper_bound 64
        %v = tensor.extract %x[%t] : tensor<64x{element}>
        %lane = "xgpu.apply_indexing"(%t) {{map = #xgpu.map<(d0) -> ({lane}), d0 in [0, 63]>}} : (index) -> index
        %w = "xgpu.shuffle"(%lane, %v) : (index, {element}) -> {element}
        %r = tensor.insert %w into %o[%t] : tensor<64x{element}>
        return %r : tensor<64x{element}>
      }}"""
    lanes = np.arange(32)
    source = (lanes + expected) % 32 if expected is not None else np.full(32, 31)
    np.testing.assert_array_equal(launch(text, xs), xs.reshape(2, 32)[:, source].reshape(64))


@pytest.mark.parametrize("distance", [1, 16])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_shuffle(dtype: Any, distance: int) -> None:
    """Every thread gets the value of the other lane; packed elements go through a tile, as a thread has whole bytes."""
    xs = values_of(dtype, 128)
    element = dtype_of_numpy(xs.dtype).signless
    text = f"""
      func.func @k(%x: tensor<128x{element}>, %o: tensor<128x{element}>) -> tensor<128x{element}>
          attributes {{xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.block = array<i64: 64, 1, 1>,
          xgpu.grid = array<i64: 2, 1, 1>}} {{
        %t = gpu.thread_id x upper_bound 64
        %b = gpu.block_id x upper_bound 2
        %tile = "xgpu.allocate_shared"() : () -> tensor<64x{element}>
        %i = "xgpu.apply_indexing"(%t, %b) {{map = #xgpu.map<(d0, d1) -> (d1 * 64 + d0), d0 in [0, 63], d1 in [0, 1]>}}
            : (index, index) -> index
        %v = tensor.extract %x[%i] : tensor<128x{element}>
        %w = "xgpu.shuffle_reduce"(%v) {{combiner = @other, distance = {distance} : i64}} : ({element}) -> {element}
        %filled = tensor.insert %w into %tile[%t] : tensor<64x{element}>
        %synced = "xgpu.sync_threads"(%filled) : (tensor<64x{element}>) -> tensor<64x{element}>
        %r = "xgpu.loop"(%t, %b, %o) ({{
        ^bb0(%s: index, %j: index, %k: index, %acc: tensor<128x{element}>):
          %y = tensor.extract %synced[%j] : tensor<64x{element}>
          %u = tensor.insert %y into %acc[%k] : tensor<128x{element}>
          "xgpu.yield"(%u) : (tensor<128x{element}>) -> ()
        }}) {{map = #xgpu.map<(d0, d1)[s0] -> (d0 * 4 + s0, d1 * 64 + d0 * 4 + s0), d0 in [0, 63], d1 in [0, 1],
            s0 in [0, 3], d0 * 4 + s0 in [0, 63]>}}
            : (index, index, tensor<128x{element}>) -> tensor<128x{element}>
        return %r : tensor<128x{element}>
      }}
      func.func private @other(%mine: {element}, %others: {element}) -> {element} {{
        return %others : {element}
      }}"""
    np.testing.assert_array_equal(
        launch(text, xs).astype(np.complex128), xs[np.arange(128) ^ distance].astype(np.complex128)
    )


@pytest.mark.parametrize("dtype", [np.int32, np.complex128], ids=["static", "dynamic"])
def test_transposition(dtype: Any) -> None:
    """A tile that several threads fill and others read, also one too large to be static: 64 KiB."""
    size = 64
    xs = values_of(dtype, size * size).reshape(size, size)
    tensor = f"tensor<{size}x{size}x{dtype_of_numpy(xs.dtype).signless}>"
    text = f"""
      func.func @k(%x: {tensor}, %o: {tensor}) -> {tensor} attributes {{xgpu.kernel, xgpu.inputs = 1 : i64,
          xgpu.block = array<i64: 256, 1, 1>, xgpu.grid = array<i64: 1, 1, 1>}} {{
        %t = gpu.thread_id x upper_bound 256
        %tile = "xgpu.allocate_shared"() : () -> {tensor}
        %filled = "xgpu.loop"(%t, %tile) ({{
        ^bb0(%s: index, %i: index, %j: index, %acc: {tensor}):
          %v = tensor.extract %x[%i, %j] : {tensor}
          %u = tensor.insert %v into %acc[%i, %j] : {tensor}
          "xgpu.yield"(%u) : ({tensor}) -> ()
        }}) {{map = #xgpu.map<(d0)[s0] -> (s0 * 4 + d0 floordiv 64, d0 mod 64), d0 in [0, 255], s0 in [0, 15]>}}
            : (index, {tensor}) -> {tensor}
        %synced = "xgpu.sync_threads"(%filled) : ({tensor}) -> {tensor}
        %r = "xgpu.loop"(%t, %o) ({{
        ^bb0(%s: index, %i: index, %j: index, %acc: {tensor}):
          %v = tensor.extract %synced[%j, %i] : {tensor}
          %u = tensor.insert %v into %acc[%i, %j] : {tensor}
          "xgpu.yield"(%u) : ({tensor}) -> ()
        }}) {{map = #xgpu.map<(d0)[s0] -> (s0 * 4 + d0 floordiv 64, d0 mod 64), d0 in [0, 255], s0 in [0, 15]>}}
            : (index, {tensor}) -> {tensor}
        return %r : {tensor}
      }}"""
    np.testing.assert_array_equal(launch(text, xs), xs.T)


def test_sums_of_warps() -> None:
    """Five butterfly steps, with a combiner of two values: a sum, and the number of the smallest."""
    xs = values_of(np.int32, 256)
    text = """
      func.func @k(%x: tensor<256xi32>, %o: tensor<256xi32>) -> tensor<256xi32> attributes {xgpu.kernel,
          xgpu.inputs = 1 : i64, xgpu.block = array<i64: 128, 1, 1>, xgpu.grid = array<i64: 2, 1, 1>} {
        %t = gpu.thread_id x upper_bound 128
        %b = gpu.block_id x upper_bound 2
        %i = "xgpu.apply_indexing"(%t, %b) {map = #xgpu.map<(d0, d1) -> (d1 * 128 + d0), d0 in [0, 127],
            d1 in [0, 1]>} : (index, index) -> index
        %v = tensor.extract %x[%i] : tensor<256xi32>
        %n = arith.index_cast %i : index to i32
        %1:2 = "xgpu.shuffle_reduce"(%v, %n) {combiner = @f, distance = 16 : i64} : (i32, i32) -> (i32, i32)
        %2:2 = "xgpu.shuffle_reduce"(%1#0, %1#1) {combiner = @f, distance = 8 : i64} : (i32, i32) -> (i32, i32)
        %3:2 = "xgpu.shuffle_reduce"(%2#0, %2#1) {combiner = @f, distance = 4 : i64} : (i32, i32) -> (i32, i32)
        %4:2 = "xgpu.shuffle_reduce"(%3#0, %3#1) {combiner = @f, distance = 2 : i64} : (i32, i32) -> (i32, i32)
        %5:2 = "xgpu.shuffle_reduce"(%4#0, %4#1) {combiner = @f, distance = 1 : i64} : (i32, i32) -> (i32, i32)
        %thousand = arith.constant 1000 : i32
        %y = arith.muli %5#0, %thousand : i32
        %z = arith.addi %y, %5#1 : i32
        %u = tensor.insert %z into %o[%i] : tensor<256xi32>
        return %u : tensor<256xi32>
      }
      func.func private @f(%a: i32, %m: i32, %b: i32, %n: i32) -> (i32, i32) {
        %sum = arith.addi %a, %b : i32
        %least = arith.minsi %m, %n : i32
        return %sum, %least : i32, i32
      }"""
    sums = xs.reshape(8, 32).sum(axis=1)
    np.testing.assert_array_equal(launch(text, xs), np.repeat(sums * 1000 + np.arange(8) * 32, 32))
