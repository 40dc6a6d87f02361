"""Updates in place called from JAX: the operand's memory is the result's if it may be, and a copy of it if not."""

import re

import jax
import jax.numpy as jnp
import numpy as np

import xgpu


@xgpu.jit
def add_rows(x: jax.Array, y: jax.Array, i: jax.Array) -> jax.Array:
    return x.at[i].add(y)


def arrays() -> tuple[jax.Array, jax.Array, jax.Array]:
    return jnp.ones((40, 6)), jnp.ones((9, 6)), jnp.arange(9)


def test_the_operand_stays_as_it_is() -> None:
    x, y, i = arrays()
    result = jax.jit(lambda x, y, i: (add_rows(x, y, i), x * 2))(x, y, i)
    np.testing.assert_array_equal(result[0], np.r_[np.full((9, 6), 2.0), np.ones((31, 6))])
    np.testing.assert_array_equal(result[1], np.full((40, 6), 2.0))
    np.testing.assert_array_equal(x, np.ones((40, 6)))


def test_a_donated_operand() -> None:
    x, y, i = arrays()
    result = jax.jit(add_rows, donate_argnums=0)(x, y, i)
    assert float(result.sum()) == 240 + 54
    assert x.is_deleted()


def test_an_array_that_a_loop_carries() -> None:
    x, y, i = arrays()
    result = jax.jit(lambda x: jax.lax.fori_loop(0, 5, lambda step, c: add_rows(c, y, i + step), x))(x)
    assert float(result.sum()) == 240 + 5 * 54


def test_a_kernel_with_a_result_before_the_state_that_it_updates() -> None:
    def step(state: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.cos(state) * row, jnp.sin(state).T @ jnp.sin(state)

    def run(x: jax.Array, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.lax.scan(step, x, rows)

    arguments = jnp.linspace(0, 1, 240).reshape(40, 6), jnp.linspace(0, 2, 18).reshape(3, 6)
    text = xgpu.compile(run, *arguments).ir("fusions")
    assert re.search(r"xgpu.aliases = array<i64: -1, \d+>", text)
    for found, expected in zip(xgpu.jit(run)(*arguments), jax.jit(run)(*arguments), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-6)


def test_xla_is_told_which_operand_the_result_takes_over() -> None:
    text = jax.jit(add_rows).trace(*arrays()).lower(lowering_platforms=("cuda",)).as_text()
    alias = "#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>"
    assert f"output_operand_aliases = [{alias}]" in text
