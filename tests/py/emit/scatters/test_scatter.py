"""Scatters of any dimension numbers, index type and region, by what StableHLO says of them."""

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py.indexing.hlo_programs import type_of
from tests.py.indexing.scatter_cases import Case
from xgpu.errors import Unsupported

IN_ORDER = xgpu.Options(deterministic=True)


def program(case: Case) -> str:
    shapes = (case.shape, case.indices_shape, case.update_shape)
    dtypes = (np.int32, case.indices.dtype, np.int32)
    types = [type_of(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    arguments = ", ".join(f"%{i}: {type_}" for i, type_ in enumerate(types))
    return f"""
      func.func @main({arguments}) -> {types[0]} {{
        %r = {case.text} : ({", ".join(types)}) -> {types[0]}
        return %r : {types[0]}
      }}"""


@pytest.mark.parametrize("seed", range(8))
def test_sums(seed: int) -> None:
    case = Case(random.Random(seed), adds=True)
    (result,) = xgpu.compile(program(case)).run(case.operand, case.indices, case.updates)
    np.testing.assert_array_equal(result, case.expected())


@pytest.mark.parametrize("seed", range(8))
def test_updates_in_order(seed: int) -> None:
    """Results of these updates depend on their order, which for deterministic results is that of the indices."""
    case = Case(random.Random(seed))
    (result,) = xgpu.compile(program(case), options=IN_ORDER).run(case.operand, case.indices, case.updates)
    np.testing.assert_array_equal(result, case.expected())


_ROWS = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
_WINDOWS = "update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
_BATCHES = (
    "inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [1], "
    "scatter_dims_to_operand_dims = [1], index_vector_dim = 2"
)
_REGIONS = {
    "apart": """
      %e = stablehlo.add %a, %c : tensor<f32>
      %f = stablehlo.maximum %b, %d : tensor<i32>
      stablehlo.return %e, %f : tensor<f32>, tensor<i32>""",
    "overwriting": "stablehlo.return %c, %d : tensor<f32>, tensor<i32>",
    "overwriting-one": """
      %f = stablehlo.add %b, %d : tensor<i32>
      stablehlo.return %c, %f : tensor<f32>, tensor<i32>""",
    "together": """
      %p = stablehlo.convert %b : (tensor<i32>) -> tensor<f32>
      %q = stablehlo.multiply %a, %p : tensor<f32>
      %e = stablehlo.add %q, %c : tensor<f32>
      %f = stablehlo.add %d, %b : tensor<i32>
      stablehlo.return %e, %f : tensor<f32>, tensor<i32>""",
}


def pair(
    region: str, numbers: str = _ROWS, shapes: tuple[str, str, str] = ("8x6", "9x1", "9x6"), flags: str = ""
) -> str:
    """A program of one scatter of two operands, of f32 and s32."""
    x, y = f"tensor<{shapes[0]}xf32>", f"tensor<{shapes[0]}xi32>"
    i, u, v = f"tensor<{shapes[1]}xi32>", f"tensor<{shapes[2]}xf32>", f"tensor<{shapes[2]}xi32>"
    attributes = f"{flags}scatter_dimension_numbers = #stablehlo.scatter<{numbers}>"
    return f"""
      func.func @main(%x: {x}, %y: {y}, %i: {i}, %u: {u}, %v: {v}) -> ({x}, {y}) {{
        %0:2 = "stablehlo.scatter"(%x, %y, %i, %u, %v) <{{{attributes}}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
          {_REGIONS[region]}
        }}) : ({x}, {y}, {i}, {u}, {v}) -> ({x}, {y})
        return %0#0, %0#1 : {x}, {y}
      }}"""


def pair_inputs(shapes: tuple[str, str, str], largest: int) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    x, i, u = (tuple(map(int, shape.split("x"))) for shape in shapes)
    numbers = [generator.integers(-3, 4, shape) for shape in (x, x, u, u)]
    indices = generator.integers(-2, largest + 2, i)
    return [
        numbers[0].astype("f"),
        numbers[1].astype("i"),
        indices.astype("i"),
        numbers[2].astype("f"),
        numbers[3].astype("i"),
    ]


@pytest.mark.parametrize(
    ("region", "numbers", "shapes", "largest", "emitters"),
    [
        ("apart", _ROWS, ("8x6", "9x1", "9x6"), 8, ["scatter"]),
        # Which of two rows is last is found first, so that both operands agree.
        ("overwriting", _ROWS, ("8x6", "9x1", "9x6"), 8, ["loop", "scatter", "scatter"]),
        ("together", _ROWS, ("8x6", "9x1", "9x6"), 8, ["scatter_ordered"]),
        # Windows that overlap in part: no row is wholly the last.
        ("overwriting", _WINDOWS, ("12", "9x1", "9x4"), 9, ["scatter_ordered"]),
        ("together", _WINDOWS, ("12", "9x1", "9x4"), 9, ["scatter_ordered"]),
        ("overwriting", _BATCHES, ("6x8", "9x6x1", "9x6"), 8, ["loop", "scatter", "scatter"]),
        ("together", _BATCHES, ("6x8", "9x6x1", "9x6"), 8, ["scatter_ordered"]),
    ],
)
def test_several_operands(
    region: str, numbers: str, shapes: tuple[str, str, str], largest: int, emitters: list[str]
) -> None:
    compiled = xgpu.compile(pair(region, numbers, shapes))
    assert [kernel.emitter for kernel in compiled.kernels] == emitters
    inputs = pair_inputs(shapes, largest)
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_several_operands_of_different_kinds() -> None:
    compiled = xgpu.compile(pair("overwriting-one"), options=IN_ORDER)
    inputs = pair_inputs(("8x6", "9x1", "9x6"), 8)
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_a_promise_of_unique_indices_is_used() -> None:
    compiled = xgpu.compile(pair("together", flags="unique_indices = true, "))
    assert [kernel.emitter for kernel in compiled.kernels] == ["scatter"]
    assert "atomic" not in compiled.ir("emitted")
    inputs = pair_inputs(("8x6", "9x1", "9x6"), 8)
    inputs[2] = np.arange(9, dtype=np.int32)[:, None]
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_elements_are_added_as_vectors_though_their_indices_take_long() -> None:
    """The bounds of a row, which a function of its own computes, are tested before the loop over its elements."""

    def function(x, y, at):
        rows = jnp.clip(jnp.floor(at * 20 / (at + 1)), 0, 15).astype(int)
        return x.at[rows[:, 0], rows[:, 1]].add(y)

    compiled = xgpu.compile(function, "f32[16,16,64]", "f32[16384,64]", "f32[16384,2]")
    assert "add.v4.f32" in compiled.ir("ptx")
    x, y, at = compiled.random_inputs(1)
    # Sums of small whole numbers are exact in any order.
    inputs = np.round(x), np.round(4 * y), abs(at)
    np.testing.assert_array_equal(compiled.run(*inputs)[0], compiled.reference(*inputs)[0])


def test_a_promise_of_sorted_indices_that_is_broken_does_no_harm() -> None:
    generator = np.random.default_rng(0)
    x, y = generator.integers(-4, 5, (50, 64)).astype("f"), generator.integers(-4, 5, (9000, 64)).astype("f")
    indices = generator.integers(-60, 60, 9000).astype(np.int32)
    compiled = xgpu.compile(
        lambda x, y, i: x.at[i].add(y, indices_are_sorted=True), "f32[50,64]", "f32[9000,64]", "s32[9000]"
    )
    assert [kernel.emitter for kernel in compiled.kernels] == ["scatter_sorted"]
    np.testing.assert_array_equal(compiled.run(x, y, indices)[0], compiled.reference(x, y, indices)[0])


def test_sums_of_16_bit_floats_in_a_run_are_rounded_once() -> None:
    """A sum of ones in bf16 would stop at 256: each thread adds eight in f32."""
    ones, rows = np.ones(1 << 19, np.float32).astype("bfloat16"), np.repeat(np.arange(1 << 12), 1 << 7).astype(np.int32)
    x = np.full(1 << 12, 512, np.float32).astype("bfloat16")
    compiled = xgpu.compile(
        lambda x, y, i: x.at[i].add(y, indices_are_sorted=True),
        f"bf16[{1 << 12}]",
        f"bf16[{1 << 19}]",
        f"s32[{1 << 19}]",
    )
    # Runs of 8 are exact; one added at a time to 512, of which the next number is 516, would change nothing.
    assert np.array_equal(compiled.run(x, ones, rows)[0].astype(np.float32), np.full(1 << 12, 640.0))


def test_a_region_of_other_types_is_refused() -> None:
    text = """
      func.func @main(%x: tensor<8xf32>, %i: tensor<3x1xi32>, %y: tensor<3xf32>) -> tensor<8xf64> {
        %0 = "stablehlo.scatter"(%x, %i, %y) <{scatter_dimension_numbers = #stablehlo.scatter<
            inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
        ^bb0(%a: tensor<f64>, %b: tensor<f64>):
          %1 = stablehlo.add %a, %b : tensor<f64>
          stablehlo.return %1 : tensor<f64>
        }) : (tensor<8xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<8xf64>
        return %0 : tensor<8xf64>
      }"""
    with pytest.raises(Unsupported, match="its region computes in other types than its operands'"):
        xgpu.compile(text).ir("ptx")


def test_updates_that_change_nothing_are_none() -> None:
    """A kernel that only read what it updates had its loads made read-only ones, at which LLVM ended the process."""
    program = xgpu.compile("""
      func.func @main(%array: tensor<8xui64>, %places: tensor<1x5x1xi64>) -> tensor<8xui64> {
        %zeros = stablehlo.iota dim = 1 : tensor<5x1xui64>
        %0 = "stablehlo.scatter"(%array, %places, %zeros) ({
        ^bb0(%old: tensor<ui64>, %new: tensor<ui64>):
          %1 = stablehlo.or %old, %new : tensor<ui64>
          stablehlo.return %1 : tensor<ui64>
        }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
          scatter_dims_to_operand_dims = [0], index_vector_dim = 0>} :
          (tensor<8xui64>, tensor<1x5x1xi64>, tensor<5x1xui64>) -> tensor<8xui64>
        return %0 : tensor<8xui64>
      }
    """)
    assert "ld.relaxed" not in program.ir("ptx")
    array = np.arange(8, dtype=np.uint64)
    np.testing.assert_array_equal(program.run(array, np.arange(5).reshape(1, 5, 1), on="host")[0], array)


def test_indices_without_components() -> None:
    """Every window is the whole operand; the indices, computed of an argument, have no elements."""

    def function(x: Any, i: Any, u: Any) -> Any:
        dimensions = lax.ScatterDimensionNumbers((1, 2), (), ())
        return lax.scatter_add(x, jnp.tile(i[:0], (4, 1)), u, dimensions)

    x, i = np.arange(12, dtype=np.int32).reshape(3, 4), np.arange(3, dtype=np.int32)
    u = np.arange(16, dtype=np.int32).reshape(4, 2, 2)
    program = xgpu.compile(function, *(f"s32[{','.join(map(str, each.shape))}]" for each in (x, i, u)))
    np.testing.assert_array_equal(program.run(x, i, u)[0], jax.jit(function)(x, i, u))
