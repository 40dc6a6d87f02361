"""``xgpu.jit`` in place of ``jax.jit``: what it accepts, shares, forgets, prints and logs is the same."""

import functools
import gc
import logging
import pickle
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import xgpu
from xgpu.interface import jit_lowering, jit_stages

BOTH: tuple[Callable[..., Any], ...] = (jax.jit, xgpu.jit)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that xgpu compiles during a test."""
    names: list[str] = []
    original = jit_lowering._compile

    def compile_and_note(*arguments: Any) -> Any:
        names.append(arguments[1])
        return original(*arguments)

    monkeypatch.setattr(jit_lowering, "_compile", compile_and_note)
    return names


def test_in_the_place_of_jax_jit(monkeypatch: pytest.MonkeyPatch, compilations: list[str]) -> None:
    monkeypatch.setattr(jax, "jit", xgpu.jit)
    monkeypatch.setattr(jax._src.api, "jit", xgpu.jit)
    x = jnp.arange(3.0)

    class Scale:
        def __init__(self, factor: float):
            self.factor = factor

        @functools.partial(jax.jit, static_argnums=0)
        def scaled(self, x: jax.Array) -> jax.Array:
            return x * self.factor

        def __call__(self, x: jax.Array) -> jax.Array:
            return x * self.factor

    scale = Scale(3.0)
    partial = functools.partial(jnp.multiply, 3.0)
    for function in (scale.scaled, jax.jit(scale), jax.jit(scale.scaled), jax.jit(partial)):
        np.testing.assert_array_equal(function(x), x * 3)
    assert len(compilations) >= 4
    compiled = xgpu.compile(lambda x: x + 1, x)
    np.testing.assert_array_equal(compiled(x), x + 1)


@pytest.mark.parametrize("given", [3, None, staticmethod(len), (i for i in range(2)), lambda: (yield)])
def test_what_is_no_function_is_refused_as_by_jax(given: Any) -> None:
    refusals = []
    for jit in BOTH:
        with pytest.raises(TypeError) as refusal:
            jit(given)
        refusals.append(str(refusal.value))
    assert refusals[0] == refusals[1]


def test_the_same_class_and_looks() -> None:
    def function(x: Any, *, times: int = 2) -> Any:
        """Multiply."""
        return x * times

    ours, theirs = (jit(function, static_argnames="times") for jit in BOTH)
    assert type(ours) is type(theirs)
    assert isinstance(ours, jax.stages.Wrapped)
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__wrapped__"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert type(ours.__name__) is str  # A wrapper that takes the name over is not one of ours.
    assert str(jax.make_jaxpr(ours)(1.0)) == str(jax.make_jaxpr(theirs)(1.0))


@pytest.mark.parametrize("inline", [False, True, jax.Inline.JAX_EARLY, jax.Inline.JAX_LATE])
def test_inlined_as_by_jax(inline: Any) -> None:
    x = jnp.arange(4.0)
    ours, theirs = (jit(lambda x: jnp.sin(x) * 2, inline=inline) for jit in BOTH)
    assert str(jax.make_jaxpr(lambda x: ours(x) + 1)(x)) == str(jax.make_jaxpr(lambda x: theirs(x) + 1)(x))
    np.testing.assert_allclose(jax.jit(lambda x: ours(x) + ours(x + 1))(x), theirs(x) + theirs(x + 1), rtol=1e-6)


def test_one_compiled_function_for_each_function_and_options(compilations: list[str]) -> None:
    traces = []

    def function(x: jax.Array) -> jax.Array:
        traces.append(1)
        return x * 2

    x = jnp.ones(3)
    for _ in range(3):
        xgpu.jit(function)(x)
    assert (len(traces), len(compilations)) == (1, 1)
    xgpu.jit(function, options=xgpu.Options(threads_per_block=64))(x)
    assert len(compilations) == 2


def test_clear_cache() -> None:
    traces = []

    def function(x: jax.Array) -> jax.Array:
        traces.append(1)
        return x + 1

    jitted = xgpu.jit(function)
    jitted(jnp.ones(3))
    jitted.clear_cache()
    jitted(jnp.ones(3))
    assert len(traces) == 2


@pytest.mark.usefixtures("own_garbage")
def test_nothing_is_left_of_a_function_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Any]] = []
    original = jit_lowering._compile

    def compile_and_note(*arguments: Any) -> Any:
        program = original(*arguments)
        made.append(weakref.ref(program))
        return program

    monkeypatch.setattr(jit_lowering, "_compile", compile_and_note)
    for number in range(4):
        xgpu.jit(lambda x, number=number: x * number)(jnp.ones(3))
    gc.collect()
    # JAX's own last lookups keep one or two.
    assert len(made) == 4
    assert sum(program() is not None for program in made) <= 2


@pytest.mark.usefixtures("own_garbage")
def test_it_keeps_its_function() -> None:
    shape_of = xgpu.jit(lambda x: x[:2]).eval_shape
    gc.collect()
    assert shape_of(jnp.ones(3)).shape == (2,)


def test_lowered_text_is_the_program() -> None:
    def function(x: jax.Array) -> jax.Array:
        checked = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
        return jax.lax.composite(lambda x: x + 1, "its.name")(jax.grad(lambda x: checked(x).sum())(x))

    ours, theirs = (jit(function).lower(jnp.ones(4)) for jit in BOTH)
    assert ours.as_text() == theirs.as_text()
    for word in ("optimization_barrier", "stablehlo.composite"):
        assert word in ours.as_text()
    np.testing.assert_allclose(ours.compile()(jnp.ones(4)), theirs.compile()(jnp.ones(4)), rtol=1e-6)


def test_what_is_exported_for_symbolic_shapes_is_as_by_jax() -> None:
    (size,) = jax.export.symbolic_shape("n")
    spec = jax.ShapeDtypeStruct((size, 3), jnp.float32)
    ours, theirs = (jax.export.export(jit(lambda x: jnp.sin(x) * 2))(spec).mlir_module() for jit in BOTH)
    assert ours == theirs


def test_ordered_effects(capfd: pytest.CaptureFixture[str]) -> None:
    def function(x: jax.Array) -> jax.Array:
        jax.debug.print("{}", x[0], ordered=True)
        jax.debug.print("{}", x[1], ordered=True)
        return jnp.sin(x) * 2

    x = jnp.arange(3.0)
    np.testing.assert_allclose(jax.jit(xgpu.jit(function))(x), jnp.sin(x) * 2, rtol=1e-6)
    xgpu.jit(function)(x)
    jax.effects_barrier()
    assert capfd.readouterr().out == "0.0\n1.0\n" * 2


def test_costs() -> None:
    ours, theirs = (jit(lambda x: jnp.sin(x) @ x).lower(jnp.ones((8, 8))) for jit in BOTH)
    assert ours.cost_analysis() == theirs.cost_analysis()
    costs = ours.compile().cost_analysis()
    assert costs == theirs.compile().cost_analysis()
    assert costs["flops"] > 8**3
    assert costs["bytes accessed"] > 0


def test_errors_show_the_users_lines() -> None:
    def wrong(x: jax.Array) -> jax.Array:
        return jnp.sin(x) + jnp.ones(5)

    shown = []
    for jit in BOTH:
        with pytest.raises(TypeError, match="incompatible shapes") as error:
            jit(wrong)(jnp.ones(4))
        shown.append([frame.name for frame in traceback.extract_tb(error.value.__traceback__)])
    assert shown[0] == shown[1]


def test_cache_misses_are_explained_as_by_jax(caplog: pytest.LogCaptureFixture) -> None:
    def explained(jit: Callable[..., Any]) -> list[str]:
        caplog.clear()
        function = jit(lambda x: x - 1)
        with jax.explain_cache_misses(True), caplog.at_level(logging.WARNING):
            function(np.ones(3, np.float32))
            function(np.ones(7, np.float32))
        return [record.getMessage().splitlines()[1] for record in caplog.records]

    theirs, ours = map(explained, BOTH)
    assert len(theirs) == len(ours) == 2


def test_what_jax_calls_is_pickled_with_its_function() -> None:
    marked = xgpu.jit(len)._fun  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(marked))
    assert again([1, 2]) == 2
    assert again.__name__.options == xgpu.Options()


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_meshes_of_one_device(kind: AxisType) -> None:
    mesh = jax.make_mesh((1,), ("x",), axis_types=(kind,))
    x = jax.device_put(jnp.arange(4.0), NamedSharding(mesh, P("x")))
    with jax.set_mesh(mesh):
        for function, options in (
            (lambda x: jnp.sin(x) * 2, {}),
            (lambda x: x * 2 + 1, {"out_shardings": P("x")}),
            (lambda x: jax.sharding.reshard(x * 2, P()) + 1, {}),
            (jax.grad(lambda x: jnp.sin(x).sum()), {}),
        ):
            if kind == AxisType.Auto and "reshard" in function.__code__.co_names:
                continue
            ours, theirs = (jit(function, **options)(x) for jit in BOTH)
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)
            assert ours.sharding == theirs.sharding


def wide_inside(x: jax.Array) -> jax.Array:
    """A function whose arguments and result are narrow."""
    with jax.enable_x64(True):
        y = jnp.sort(jnp.sin(x.astype(jnp.float64) * 1.1)) + 1e-9
        return (jnp.exp(y - x.astype(jnp.float64)) * (y @ y)).astype(jnp.float32)


def test_wide_values_inside_a_narrow_program() -> None:
    text = jax.jit(xgpu.jit(wide_inside)).trace(jnp.arange(40.0)).lower(lowering_platforms=("cuda",)).as_text()
    launches = [line for line in text.splitlines() if "xla.gpu.ptx" in line]
    assert launches
    assert all("tensor<40xf64>" in line for line in launches)


def test_options_for_xla_are_the_callers(monkeypatch):
    given = (("xla_gpu_graph_min_graph_size", 7), ("xla_gpu_autotune_level", 0))
    assert jit_stages._compiler_options(given) == given
    assert jit_stages._compiler_options(()) == ()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    graphs, estimator = ("xla_gpu_graph_min_graph_size", 2), "xla_gpu_enable_analytical_sol_latency_estimator"
    monkeypatch.setattr(jax, "device_count", lambda: 1)
    assert jit_stages._compiler_options(given) == (*given, (estimator, False))
    assert jit_stages._compiler_options(given[1:]) == (given[1], graphs, (estimator, False))
    assert jit_stages._compiler_options(((estimator, True),)) == ((estimator, True), graphs)
    monkeypatch.setattr(jax, "device_count", lambda: 2)
    assert jit_stages._compiler_options(given) == given
    assert jit_stages._compiler_options(()) == (graphs,)
