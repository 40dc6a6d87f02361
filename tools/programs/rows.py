"""Row programs: softmax, norms and their like, whose reductions of the same rows need each other's results."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from xgpu.tools.programs.base import FLOATS, Array, TestProgram


def _in_f32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of narrow arrays that computes in f32 and rounds its result."""
    return lambda x, *others: function(x.astype(jnp.float32), *others).astype(x.dtype)


def _layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred * centred, -1, keepdims=True) + 1e-5) * scale + bias


def _rms_norm(x: Any, scale: Any) -> Any:
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale


def _causal(x: Any) -> Any:
    return jax.nn.softmax(jnp.where(jnp.tri(x.shape[1], x.shape[2], dtype=bool), x, -jnp.inf))


def _gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of a result's gradient and the arguments that makes the gradients of all arguments."""
    return lambda y, *arguments: jax.vjp(function, *arguments)[1](y)


def _variance(x: Any) -> tuple[Any, Any]:
    deviation = jnp.sqrt(jnp.var(x, 1, keepdims=True))
    return x / deviation, deviation


def _integers(x: Any) -> Any:
    below = x - jnp.max(x, 1, keepdims=True)
    return below // (1 + jnp.sum(below & 15, 1, keepdims=True))


def _complex(x: Any) -> Any:
    centred = x - jnp.mean(x, 1, keepdims=True)
    return centred / jnp.sqrt(jnp.sum(jnp.square(jnp.abs(centred)), 1, keepdims=True))


def _chain(x: Any) -> Any:
    """Five reductions, each of what the one before gives."""
    for reduce in (jnp.max, jnp.sum, jnp.min, jnp.mean, jnp.max):
        x = jnp.abs(x - reduce(x, 1, keepdims=True))
    return x


def _statistics(x: Any) -> tuple[Any, Any, Any]:
    largest = jnp.max(x, 1)
    powers = jnp.exp(x - largest[:, None])
    total = jnp.sum(powers, 1)
    return powers / total[:, None], largest + jnp.log(total), largest


def _residual(x: Any, y: Any, scale: Any) -> tuple[Any, Any]:
    total = x + y
    return total, _rms_norm(total, scale)


def _by_labels(x: Any, labels: Any) -> Any:
    return jax.nn.softmax(x) - jax.nn.one_hot(labels, x.shape[1])


def _cross_entropy(x: Any, labels: Any) -> Any:
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], 1))


def _modulated(x: Any, conditions: Any) -> Any:
    """A norm whose scale and bias are computed beside it, by other reductions."""
    scale, bias = jnp.tanh(jnp.sum(conditions, 1)), jnp.max(conditions, 1)
    return _layer_norm(x, 1 + scale, bias)


def _two_dimensions(x: Any) -> Any:
    largest = jnp.max(x, (1, 2), keepdims=True)
    return (x - largest) / jnp.sum(jnp.abs(x - largest), (1, 2), keepdims=True)


def _group_norm(groups: int, first: bool) -> Callable[[Any, Any, Any], Any]:
    """Return the norm of groups of channels, which come first after the batch, or last."""

    def norm(x: Any, scale: Any, bias: Any) -> Any:
        if first:
            grouped, weights = x.reshape(x.shape[0], groups, -1), (-1, *[1] * (x.ndim - 2))
        else:
            grouped, weights = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups), (-1,)
        axes = (2,) if first else (1, 3)
        centred = grouped - jnp.mean(grouped, axes, keepdims=True)
        normal = centred * jax.lax.rsqrt(jnp.mean(centred * centred, axes, keepdims=True) + 1e-5)
        return normal.reshape(x.shape) * scale.reshape(weights) + bias.reshape(weights)

    return norm


def _flattened_tokens(x: Any, y: Any, scale: Any) -> tuple[Any, Any]:
    normal = _rms_norm(x.reshape(-1, x.shape[-1]), scale)
    return normal.reshape(x.shape) + y, normal


def _joined_tokens(first: Any, others: Any, positions: Any) -> tuple[Any, Any]:
    """As in a vision transformer: a token put before those of the image, then the first norm."""
    total = jnp.concatenate([first, others], 1) + positions
    return total, _rms_norm(total.astype(jnp.float32), jnp.float32(2)).astype(total.dtype)


def _held(x: Any) -> Any:
    """The softmax of rows of four, of as many of the numbers as there are."""
    return jax.nn.softmax(x[:, :64].reshape(-1, 16, 4))


def _special_rows() -> Sequence[Array]:
    """Rows of ordinary numbers with one of another kind here and there, and rows of nothing else."""
    x = np.random.default_rng(2).standard_normal((24, 67)).astype(np.float32)
    special = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 0.0], np.float32)
    x[np.arange(12), np.arange(12) * 5] = np.tile(special, 2)
    x[12:18] = special[:, None]
    x[18, 3:5] = np.inf, -np.inf
    return [x]


_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    **{f"softmax-{dtype}": (jax.nn.softmax, (f"{dtype}[17,132]",)) for dtype in FLOATS},
    "softmax-of-bf16-in-f32": (_in_f32(jax.nn.softmax), ("bf16[33,1024]",)),
    "softmax-of-s4": (lambda x: jax.nn.softmax(x.astype(jnp.float32)), ("s4[9,130]",)),
    "log-softmax": (jax.nn.log_softmax, ("f32[17,130]",)),
    "causal": (_causal, ("f32[3,65,65]",)),
    "argmax-and-softmax": (lambda x: (jnp.argmax(x, 1), jax.nn.softmax(x)), ("f32[33,129]",)),
    "is-largest": (lambda x: x == jnp.max(x, 1, keepdims=True), ("bf16[33,129]",)),
    "layer-norm": (_layer_norm, ("f32[17,768]", "f32[768]", "f32[768]")),
    "layer-norm-bf16": (_in_f32(_layer_norm), ("bf16[9,520]", "bf16[520]", "bf16[520]")),
    "rms-norm": (_rms_norm, ("f32[17,257]", "f32[257]")),
    "rms-norm-f16": (_in_f32(_rms_norm), ("f16[17,256]", "f16[256]")),
    "gradient-of-softmax": (_gradient(jax.nn.softmax), ("f32[17,132]", "f32[17,132]")),
    "gradient-of-layer-norm": (_gradient(_layer_norm), ("f32[9,100]", "f32[9,100]", "f32[100]", "f32[100]")),
    "variance": (_variance, ("f32[9,515]",)),
    "integers": (_integers, ("s32[33,65]",)),
    "integers-u8": (lambda x: jnp.max(x, 1, keepdims=True) - x, ("u8[5,1023]",)),
    "complex": (_complex, ("c64[9,33]",)),
    "short-rows": (jax.nn.softmax, ("f32[301,9]",)),
    "odd-rows": (jax.nn.softmax, ("f32[5,1001]",)),
    "odd-rows-bf16": (_in_f32(jax.nn.softmax), ("bf16[3,1001]",)),
    "odd-rows-of-aligned": (lambda x: _in_f32(jax.nn.softmax)(x[:, :-7]), ("bf16[3,1008]",)),
    "long-rows": (jax.nn.softmax, ("f32[3,16384]",)),
    "chain-of-five": (_chain, ("f32[5,260]",)),
    "statistics": (_statistics, ("f32[33,100]",)),
    "residual": (_residual, ("bf16[9,264]", "bf16[9,264]", "bf16[264]")),
    "labels": (_by_labels, ("f32[9,100]", "s32[9]")),
    "group-norm": (_group_norm(4, first=True), ("f32[3,12,5,7]", "f32[12]", "f32[12]")),
    "group-norm-bf16": (_in_f32(_group_norm(2, first=True)), ("bf16[3,4,8,8]", "bf16[4]", "bf16[4]")),
    "group-norm-of-last-channels": (_group_norm(4, first=False), ("f32[3,6,8,16]", "f32[16]", "f32[16]")),
    "flattened-tokens": (_flattened_tokens, ("f32[3,11,68]", "f32[3,11,68]", "f32[68]")),
    "joined-tokens": (_joined_tokens, ("f32[3,1,68]", "f32[3,7,68]", "f32[8,68]")),
    "joined-tokens-bf16": (_joined_tokens, ("bf16[2,1,264]", "bf16[2,6,264]", "bf16[7,264]")),
    "joined-odd-rows": (lambda x, y: jax.nn.softmax(jnp.concatenate([x, y])), ("f32[5,33]", "f32[4,33]")),
    "two-kept-dimensions": (jax.nn.softmax, ("f32[5,7,33]",)),
    "kept-dimensions-of-one": (lambda x: jax.nn.softmax(x, 3), ("f32[1,6,1,65]",)),
    "one-row": (_layer_norm, ("f32[1,1025]", "f32[1025]", "f32[1025]")),
    "minus-columns": (lambda x: jax.nn.softmax(x) - jnp.mean(x, 0), ("f32[33,132]",)),
    "of-columns": (lambda x: jax.nn.softmax(x, 1), ("f32[3,64,99]",)),
    "of-columns-bf16": (_in_f32(lambda x: jax.nn.softmax(x, 1)), ("bf16[2,43,35]",)),
    "of-longest-columns": (lambda x: jax.nn.softmax(x, 1), ("f32[2,512,40]",)),
    "of-columns-variance": (lambda x: x.var(0), ("f32[16,300]",)),
    "minus-mean-of-all": (lambda x: jax.nn.softmax(x) - jnp.mean(x), ("f32[33,132]",)),
    "modulated": (_modulated, ("f32[9,68]", "f32[68,31]")),
    "gradient-of-cross-entropy": (jax.grad(_cross_entropy), ("f32[33,100]", "s32[33]")),
    "held-rows-of-2": (lambda x: jax.nn.softmax(jnp.sin(x)), ("f32[257,2]",)),
    "held-rows-of-3": (_layer_norm, ("f32[101,3]", "f32[3]", "f32[3]")),
    "held-rows-of-4": (jax.nn.softmax, ("f32[301,4]",)),
    "held-rows-of-8": (lambda x: (jnp.sum(x * x, 1), jnp.max(x, 1)), ("f32[301,8]",)),
    "held-rows-bf16": (_in_f32(jax.nn.softmax), ("bf16[77,8]",)),
    "held-row": (jax.nn.softmax, ("f32[1,8]",)),
    "held-rows-reshaped": (lambda x: jax.nn.softmax(x).reshape(7, -1, 5), ("f32[5,7,11,5]",)),
    "held-rows-gradient": (_gradient(jax.nn.softmax), ("f32[65,3]", "f32[65,3]")),
    "held-columns": (lambda x: jax.nn.softmax(x, 1), ("f32[3,4,99]",)),
    "held-columns-bf16": (_in_f32(lambda x: jax.nn.log_softmax(x, 1)), ("bf16[2,7,35]",)),
    "held-columns-variance": (lambda x: x.var(1), ("f32[5,6,70]",)),
    "held-columns-logsumexp": (lambda x: jax.nn.logsumexp(jnp.sin(x), 1), ("f32[5,4,70]",)),
    "two-reduced-dimensions": (_two_dimensions, ("f32[7,5,33]",)),
}


def programs() -> Iterator[TestProgram]:
    """Yield the programs."""
    for name, (function, specs) in _PROGRAMS.items():
        yield TestProgram(name, function, specs)
    yield TestProgram("special-values", jax.nn.softmax, ("f32[24,67]",), _special_rows)
    yield TestProgram("special-values-held", _held, ("f32[24,67]",), _special_rows)
    yield TestProgram("special-values-norm", lambda x: _rms_norm(x, 2.0), ("f32[24,67]",), _special_rows)
