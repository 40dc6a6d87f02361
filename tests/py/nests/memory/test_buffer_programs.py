"""Blocks with several buffers compute what NumPy does, with no race."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.py.effort import by_level, drawn
from tests.py.nests.drawn import interpret
from tests.py.nests.memory.buffer_programs import PROGRAMS
from tests.py.nests.memory.drawn_buffers import draw
from tests.py.nests.te import compiled
from xgpu.loop_language.parser import parse

type Array = Any
_RANDOM = np.random.default_rng(1)


def flipped(a: Array, group: int) -> Array:
    """Return rows of which each group of elements is turned round."""
    rows, size = a.shape
    return a.reshape(rows, size // group, group)[:, :, ::-1].reshape(rows, size)


def rank(a: Array, _: Array) -> list[Array]:
    order = np.argsort(a, 1, kind="stable")
    return [np.argsort(order, 1).astype(np.int32), np.sort(a, 1)]


def mask(a: Array) -> Array:
    turned = np.where((a > 0)[:, ::-1], a, -a)
    return np.where(np.roll(a > 0, -1, 1), np.roll(turned, -33, 1), np.float32(7))


def quant(a: Array) -> list[Array]:
    q = (np.abs(a) / np.abs(a).max(1, keepdims=True) * np.float32(200)).astype(np.int32).astype(np.uint8)
    return [np.roll(q, -3, 1), flipped(q[:, ::-1].astype(np.float16) * np.float16(0.5), 3)]


def hists(a: Array) -> Array:
    found = np.zeros((3, 16), np.int32)
    for b in range(3):
        for k in range(4):
            found[b] += np.bincount(a[b, k * 50 : (k + 1) * 50] & 15, minlength=16).astype(np.int32) * (k + 1)
    return found


def branches(a: Array) -> Array:
    return np.concatenate([a[:2, ::-1] * 2, np.roll(a[2:] % 1000, -5, 1) + 1])


def stages(a: Array) -> Array:
    found = np.zeros((2, 30), np.float32)
    for k in range(6):
        found = found + (a[:, k, :30] + a[:, k, 2:]) * np.float32(k)
    return found


def stages_then(a: Array) -> Array:
    total = a.sum(1, dtype=np.int32)[:, ::-1]
    z = np.concatenate([total, np.roll(total, -1, 1)[:, ::-1]], 1)
    return z[:, ::2] - z[:, 1::2]


def complex_(a: Array) -> Array:
    return np.roll((np.roll(a + a[:, ::-1], -9, 1) - a)[:, ::-1], -1, 1)


def tpads(a: Array) -> Array:
    found = np.zeros((64, 64), np.int32)
    for p in (0, 32):
        for q in (0, 32):
            y = a[p : p + 32, q : q + 32].T.astype(np.int32) * 3
            found[q : q + 32, p : p + 32] = y.T[::-1].astype(np.uint8)
    return found


def scalars(a: Array) -> Array:
    u = a[:, ::-1] - a.sum(1, keepdims=True, dtype=np.int32)
    return np.roll(flipped(u * u[:, 5:6], 2), -31, 1)


def life(a: Array) -> Array:
    for _ in range(5):
        near = [np.roll(np.roll(a, i, 1), j, 2) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        n = np.sum(near, axis=0)
        a = ((n == 3) | ((n == 2) & (a == 1))).astype(np.uint8)
    return a


def depths(a: Array) -> Array:
    turned = a[:, ::-1]
    return sum(np.roll(turned * (k + 1) + step, -7, 1) for k in range(3) for step in range(2)).astype(np.int32)


def kernels(a: Array) -> Array:
    s = a.reshape(2, 64)[:, ::-1].reshape(128)
    return flipped(s[::-1].reshape(2, 64)[:, ::-1] * 2, 16).reshape(128)


def align(a: Array) -> Array:
    return (a * 2)[:, :, ::-1] + np.roll(a * 2, -1, 2)


def held_and_shared(a: Array) -> Array:
    return np.einsum("bik,bjk->bij", a, a * 2) + np.maximum(a[:, :, :8].max(2), 0)[:, None, :]


def where_in_seq(a: Array) -> Array:
    found = []
    for b, row in enumerate(a):
        t = row[None]
        for k in range(6):
            t = flipped(t[:, ::-1], 2) if k % 2 == 0 else t
            t = np.roll(t, -1, 1).astype(np.int16).astype(np.int32) + k if b + k >= 4 else t
        found.append(np.roll(t[0], -8))
    return np.stack(found)


def unknown_index(a: Array, n: Array) -> Array:
    u = np.zeros_like(a)
    u[:, n] = a[:, ::-1]
    return flipped(u[:, n[::-1]], 2)


def jacobi(a: Array, _: Array) -> Array:
    for _step in range(4):
        a = np.concatenate([a[:1], a[:-2] + a[2:] - a[1:-1], a[-1:]])
    return a


def twostage(a: Array, c: Array) -> Array:
    z = flipped(a.reshape(16, 64), 4).reshape(2, 8, 64) * np.roll(c[:, ::-1], -9, 1)[None]
    return z[:, :, ::-1].sum(1, dtype=np.int32)


def bf16s(a: Array) -> Array:
    u = (a + a)[:, ::-1].astype(np.float32) * np.float32(1.5)
    return np.roll(flipped(u, 2).astype(ml_dtypes.bfloat16), -25, 1)


def first_thread(a: Array) -> Array:
    t = a + (a[:, 3] + a[:, 4])[:, None]
    u = t[:, ::-1] * t[:, 7:8]
    return u + (u[:, :1] + u[:, -1:])


def static_buffers(a: Array) -> Array:
    t = a.copy()
    for s in range(4):
        n = 64 >> s
        t[:, :n] = t[:, :n] + t[:, :n][:, ::-1] - s
    return t


REFERENCES: dict[str, Callable[..., Any]] = {
    "rank": rank,
    "mask": mask,
    "quant": quant,
    "hists": hists,
    "branches": branches,
    "stages": stages,
    "stages_then": stages_then,
    "warpscan": lambda a: np.cumsum(a, 1, dtype=np.int32),
    "complex": complex_,
    "tpads": tpads,
    "scalars": scalars,
    "life": life,
    "tails": lambda a: flipped(flipped(a, 3), 9),
    "tiny": lambda a: np.roll(a[:, ::-1], -5, 1)[:, ::-1],
    "depths": depths,
    "kernels": kernels,
    "align": align,
    "held_and_shared": held_and_shared,
    "vector": lambda a: flipped(a + 1, 4)[:, ::-1],
    "where_in_seq": where_in_seq,
    "unknown_index": unknown_index,
    "offsets": lambda a: a & 255,
    "jacobi": jacobi,
    "twostage": twostage,
    "bf16s": bf16s,
    "first_thread": first_thread,
    "inplace": lambda a: flipped(a + 1, 32)[:, ::-1],
    "static_buffers": static_buffers,
}
ARGUMENTS: dict[str, Callable[[], list[Array]]] = {
    "branches": lambda: [_RANDOM.integers(0, 1000, (4, 96)).astype(np.int32)],
    "life": lambda: [_RANDOM.integers(0, 2, (2, 19, 23)).astype(np.uint8)],
    "where_in_seq": lambda: [_RANDOM.integers(-1000, 1000, (3, 64)).astype(np.int32)],
    "unknown_index": lambda: [
        _RANDOM.integers(0, 99, (2, 64)).astype(np.int32),
        _RANDOM.permutation(64).astype(np.int32),
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    program = compiled(PROGRAMS[name])
    inputs = ARGUMENTS[name]() if name in ARGUMENTS else program.random_inputs(3)
    expected = REFERENCES[name](*inputs)
    for sanitize in (False, True):
        results = program.run(*inputs, sanitize=sanitize)
        for result, wanted in zip(results, expected if isinstance(expected, list) else [expected], strict=True):
            if name == "held_and_shared":
                # Sums in another order.
                np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)
            else:
                np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("seed", drawn(range(1000), by_level(5, 25, 1000)))
def test_drawn_programs(seed: int) -> None:
    text = draw(seed)
    program = compiled(text)
    inputs = program.random_inputs(seed)
    expected = interpret(parse(text, "drawn.te"), inputs)
    for sanitize in (False, True):
        for output, wanted in zip(program.run(*inputs, sanitize=sanitize), expected, strict=True):
            np.testing.assert_array_equal(output, wanted, text)
