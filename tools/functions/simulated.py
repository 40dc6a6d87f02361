"""Simulations, images and models: states that are updated in turns, windows, pairs, and rows that indices choose."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, nn, random

from xgpu.tools.functions.library import Case


def simulated() -> dict[str, Case]:
    """Return the programs by name."""
    fields = ("f32[3,96,96,96]", "f32[3,96,96,96]")
    return {
        "Maxwell's equations, leapfrog": (_maxwell, fields),
        "pair forces, periodic": (jax.grad(_pair_energy), ("f32[2048,3]",)),
        "shuffled pixels, pooled": (_pooled, ("f32[8,128,128,64]",)),
        "bilateral filter": (_bilateral, ("f32[1024,1024]",)),
        "multigrid cycle": (lambda b: _cycle(jnp.zeros_like(b), b, 5), ("f32[1024,1024]",)),
        "multigrid cycles in three dimensions": (_cycles, ("f32[128,128,128]",)),
        "bilinear sampling, gradient": (
            jax.grad(_sampled, (0, 1)),
            ("f32[8,128,128,32]", "f32[8,128,128,2]"),
        ),
        "tensor train": (_tensor_train, ("f32[8,20,16,16]", "s32[8192,8]")),
        "tridiagonal systems": (_tridiagonal, ("f32[512,512]",)),
        "capsules, routed": (_capsules, ("f32[64,1152,10,16]",)),
        "distributions, projected": (_project, ("f32[4096,51]", "f32[4096]", "f32[4096]")),
        "particle swarm": (_swarm, ("key", "f32[4096,32]")),
        "shortest paths": (_paths, ("f32[512,512]",)),
        "labels of components": (_components, ("f32[256,256]",)),
        "power iteration": (_power_iteration, ("f32[1024,1024]", "f32[1024]")),
        "Gaussian splats, gradient": (
            jax.grad(_splats, (0, 1, 2, 3)),
            ("f32[16,32,2]", "f32[16,32]", "f32[16,32,3]", "f32[16,32]"),
        ),
        "rank-one updates": (_rank_one, ("f32[1024,1024]", "f32[16,1024]")),
    }


def _maxwell(e: Any, h: Any) -> Any:
    def curl(field: Any, side: int) -> Any:
        def slope(x: Any, axis: int) -> Any:
            return (jnp.roll(x, -side, axis) - x) * side

        x, y, z = field
        return jnp.stack([slope(z, 1) - slope(y, 2), slope(x, 2) - slope(z, 0), slope(y, 0) - slope(x, 1)])

    def step(_: Any, fields: Any) -> Any:
        e, h = fields
        h = h - 0.5 * curl(e, 1)
        return e + 0.5 * curl(h, -1), h

    return lax.fori_loop(0, 20, step, (e, h))


def _pair_energy(x: Any) -> Any:
    d = x[:, None] - x
    d = d - 20.0 * jnp.round(d / 20.0)
    squares = jnp.sum(d**2, -1) + 100 * jnp.eye(len(x))
    sixth = 1 / squares**3
    return jnp.sum(jnp.where(squares < 9, 4 * (sixth**2 - sixth), 0.0)) / 2


def _pooled(x: Any) -> Any:
    b, h, w, c = x.shape
    x = x.reshape(b, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5).reshape(b, 2 * h, 2 * w, c // 4)
    p = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return jnp.stack([p[:, i : i + 2 * h, j : j + 2 * w] for i in range(3) for j in range(3)], -1).max(-1)


def _bilateral(image: Any) -> Any:
    padded = jnp.pad(image, 4, mode="reflect")
    total, weights = jnp.zeros_like(image), jnp.zeros_like(image)
    for i, j in itertools.product(range(9), repeat=2):
        near = padded[i : i + image.shape[0], j : j + image.shape[1]]
        weight = jnp.exp(-((i - 4) ** 2 + (j - 4) ** 2) / 8 - 5 * (near - image) ** 2)
        total, weights = total + weight * near, weights + weight
    return total / weights


def _cycle(x: Any, b: Any, levels: int) -> Any:
    def laplacian(x: Any) -> Any:
        p = jnp.pad(x, 1)
        return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x

    for _ in range(2):
        x = x + 0.2 * (laplacian(x) - b)
    if levels:
        rest = b - laplacian(x)
        coarse = rest.reshape(rest.shape[0] // 2, 2, -1, 2).mean((1, 3))
        error = _cycle(jnp.zeros_like(coarse), 4 * coarse, levels - 1)
        x = x + jnp.repeat(jnp.repeat(error, 2, 0), 2, 1)
    for _ in range(2):
        x = x + 0.2 * (laplacian(x) - b)
    return x


def _sampled(images: Any, at: Any) -> Any:
    x, y = jnp.tanh(at[..., 0]) * 63 + 64, jnp.tanh(at[..., 1]) * 63 + 64
    left, top = jnp.floor(x), jnp.floor(y)

    def corner(dx: int, dy: int) -> Any:
        columns, rows = jnp.clip(left + dx, 0, 127).astype(int), jnp.clip(top + dy, 0, 127).astype(int)
        weight = (1 - jnp.abs(x - left - dx)) * (1 - jnp.abs(y - top - dy))
        return jax.vmap(lambda image, i, j: image[i, j])(images, rows, columns) * weight[..., None]

    return jnp.mean(sum(corner(dx, dy) for dx in (0, 1) for dy in (0, 1)) ** 2)


def _cycles(b: Any) -> Any:
    """Return two cycles of four grids from zeros, each with two damped Jacobi steps down and up."""

    def laplacian(x: Any) -> Any:
        padded = jnp.pad(x, 1)
        sides = [lax.slice_in_dim(padded, 2 * i, x.shape[axis] + 2 * i, axis=axis) for axis in range(3) for i in (0, 1)]
        inner = [[slice(None) if i == axis else slice(1, -1) for i in range(3)] for axis in range(3) for _ in (0, 1)]
        return sum(side[tuple(each)] for side, each in zip(sides, inner, strict=True)) - 6 * x

    def smooth(x: Any, b: Any, scale: float) -> Any:
        for _ in range(2):
            x = x + (laplacian(x) - scale * b) * (0.8 / 6)
        return x

    def cycle(x: Any, b: Any, scale: float, grids: int) -> Any:
        x = smooth(x, b, scale)
        if grids > 1:
            residual = scale * b - laplacian(x)
            coarse = residual.reshape([n for size in x.shape for n in (size // 2, 2)]).mean((1, 3, 5))
            below = cycle(jnp.zeros_like(coarse), coarse / scale, 4 * scale, grids - 1)
            for axis in range(3):
                below = jnp.repeat(below, 2, axis)
            x = x + below
        return smooth(x, b, scale)

    x = jnp.zeros_like(b)
    for _ in range(2):
        x = cycle(x, b, 1e-4, 4)
    return x


def _tensor_train(cores: Any, indices: Any) -> Any:
    vector = cores[0, indices[:, 0] % 20, :1]
    for number in range(1, cores.shape[0]):
        vector = jnp.einsum("bij,bjk->bik", vector, cores[number, indices[:, number] % 20])
    return vector[:, 0, 0]


def _tridiagonal(right: Any) -> Any:
    def forward(state: Any, row: Any) -> Any:
        upper, value = state
        scale = 1 / (2 + 0.5 * upper)
        state = -0.5 * scale * jnp.ones_like(row), (row + 0.5 * value) * scale
        return state, state

    def backward(x: Any, row: Any) -> Any:
        x = row[1] - row[0] * x
        return x, x

    zeros = jnp.zeros(right.shape[1])
    _, rows = lax.scan(forward, (zeros, zeros), right)
    return lax.scan(backward, zeros, rows, reverse=True)[1]


def _capsules(votes: Any) -> Any:
    logits = jnp.zeros(votes.shape[:3])
    for _ in range(3):
        chosen = jnp.sum(nn.softmax(logits, 2)[..., None] * votes, 1)
        squares = jnp.sum(chosen**2, -1, keepdims=True)
        chosen = squares / (1 + squares) * chosen * lax.rsqrt(squares + 1e-8)
        logits = logits + jnp.sum(votes * chosen[:, None], -1)
    return chosen


def _project(p: Any, reward: Any, done: Any) -> Any:
    support = jnp.linspace(-10.0, 10.0, 51)
    place = (jnp.clip(reward[:, None] + 0.99 * (done[:, None] < 1) * support, -10, 10) + 10) / 0.4
    low, high = jnp.floor(place).astype(int), jnp.ceil(place).astype(int)
    rows = jnp.arange(len(p))[:, None]
    return jnp.zeros_like(p).at[rows, low].add(p * (high + (low == high) - place)).at[rows, high].add(p * (place - low))


def _swarm(key: Any, x: Any) -> Any:
    def step(state: Any, key: Any) -> Any:
        x, v, best, lowest = state
        own, common = random.uniform(key, (2, *x.shape))
        v = 0.7 * v + 1.5 * own * (best - x) + 1.5 * common * (best[jnp.argmin(lowest)] - x)
        x = jnp.clip(x + v, -5, 5)
        value = jnp.sum(x**2 - 10 * jnp.cos(2 * jnp.pi * x) + 10, -1)
        better = value < lowest
        best, lowest = jnp.where(better[:, None], x, best), jnp.where(better, value, lowest)
        return (x, v, best, lowest), jnp.min(lowest)

    start = (x, jnp.zeros_like(x), x, jnp.full(len(x), jnp.inf))
    return lax.scan(step, start, random.split(key, 50))


def _paths(lengths: Any) -> Any:
    def through(k: Any, d: Any) -> Any:
        return jnp.minimum(d, d[:, k][:, None] + d[k])

    return lax.fori_loop(0, lengths.shape[0], through, jnp.abs(lengths))


def _components(image: Any) -> Any:
    mask = image < 0.3
    labels = jnp.where(mask, jnp.arange(mask.size).reshape(mask.shape) + 1, 0)

    def spread(state: Any) -> Any:
        labels, _ = state
        p = jnp.pad(labels, 1)
        near = jnp.maximum(jnp.maximum(p[:-2, 1:-1], p[2:, 1:-1]), jnp.maximum(p[1:-1, :-2], p[1:-1, 2:]))
        new = jnp.where(mask, jnp.maximum(labels, near), 0)
        return new, jnp.any(new != labels)

    return lax.while_loop(lambda state: state[1], spread, (labels, True))[0]


def _power_iteration(matrix: Any, x: Any) -> Any:
    def step(_: Any, x: Any) -> Any:
        y = matrix @ x
        return y / jnp.sqrt(jnp.vdot(y, y))

    x = lax.fori_loop(0, 20, step, x)
    return x, jnp.vdot(x, matrix @ x)


def _rank_one(matrix: Any, rows: Any) -> Any:
    def step(inverse: Any, x: Any) -> Any:
        y = inverse @ x
        return inverse - jnp.outer(y, y) / (1 + jnp.vdot(x, y)), None

    return lax.scan(step, matrix, rows)[0]


def _splats(centres: Any, widths: Any, colours: Any, opacities: Any) -> Any:
    """Return the mean square of an image of Gaussians, composed from front to back, 32 at a time."""
    places = jnp.stack(jnp.meshgrid(jnp.arange(128), jnp.arange(128), indexing="ij"), -1).reshape(-1, 2) / 128

    def step(image: Any, splats: Any) -> Any:
        colour, left = image
        centre, width, own, opacity = splats
        distances = places[:, None] - centre
        alpha = jnp.minimum(0.99, opacity * jnp.exp(-width * jnp.sum(distances**2, -1)))
        through = jnp.concatenate([jnp.ones((len(places), 1)), 1 - alpha[:, :-1]], 1)
        through = left[:, None] * jnp.cumprod(through, 1)
        return (colour + (alpha * through) @ own, through[:, -1] * (1 - alpha[:, -1])), None

    start = (jnp.zeros((len(places), 3)), jnp.ones(len(places)))
    (colour, left), _ = lax.scan(step, start, (centres, widths, colours, opacities))
    return jnp.mean((colour + left[:, None]) ** 2)
