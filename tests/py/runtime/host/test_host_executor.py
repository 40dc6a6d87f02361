"""Launching hand-written kernels on NumPy arrays."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

from xgpu.errors import InvalidInput
from xgpu.runtime.host_executor import HostKernel, aligned_empty

INDICES = "%tx: i32, %ty: i32, %tz: i32, %bx: i32, %by: i32, %bz: i32"


def attributes(grid: int, block: int) -> str:
    return f"attributes {{xgpu.kernel, xgpu.grid = array<i64: {grid}, 1, 1>, xgpu.block = array<i64: {block}, 1, 1>}}"


def add_then_multiply(elements: int, align: int = 16) -> str:
    """``out = (a + b) * b`` in f32 by blocks of 128 threads of 4 elements each."""
    read = f"llvm.noalias, llvm.readonly, llvm.align = {align} : i64, llvm.dereferenceable = {elements * 4} : i64"
    write = f"llvm.noalias, llvm.align = {align} : i64, llvm.dereferenceable = {elements * 4} : i64"
    pointer = "(!llvm.ptr, i64) -> !llvm.ptr, f32"
    load = '"llvm.load"(%{}) <{{alignment = 16 : i64, ordering = 0 : i64}}> : (!llvm.ptr) -> vector<4xf32>'
    return f"""llvm.func @fused(%a: !llvm.ptr {{{read}}}, %b: !llvm.ptr {{{read}}}, %out: !llvm.ptr {{{write}}},
        {INDICES}) {attributes(elements // 512, 128)} {{
      %c512 = llvm.mlir.constant(512 : i32) : i32
      %c4 = llvm.mlir.constant(4 : i32) : i32
      %0 = llvm.mul %bx, %c512 overflow<nsw, nuw> : i32
      %1 = llvm.mul %tx, %c4 overflow<nsw, nuw> : i32
      %2 = llvm.add %0, %1 overflow<nsw, nuw> : i32
      %3 = llvm.zext nneg %2 : i32 to i64
      %pa = llvm.getelementptr inbounds|nuw %a[%3] : {pointer}
      %pb = llvm.getelementptr inbounds|nuw %b[%3] : {pointer}
      %po = llvm.getelementptr inbounds|nuw %out[%3] : {pointer}
      %va = {load.format("pa")}
      %vb = {load.format("pb")}
      %sum = llvm.fadd %va, %vb : vector<4xf32>
      %product = llvm.fmul %sum, %vb : vector<4xf32>
      "llvm.store"(%product, %po) <{{alignment = 16 : i64, ordering = 0 : i64}}> : (vector<4xf32>, !llvm.ptr) -> ()
      llvm.return
    }}"""


def random_arrays(elements: int) -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(0)
    a, b = (generator.random(elements, np.float32) for _ in range(2))
    return a, b, np.zeros(elements, np.float32)


@pytest.mark.parametrize("elements", [512, 1 << 20])
def test_elementwise(elements: int) -> None:
    a, b, out = random_arrays(elements)
    HostKernel(add_then_multiply(elements)).launch([a, b, out])
    assert (out == (a + b) * b).all()


def test_every_thread_of_every_block_runs_once() -> None:
    text = f"""llvm.func @k(%out: !llvm.ptr, {INDICES}) attributes {{xgpu.kernel,
          xgpu.grid = array<i64: 3, 5, 2>, xgpu.block = array<i64: 4, 3, 2>}} {{
        %c2 = llvm.mlir.constant(2 : i32) : i32
        %c3 = llvm.mlir.constant(3 : i32) : i32
        %c4 = llvm.mlir.constant(4 : i32) : i32
        %c5 = llvm.mlir.constant(5 : i32) : i32
        %one = llvm.mlir.constant(1 : i32) : i32
        %0 = llvm.mul %bz, %c5 : i32
        %1 = llvm.add %0, %by : i32
        %2 = llvm.mul %1, %c3 : i32
        %3 = llvm.add %2, %bx : i32
        %4 = llvm.mul %3, %c2 : i32
        %5 = llvm.add %4, %tz : i32
        %6 = llvm.mul %5, %c3 : i32
        %7 = llvm.add %6, %ty : i32
        %8 = llvm.mul %7, %c4 : i32
        %9 = llvm.add %8, %tx : i32
        %p = llvm.getelementptr %out[%9] : (!llvm.ptr, i32) -> !llvm.ptr, i32
        %old = llvm.load %p : !llvm.ptr -> i32
        %new = llvm.add %old, %one : i32
        llvm.store %new, %p : i32, !llvm.ptr
        llvm.return
      }}"""
    counts = np.zeros(3 * 5 * 2 * 24, np.int32)
    kernel = HostKernel(text)
    assert (kernel.name, kernel.grid, kernel.block) == ("k", (3, 5, 2), (4, 3, 2))
    kernel.launch([counts])
    assert (counts == 1).all()


def negate(element: str, operation: str) -> str:
    return f"""llvm.func @k(%in: !llvm.ptr {{llvm.readonly}}, %out: !llvm.ptr, {INDICES}) {attributes(2, 4)} {{
        %c4 = llvm.mlir.constant(4 : i32) : i32
        %0 = llvm.mul %bx, %c4 : i32
        %i = llvm.add %0, %tx : i32
        %p = llvm.getelementptr %in[%i] : (!llvm.ptr, i32) -> !llvm.ptr, {element}
        %q = llvm.getelementptr %out[%i] : (!llvm.ptr, i32) -> !llvm.ptr, {element}
        %x = llvm.load %p : !llvm.ptr -> {element}
        {operation}
        llvm.store %y, %q : {element}, !llvm.ptr
        llvm.return
      }}"""


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float64])
def test_float_types(dtype: Any) -> None:
    element = {ml_dtypes.bfloat16: "bf16", np.float16: "f16", np.float64: "f64"}[dtype]
    values, out = np.arange(8).astype(dtype), np.zeros(8, dtype)
    HostKernel(negate(element, f"%y = llvm.fneg %x : {element}")).launch([values, out])
    assert (out == -values).all()


def test_subnormals_are_kept_inside_a_jax_callback() -> None:
    """XLA runs the callback, and any thread that it starts, with subnormals flushed to zero."""
    kernel = HostKernel(negate("f32", "%y = llvm.fadd %x, %x : f32"))

    def double(values: Any) -> Any:
        out = np.zeros(8, np.float32)
        kernel.launch([np.asarray(values), out])
        return out

    values = np.full(8, 1e-40, np.float32)
    result = jax.jit(lambda x: jax.pure_callback(double, jax.ShapeDtypeStruct((8,), np.float32), x))(values)
    assert (np.asarray(result).view(np.int32) == 2 * values.view(np.int32)).all()


def test_pred() -> None:
    values, out = np.arange(8) % 3 == 0, np.zeros(8, np.bool_)
    HostKernel(negate("i8", "%one = llvm.mlir.constant(1 : i8) : i8\n%y = llvm.xor %x, %one : i8")).launch(
        [values, out]
    )
    assert (out == ~values).all()


def test_empty_grid_does_nothing() -> None:
    text = negate("f32", "%y = llvm.fneg %x : f32").replace("xgpu.grid = array<i64: 2,", "xgpu.grid = array<i64: 0,")
    HostKernel(text).launch([np.zeros(0, np.float32), np.zeros(0, np.float32)])


def test_misaligned_arrays_are_copied() -> None:
    a, b, out = (memory[1:] for memory in random_arrays(513))
    assert out.ctypes.data % 16
    HostKernel(add_then_multiply(512)).launch([a, b, out])
    assert (out == (a + b) * b).all()


def test_launches_from_several_threads() -> None:
    kernel = HostKernel(add_then_multiply(1 << 17))

    def launch(_: int) -> bool:
        a, b, out = random_arrays(1 << 17)
        kernel.launch([a, b, out])
        return bool((out == (a + b) * b).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(launch, range(8)))


def test_aligned_empty() -> None:
    array = aligned_empty((3, 5), ml_dtypes.bfloat16, 256)
    assert array.shape == (3, 5) and array.dtype == ml_dtypes.bfloat16
    assert array.ctypes.data % 256 == 0 and array.flags.c_contiguous
    assert aligned_empty((0, 4), np.float32).shape == (0, 4)


def read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a, b, out: [a, b], "kernel 'fused' takes 3 buffers, 2 were given"),
        (lambda a, b, out: [a, b, read_only(out)], "buffer 2 of kernel 'fused' is an output, but the array is read"),
        (lambda a, b, out: [a[::2], b, out], "buffer 0 of kernel 'fused': expected a C-contiguous array"),
        (lambda a, b, out: [a, b[:100], out], "buffer 1 of kernel 'fused' needs 2048 bytes, the array has 400"),
        (lambda a, b, out: [a, b, list(out)], "buffer 2 of kernel 'fused': expected a NumPy array, got list"),
    ],
)
def test_wrong_buffers(make: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        HostKernel(add_then_multiply(512)).launch(make(*random_arrays(512)))


def test_inputs_may_be_read_only() -> None:
    a, b, out = random_arrays(512)
    HostKernel(add_then_multiply(512)).launch([read_only(a), read_only(b), out])
    assert (out == (a + b) * b).all()


def test_text_that_does_not_parse() -> None:
    with pytest.raises(InvalidInput, match="the kernel's text does not parse"):
        HostKernel("llvm.func @k(")
