"""Values are computed in the order of dimensions that leaves the least to transpose, and stay what they are."""

import random
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py import effort
from xgpu import ir
from xgpu.fusion.orders import order_groups
from xgpu.passes.prepare.layouts.move_transposes import MoveTransposes
from xgpu.runtime.reference import Reference

CONTEXT = ir.make_context()
_TRANSPOSE = "stablehlo.transpose"


def _lifted(x: Any, axis: int) -> Any:
    """Return the step of a wavelet along one dimension, as code for the last one does it for others."""
    x = jnp.moveaxis(x, axis, -1)
    even, odd = x[..., ::2], x[..., 1::2]
    odd = odd - 0.5 * (even + jnp.concatenate([even[..., 1:], even[..., -1:]], -1))
    return jnp.moveaxis(jnp.concatenate([even * 1.1, odd], -1), -1, axis)


def _normalised(x: Any) -> Any:
    x = jnp.moveaxis(x, 1, -1)
    x = (x - x.mean(-1, keepdims=True)) / (1 + x.std(-1, keepdims=True))
    return jnp.moveaxis(x, -1, 1)


REMOVED = {
    "one dimension": lambda x: _lifted(x, -2),
    "both": lambda x: _lifted(_lifted(x, -1), -2),
    "mapped": jax.vmap(lambda x: jnp.exp(x - x[:1]) + x[::-1], 2, 2),
    "a loop": lambda x: lax.fori_loop(0, 3, lambda _, y: _lifted(y, -2), x),
}


@pytest.mark.parametrize("function", REMOVED.values(), ids=REMOVED)
def test_nothing_is_transposed(function: Any) -> None:
    assert _TRANSPOSE not in _compiled(function).ir("prepared")


def test_a_branch_transposes_what_it_captures() -> None:
    def function(p: Any, x: Any) -> Any:
        y = jnp.exp(x.T)
        looped = lax.cond(p, lambda: lax.fori_loop(0, 3, lambda i, a: jnp.sin(a) + i, y.T), lambda: y.T + 1)
        return looped, y.T

    program = xgpu.compile(function, "pred[]", "f32[512,192]")
    _, x = program.random_inputs(0)
    for given in (False, True):
        for found, expected in zip(program.run(np.bool_(given), x), function(given, x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def test_no_kernel_loses_its_tiles() -> None:
    program = xgpu.compile(lambda x: jnp.concatenate([x, jnp.exp(x)], 1).transpose(2, 1, 0) * 2, "f32[64,96,128]")
    assert [kernel.emitter for kernel in program.kernels] == ["transpose"]


READ_ELSEWHERE: dict[str, tuple[Any, ...]] = {
    "flipped": (lambda x: x.T[::-1], "f32[384,512]"),
    "flipped along rows": (lambda x: jnp.flip(jnp.exp(x).T, 1) * 2, "f32[384,512]"),
    "stacked": (lambda x, y: jnp.stack([x.T, y.T]), "f32[384,512]", "f32[384,512]"),
    "heads without the first token": (
        lambda x: x.reshape(4, 64, 8, 64).transpose(0, 2, 3, 1)[..., 1:],
        "f32[4,64,512]",
    ),
}


@pytest.mark.parametrize(
    ("function", "specs"), [(each[0], each[1:]) for each in READ_ELSEWHERE.values()], ids=READ_ELSEWHERE
)
def test_what_is_read_elsewhere_is_transposed_last(function: Any, specs: tuple[str, ...]) -> None:
    program = xgpu.compile(function, *specs)
    assert [kernel.emitter for kernel in program.kernels] == ["transpose"]
    arrays = program.random_inputs(0)
    np.testing.assert_array_max_ulp(program.run(*arrays, sanitize=True)[0], np.asarray(function(*arrays)), 4)


def test_sums_are_of_columns() -> None:
    emitters = {kernel.emitter for kernel in _compiled(_normalised).kernels}
    assert emitters == {"columns"}


def test_rows_that_a_transpose_moves_whole_are_one_program() -> None:
    def function(x: Any) -> Any:
        y = jnp.exp(x).transpose(1, 0, 2)
        y = (y - y.min(-1, keepdims=True)) / (1 + y.max(-1, keepdims=True) - y.min(-1, keepdims=True))
        return jax.nn.softmax(y, -1)

    assert [kernel.emitter for kernel in _compiled(function).kernels] == ["rows"]


def _compiled(function: Any) -> xgpu.Compiled:
    """Compile a program of a large array, and check that it is right."""
    program = xgpu.compile(function, "f32[3,256,192]")
    (x,) = program.random_inputs(0)
    np.testing.assert_allclose(program.run(x)[0], jax.jit(function)(x), rtol=2e-5, atol=2e-5)
    return program


class _Drawn:
    """A random program of operations on matrices and cubes of small integers, some of which are transposes."""

    def __init__(self, seed: int):
        self._rng = random.Random(seed)
        rank = self._rng.choice((2, 3, 3))
        self.shape = tuple(self._rng.randint(1, 5) for _ in range(rank))
        self._steps = self._rng.choices(_STEPS, k=self._rng.randint(3, 12))
        self._seeds = [self._rng.random() for _ in self._steps]
        self._kept = self._rng.choices((True, False), weights=(1, 5), k=len(self._steps))

    def __call__(self, x: Any, n: Any) -> Any:
        results, values = [], [x]
        for step, seed, kept in zip(self._steps, self._seeds, self._kept, strict=True):
            x = step(random.Random(seed), x, n, values)
            values.append(x)
            results += [x] * kept
        return (*results, x)


def _transpose(rng: random.Random, x: Any, *_: Any) -> Any:
    return jnp.transpose(x, rng.sample(range(x.ndim), x.ndim))


def _slice(rng: random.Random, x: Any, *_: Any) -> Any:
    starts = [rng.randint(0, (size - 1) // 2) for size in x.shape]
    return lax.slice(x, starts, x.shape, [rng.randint(1, 2) for _ in x.shape])


def _pad(rng: random.Random, x: Any, n: Any, *_: Any) -> Any:
    return lax.pad(x, n, [(rng.randint(-(size > 3), 2), rng.randint(0, 1), rng.randint(0, 1)) for size in x.shape])


def _concatenate(rng: random.Random, x: Any, *_: Any) -> Any:
    return jnp.concatenate([x, -x], rng.randrange(x.ndim)) if x.size < 2000 else -x


def _part(rng: random.Random, x: Any, n: Any, *_: Any) -> Any:
    at = [n * rng.randint(0, 1) for _ in x.shape]
    return lax.dynamic_slice(x, at, [max(size - rng.randint(0, 1), 1) for size in x.shape])


def _update(rng: random.Random, x: Any, n: Any, *_: Any) -> Any:
    part = lax.slice(3 * x, [0] * x.ndim, [max(size // 2, 1) for size in x.shape])
    return lax.dynamic_update_slice(x, part, [n * rng.randint(0, 1) for _ in x.shape])


def _added(rng: random.Random, x: Any, n: Any, values: list[Any]) -> Any:
    alike = [value for value in values if value.shape == x.shape]
    return rng.choice([*alike, lax.broadcasted_iota(x.dtype, x.shape, rng.randrange(x.ndim)), n, 7]) + 2 * x


def _broadcast(rng: random.Random, x: Any, *_: Any) -> Any:
    axis = rng.randrange(x.ndim)
    return x * lax.index_in_dim(x, 0, axis) + lax.broadcast_in_dim(
        x.sum(axis), x.shape, [i for i in range(x.ndim) if i != axis]
    )


def _gathered(rng: random.Random, x: Any, n: Any, *_: Any) -> Any:
    axis, other = rng.randrange(x.ndim), rng.randrange(x.ndim)
    i = (jnp.arange(6).reshape(2, 3)[:, : rng.randint(1, 3)] * (n + 2)) % x.shape[axis]
    rows = jnp.take(x, i, axis).sum(axis + rng.randint(0, 1))
    at = jnp.flip(lax.broadcasted_iota(jnp.int32, rows.shape, other), other)
    return jnp.take_along_axis(rows, at, other)


def _scattered(rng: random.Random, x: Any, n: Any, *_: Any) -> Any:
    axis = rng.randrange(x.ndim)
    at = (slice(None),) * axis
    i = (jnp.arange(4).reshape(2, 2)[: rng.randint(1, 2)] * n) % x.shape[axis]
    updates = jnp.transpose(x[(*at, i)], rng.sample(range(x.ndim + 1), x.ndim + 1)).reshape(x[(*at, i)].shape)
    updated = x.at[(*at, i)].add(2 * updates) if rng.random() < 0.5 else x.at[(*at, i)].max(updates)
    return updated + x.at[..., :1].set(7)


def _windows(rng: random.Random, x: Any, n: Any, *_: Any) -> Any:
    """Gather or scatter windows by several components, with dimensions of batches anywhere in the indices."""
    inside = rng.sample(range(x.ndim), x.ndim)
    batches = sorted(inside[: rng.randint(0, x.ndim - 1)])
    indexed = inside[len(batches) :][: rng.randint(1, 2)]
    sizes = [1 if axis in batches else rng.randint(1, size) for axis, size in enumerate(x.shape)]
    collapsed = [axis for axis in indexed if sizes[axis] == 1]
    shared: list[int | None] = [*batches, None]
    rng.shuffle(shared)
    shape = [3 if axis is None else x.shape[axis] for axis in shared]
    # Some windows leave the array.
    indices = lax.rem(
        jnp.arange(np.prod(shape) * len(indexed), dtype=np.int32).reshape(*shape, len(indexed)) * (n + 2), 4
    )
    rank = x.ndim - len(batches) - len(collapsed) + len(shape)
    offsets = sorted(rng.sample(range(rank), rank - len(shape)))
    placed = (offsets, sorted(collapsed), indexed, batches, [shared.index(axis) for axis in batches])
    numbers = [tuple(each) for each in placed]
    windows = lax.gather(x, indices, lax.GatherDimensionNumbers(*numbers), tuple(sizes), mode="fill", fill_value=-7)
    if rng.random() < 0.5 and rank <= 3:
        return windows
    scattered = rng.choice((lax.scatter, lax.scatter_add, lax.scatter_max))
    order = rng.sample(range(rank), rank)
    updates = jnp.transpose(3 * jnp.transpose(windows, order) + n, np.argsort(order))
    return scattered(x, indices, updates, lax.ScatterDimensionNumbers(*numbers), mode="drop")


def _repeated(rng: random.Random, x: Any, *_: Any) -> Any:
    axis, count = rng.randrange(x.ndim), rng.randint(2, 3)
    many = jnp.repeat(x, count, axis) if rng.random() < 0.5 else jnp.concatenate([x] * count, axis)
    parts = (count, x.shape[axis]) if rng.random() < 0.5 else (x.shape[axis], count)
    split = (3 * many).reshape(*x.shape[:axis], *parts, *x.shape[axis + 1 :])
    return split.sum(axis + rng.randint(0, 1))


def _chosen(rng: random.Random, x: Any, n: Any, *_: Any) -> Any:
    return jnp.where(x > n, jnp.clip(x, -50, 50), jnp.flip(x, rng.randrange(x.ndim)))


def _in_branch(rng: random.Random, x: Any, n: Any, values: list[Any]) -> Any:
    """Read values from around a branch there; the loop keeps it a branch."""
    order = tuple(rng.sample(range(x.ndim), x.ndim))
    back = tuple(sorted(range(x.ndim), key=order.__getitem__))

    def looped() -> Any:
        return lax.fori_loop(0, 2, lambda _, y: y + jnp.transpose(x, order), -jnp.transpose(values[-1], order))

    return jnp.transpose(lax.cond(n > 0, looped, lambda: jnp.transpose(3 * x, order)), back)


_STEPS = (
    *[_transpose] * 4,
    _slice,
    _pad,
    _concatenate,
    _part,
    _update,
    _added,
    _broadcast,
    _gathered,
    _scattered,
    _windows,
    _repeated,
    _chosen,
    _in_branch,
)


def test_drawn_programs_give_the_same_numbers() -> None:
    count, moved = effort.by_level(8, 24, 2000), 0
    for seed in range(count):
        function = _Drawn(effort.seed_of_commit() + seed)
        program = xgpu.compile(function, f"s32[{','.join(map(str, function.shape))}]", "s32[]")
        with CONTEXT, ir.Location.unknown():
            given, other = (ir.Module.parse(program.ir("stablehlo")) for _ in range(2))
            MoveTransposes(least_bytes=1).apply(other)
            assert other.operation.verify()
            if str(other) == str(given):
                continue
            moved += 1
            x = np.arange(np.prod(function.shape), dtype=np.int32).reshape(function.shape) - 20
            arrays = [x, np.int32(1)]
            for found, expected in zip(Reference(other)(arrays), Reference(given)(arrays), strict=True):
                np.testing.assert_array_equal(found, expected, err_msg=f"seed {seed}")
    assert moved > count / 8


def _summed(count: int) -> Any:
    """Return a sum of so many terms, each of which would be in another order but for the sum."""

    def function(x: Any, w: Any) -> Any:
        total = jnp.zeros((64, 64, 32, 32))
        for i in range(count):
            term = jnp.sin(jnp.exp(x * (i + 1.0)).transpose(0, 3, 1, 2).reshape(64, 8, 8, 32, 32))
            total += jnp.cos(term.reshape(64, 64, 32, 32)).reshape(64, 64, 1024).reshape(64, 64, 32, 32)
        return total.reshape(-1) @ w

    return function


def test_orders_are_chosen_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Counter[int]()
    cost = order_groups.ReshapeEdge.cost
    count = 0

    def counted(edge: Any) -> float:
        asked[count] += 1
        return cost(edge)

    monkeypatch.setattr(order_groups.ReshapeEdge, "cost", counted)
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((64, 32, 32, 64), (64 * 64 * 1024, 4))]
    for count in (20, 80):
        text = jax.jit(_summed(count)).lower(*shapes).as_text()
        with CONTEXT, ir.Location.unknown():
            module = ir.Module.parse(text)
            (main,) = module.body.operations
            MoveTransposes().rewrite_block(main.regions[0].blocks[0])
    assert 0 < asked[80] <= 5 * asked[20]


@pytest.mark.parametrize(
    ("function", "shape", "emitters"),
    [
        (lambda x: jax.nn.softmax(x, -1).T, "f32[4096,2048]", ["rows"]),
        (lambda x: jax.nn.standardize(x).transpose(0, 2, 1), "f32[32,1024,256]", ["rows"]),
    ],
)
def test_a_value_between_two_transposes_comes_before_its_neighbours(function, shape, emitters):
    """They would make up for one transpose each, and rows be computed as columns in six kernels."""
    gradient = jax.grad(lambda x: jnp.sum(jnp.sin(function(x))))
    assert [kernel.emitter for kernel in xgpu.compile(gradient, shape, target="sm_90a").kernels] == emitters
