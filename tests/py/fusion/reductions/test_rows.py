"""Which reductions of rows and loops become one kernel, which must not, and what that kernel stores."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.analysis.root_indices import MOST_ROOTS

X, Z = "f32[64,40]", "f32[256,256]"
Case = tuple[Callable[..., Any], tuple[str, ...], list[tuple[str, int]]]
"""A function, its arguments, and of each kernel the emitter and how many values it stores."""


def largest(x: Any) -> Any:
    return jnp.max(x, 1, keepdims=True)


def differences(count: int) -> Callable[[Any], Any]:
    return lambda x: [x * (i + 1) - largest(x) for i in range(count)]


def reduced_twice(x: Any, *more: Callable[[Any, Any], Any]) -> Any:
    """Two reductions of rows, and what ``more`` makes of their results."""
    first = jnp.max(x, -1)
    second = jnp.exp(x - first[..., None]).sum(-1)
    return [each(first, second) for each in more] or [first, second]


def last_positive(x: Any) -> Any:
    """The last positive number of each row, or zero: the order of the elements matters."""
    return lax.reduce(x, np.float32(0), lambda a, b: jnp.where(b > 0, b, a), (1,))[:, None]


def statistics(x: Any) -> Any:
    y = jax.nn.softmax(x)
    return y, largest(x)


MERGED: dict[str, Case] = {
    "softmax": (jax.nn.softmax, (X,), [("rows", 1)]),
    "two reductions alone": (lambda x: jnp.sum(jnp.exp(x - largest(x)), 1), (X,), [("rows", 1)]),
    "the longest row": (jax.nn.softmax, ("f32[2,16384]",), [("rows", 1)]),
    "the longest row of 16 bits": (jax.nn.softmax, ("bf16[2,32768]",), [("rows", 1)]),
    "the longest row of 8 bits": (lambda x: x - largest(x), ("s8[2,32768]",), [("rows", 1)]),
    "the longest row of 64 bits": (lambda x: x - largest(x), ("f64[2,16384]",), [("rows", 1)]),
    "softmax of softmax": (lambda x: jax.nn.softmax(jax.nn.softmax(x)), (X,), [("rows", 1)]),
    "two at once": (lambda x, y: jax.nn.softmax(x) + jax.nn.softmax(y), (X, X), [("rows", 1)]),
    "elements of the row elsewhere": (lambda x: x[:, ::-1] - largest(x), (X,), [("rows", 1)]),
    "gathered scales": (lambda x, y, i: (x - largest(x)) * y[i], (X, "f32[7]", "s32[40]"), [("rows", 1)]),
    "rows that are put together": (
        lambda x, y: jax.nn.softmax(jnp.concatenate([x, y])),
        (X, "f32[3,40]"),
        [("rows", 1)],
    ),
    "rows that are put together and stored": (
        lambda x, y: (lambda z: (z * 2, jax.nn.softmax(z)))(jnp.concatenate([x, y])),
        (X, "f32[3,40]"),
        [("rows", 2)],
    ),
    "results that are needed": (statistics, (X,), [("rows", 2)]),
    "a sum that is reduced": (lambda x, y: (x + y, jax.nn.softmax(x + y)), (X, X), [("rows", 2)]),
    "beside a sort, which needs the same constants": (
        lambda x, a: (jax.nn.softmax(x), jnp.sort(a), jnp.argsort(a)),
        (X, "f32[64]"),
        [("rows", 1)],
    ),
    "as many as there may be": (differences(MOST_ROOTS - 1), (X,), [("rows", MOST_ROOTS - 1)]),
}
APART: dict[str, Case] = {
    "an epilogue that rolls": (
        lambda x: reduced_twice(x, lambda m, s: s + jnp.roll(m, 1)),
        (X,),
        [("reduce_row", 1), ("reduce_row", 1)],
    ),
    "an epilogue that transposes": (
        lambda x, y: reduced_twice(x, lambda m, s: s + (m + y.sum(0)).T),
        ("f32[12,12,40]", "f32[40,12]"),
        [("parts", 2), ("reduce_row", 1)],
    ),
    "rolled": (lambda x: x - jnp.roll(largest(x), 1, 0), (X,), [("reduce_row", 1), ("loop", 1)]),
    "reversed": (lambda x: x - largest(x)[::-1], (X,), [("reduce_row", 1), ("loop", 1)]),
    "of its row and another": (
        lambda x: x * largest(x) - largest(x)[::-1] * 2,
        (X,),
        [("reduce_row", 1), ("loop", 1)],
    ),
    "of another dimension": (lambda x: x - largest(x).T, ("f32[40,40]",), [("reduce_row", 1), ("loop", 1)]),
    "gathered": (lambda x, i: x - largest(x)[i], (X, "s32[64]"), [("reduce_row", 1), ("loop", 1)]),
    "part of a row": (lambda x: (x - largest(x))[:, 3:], (X,), [("reduce_row", 1), ("loop", 1)]),
    "then the columns": (lambda x: jnp.sum(x - largest(x), 0), (X,), [("reduce_row", 1), ("reduce_column", 1)]),
    "outer dimensions": (
        lambda x: x - jnp.sum(x, (0, 2), keepdims=True),
        ("f32[8,9,40]",),
        [("reduce_row", 1), ("loop", 1)],
    ),
    "order matters": (lambda x: x - last_positive(x), (X,), [("reduce_row", 1), ("loop", 1)]),
    "order matters later": (
        lambda x: x - last_positive(x - largest(x) / 2),
        (X,),
        [("reduce_row", 1), ("reduce_row", 1), ("loop", 1)],
    ),
    "packed": (
        lambda x: (x - largest(x)).astype(jnp.int4),
        (X,),
        [("reduce_row", 1), ("loop", 1)],
    ),
    "too long": (
        jax.nn.softmax,
        ("f32[2,16385]",),
        [("reduce_row", 1), ("reduce_row", 1), ("loop", 1)],
    ),
    "too long for 16 bits": (
        jax.nn.softmax,
        ("bf16[2,32769]",),
        [("reduce_row", 1), ("reduce_row", 1), ("loop", 1)],
    ),
    "too long for two arrays of 16 bits": (
        lambda x, y: jax.nn.softmax(x) + jax.nn.softmax(y),
        ("bf16[2,16386]", "bf16[2,16386]"),
        [("reduce_row", 2), ("reduce_row", 2), ("loop", 1)],
    ),
    "too many": (differences(MOST_ROOTS), (X,), [("reduce_row", 1), ("loop", MOST_ROOTS)]),
}
WAITING: dict[str, Case] = {
    "for a sort": (
        lambda x, a: reduced_twice(x, lambda m, s: s + jnp.sort(a * 2)),
        (X, "f32[64]"),
        [("loop", 1), ("rows", 1)],
    ),
    "for a product": (
        lambda x, a, b: reduced_twice(x, lambda m, s: s * (jnp.tanh(a) @ b)[:, 0] / 512),
        (X, "f32[64,512]", "f32[512,64]"),
        [("loop", 1), ("rows", 1)],
    ),
    "for the columns": (
        lambda x: x - largest(x) - jnp.sum(x, 0),
        (X,),
        [("reduce_column", 1), ("rows", 1)],
    ),
    "for scales that are computed beside": (
        lambda x, a, b, c: (x - largest(x)) * (1 + jnp.tanh(jnp.tanh(a) @ b) @ c / 512)[:, :1],
        (X, "f32[64,512]", "f32[512,256]", "f32[256,64]"),
        [("loop", 1), ("rows", 1)],
    ),
    "one after the other": (
        lambda x, y: (x - largest(x)) * jnp.sort(jnp.sum(jax.nn.softmax(y * jnp.sort(y[:, :1], 0)), 1))[:, None],
        (X, X),
        [("loop", 1), ("rows", 1), ("rows", 1)],
    ),
    "one for the other, whose results are needed before": (
        lambda x, y: (x - largest(x) + jnp.sort(largest(y), 0), y - largest(y)),
        (X, X),
        [("reduce_row", 2), ("loop", 2)],
    ),
    "not for the end of a later one": (
        lambda x, y, w: jax.nn.softmax(jnp.tanh(x) @ w) * largest(y),
        (Z, Z, "f32[256,256]"),
        [("parts", 2), ("rows", 1)],
    ),
    "for what no later one can end": (
        lambda x, y, w: (jnp.tanh(x) @ w - largest(jnp.tanh(x) @ w)[::-1]) / 64 * largest(y),
        (Z, Z, "f32[256,256]"),
        [("loop", 1), ("reduce_row", 1), ("rows", 1)],
    ),
    "not while others wait": (
        lambda x: x - largest(x) - jnp.sum(x * largest(x), 0),
        (X,),
        [("reduce_row", 1), ("columns", 1)],
    ),
    "not while a sort needs what they make": (
        lambda x: x - largest(x) - jnp.sort(largest(x), 0),
        (X,),
        [("reduce_row", 1), ("loop", 1)],
    ),
    "not for what needs other rows": (
        lambda x, a: (x - largest(x), (x - largest(x))[::-1] * jnp.sort(jnp.tanh(jnp.sort(a * 2)))[:, None]),
        (X, "f32[64]"),
        [("parts", 2), ("loop", 1), ("loop", 1)],
    ),
    "not past an update of what is read": (
        lambda x, a: ((x - largest(x)) * jnp.sort(a * 2)[:, None], lax.dynamic_update_slice(x, a[None, :9], (0, 0))),
        (X, "f32[64]"),
        [("parts", 2), ("update_slice", 1), ("loop", 1)],
    ),
}
PARTLY: dict[str, Case] = {
    "too long for what is stored": (
        lambda x: jax.nn.softmax(x.astype(jnp.float32)),
        ("bf16[2,16386]",),
        [("rows", 2), ("loop", 1)],
    ),
    "transposed": (lambda x: jax.nn.softmax(x).T, ("f32[65,40]",), [("rows", 2), ("transpose", 1)]),
    "columns of the results": (
        lambda x: (jax.nn.softmax(x), jnp.sum(jax.nn.softmax(x), 0)),
        (X,),
        [("rows", 2), ("reduce_column", 2)],
    ),
    "updated": (
        lambda x, i: jax.nn.softmax(x).at[i].add(1.0),
        (X, "s32[9]"),
        [("rows", 1), ("scatter", 1)],
    ),
    "of pieces of rows": (
        lambda x, y: jax.nn.softmax(jnp.concatenate([x, y], 1)),
        (X, "f32[64,24]"),
        [("reduce_row", 1), ("reduce_row", 1), ("concatenate", 1)],
    ),
    "sorted": (lambda x: x * jnp.sort(largest(x), 0), (X,), [("reduce_row", 1), ("loop", 1)]),
    "sorted beside": (
        lambda x: (x - largest(x), jnp.sort(largest(x), 0)),
        (X,),
        [("rows", 2)],
    ),
    "sorted before": (
        lambda x, y: jax.nn.softmax(x * jnp.sort(y)),
        (X, "f32[40]"),
        [("rows", 1)],
    ),
}
CASES = MERGED | APART | WAITING | PARTLY


@pytest.mark.parametrize("name", CASES)
def test_kernels(name: str) -> None:
    function, specs, expected = CASES[name]
    compiled = xgpu.compile(function, *specs)
    assert [(each.kernel.emitter, len(each.outputs)) for each in compiled.launches] == expected
    inputs = compiled.random_inputs(1)
    if compiled.main is None:
        results, reference = compiled.run(*inputs), compiled.reference(*inputs)
    else:
        results, reference = (jax.tree.leaves(jit(function)(*inputs)) for jit in (xgpu.jit, jax.jit))
    for result, wanted in zip(results, reference, strict=True):
        # Functions of two libraries, and sums of up to 16384 numbers in another order.
        np.testing.assert_allclose(np.asarray(result, "f8"), np.asarray(wanted, "f8"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("spec", ["f32[2,16384]", "bf16[2,32768]"])
def test_the_longest_rows_are_read_once(spec: str) -> None:
    """All that a thread holds of a row is 64 bytes: four vectors, which no later walk reads again."""
    (kernel,) = xgpu.compile(jax.nn.softmax, spec).kernels
    assert kernel.ptx.count("ld.global") == 4


@pytest.mark.parametrize("name", ["softmax of softmax", "results that are needed", "of its row and another"])
def test_no_access_is_wrong(name: str) -> None:
    function, specs, _ = CASES[name]
    compiled = xgpu.compile(function, *specs)
    compiled.run(*compiled.random_inputs(1), sanitize=True)


def test_rows_for_several_warps_do_not_race() -> None:
    compiled = xgpu.compile(jax.nn.softmax, "f32[3,2050]")
    assert compiled.kernels[0].emitter == "rows"
    compiled.run(*compiled.random_inputs(1), sanitize=True)


SCATTER = """
func.func @main(%x: tensor<64x40xf32>, %a: tensor<64xf32>, %b: tensor<64xf32>, %i: tensor<5x1xi32>, %u: tensor<5xf32>,
                %v: tensor<5xf32>) -> (tensor<64x40xf32>, tensor<64xf32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
    : (tensor<64x40xf32>, tensor<f32>) -> tensor<64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64xf32>) -> tensor<64x40xf32>
  %d = stablehlo.subtract %x, %mb : tensor<64x40xf32>
  %r:2 = "stablehlo.scatter"(%a, %b, %i, %u, %v) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>, %s: tensor<f32>, %t: tensor<f32>):
      %y = stablehlo.add %p, %s : tensor<f32>
      %z = stablehlo.add %q, %t : tensor<f32>
      stablehlo.return %y, %z : tensor<f32>, tensor<f32>
  }) : (tensor<64xf32>, tensor<64xf32>, tensor<5x1xi32>, tensor<5xf32>, tensor<5xf32>)
    -> (tensor<64xf32>, tensor<64xf32>)
  return %d, %r#1 : tensor<64x40xf32>, tensor<64xf32>
}
"""


def test_a_scatter_beside_a_program_keeps_results_that_nothing_needs() -> None:
    compiled = xgpu.compile(SCATTER)
    inputs = compiled.random_inputs(1)
    inputs[3] = np.array([[1], [3], [5], [9], [63]], np.int32)
    for got, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_array_equal(got, expected)
