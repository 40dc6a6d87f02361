"""Programs as people write them: simulations, dynamic programming, routing, samplers, recurrences, unrolled steps."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, nn, random

from xgpu.tools.functions.library import Case
from xgpu.tools.programs.recurrences import gates


def written() -> dict[str, Case]:
    """Return the programs by name."""
    return {
        "stencil of 6 rolls": (_rolls(6), ("f32[2048,2048]",)),
        "stencil of 16 rolls, 1-D": (_rolls(16), ("f32[4096]",)),
        "stencil of 12 slices": (_slices(12), ("f32[65536]",)),
        "heat equation, padded": (_padded(8), ("f32[1024,1024]",)),
        "expert routing": (_route, ("f32[4096,64]",)),
        "k nearest neighbours": (_neighbours, ("f32[1024,3]", "f32[4096,3]")),
        "pairwise distances": (_distances, ("f32[2048,3]", "f32[2048,3]")),
        "n-body": (_n_body, ("f32[1024,3]", "f32[1024]")),
        "Mandelbrot": (_mandelbrot, ("f32[512]", "f32[512]")),
        "Newton": (_newton, ("f32[65536]",)),
        "Viterbi": (_viterbi, ("f32[256,64]", "f32[64,64]")),
        "dynamic time warping": (_warp, ("f32[256]", "f32[256]")),
        "gumbel top_k": (lambda k, x: lax.top_k(x + random.gumbel(k, x.shape), 16), ("key", "f32[64,32000]")),
        "selective state space": (_state_space, ("f32[2048,512]", "f32[2048,512]", "f32[512,16]", "f32[2048,16]")),
        "recurrence of gates": (gates, ("f32[512,32,256]", "f32[32,256]")),
        "exponential average": (_average, ("f32[4096,512]",)),
        "sampler of 50 steps": (_sampler, ("key", "f32[256,16]")),
        "dropout": (lambda k, x: jnp.where(random.bernoulli(k, 0.9, x.shape), x / 0.9, 0), ("key", "f32[2048,2048]")),
        "dropout in 8 layers": (_dropout_layers, ("key", "f32[256,512]", "f32[512,512]")),
        "Brownian path": (_brownian, ("key",)),
        "attention, unfused": (_attention, ("bf16[4,512,8,64]",) * 3),
        "rotary embedding": (_rotary, ("bf16[4,1024,16,64]",)),
        "adam": (_adam, ("f32[1024,1024]",) * 4),
        "layer norm of sum": (lambda x, y, w: nn.standardize(x + y) * w, ("f32[4096,768]",) * 2 + ("f32[768]",)),
        "depthwise convolution": (_depthwise, ("f32[8,2048,256]", "f32[4,256]")),
        "batched matrix vector": (
            lambda a, x: jnp.einsum("bij,bj->bi", a, jnp.tanh(x)),
            ("f32[4096,16,16]", "f32[4096,16]"),
        ),
        "moving maximum": (
            lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 64), (1, 1), "VALID"),
            ("f32[256,16384]",),
        ),
        "edge loss": (lambda x, s, t: jnp.sum((x[s] - x[t]) ** 2), ("f32[4096,16]", "s32[65536]", "s32[65536]")),
        "segment softmax": (_segment_softmax, ("f32[65536]", "s32[65536]")),
        "beam search step": (_beam, ("f32[16,8]", "f32[16,8,8192]")),
        "game of life": (_life(16), ("f32[1024,1024]",)),
        "runge-kutta": (_runge_kutta, ("f32[65536,3]",)),
        "conjugate gradients": (_conjugate, ("f32[512,512]", "f32[512]")),
        "bilinear sampling": (_bilinear, ("f32[512,512]", "f32[262144,2]")),
        "cross entropy gradient": (jax.grad(_cross_entropy), ("f32[1024,8192]", "s32[1024]")),
    }


def _rolls(steps: int) -> Any:
    def function(x: Any) -> Any:
        for _ in range(steps):
            x = x + 0.1 * (jnp.roll(x, 1, 0) - 2 * x + jnp.roll(x, -1, 0))
        return x

    return function


def _slices(steps: int) -> Any:
    def function(x: Any) -> Any:
        for _ in range(steps):
            x = x.at[1:-1].add(0.1 * (x[2:] - 2 * x[1:-1] + x[:-2]))
        return x

    return function


def _padded(steps: int) -> Any:
    def function(x: Any) -> Any:
        for _ in range(steps):
            p = jnp.pad(x, 1, mode="edge")
            x = x + 0.1 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * x)
        return x

    return function


def _life(steps: int) -> Any:
    def function(x: Any) -> Any:
        x = (x > 0).astype(jnp.int32)
        for _ in range(steps):
            n = sum(jnp.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
            x = ((n == 3) | ((x == 1) & (n == 2))).astype(jnp.int32)
        return x

    return function


def _route(scores: Any) -> Any:
    weights, experts = lax.top_k(nn.softmax(scores), 2)
    chosen = nn.one_hot(experts, 64, dtype=jnp.int32).reshape(-1, 64)
    place = jnp.cumsum(chosen, 0) * chosen
    return weights, jnp.max(place, -1).reshape(-1, 2) - 1


def _distances(x: Any, y: Any) -> Any:
    return jnp.sum((x[:, None] - y[None]) ** 2, -1)


def _neighbours(x: Any, y: Any) -> Any:
    return lax.top_k(-_distances(x, y), 8)


def _n_body(x: Any, mass: Any) -> Any:
    d = x[None] - x[:, None]
    r = jnp.sum(d * d, -1) + 1e-3
    return jnp.sum(d * (jnp.abs(mass)[None] * r**-1.5)[..., None], 1)


def _mandelbrot(re: Any, im: Any) -> Any:
    c = re[None] + 1j * im[:, None]

    def step(_: Any, state: Any) -> Any:
        z, count = state
        z = jnp.where(jnp.abs(z) <= 2, z * z + c, z)
        return z, count + (jnp.abs(z) <= 2)

    return lax.fori_loop(0, 50, step, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]


def _newton(a: Any) -> Any:
    a = jnp.abs(a) + 1

    def more(state: Any) -> Any:
        return jnp.logical_and(state[1] < 50, jnp.max(jnp.abs(state[0] ** 2 - a)) > 1e-3)

    return lax.while_loop(more, lambda s: (0.5 * (s[0] + a / s[0]), s[1] + 1), (a, 0))[0]


def _viterbi(scores: Any, moves: Any) -> Any:
    def step(best: Any, score: Any) -> Any:
        all_ = best[:, None] + moves
        return jnp.max(all_, 0) + score, jnp.argmax(all_, 0)

    return lax.scan(step, scores[0], scores[1:])


def _warp(x: Any, y: Any) -> Any:
    def row(before: Any, a: Any) -> Any:
        cost = jnp.abs(a - y)

        def cell(left: Any, columns: Any) -> Any:
            up, diagonal, c = columns
            new = c + jnp.minimum(jnp.minimum(left, up), diagonal)
            return new, new

        diagonal = jnp.concatenate([jnp.array([jnp.inf]), before[:-1]])
        _, new = lax.scan(cell, jnp.inf, (before, diagonal, cost))
        return new, new[-1]

    return lax.scan(row, jnp.cumsum(jnp.abs(x[0] - y)), x[1:])[1][-1]


def _state_space(x: Any, delta: Any, a: Any, b: Any) -> Any:
    def step(h: Any, inputs: Any) -> Any:
        x, delta, b = inputs
        h = jnp.exp(-nn.softplus(delta)[:, None] * jnp.exp(a)) * h + (delta * x)[:, None] * b[None]
        return h, jnp.sum(h * b[None], -1)

    return lax.scan(step, jnp.zeros(a.shape), (x, delta, b))[1]


def _average(x: Any) -> Any:
    return lax.scan(lambda m, y: (0.9 * m + 0.1 * y,) * 2, x[0], x)[1]


def _sampler(key: Any, x: Any) -> Any:
    def step(x: Any, key: Any) -> Any:
        noise, accept = random.split(key)
        new = x + 0.1 * random.normal(noise, x.shape)
        ratio = jnp.exp(0.5 * (jnp.sum(x * x, -1) - jnp.sum(new * new, -1)))
        return jnp.where((random.uniform(accept, ratio.shape) < ratio)[:, None], new, x), None

    return lax.scan(step, x, random.split(key, 50))[0]


def _dropout_layers(key: Any, x: Any, w: Any) -> Any:
    for i in range(8):
        key, own = random.split(random.fold_in(key, i))
        x = jnp.where(random.bernoulli(own, 0.9, x.shape), nn.gelu(x @ w) / 0.9, 0)
    return x


def _brownian(key: Any) -> Any:
    def step(state: Any, _: Any) -> Any:
        key, w = state
        key, own = random.split(key)
        w = w + 0.1 * random.normal(own, w.shape)
        return (key, w), w

    return lax.scan(step, (key, jnp.zeros(64)), None, 200)[1]


def _attention(q: Any, k: Any, v: Any) -> Any:
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8
    s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(s), v)


def _rotary(x: Any) -> Any:
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] / 10000 ** (jnp.arange(half) / half)
    sin, cos = jnp.sin(angle)[:, None].astype(x.dtype), jnp.cos(angle)[:, None].astype(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def _adam(w: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return w - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def _depthwise(x: Any, w: Any) -> Any:
    p = jnp.pad(x, ((0, 0), (3, 0), (0, 0)))
    return nn.silu(sum(p[:, i : i + x.shape[1]] * w[i] for i in range(4)))


def _segment_softmax(x: Any, i: Any) -> Any:
    i = i % 1024
    e = jnp.exp(x - jax.ops.segment_max(x, i, 1024)[i])
    return e / jax.ops.segment_sum(e, i, 1024)[i]


def _beam(scores: Any, logits: Any) -> Any:
    all_ = (scores[..., None] + nn.log_softmax(logits)).reshape(scores.shape[0], -1)
    best, place = lax.top_k(all_, 8)
    return best, place // logits.shape[-1], place % logits.shape[-1]


def _runge_kutta(x: Any) -> Any:
    def slope(x: Any) -> Any:
        a, b, c = x[:, 0], x[:, 1], x[:, 2]
        return jnp.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c], 1)

    for _ in range(4):
        k1 = slope(x)
        k2 = slope(x + 0.005 * k1)
        k3 = slope(x + 0.005 * k2)
        x = x + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + slope(x + 0.01 * k3))
    return x


def _conjugate(a: Any, b: Any) -> Any:
    solved = jax.scipy.sparse.linalg.cg(lambda x: a @ (a.T @ x) + 100 * x, b, maxiter=20)  # type: ignore[no-untyped-call]
    return solved[0]


def _bilinear(image: Any, places: Any) -> Any:
    return jax.scipy.ndimage.map_coordinates(image, list((places * 100 + 256).T), 1)


def _cross_entropy(x: Any, labels: Any) -> Any:
    return -jnp.mean(jnp.take_along_axis(nn.log_softmax(x), labels[:, None] % x.shape[1], 1))
