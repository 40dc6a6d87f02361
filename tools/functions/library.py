"""Calls of jax.numpy, jax.lax, jax.nn, jax.random and jax.scipy at moderate sizes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, nn, random
from jax.scipy import linalg, signal, special, stats

Case = tuple[Callable[..., Any], tuple[str, ...]]
"""A function and its arguments: specifications such as ``f32[64,64]``, or ``key`` for a random key."""

_S = "f32[1024,1024]"
_V = "f32[1048576]"
_SHORT = "f32[4096]"


def library() -> dict[str, Case]:
    """Return the calls by name."""
    return {**_numpy(), **_lax(), **_nn(), **_random(), **_scipy()}


def _numpy() -> dict[str, Case]:
    unary = "cumsum cumprod sort argsort unique_all nonzero diff gradient median ptp flip rot90 trace tril triu".split()
    cases: dict[str, Case] = {
        "numpy.cumsum 4M": (jnp.cumsum, ("f32[4194304]",)),
        "numpy.cumsum rows": (partial(jnp.cumsum, axis=1), ("f32[2048,2048]",)),
        "numpy.cumsum columns": (partial(jnp.cumsum, axis=0), ("f32[2048,2048]",)),
        "numpy.cumprod": (partial(jnp.cumprod, axis=1), ("f32[2048,2048]",)),
        "numpy.nonzero": (lambda x: jnp.nonzero(x > 0, size=1024), (_V,)),
        "numpy.unique": (lambda x: jnp.unique((x * 100).astype(jnp.int32), size=1000), ("f32[65536]",)),
        "numpy.bincount": (lambda x: jnp.bincount(x, length=1000), ("s32[1048576]",)),
        "numpy.repeat counts": (lambda x, n: jnp.repeat(x, n % 4, total_repeat_length=8192), (_SHORT, "s32[4096]")),
        "numpy.searchsorted": (lambda x, y: jnp.searchsorted(jnp.sort(x), y), ("f32[65536]", "f32[65536]")),
        "numpy.interp": (lambda x, y: jnp.interp(x, jnp.linspace(-3, 3, 1000), y), (_V, "f32[1000]")),
        "numpy.histogram": (lambda x: jnp.histogram(x, 100)[0], ("f32[262144]",)),
        "numpy.percentile": (lambda x: jnp.percentile(x, 30, axis=1), (_S,)),
        "numpy.take": (lambda x, i: jnp.take(x, i, 0), (_S, "s32[1024]")),
        "numpy.roll": (lambda x: jnp.roll(x, (3, -5), (0, 1)), (_S,)),
        "numpy.kron": (jnp.kron, ("f32[32,32]", "f32[32,32]")),
        "numpy.convolve": (lambda x, y: jnp.convolve(x, y, "same"), ("f32[65536]", "f32[65]")),
        "numpy.outer": (jnp.outer, (_SHORT, _SHORT)),
        "numpy.cov": (jnp.cov, ("f32[128,4096]",)),
        "numpy.einsum batched vector": (lambda a, x: jnp.einsum("bij,bj->bi", a, x), ("f32[512,64,64]", "f32[512,64]")),
        "numpy.cross": (jnp.cross, ("f32[262144,3]", "f32[262144,3]")),
        "numpy.linalg.norm": (lambda x: jnp.linalg.norm(x, axis=-1), (_S,)),
        "numpy.where": (lambda x, y: jnp.where(x > y, x, -y), (_S, _S)),
        "numpy.clip": (lambda x: jnp.clip(x, -1, 1), (_S,)),
        "numpy.std": (lambda x: jnp.std(x, 0), (_S,)),
        "numpy.var all": (jnp.var, (_S,)),
        "numpy.logaddexp": (jnp.logaddexp, (_S, _S)),
        "numpy.stack": (lambda *a: jnp.stack(a, 1), (_S,) * 4),
        "numpy.tile": (lambda x: jnp.tile(x, (2, 3)), ("f32[512,512]",)),
        "numpy.pad reflect": (lambda x: jnp.pad(x, 4, mode="reflect"), (_S,)),
        "numpy.apply_along_axis": (lambda x: jnp.apply_along_axis(jnp.sort, 0, x), (_S,)),
        "numpy.polyval": (jnp.polyval, ("f32[16]", _V)),
        "numpy.vander": (lambda x: jnp.vander(x, 8), (_SHORT,)),
        "numpy.packbits": (lambda x: jnp.packbits(x > 0), (_V,)),
        "numpy.argmax": (lambda x: jnp.argmax(x, 1), (_S,)),
        "numpy.lexsort": (lambda x, y: jnp.lexsort((x, y)), ("f32[65536]", "s32[65536]")),
        "numpy.put_along_axis": (lambda x, i: x.at[jnp.arange(1024), i].set(0), (_S, "s32[1024]")),
        "numpy.nanmean": (lambda x: jnp.nanmean(jnp.where(x > 2, jnp.nan, x), 1), (_S,)),
        "numpy.fft": (lambda x: jnp.abs(jnp.fft.rfft(x)), (_S,)),
    }
    for name in unary:
        if hasattr(jnp, name) and name not in ("nonzero", "unique_all", "cumsum", "cumprod"):
            cases[f"numpy.{name}"] = (getattr(jnp, name), ("f32[512,512]",))
    return cases


def _lax() -> dict[str, Case]:
    def linear(left: Any, right: Any) -> Any:
        return left[0] * right[0], right[0] * left[1] + right[1]

    return {
        "lax.cummax": (partial(lax.cummax, axis=1), ("f32[2048,2048]",)),
        "lax.cumlogsumexp": (partial(lax.cumlogsumexp, axis=1), ("f32[2048,2048]",)),
        "lax.cumsum reverse": (partial(lax.cumsum, axis=1, reverse=True), ("f32[2048,2048]",)),
        "lax.associative_scan max": (partial(lax.associative_scan, jnp.maximum), (_V,)),
        "lax.associative_scan linear": (
            lambda a, b: lax.associative_scan(linear, (nn.sigmoid(a), b)),
            ("f32[2048,256]", "f32[2048,256]"),
        ),
        "lax.top_k": (lambda x: lax.top_k(x, 8), (_S,)),
        "lax.top_k computed": (lambda x: lax.top_k(jnp.sin(x) * 2, 8), (_S,)),
        "lax.reduce_window max": (
            lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
            ("f32[16,64,64,32]",),
        ),
        "lax.reduce_window wide": (
            lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 256), (1, 1), "SAME"),
            (_S,),
        ),
        "lax.conv": (
            lambda x, w: nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME")),
            ("f32[8,32,64,64]", "f32[32,32,3,3]"),
        ),
        "lax.map": (lambda x: lax.map(jnp.sum, x), ("f32[64,4096]",)),
        "lax.scan sum": (lambda x: lax.scan(lambda c, y: (c * 0.9 + y, c), x[0], x), ("f32[512,4096]",)),
        "lax.fori_loop": (lambda x: lax.fori_loop(0, 50, lambda i, c: jnp.sin(c) * 1.01, x), (_SHORT,)),
        "lax.dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (512, 512)), (_S, "s32[2]")),
        "lax.population_count": (lambda x: lax.population_count(x), ("s32[1048576]",)),
        "lax.sort two": (lambda x, y: lax.sort((x, y), num_keys=1), (_S, _S)),
        "lax.igamma": (lax.igamma, ("f32[65536]", "f32[65536]")),
        "lax.betainc": (
            lambda a, b, x: lax.betainc(jnp.abs(a) + 1, jnp.abs(b) + 1, nn.sigmoid(x)),
            ("f32[65536]",) * 3,
        ),
    }


def _nn() -> dict[str, Case]:
    cases: dict[str, Case] = {f"nn.{name}": (getattr(nn, name), (_S,)) for name in "gelu silu softmax mish glu".split()}
    return cases | {
        "nn.log_softmax bf16": (nn.log_softmax, ("bf16[1024,1024]",)),
        "nn.one_hot": (lambda i: nn.one_hot(i, 1000), ("s32[4096]",)),
        "nn.standardize": (nn.standardize, (_S,)),
        "nn.logsumexp": (lambda x: nn.logsumexp(x, 1), (_S,)),
        "nn.dot_product_attention": (nn.dot_product_attention, ("bf16[2,512,8,64]",) * 3),
        "nn.layer norm gradient": (
            jax.grad(lambda x, w: jnp.sum(nn.standardize(x) * w) ** 2, (0, 1)),
            (_S, "f32[1024]"),
        ),
    }


def _random() -> dict[str, Case]:
    shape = (1024, 1024)
    names = """normal uniform bernoulli gumbel exponential laplace logistic rademacher truncated_normal cauchy rayleigh
    weibull_min maxwell pareto ball bits""".split()
    extra = {
        "truncated_normal": (-2.0, 2.0),
        "weibull_min": (1.0, 2.0),
        "pareto": (3.0,),
        "rayleigh": (1.0,),
        "ball": (3,),
        "bernoulli": (0.3,),
    }
    cases: dict[str, Case] = {}
    for name in names:
        parameters = extra.get(name, ())
        size = (4096,) if name == "ball" else shape

        def draw(key: Any, name: str = name, parameters: Any = parameters, size: Any = size) -> Any:
            return getattr(random, name)(key, *parameters, shape=size)

        cases[f"random.{name}"] = (draw, ("key",))

    def chain(key: Any) -> Any:
        for i in range(6):
            key = random.fold_in(key, i)
        return random.split(key, 4)

    return cases | {
        "random.split": (lambda k: random.split(k, 64), ("key",)),
        "random.fold_in chain": (chain, ("key",)),
        "random.randint": (lambda k: random.randint(k, shape, 0, 1000), ("key",)),
        "random.permutation": (lambda k: random.permutation(k, 65536), ("key",)),
        "random.choice": (lambda k, x: random.choice(k, x, (1024,), replace=False), ("key", "f32[65536]")),
        "random.categorical": (lambda k, x: random.categorical(k, x), ("key", _S)),
        "random.gamma": (lambda k: random.gamma(k, 2.0, (4096,)), ("key",)),
        "random.beta": (lambda k: random.beta(k, 2.0, 3.0, (4096,)), ("key",)),
        "random.poisson": (lambda k: random.poisson(k, 4.0, (4096,)), ("key",)),
        "random.dirichlet": (lambda k, x: random.dirichlet(k, nn.softplus(x)), ("key", "f32[1024,8]")),
        "random.t": (lambda k: random.t(k, 3.0, (4096,)), ("key",)),
        "random.multivariate_normal": (
            lambda k, m: random.multivariate_normal(k, m, jnp.eye(16), (4096,)),
            ("key", "f32[16]"),
        ),
    }


def _scipy() -> dict[str, Case]:
    names = "erf erfinv expit logit gammaln digamma i0 i1 ndtr log_ndtr entr xlogy".split()
    two = ("xlogy",)
    cases: dict[str, Case] = {
        f"special.{name}": (getattr(special, name), (_S,) * (2 if name in two else 1)) for name in names
    }
    return cases | {
        "special.logsumexp": (lambda x: special.logsumexp(x, 0), (_S,)),
        "stats.norm.logpdf": (lambda x: stats.norm.logpdf(x).sum(), (_V,)),
        "stats.t.logpdf": (lambda x: stats.t.logpdf(x, 3.0), (_V,)),
        "signal.convolve2d": (lambda x, y: signal.convolve2d(x, y, "same"), ("f32[512,512]", "f32[7,7]")),
        "linalg.expm": (linalg.expm, ("f32[64,64]",)),
        "linalg.solve_triangular": (
            lambda a, b: linalg.solve_triangular(a + 64 * jnp.eye(256), b),
            ("f32[256,256]", "f32[256,16]"),
        ),
    }
