"""A thread stores consecutive elements of a result by one access, however narrow what it reads is."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import xgpu
from xgpu.interface.explanation import explain
from xgpu.runtime.compare import compare


def _kept(x: Any, mask: Any) -> Any:
    kept = jnp.where(mask, x, 0)
    return kept, kept.sum(-1)


def _widened(x: Any) -> Any:
    wide = x.astype(jnp.float32) * 2
    return wide, wide.sum(-1)


def _columns(x: Any) -> Any:
    wide = x.astype(jnp.float32) * 2
    return wide, wide.sum(0)


CASES: dict[str, tuple[Callable[..., Any], tuple[str, ...], str, str]] = {
    "rows, masked": (_kept, ("f32[512,1024]", "pred[512,1024]"), "reduce_row", "vector"),
    "rows, widened": (_widened, ("bf16[512,1024]",), "reduce_row", "vector"),
    "rows of bytes": (_widened, ("s8[512,1024]",), "reduce_row", "vector"),
    "columns": (_columns, ("bf16[2048,1024]",), "reduce_column", "vector"),
    "softmax": (lambda x: jax.nn.softmax(x.astype(jnp.float32), -1), ("bf16[512,1024]",), "rows", "vector"),
    "counts": (lambda x: jnp.cumsum(x, 1), ("pred[512,1024]",), "scan_row", "vector"),
    "counts of columns": (lambda x: jnp.cumsum(x, 0), ("pred[512,1024]",), "scan_column", "vector"),
    "largest so far": (lambda x: lax.cummax(x.astype(jnp.float32), 1), ("bf16[512,1024]",), "scan_row", "vector"),
    "transposed": (lambda x: x.T.astype(jnp.float32), ("bf16[512,1024]",), "transpose", "width"),
    "transposed bytes": (lambda x, s: x.T.astype(jnp.float32) * s, ("s8[512,1024]", "f32[512]"), "transpose", "width"),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_stored_by_one_access(name: str) -> None:
    function, specs, emitter, number = CASES[name]
    program = xgpu.compile(function, *specs)
    # Sums of columns are split, and added up by a second kernel.
    kernel = next(each for each in explain(program).kernels if each.emitter == emitter)
    assert kernel.schedule[number] == 4, "16 bytes of f32 or s32"
    inputs = program.random_inputs()
    found, expected = program.run(*inputs), program.reference(*inputs)
    assert all(compare(*each).agrees for each in zip(found, expected, strict=True))


def test_what_is_read_alone_is_read_by_two_accesses() -> None:
    program = xgpu.compile(lambda x, y: (x.astype(jnp.float32) * y).sum(-1), "bf16[512,1024]", "f32[512,1024]")
    (kernel,) = explain(program).kernels
    assert kernel.schedule["vector"] == 8
