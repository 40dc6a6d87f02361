"""Random JAX programs of loops and branches inside each other, on integers: what they compute is exact."""

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

SHAPES = ((), (5,), (4, 6), (24,), (0, 3))
DEPTH = 3


class Program:
    """A function of the seed alone. Regions choose by generators of their own: JAX may trace a region twice."""

    def __init__(self, seed: int):
        source = random.Random(seed)
        self.arguments = [self._array(source, shape) for shape in source.choices(SHAPES, k=source.randint(1, 4))]
        self._seed, self._results = source.random(), source.randint(1, 5)

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Compute the results: most of them of what was computed last."""
        source, values = random.Random(self._seed), list(map(jnp.asarray, arguments))
        self._fill(values, source, source.randint(3, 7), 0)
        late = values[-6:] if source.random() < 0.8 else values
        return tuple(source.choice(late) for _ in range(self._results))

    @staticmethod
    def _array(source: random.Random, shape: tuple[int, ...]) -> Any:
        return np.random.default_rng(source.getrandbits(32)).integers(-20, 90, shape, np.int32)

    def _fill(self, values: list[Any], source: random.Random, count: int, depth: int) -> None:
        """Add values that are computed from others."""
        makers: list[Callable[..., list[Any]]] = [self._counted, self._until, self._scan, self._branch]
        for _ in range(count):
            if depth == DEPTH or source.random() < 0.5:
                values.append(self._computed(values, source))
            else:
                values += source.choice(makers)(values, source, depth)

    def _computed(self, values: list[Any], source: random.Random) -> Any:
        x = source.choice(values[-5:])
        y, at = self._like(x, values, source), self._number(values, source, 4)
        moved = [
            lambda: jnp.cumsum(x, axis=-1),
            lambda: jnp.roll(x, 1, 0),
            lambda: jnp.flip(x),
            lambda: x.at[at].add(7),
        ]
        moved += [lambda: x.at[at].set(y[0]), lambda: x.reshape(-1), lambda: x.sum(0, dtype=np.int32), lambda: x[at]]
        plain = [lambda: x ^ y, lambda: x * 3 + 1, lambda: jnp.maximum(x, y), lambda: x + y, lambda: x]
        return source.choice(moved if x.ndim and x.size and source.random() < 0.6 else plain)()

    @staticmethod
    def _like(x: Any, values: list[Any], source: random.Random) -> Any:
        """Return a value of the shape of ``x``: one that there is, a constant, or what another one is made into."""
        alike = [value for value in values[-8:] if value.shape == x.shape]
        if alike and source.random() < 0.7:
            return source.choice(alike)
        if source.random() < 0.3:
            return jnp.full(x.shape, source.randint(0, 3), np.int32)
        other = source.choice(values)
        if other.size == x.size:
            return other.reshape(x.shape)
        return jnp.broadcast_to(other.sum(dtype=np.int32), x.shape)

    @staticmethod
    def _number(values: list[Any], source: random.Random, most: int) -> Any:
        """Return a number from 0 to ``most``, known now or computed."""
        if source.random() < 0.3:
            return source.randint(0, most)
        return jnp.sum(source.choice(values[-5:]), dtype=np.int32) % (most + 1)

    def _state(self, values: list[Any], source: random.Random) -> list[Any]:
        return source.choices(values, k=source.randint(1, 4))

    def _next(self, values: list[Any], state: Any, seed: float, depth: int) -> tuple[list[Any], list[Any]]:
        """Return the next state, whose values may change places, be constants or stay, and all that was computed."""
        source, inside = random.Random(seed), [*values, *state]
        self._fill(inside, source, source.randint(0, 3), depth + 1)
        near = inside[len(values) :]
        return [each if source.random() < 0.15 else self._like(each, near, source) for each in state], near

    def _counted(self, values: list[Any], source: random.Random, depth: int) -> list[Any]:
        state, seed, end = self._state(values, source), source.random(), self._number(values, source, 4)
        start = source.randint(-1, 2) if source.random() < 0.7 else self._number(values, source, 3)
        return lax.fori_loop(start, end, lambda i, s: self._next([*values, jnp.asarray(i)], s, seed, depth)[0], state)

    def _until(self, values: list[Any], source: random.Random, depth: int) -> list[Any]:
        state, seed, most = self._state(values, source), source.random(), source.randint(0, 4)
        by_values = source.random() < 0.7

        def goes_on(state: Any) -> Any:
            count, *others = state
            return (count < most) & (jnp.sum(others[0]) % 5 != 0) if by_values else count < most

        def step(state: Any) -> Any:
            count, *others = state
            return [count + 1, *self._next([*values, count], others, seed, depth)[0]]

        return lax.while_loop(goes_on, step, [jnp.int32(0), *state])

    def _scan(self, values: list[Any], source: random.Random, depth: int) -> list[Any]:
        state, seed, given = self._state(values, source), source.random(), source.choice(values)
        stack = given if given.ndim == 2 else jnp.broadcast_to(given, (source.randint(0, 4), *given.shape))

        def step(state: Any, x: Any) -> Any:
            end, near = self._next([*values, x], state, seed, depth)
            return end, random.Random(seed).choices(near, k=2)

        end, stacks = lax.scan(step, state, stack, reverse=source.random() < 0.3)
        return [*end, *(each for each in stacks if each.ndim <= 2)]

    def _branch(self, values: list[Any], source: random.Random, depth: int) -> list[Any]:
        results, seeds = self._state(values, source), [source.random() for _ in range(source.randint(1, 4))]
        branches = [lambda *s, seed=seed: self._next(values, s, seed, depth)[0] for seed in seeds]
        number = self._number(values, source, 5) - 1
        if len(branches) == 2:
            return lax.cond(number > 1, *branches, *results)
        return lax.switch(number, branches, *results)


def expected(program: Program) -> list[Any]:
    """Return what JAX computes."""
    return list(map(np.asarray, jax.jit(program)(*program.arguments)))
