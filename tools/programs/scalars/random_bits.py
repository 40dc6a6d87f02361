"""Programs of random numbers: bit generators, and the distributions that JAX makes of them."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from xgpu.tools.programs.base import TestProgram


def _bits(state: Any, shape: tuple[int, ...], dtype: str, algorithm: lax.RandomAlgorithm) -> Any:
    generate: Callable[..., Any] = lax.rng_bit_generator
    with jax.enable_x64(True):
        return generate(state, shape, jnp.dtype(dtype), algorithm)


_THREE_FRY, _PHILOX, _DEFAULT = (
    lax.RandomAlgorithm.RNG_THREE_FRY,
    lax.RandomAlgorithm.RNG_PHILOX,
    lax.RandomAlgorithm.RNG_DEFAULT,
)

_FROM_STATE: dict[str, Callable[[Any], Any]] = {
    "three-fry": partial(_bits, shape=(31, 5), dtype="uint32", algorithm=_THREE_FRY),
    "three-fry-u8": partial(_bits, shape=(31, 5), dtype="uint8", algorithm=_THREE_FRY),
    "three-fry-u64": partial(_bits, shape=(31, 5), dtype="uint64", algorithm=_THREE_FRY),
    "philox": partial(_bits, shape=(31, 5), dtype="uint32", algorithm=_PHILOX),
    "philox-u16": partial(_bits, shape=(31, 5), dtype="uint16", algorithm=_PHILOX),
    "philox-u64": partial(_bits, shape=(31, 5), dtype="uint64", algorithm=_PHILOX),
    "default": partial(_bits, shape=(1001, 7), dtype="uint32", algorithm=_DEFAULT),
}

_FROM_KEY: dict[str, Callable[[Any], Any]] = {
    "bits": lambda key: jax.random.bits(key, (301,)),
    "split": lambda key: jax.random.split(key, 5),
    "fold-in": lambda key: jax.random.fold_in(key, 7),
    "uniform": lambda key: jax.random.uniform(key, (301,)),
    "uniform-bf16": lambda key: jax.random.uniform(key, (7, 31), jnp.bfloat16, -1, 3),
    "normal": lambda key: jax.random.normal(key, (301,)),
    "randint": lambda key: jax.random.randint(key, (301,), -5, 100),
    "bernoulli": lambda key: jax.random.bernoulli(key, 0.3, (301,)),
    "gumbel": lambda key: jax.random.gumbel(key, (301,)),
    "categorical": lambda key: jax.random.categorical(key, jnp.arange(12.0).reshape(3, 4)),
    "dropout": lambda key: jnp.where(jax.random.bernoulli(key, 0.8, (9, 33)), jnp.ones((9, 33)) / 0.8, 0.0),
}


def _state() -> list[np.ndarray[Any, Any]]:
    # The counter is about to carry into its upper half.
    return [np.array([0x01234567, 0x89ABCDEF, 2**32 - 3, 2**32 - 1], np.uint32)]


def _key() -> list[np.ndarray[Any, Any]]:
    return [np.array([0x01234567, 0x89ABCDEF], np.uint32)]


def programs() -> Iterator[TestProgram]:
    """Yield the programs, each with a fixed state or key."""
    for name, function in _FROM_STATE.items():
        yield TestProgram(name, function, ("u32[4]",), _state)
    for name, function in _FROM_KEY.items():
        yield TestProgram(name, function, ("u32[2]",), _key)
