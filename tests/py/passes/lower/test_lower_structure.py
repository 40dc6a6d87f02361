"""Tensors, loops, calls and vectors through the lowering passes, on the host against NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xgpu import ir
from xgpu.passes.framework.manager import run
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.runtime.host_executor import HostKernel, aligned_empty

type Array = np.ndarray[Any, Any]

PIPELINE = (
    "lower-tensors,canonicalize,cse,expand-floats{target=host},canonicalize,cse,lower-scf,lower-to-llvm{target=host}"
)
KERNEL = "xgpu.kernel, xgpu.index_bits = 32 : i64, xgpu.block = array<i64: 32, 1, 1>, xgpu.grid = array<i64: 2, 1, 1>"


def launch(text: str, inputs: list[Array], outputs: list[Array]) -> None:
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text.replace("KERNEL", KERNEL))
        run(module, parse_pipeline(PIPELINE))
        kernel = HostKernel(module)
    arrays = [aligned(array) for array in [*inputs, *outputs]]
    kernel.launch(arrays)
    for output, array in zip(outputs, arrays[len(inputs) :], strict=True):
        output[...] = array


def aligned(array: Array) -> Array:
    copy = aligned_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


THREAD = """
        %tid = gpu.thread_id x upper_bound 32
        %bid = gpu.block_id x upper_bound 2
        %c32 = arith.constant 32 : index
        %base = arith.muli %bid, %c32 : index
        %i = arith.addi %base, %tid : index"""


def test_loop_carries_a_tensor_and_a_sum() -> None:
    text = f"""
      func.func @k(%a: tensor<64xf32>, %o: tensor<64xf32>, %s: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
          attributes {{KERNEL, xgpu.inputs = 1 : i64}} {{
        {THREAD}
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %n = arith.addi %tid, %c1 : index
        %zero = arith.constant 0.0 : f32
        %r:2 = scf.for %j = %c0 to %n step %c1 iter_args(%sum = %zero, %acc = %o) -> (f32, tensor<64xf32>) {{
          %x = tensor.extract %a[%j] : tensor<64xf32>
          %next = arith.addf %sum, %x : f32
          %is_last = arith.cmpi eq, %j, %tid : index
          %u = scf.if %is_last -> (tensor<64xf32>) {{
            %v = tensor.insert %next into %acc[%i] : tensor<64xf32>
            scf.yield %v : tensor<64xf32>
          }} else {{
            scf.yield %acc : tensor<64xf32>
          }}
          scf.yield %next, %u : f32, tensor<64xf32>
        }}
        %t = tensor.insert %r#0 into %s[%i] : tensor<64xf32>
        return %r#1, %t : tensor<64xf32>, tensor<64xf32>
      }}"""
    values = np.arange(64, dtype=np.float32)
    first, second = np.zeros(64, np.float32), np.zeros(64, np.float32)
    launch(text, [values], [first, second])
    expected = np.tile(np.cumsum(values[:32]), 2)
    np.testing.assert_array_equal(first, expected)
    np.testing.assert_array_equal(second, expected)


@pytest.mark.parametrize(("lower", "upper", "step"), [(0, 4, 1), (1, 8, 3), (2, 9, 7), (5, 5, 1), (3, 1, 1)])
def test_loops_with_constant_bounds(lower: int, upper: int, step: int) -> None:
    text = f"""
      func.func @k(%o: tensor<64xi32>) -> tensor<64xi32> attributes {{KERNEL, xgpu.inputs = 0 : i64}} {{
        {THREAD}
        %l = arith.constant {lower} : index
        %u = arith.constant {upper} : index
        %s = arith.constant {step} : index
        %ten = arith.constant 10 : i32
        %zero = arith.constant 0 : i32
        %r = scf.for %j = %l to %u step %s iter_args(%code = %zero) -> (i32) {{
          %shifted = arith.muli %code, %ten : i32
          %digit = arith.index_cast %j : index to i32
          %next = arith.addi %shifted, %digit : i32
          scf.yield %next : i32
        }}
        %t = tensor.insert %r into %o[%i] : tensor<64xi32>
        return %t : tensor<64xi32>
      }}"""
    result = np.full(64, -1, np.int32)
    launch(text, [], [result])
    digits = "".join(str(j) for j in range(lower, upper, step))
    np.testing.assert_array_equal(result, int(digits or "0"))


def test_while_loop_carries_a_tensor() -> None:
    text = f"""
      func.func @k(%o: tensor<64xi32>) -> tensor<64xi32> attributes {{KERNEL, xgpu.inputs = 0 : i64}} {{
        {THREAD}
        %zero = arith.constant 0 : i32
        %one = arith.constant 1 : i32
        %three = arith.constant 3 : i32
        %start = arith.index_cast %tid : index to i32
        %first = tensor.insert %zero into %o[%i] : tensor<64xi32>
        %r:2 = scf.while (%n = %start, %t = %first) : (i32, tensor<64xi32>) -> (i32, tensor<64xi32>) {{
          %more = arith.cmpi sgt, %n, %zero : i32
          scf.condition(%more) %n, %t : i32, tensor<64xi32>
        }} do {{
        ^bb0(%n: i32, %t: tensor<64xi32>):
          %steps = tensor.extract %t[%i] : tensor<64xi32>
          %more = arith.addi %steps, %one : i32
          %u = tensor.insert %more into %t[%i] : tensor<64xi32>
          %smaller = arith.subi %n, %three : i32
          scf.yield %smaller, %u : i32, tensor<64xi32>
        }}
        return %r#1 : tensor<64xi32>
      }}"""
    result = np.full(64, -1, np.int32)
    launch(text, [], [result])
    np.testing.assert_array_equal(result, np.tile([-(-n // 3) for n in range(32)], 2))


def test_conditionals_with_several_results_nested() -> None:
    text = f"""
      func.func @k(%a: tensor<64xi32>, %o: tensor<64xi32>) -> tensor<64xi32>
          attributes {{KERNEL, xgpu.inputs = 1 : i64}} {{
        {THREAD}
        %x = tensor.extract %a[%i] : tensor<64xi32>
        %zero = arith.constant 0 : i32
        %ten = arith.constant 10 : i32
        %is_negative = arith.cmpi slt, %x, %zero : i32
        %is_large = arith.cmpi sgt, %x, %ten : i32
        %r:2 = scf.if %is_negative -> (i32, i32) {{
          %y = arith.subi %zero, %x : i32
          scf.yield %y, %zero : i32, i32
        }} else {{
          %z = scf.if %is_large -> (i32) {{
            %w = arith.muli %x, %ten : i32
            scf.yield %w : i32
          }} else {{
            scf.yield %x : i32
          }}
          scf.yield %z, %ten : i32, i32
        }}
        %sum = arith.addi %r#0, %r#1 : i32
        %t = scf.if %is_large -> (tensor<64xi32>) {{
          %u = tensor.insert %sum into %o[%i] : tensor<64xi32>
          scf.yield %u : tensor<64xi32>
        }} else {{
          %u = tensor.insert %zero into %o[%i] : tensor<64xi32>
          %old = tensor.extract %u[%i] : tensor<64xi32>
          %new = arith.subi %old, %sum : i32
          %v = tensor.insert %new into %u[%i] : tensor<64xi32>
          scf.yield %v : tensor<64xi32>
        }}
        return %t : tensor<64xi32>
      }}"""
    values = np.arange(64, dtype=np.int32) - 30
    result = np.zeros(64, np.int32)
    launch(text, [values], [result])
    sums = np.where(values < 0, -values, np.where(values > 10, values * 10, values) + 10)
    np.testing.assert_array_equal(result, np.where(values > 10, sums, -sums))


def test_functions_with_several_results_and_a_table() -> None:
    text = f"""
      func.func @k(%a: tensor<64xf32>, %o: tensor<64xf32>, %p: tensor<64xi1>) -> (tensor<64xf32>, tensor<64xi1>)
          attributes {{KERNEL, xgpu.inputs = 1 : i64}} {{
        {THREAD}
        %table = arith.constant dense<[1.0, -2.0, 4.0, 0.5]> : tensor<4xf32>
        %flags = arith.constant dense<[true, false, false, true]> : tensor<4xi1>
        %all = arith.constant dense<true> : tensor<4xi1>
        %c4 = arith.constant 4 : index
        %k = arith.remui %tid, %c4 : index
        %x:2 = "xgpu.pure_call"(%a, %table, %i, %k) {{callee = @f}} :
            (tensor<64xf32>, tensor<4xf32>, index, index) -> (f32, i1)
        %y:2 = "xgpu.pure_call"(%a, %table, %tid, %k) {{callee = @f}} :
            (tensor<64xf32>, tensor<4xf32>, index, index) -> (f32, i1)
        %direct = tensor.extract %table[%k] : tensor<4xf32>
        %flag = tensor.extract %flags[%k] : tensor<4xi1>
        %yes = tensor.extract %all[%k] : tensor<4xi1>
        %sum = arith.addf %x#0, %y#0 : f32
        %total = arith.addf %sum, %direct : f32
        %both = arith.andi %x#1, %flag : i1
        %same = arith.andi %both, %yes : i1
        %t = tensor.insert %total into %o[%i] : tensor<64xf32>
        %q = tensor.insert %same into %p[%i] : tensor<64xi1>
        return %t, %q : tensor<64xf32>, tensor<64xi1>
      }}
      func.func private @f(%a: tensor<64xf32>, %table: tensor<4xf32>, %i: index, %k: index) -> (f32, i1)
          attributes {{xgpu.index_bits = 32 : i64}} {{
        %x = tensor.extract %a[%i] : tensor<64xf32>
        %w = tensor.extract %table[%k] : tensor<4xf32>
        %y = arith.mulf %x, %w : f32
        %zero = arith.constant 0.0 : f32
        %positive = arith.cmpf ogt, %y, %zero : f32
        return %y, %positive : f32, i1
      }}"""
    values = np.linspace(-3, 3, 64, dtype=np.float32)
    numbers, flags = np.zeros(64, np.float32), np.zeros(64, np.bool_)
    launch(text, [values], [numbers, flags])
    table = np.tile(np.array([1, -2, 4, 0.5], np.float32), 16)
    scaled = values * table
    np.testing.assert_array_equal(numbers, (scaled + np.tile(values[:32], 2) * table) + table)
    np.testing.assert_array_equal(flags, (scaled > 0) & np.tile([True, False, False, True], 16))


def test_vectors_of_flags() -> None:
    text = """
      func.func @k(%a: tensor<256xi1>, %o: tensor<256xi1>) -> tensor<256xi1>
          attributes {KERNEL, xgpu.inputs = 1 : i64} {
        %tid = gpu.thread_id x upper_bound 32
        %bid = gpu.block_id x upper_bound 2
        %c4 = arith.constant 4 : index
        %c128 = arith.constant 128 : index
        %x = arith.muli %tid, %c4 : index
        %y = arith.muli %bid, %c128 : index
        %i = arith.addi %x, %y : index
        %no = arith.constant false
        %v = vector.transfer_read %a[%i], %no {in_bounds = [true]} : tensor<256xi1>, vector<4xi1>
        %ones = arith.constant dense<true> : vector<4xi1>
        %w = arith.xori %v, %ones : vector<4xi1>
        %t = vector.transfer_write %w, %o[%i] {in_bounds = [true]} : vector<4xi1>, tensor<256xi1>
        return %t : tensor<256xi1>
      }"""
    flags = np.random.default_rng(6).integers(0, 2, 256).astype(np.bool_)
    result = np.zeros(256, np.bool_)
    launch(text, [flags], [result])
    np.testing.assert_array_equal(result, ~flags)


VECTOR_OPERATIONS: dict[str, tuple[str, Callable[[Array, int], list[float]]]] = {
    "extract": (
        "%e = vector.extract %v[%k] : f32 from vector<4xf32>\n%r = vector.broadcast %e : f32 to vector<4xf32>",
        lambda v, k: [v[k]] * 4,
    ),
    "insert": (
        "%e = vector.extract %v[0] : f32 from vector<4xf32>\n%r = vector.insert %e, %v[%k] : f32 into vector<4xf32>",
        lambda v, k: [v[0] if j == k else v[j] for j in range(4)],
    ),
    "slices": (
        """%s = "vector.extract_strided_slice"(%v) <{offsets = [1], sizes = [2], strides = [1]}>
               : (vector<4xf32>) -> vector<2xf32>
           %r = "vector.insert_strided_slice"(%s, %v) <{offsets = [2], strides = [1]}>
               : (vector<2xf32>, vector<4xf32>) -> vector<4xf32>""",
        lambda v, k: [v[0], v[1], v[1], v[2]],
    ),
    "elements": (
        """%e:4 = vector.to_elements %v : vector<4xf32>
           %r = vector.from_elements %e#3, %e#1, %e#2, %e#0 : vector<4xf32>""",
        lambda v, k: [v[3], v[1], v[2], v[0]],
    ),
    "shuffle": (
        """%s = vector.shuffle %v, %v [6, 1] : vector<4xf32>, vector<4xf32>
           %r = vector.shuffle %s, %v [5, 0, 1, 2] : vector<2xf32>, vector<4xf32>""",
        lambda v, k: [v[3], v[2], v[1], v[0]],
    ),
    "bitcast": (
        """%b = vector.bitcast %v : vector<4xf32> to vector<4xi32>
           %c = arith.constant dense<-2147483648> : vector<4xi32>
           %x = arith.xori %b, %c : vector<4xi32>
           %r = vector.bitcast %x : vector<4xi32> to vector<4xf32>""",
        lambda v, k: [-x for x in v],
    ),
    "index": (
        """%p = arith.constant dense<[0, 1, 2, 3]> : vector<4xindex>
           %kk = vector.broadcast %k : index to vector<4xindex>
           %c = arith.cmpi uge, %p, %kk : vector<4xindex>
           %z = arith.constant dense<0.0> : vector<4xf32>
           %r = arith.select %c, %v, %z : vector<4xi1>, vector<4xf32>""",
        lambda v, k: [v[j] if j >= k else 0.0 for j in range(4)],
    ),
}


@pytest.mark.parametrize("name", VECTOR_OPERATIONS)
def test_vector_operations(name: str) -> None:
    code, reference = VECTOR_OPERATIONS[name]
    text = f"""
      func.func @k(%a: tensor<256xf32>, %o: tensor<256xf32>) -> tensor<256xf32>
          attributes {{KERNEL, xgpu.inputs = 1 : i64}} {{
        {THREAD}
        %c4 = arith.constant 4 : index
        %at = arith.muli %i, %c4 : index
        %k = arith.remui %i, %c4 : index
        %f0 = arith.constant 0.0 : f32
        %v = vector.transfer_read %a[%at], %f0 {{in_bounds = [true]}} : tensor<256xf32>, vector<4xf32>
        {code}
        %t = vector.transfer_write %r, %o[%at] {{in_bounds = [true]}} : vector<4xf32>, tensor<256xf32>
        return %t : tensor<256xf32>
      }}"""
    values = np.random.default_rng(7).standard_normal(256, np.float32)
    result = np.zeros(256, np.float32)
    launch(text, [values], [result])
    expected = [reference(row, number % 4) for number, row in enumerate(values.reshape(-1, 4))]
    np.testing.assert_array_equal(result.reshape(-1, 4), np.array(expected, np.float32))


@pytest.mark.parametrize("bits", [32, 64])
def test_all_launch_dimensions(bits: int) -> None:
    ids = "\n".join(
        f"%{kind[0]}{d} = gpu.{kind}_id {d} upper_bound {size}\n%{kind[0]}n{d} = gpu.{kind}_id {d}"
        for kind, sizes in (("thread", (4, 2, 3)), ("block", (2, 3, 1)))
        for d, size in zip("xyz", sizes, strict=True)
    )
    sizes = "\n".join(f"%s{d} = gpu.block_dim {d}\n%g{d} = gpu.grid_dim {d}" for d in "xyz")
    text = f"""
      func.func @k(%o: tensor<144xi32>) -> tensor<144xi32> attributes {{xgpu.kernel, xgpu.inputs = 0 : i64,
          xgpu.index_bits = {bits} : i64, xgpu.block = array<i64: 4, 2, 3>, xgpu.grid = array<i64: 2, 3, 1>}} {{
        {ids}
        {sizes}
        %l0 = arith.muli %bz, %gy : index
        %l1 = arith.addi %l0, %by : index
        %l2 = arith.muli %l1, %gx : index
        %l3 = arith.addi %l2, %bx : index
        %l4 = arith.muli %l3, %sz : index
        %l5 = arith.addi %l4, %tz : index
        %l6 = arith.muli %l5, %sy : index
        %l7 = arith.addi %l6, %tny : index
        %l8 = arith.muli %l7, %sx : index
        %l9 = arith.addi %l8, %tnx : index
        %x = arith.index_cast %l9 : index to i32
        %t = tensor.insert %x into %o[%l9] : tensor<144xi32>
        return %t : tensor<144xi32>
      }}"""
    result = np.zeros(144, np.int32)
    launch(text, [], [result])
    np.testing.assert_array_equal(result, np.arange(144))


def test_deeply_nested_regions() -> None:
    depth = 400
    opening = "\n".join("scf.if %c {" for _ in range(depth))
    text = f"""
      func.func @f(%c: i1, %x: f32) {{
        {opening}
        %y = arith.addf %x, %x : f32
        {"}" * depth}
        return
      }}"""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run(module, parse_pipeline("lower-tensors,expand-floats,lower-scf,lower-to-llvm"))
        assert str(module).count("llvm.cond_br") == depth
