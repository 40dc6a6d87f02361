"""What values are computed from element by element: each operation is looked at once, whatever reads it."""

from collections import Counter

import jax.numpy as jnp
import pytest

from xgpu.analysis.attention import places, tiled_slices
from xgpu.analysis.attention.attention import products_behind
from xgpu.driver.compiler import plan_program
from xgpu.frontend.load import load_source
from xgpu.indexing.access import identity_map, shape_of

ROWS = "f32[64,64]"


def _found(function, specs):
    """Return the maps to products behind the first result of a function."""
    source = load_source(function, specs)
    (block,) = source.module.body.operations[0].regions[0].blocks
    (*_, end) = block.operations
    value = end.operation.operands[0]
    return [None if map_ is None else str(map_) for map_ in _products(value).values()]


def _products(value):
    return products_behind(value, identity_map(shape_of(value)))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, y: (x @ y).T * 2, "(d0, d1) -> (d1, d0), d0 in [0, 63], d1 in [0, 63]"),
        (lambda x, y: x + jnp.tanh(x @ y) * (x @ y)[::-1][::-1], "(d0, d1) -> (d0, d1), d0 in [0, 63], d1 in [0, 63]"),
        (lambda x, y: jnp.exp(x @ y) + (x @ y)[::-1], None),
        (lambda x, y: (lambda z: z + z[:, ::-1])(jnp.exp((x @ y)[::-1])), None),
    ],
    ids=["moved", "twice the same", "two rows", "two columns"],
)
def test_products_have_a_map_where_one_element_is_read(function, expected):
    assert _found(function, (ROWS, ROWS)) == [expected]


def test_indices_that_are_dropped_may_differ():
    """A row's number is spread along the columns, which are then read in another order."""
    function = lambda x, y: (lambda z: z + z[:, ::-1])(jnp.broadcast_to((x @ y)[:, None], (64, 64)))  # noqa: E731
    assert _found(function, (ROWS, "f32[64]")) == ["(d0, d1) -> (d0), d0 in [0, 63], d1 in [0, 63]"]


def _stencil(steps):
    def function(x, y):
        z = x @ y
        for step in range(steps):
            z = z + 0.5 * z[::-1] + 0.25 * jnp.flip(z, 1) - jnp.sin(z.T) * (z[:, :1] if step % 2 else z[:1])
        return z

    return function


def test_a_chain_that_reads_several_elements_is_followed_once(monkeypatch):
    counted, then = Counter[str](), places.then

    def counting(*arguments):
        counted["maps"] += 1
        return then(*arguments)

    monkeypatch.setattr(tiled_slices, "then", counting)
    counts = []
    for steps in (8, 16):
        counted.clear()
        assert _found(_stencil(steps), (ROWS, ROWS)) == [None]
        counts.append(counted["maps"])
    assert 0 < counts[1] <= 2.25 * counts[0]


def test_columns_are_looked_for_once_in_what_concatenations_have_in_common(monkeypatch):
    """Each one is put together with a column; none is computed from a product."""
    counted, is_tiled = Counter[str](), tiled_slices.is_tiled

    def counting(op):
        counted["operations"] += 1
        return is_tiled(op)

    def columns(steps):
        def function(x):
            found = []
            for _ in range(steps):
                x = x + 0.5 * x[:, ::-1] + jnp.sin(x[::-1])
                found.append(jnp.sum(jnp.concatenate([x, x[:, :1]], 1), 1))
            return found

        return function

    monkeypatch.setattr(tiled_slices, "is_tiled", counting)
    counts = []
    for steps in (8, 16):
        counted.clear()
        plan_program(load_source(columns(steps), (ROWS,)).module)
        counts.append(counted["operations"])
    assert 0 < counts[1] <= 2.25 * counts[0]
