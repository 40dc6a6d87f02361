"""Which products of rows in groups become kernels if nobody says, and what else a layer of experts is."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import xgpu
from tests.py.emit.emitters import emitter_of
from xgpu.emit.families.products.product import ProductEmitter
from xgpu.interface.explanation import explain
from xgpu.tools.timing.ragged_products import Case

KERNELS = xgpu.Options(products="kernels")


def kinds(program: xgpu.Compiled) -> list[str]:
    """Return the emitters of a program's kernels."""
    return [each.emitter for each in program.kernels]


@pytest.mark.parametrize(
    ("m", "k", "n", "groups"),
    [
        (4096, 2048, 1024, 8),
        (16384, 4096, 1408, 64),
        (512, 4096, 14336, 8),
        # Of few rows the matrices count that have any.
        (64, 4096, 1408, 64),
        (16, 4096, 1408, 64),
        (8, 2048, 768, 128),
    ],
)
def test_what_multiplies_less_or_reads_fewer_matrices_is_a_kernel(m: int, k: int, n: int, groups: int) -> None:
    program = xgpu.compile(lax.ragged_dot, f"bf16[{m},{k}]", f"bf16[{groups},{k},{n}]", f"s32[{groups}]")
    assert kinds(program) == ["product"]
    (kernel,) = explain(program).kernels
    assert kernel.expected


@pytest.mark.parametrize(("m", "filled"), [(1, 1), (16, 15), (64, 41), (4096, 64)])
def test_groups_that_have_rows(m: int, filled: int) -> None:
    """Rows are of any group alike: of 64 groups, 64 rows leave a third empty."""
    program = xgpu.compile(lax.ragged_dot, f"bf16[{m},64]", "bf16[64,64,64]", "s32[64]", options=KERNELS)
    emitter = emitter_of(program)
    assert isinstance(emitter, ProductEmitter)
    assert emitter.product.sizes == (filled, -(-m // filled), 64, 64)


@pytest.mark.parametrize("rows", [16, 64, 4096])
def test_gated_units_of_groups_are_one_kernel(rows: int) -> None:
    case = Case(rows, 4096, 1408, 64, "drawn", "gated")
    assert kinds(xgpu.compile(case.function, *case.specs)) == ["product"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, s: (lax.ragged_dot(x, w, s), jnp.cos(lax.ragged_dot(x, w, s))),
        lambda x, w, s: lax.ragged_dot(x, w, s).astype(jnp.float32),
        lambda x, w, s: jnp.broadcast_to(lax.ragged_dot(x, w, s), (2, 1024, 1408)),
        lambda x, w, s: lax.ragged_dot(x, w, s) * lax.top_k(x, 1)[0],
        lambda x, w, s: lax.ragged_dot(x[512:], w, s),
    ],
)
def test_what_follows_is_no_reason_to_multiply_by_all_matrices(function: Any) -> None:
    """Of one matrix, such products are a library's: what is computed of them might be stored more than once."""
    assert "product" in kinds(xgpu.compile(function, "bf16[1024,2048]", "bf16[16,2048,1408]", "s32[16]"))


@pytest.mark.parametrize(("rows", "is_kernel"), [(16, False), (4096, True)])
def test_a_kernel_has_slices_of_matrices_copied(rows: int, is_kernel: bool) -> None:
    """As those of a layer, of the matrices of all: few rows are multiplied faster than matrices are copied."""

    def function(x: Any, w: Any, layer: Any, sizes: Any) -> Any:
        return lax.ragged_dot(x, lax.dynamic_index_in_dim(w, layer, keepdims=False), sizes)

    program = xgpu.compile(function, f"bf16[{rows},4096]", "bf16[4,64,4096,1408]", "s32[]", "s32[64]")
    assert kinds(program).count("product") == is_kernel


def test_one_matrix_is_a_librarys() -> None:
    assert not kinds(xgpu.compile(lax.ragged_dot, "bf16[4096,4096]", "bf16[1,4096,4096]", "s32[1]"))


LAYER = Case(2048, 2048, 1408, 64, "routed", "layer")


def test_a_layer_of_experts_is_few_kernels() -> None:
    """Softmax; counts; rows; gate, up and what follows; down; weights and sums."""
    program = xgpu.compile(LAYER.function, *LAYER.specs)
    assert kinds(program) == ["parts", "scatter", "loop", "product", "product", "scatter"]
    left = [each.operation for each in explain(program).fallbacks]
    assert sorted(left) == ["chlo.top_k", "stablehlo.dot_general", "stablehlo.sort"]


def test_gradients_of_a_layer_of_experts() -> None:
    """Products of rows are kernels, three of either direction; those of matrices, along whose sums groups are, not."""

    def loss(*arguments: Any) -> Any:
        return jnp.square(LAYER.function(*arguments).astype(jnp.float32)).sum()

    program = xgpu.compile(jax.grad(loss, argnums=range(5)), *LAYER.specs)
    products = [line for line in program.ir("prepared").splitlines() if "chlo.ragged_dot" in line]
    left = [line for line in products if "no gain by a kernel: expected groups of rows" in line]
    assert (len(products), len(left)) == (9, 3)
