"""The models of examples/models, small: the same results as ``jax.jit`` on the CPU, most of each made by kernels."""

import importlib.util
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from xgpu.interface import jit_lowering
from xgpu.interface.explanation import explain
from xgpu.runtime.jax_backend import lower_program

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "models"

PROGRAMS = [
    ("gpt2", "train"),
    ("llama", "prefill"),
    ("llama", "decode"),
    ("resnet", "train"),
    ("graph", "train"),
    ("unet", "denoise"),
]
NARROW = [
    ("gpt2", "forward"),
    ("llama", "decode"),
    ("graph", "forward"),
    ("resnet", "forward"),
    *(pytest.param(*each, marks=pytest.mark.slow) for each in PROGRAMS if each != ("llama", "decode")),
]

# Sums of up to a few hundred f32 numbers in another order, through a dozen matrix products and their gradients.
TOLERANCE = 1e-5


@cache
def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def _example(model: str, program: str, dtype: Any) -> tuple[Callable[..., Any], Any]:
    """A program and its arguments. Always the same function, which XLA then compiles once for all tests."""
    function, arguments = _module(model).examples("tiny", dtype)[program]
    if program == "train" and model == "gpt2":
        # Adam divides a gradient that is zero but for rounding by its own magnitude, unless there were larger ones.
        (state, tokens) = arguments
        second = jax.tree.map(lambda p: jnp.full_like(p, 1e-4), state["second"])
        arguments = ({**state, "second": second}, tokens)
    return function, arguments


def _results(jitted: Callable[..., Any], arguments: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(jitted(*arguments))
    return {jax.tree_util.keystr(path): np.asarray(leaf).astype(np.float64) for path, leaf in leaves}


def _size(array: Any) -> float:
    return float(np.sqrt(np.mean(np.square(array))))


@pytest.fixture
def compiled(
    monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> Callable[[Callable[..., Any], Any], Callable[..., Any]]:
    """Compiles a function with xgpu, and reports how many kernels there are and which operations are left to XLA."""
    programs: list[Any] = []

    def lower(context: Any, program: Any, *arguments: Any) -> Any:
        programs.append(program)
        return lower_program(context, program, *arguments)

    monkeypatch.setattr(jit_lowering, "lower_program", lower)

    def compile_(function: Callable[..., Any], arguments: Any) -> Callable[..., Any]:
        result = xgpu.jit(function).lower(*arguments).compile()
        # A program that is left to XLA as a whole, for whatever reason, is never lowered.
        (program,) = programs
        report = explain(program)
        epilogue = "XLA computes it as part of the matrix product"
        left = Counter(each.operation for each in report.fallbacks if each.reason != epilogue)
        record_property("kernels", len(report.kernels))
        record_property("left", dict(left))
        assert len(report.kernels) > left.total()
        assert left.keys() <= {"stablehlo.dot_general", "stablehlo.convolution", "stablehlo.while"}
        return result

    return compile_


@pytest.mark.parametrize(("model", "program"), PROGRAMS)
@pytest.mark.filterwarnings("error")
def test_same_results_in_f32(model: str, program: str, compiled: Any) -> None:
    function, arguments = _example(model, program, jnp.float32)
    got = _results(compiled(function, arguments), arguments)
    expected = _results(jax.jit(function), arguments)
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, rtol=0, atol=TOLERANCE * np.abs(value).max(), err_msg=name)


@pytest.mark.parametrize(("model", "program"), NARROW)
@pytest.mark.filterwarnings("error")
def test_as_accurate_in_bf16(model: str, program: str, compiled: Any) -> None:
    """The error that bf16 adds to f32 results is at most twice XLA's, or half an ULP.

    XLA has to round where the program does, as kernels do: it may else keep f32 between operations, which gives sums
    of thousands of numbers that cancel, such as the gradient of a bias, ten times smaller errors.
    """
    function, arguments = _example(model, program, jnp.bfloat16)
    rounding = jax.jit(function, compiler_options={"xla_allow_excess_precision": False})
    got, theirs = (_results(jitted, arguments) for jitted in (compiled(function, arguments), rounding))
    wide = jax.tree.map(lambda x: x.astype(jnp.float32) if x.dtype == jnp.bfloat16 else x, arguments)
    exact = _results(jax.jit(_example(model, program, jnp.float32)[0]), wide)
    assert got.keys() == exact.keys()
    for name, value in exact.items():
        allowed = max(2 * _size(theirs[name] - value), 2**-9 * _size(value))
        assert _size(got[name] - value) <= allowed, name


def test_decoding_continues_a_prompt() -> None:
    """A token after a prompt gives what it gives as the prompt's last, with the cache updated in its own memory."""
    function, (parameters, cache_, prompt, start) = _example("llama", "prefill", jnp.float32)
    expected, whole = jax.jit(function)(parameters, cache_, prompt, start)
    _, before = jax.jit(function)(parameters, cache_, prompt[:, :-1], start)
    step = xgpu.jit(function, donate_argnums=1)
    got, after = step(parameters, before, prompt[:, -1:], start + prompt.shape[1] - 1)
    assert all(array.is_deleted() for array in jax.tree.leaves(before))
    np.testing.assert_allclose(got, expected[:, -1:], rtol=0, atol=TOLERANCE * np.abs(expected).max())
    for name, value in whole.items():
        np.testing.assert_allclose(after[name], value, rtol=0, atol=TOLERANCE * np.abs(value).max())
