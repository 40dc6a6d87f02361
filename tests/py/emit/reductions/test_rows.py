"""Rows that several stages walk: what these compute of an element alike is computed once, however long it takes."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from xgpu.device import device
from xgpu.dialects.attributes import UNROLLED_OPERATIONS
from xgpu.emit.families.reductions.rows import HELD_OPERATIONS, _written_out

type Function = Callable[..., jax.Array]


def layer_norm(x: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def dropped(x: jax.Array, key: jax.Array) -> jax.Array:
    return jnp.where(jax.random.bernoulli(jax.random.wrap_key_data(key), 0.9, x.shape), x / 0.9, 0)


PROGRAMS: dict[str, tuple[Function, Function]] = {
    "dropout, then a norm": (dropped, lambda x, key: layer_norm(dropped(x, key))),
    "softmax with Gumbel noise": (
        lambda x, key: x + jax.random.gumbel(jax.random.wrap_key_data(key), x.shape),
        lambda x, key: jax.nn.softmax(x + jax.random.gumbel(jax.random.wrap_key_data(key), x.shape)),
    ),
    "GELU, then a norm": (
        lambda x, key: jax.nn.gelu(x, approximate=False),
        lambda x, key: layer_norm(jax.nn.gelu(x, approximate=False)),
    ),
}


@pytest.mark.parametrize(("rows", "columns"), [(4096, 320), (1024, 1000), (1024, 2048), (64, 8190), (160, 16384)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_elements_are_computed_once(name: str, rows: int, columns: int) -> None:
    """Beside the elements themselves a stage takes about ten operations of each, never their computation again."""
    before, whole = PROGRAMS[name]
    arguments = (f"f32[{rows},{columns}]", "u32[2]")
    alone, program = xgpu.compile(before, *arguments), xgpu.compile(whole, *arguments)
    assert program.kernels[-1].emitter == "rows"
    inputs = program.random_inputs(1)
    executed = [sum(each.count(*inputs)) / (rows * columns) for each in (alone, program)]
    assert executed[1] < executed[0] + 40
    np.testing.assert_allclose(program.run(*inputs)[0], program.reference(*inputs)[0], rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("columns", [1, 3, 31, 32, 33, 320, 1000, 4096, 5000, 16384])
@pytest.mark.parametrize("operations", [1, 60, 278, 1024, 5000])
def test_lanes_of_what_is_written_out(columns: int, operations: int) -> None:
    target = device("sm_90a")
    for vector in (1, 2, 4, 8):
        for lanes in (1, 32, 256, 1024):
            run, more = _written_out(columns, vector, lanes, operations, target)
            assert run <= vector and lanes <= more <= 1024
            elements = run * -(-columns // (run * more))
            fewest = operations * -(-columns // min(1024, 1 << columns.bit_length() - 1))
            limit = UNROLLED_OPERATIONS if fewest <= UNROLLED_OPERATIONS else HELD_OPERATIONS
            assert operations * elements <= limit or ((run, more) == (vector, lanes) and fewest > limit)
