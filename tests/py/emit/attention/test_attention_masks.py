"""Masks of attention in the forms that programs have them: steps that they hide are left out."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu

from .attentions import compiled_gradients, gradients_are_right, is_right

_ROWS = 200
_SPECS = [f"bf16[1,{_ROWS},4,64]"] * 3
_ROW = np.arange(_ROWS)[:, None]
_KEY = np.arange(_ROWS)[None, :]
_CAUSAL = _KEY <= _ROW


def _attention(masked: Callable[[Any], Any]) -> Callable[..., Any]:
    def function(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(masked(s), axis=-1).astype(q.dtype), v)

    return function


def _behind() -> Any:
    shape = (_ROWS, _ROWS)
    return jax.lax.broadcasted_iota(jnp.int32, shape, 1) - jax.lax.broadcasted_iota(jnp.int32, shape, 0)


def _first() -> Any:
    return jax.lax.broadcasted_iota(jnp.int32, (_ROWS, _ROWS), 1) < 4


def _between(behind: Any, first: int, last: int) -> Any:
    return (behind >= first) & (behind <= last)


@pytest.mark.parametrize(
    ("masked", "seen"),
    [
        (lambda s: jnp.where(_behind() > 0, -jnp.inf, s), _CAUSAL),
        (lambda s: jnp.where((_behind() > 0) | (_behind() < -70), -jnp.inf, s), _CAUSAL & (_ROW - _KEY <= 70)),
        (lambda s: jnp.where(~(_behind() > 0), s, -jnp.inf), _CAUSAL),
        (lambda s: jnp.where(_CAUSAL, s, -jnp.inf), _CAUSAL),
        (lambda s: jnp.where(~_CAUSAL, -jnp.inf, s), _CAUSAL),
        (lambda s: jnp.where(np.abs(_ROW - _KEY) < 40, s, -1e30), np.abs(_ROW - _KEY) < 40),
        (lambda s: jnp.where(jnp.tril(jnp.ones(_CAUSAL.shape)) == 0, -jnp.inf, s), _CAUSAL),
        (lambda s: s + jnp.where(_behind() > 0, -jnp.inf, 0.0), _CAUSAL),
        (lambda s: s + jnp.where(_CAUSAL, 0.0, -jnp.inf), _CAUSAL),
        (
            lambda s: jnp.where(_between(_behind(), -40, 0) | (_first() & (_behind() <= 0)), s, -jnp.inf),
            _between(_KEY - _ROW, -40, 0) | (_CAUSAL & (_KEY < 4)),
        ),
        (
            lambda s: jnp.where(_between(_behind(), -60, -30) | _between(_behind(), -20, 5), s, -1e30),
            _between(_KEY - _ROW, -60, -30) | _between(_KEY - _ROW, -20, 5),
        ),
    ],
    ids=(
        *("hidden", "window", "not", "constant", "not constant", "band", "numbers", "sum", "sum of constants"),
        *("either", "two windows"),
    ),
)
def test_hidden_steps_are_left_out(masked: Callable[[Any], Any], seen: np.ndarray[Any, Any]) -> None:
    options = xgpu.Options(attention_parts=1)
    program = xgpu.compile(_attention(masked), *_SPECS, options=options)
    assert [kernel.emitter for kernel in program.kernels] == ["attention"]
    assert "xgpu.visible" in program.ir("tiles")
    is_right(program, program.random_inputs(1), seen)


@pytest.mark.parametrize(
    "masked",
    [
        lambda s: jnp.where(_behind() > 0, -jnp.inf, s),
        lambda s: jnp.where(~_CAUSAL, -jnp.inf, s),
        lambda s: s + jnp.where(_CAUSAL, 0.0, -jnp.inf),
    ],
    ids=("hidden", "not constant", "sum of constants"),
)
def test_gradients_leave_out_hidden_steps(masked: Callable[[Any], Any]) -> None:
    program = compiled_gradients(_attention(masked), *[f"bf16[1,{_ROWS},2,64]"] * 4)
    assert program.ir("tiles").count("xgpu.visible") == 3
    gradients_are_right(program, program.random_inputs(3), _CAUSAL)


def test_constants_that_are_no_bands_are_read() -> None:
    mask = _CAUSAL & (_KEY % 5 > 0)
    mask[:, 0] = True
    program = xgpu.compile(
        _attention(lambda s: jnp.where(mask, s, -jnp.inf)), *_SPECS, options=xgpu.Options(attention_parts=1)
    )
    assert not re.search(r"xgpu\.visible", program.ir("tiles") if len(program.kernels) == 1 else "")
    found, expected = program.run(*program.random_inputs(2)), program.reference(*program.random_inputs(2))
    np.testing.assert_allclose(*(np.asarray(each[0], np.float32) for each in (found, expected)), atol=0.02)
