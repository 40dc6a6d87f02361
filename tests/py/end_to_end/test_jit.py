"""``xgpu.jit`` under JAX's transformations and ways of calling: the same results as ``jax.jit``, by our kernels."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.export
import jax.extend.core
import jax.interpreters.mlir
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import xgpu
from xgpu.interface import jit_lowering


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the functions that xgpu compiles during a test."""
    # A function that is compiled again is one that is compiled already.
    jax.clear_caches()
    names: list[str] = []
    original = jit_lowering._compile

    def compile_and_note(*arguments: Any) -> Any:
        result = original(*arguments)
        names.append(arguments[1])
        return result

    monkeypatch.setattr(jit_lowering, "_compile", compile_and_note)
    yield names


def loss(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.sum(jnp.tanh(x * y) ** 2)


def arguments() -> tuple[jax.Array, jax.Array]:
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((2, 5, 7), dtype=np.float32)
    return jnp.asarray(x), jnp.asarray(y)


TRANSFORMED: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "called": lambda f: f(*arguments()),
    "grad": lambda f: jax.grad(f)(*arguments()),
    "value-and-grad-of-both": lambda f: jax.value_and_grad(f, argnums=(0, 1))(*arguments()),
    "vjp": lambda f: jax.vjp(f, *arguments())[1](jnp.float32(2)),
    "jvp": lambda f: jax.jvp(f, arguments(), arguments()),
    "linearize": lambda f: jax.linearize(f, *arguments())[1](*arguments()),
    "hessian": lambda f: jax.hessian(f)(arguments()[0][0], arguments()[1][0]),
    "jacobians": lambda f: (jax.jacfwd(f)(*arguments()), jax.jacrev(f)(*arguments())),
    "vmap": lambda f: jax.vmap(f)(*arguments()),
    "vmap-of-one": lambda f: jax.vmap(f, in_axes=(0, None))(arguments()[0], arguments()[1][0]),
    "grad-of-vmap": lambda f: jax.grad(lambda x, y: jax.vmap(f)(x, y).sum())(*arguments()),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f))(*arguments()),
    "in-scan": lambda f: jax.lax.scan(lambda c, row: (c + f(c, row), f(row, c)), arguments()[0][0], arguments()[1]),
    "in-while": lambda f: jax.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + f(c[1], c[1])), (0, arguments()[0])
    ),
    "in-cond": lambda f: jax.lax.cond(True, f, lambda x, y: x[0, 0], *arguments()),
    "in-jit": lambda f: jax.jit(lambda x, y: f(x, y) * 2)(*arguments()),
    "ahead-of-time": lambda f: f.lower(*arguments()).compile()(*arguments()),
    "shapes": lambda f: jax.eval_shape(f, *arguments()),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformed_as_by_jax(name: str, compiled: list[str]) -> None:
    got, expected = TRANSFORMED[name](xgpu.jit(loss)), TRANSFORMED[name](jax.jit(loss))
    assert bool(compiled) == (name != "shapes")
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for ours, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        if name != "shapes":
            # Sums are in another order, and tanh's derivative takes the difference of nearly equal numbers.
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)


def test_gradient_inside(compiled: list[str]) -> None:
    x, y = arguments()
    np.testing.assert_allclose(xgpu.jit(jax.grad(loss))(x, y), jax.grad(loss)(x, y), rtol=2e-5, atol=2e-6)
    assert len(compiled) == 1


def test_custom_derivatives_are_kept(compiled: list[str]) -> None:
    @jax.custom_jvp
    def function(x: jax.Array) -> jax.Array:
        return x * 2

    function.defjvp(lambda primals, tangents: (function(*primals), tangents[0] * 100))
    assert jax.grad(xgpu.jit(function))(1.0) == 100
    assert xgpu.jit(jax.grad(function))(1.0) == 100
    assert compiled


def test_one_inside_another_is_compiled_as_a_part_of_it(compiled: list[str]) -> None:
    inner = xgpu.jit(lambda x: x + 1)
    assert xgpu.jit(lambda x: inner(x) * inner(x))(2.0) == 9
    assert len(compiled) == 1


def test_what_cannot_be_compiled_is_left_to_xla(compiled: list[str]) -> None:
    def function(x: jax.Array) -> jax.Array:
        jax.debug.callback(lambda _: None, x[0], ordered=True)
        return x + 1

    x, _ = arguments()
    np.testing.assert_array_equal(xgpu.jit(function)(x), jax.jit(function)(x))
    assert not compiled


def test_donated_arguments_are_given_up() -> None:
    x, y = jnp.ones((64,)), jnp.ones((64,))
    result = xgpu.jit(lambda a, b: a + b, donate_argnums=0)(x, y)
    np.testing.assert_array_equal(result, 2)
    assert x.is_deleted()
    assert not y.is_deleted()


def test_trees_defaults_and_static_arguments() -> None:
    @xgpu.jit(static_argnames="power")
    def function(tree: dict[str, jax.Array], scale: float = 3.0, *, power: int = 2) -> tuple[Any, ...]:
        return tree["a"] ** power * scale, {"b": [tree["b"]]}

    a, b = jnp.arange(3.0), jnp.ones((2, 2))
    assert jax.tree.map(jnp.shape, function({"a": a, "b": b})) == ((3,), {"b": [(2, 2)]})
    np.testing.assert_array_equal(function({"a": a, "b": b}, 2.0, power=3)[0], a**3 * 2)


def test_methods() -> None:
    class Scaling:
        factor = 3.0

        @xgpu.jit(static_argnums=0)
        def scaled(self, x: jax.Array) -> jax.Array:
            return x * self.factor

    x, _ = arguments()
    np.testing.assert_array_equal(Scaling().scaled(x), x * 3)


def test_copies() -> None:
    x, y = arguments()
    function = copy.deepcopy(copy.copy(xgpu.jit(loss)))
    np.testing.assert_array_equal(function(x, y), xgpu.jit(loss)(x, y))


def test_exported() -> None:
    launch = "__gpu$xla.gpu.ptx"
    # JAX wants to be told of calls whose meaning may change with its version.
    checks = [jax.export.DisabledSafetyCheck.custom_call(launch)]
    exported = jax.export.export(xgpu.jit(loss), platforms=("cuda",), disabled_checks=checks)(*arguments())
    assert launch in str(exported.mlir_module())


def test_in_a_shard_map_over_some_axes_it_is_left_to_xla(compiled: list[str]) -> None:
    x, y = arguments()
    mesh = jax.make_mesh((1, 1), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    for axes in ({"a", "b"}, {"a"}):
        compiled.clear()
        function = jax.shard_map(
            xgpu.jit(loss), mesh=mesh, in_specs=P("a"), out_specs=P(), axis_names=axes, check_vma=False
        )
        np.testing.assert_allclose(jax.jit(function)(x, y), loss(x, y), rtol=1e-6)
        assert len(compiled) == (len(axes) == 2)


def test_one_inside_a_compiled_program_is_a_part_of_it() -> None:
    x, y = arguments()
    program = xgpu.compile(lambda x, y: xgpu.jit(jnp.tanh)(x) * y, x, y)
    assert len(program.kernels) == 1
    np.testing.assert_allclose(program.run(x, y)[0], np.tanh(x) * y, rtol=1e-6)


def test_several_in_a_program_have_results_of_their_own() -> None:
    @xgpu.jit
    def pair(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.sin(x), x.sum()

    @xgpu.jit
    def row(x: jax.Array) -> jax.Array:
        return jnp.cos(x)[0]

    def both(x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        return row(x), *pair(x * 2)

    x = jnp.arange(35, dtype=jnp.float32).reshape(5, 7)
    for found, wanted in zip(jax.jit(both)(x), both(x), strict=True):
        np.testing.assert_array_equal(found, wanted)
    gradient = jax.grad(lambda x: pair(x)[0].sum() + row(x).sum())
    np.testing.assert_allclose(jax.jit(gradient)(x), gradient(x), rtol=1e-6)


@pytest.mark.parametrize("caller", [jax.jit, xgpu.jit])
def test_what_elements_are_combined_by_is_left_to_jax(caller: Callable[..., Any]) -> None:
    """XLA ends the process where it meets a kernel in a reduction's region."""
    add = xgpu.jit(lambda a, b: a + b)

    def around(a: jax.Array, b: jax.Array) -> Any:
        return add(a, b) * 1

    def function(x: jax.Array) -> Any:
        zero = np.float32(0)
        windows = jax.lax.reduce_window(x, zero, add, (2, 2), (1, 1), "VALID")
        rows = jax.lax.map(xgpu.jit(jnp.sum), x)
        return add(rows[0], rows[1]), jax.lax.reduce(x, zero, jax.jit(around), (0,)), windows, add(x[0, 1], x[1, 0])

    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    first, sums, windows, last = caller(function)(x)
    assert (first, last) == (x[:2].sum(), 8)
    np.testing.assert_array_equal(sums, x.sum(0))
    np.testing.assert_array_equal(windows, x[1:, 1:] + x[:-1, 1:] + x[1:, :-1] + x[:-1, :-1])


def test_explained_with_static_arguments() -> None:
    def function(x: jax.Array, times: int, mode: str = "add") -> Any:
        return [x * i for i in range(times)] if mode == "scale" else x + times

    x, _ = arguments()
    for static in ({"static_argnames": ("times", "mode")}, {"static_argnums": (1, 2)}, {"static_argnums": (-1, 1)}):
        assert len(xgpu.jit(function, **static).explain(x, 2, "scale").kernels) == 1
    by_name = xgpu.jit(function, static_argnums=None, static_argnames="mode")
    assert len(by_name.explain(x, 2, mode="add").kernels) == 1


def test_options_belong_to_the_function() -> None:
    x = jnp.zeros((1000,))
    for threads in (64, 256):
        function = xgpu.jit(lambda x: x + 1, options=xgpu.Options(threads_per_block=threads))
        text = jax.jit(function).trace(x).lower(lowering_platforms=("cuda",)).as_text()
        assert f"block_x = {threads}" in text


def test_callbacks_are_left_to_jax() -> None:
    """Programs that `xgpu.compile` refuses, with `xgpu.jit` as the way out."""
    printed: list[Any] = []

    @xgpu.jit
    def function(x: Any) -> Any:
        jax.debug.callback(printed.append, x[1])
        return jax.pure_callback(np.sin, x, x * 2) + 1

    x = np.arange(4, dtype=np.float32)
    np.testing.assert_allclose(function(x), np.sin(x * 2) + 1, rtol=1e-6)
    jax.effects_barrier()
    assert printed == [1]


def test_jax_lowers_a_function_once() -> None:
    """What JAX makes a function of, only to have its body replaced, is not the program."""
    counted = jax.extend.core.Primitive("counted")
    counted.def_abstract_eval(lambda x: x)
    lowered: list[str] = []

    def lower(context: Any, x: Any) -> Any:
        lowered.append(x)
        return [jax.interpreters.mlir.ir.Value(x)]

    jax.interpreters.mlir.register_lowering(counted, lower)
    jitted = xgpu.jit(lambda x: counted.bind(x + 1) * 2)
    np.testing.assert_array_equal(jitted(jnp.arange(3.0)), [2, 4, 6])
    assert len(lowered) == 1


def test_constants_and_results_that_are_no_values_of_operations() -> None:
    """JAX hands constants on as arguments of the function; results may be arguments, literals, and twice the same."""
    table = np.arange(4000, dtype=np.float32)

    def function(x: jax.Array, key: jax.Array) -> Any:
        total = x + table + np.flip(table)
        return x, 3.0, total, total, table, jax.random.split(key)

    given = jnp.ones(4000), jax.random.key(3)
    found, expected = (jax.tree.leaves(jitter(function)(*given)) for jitter in (xgpu.jit, jax.jit))
    for ours, theirs in zip(found, expected, strict=True):
        if jnp.issubdtype(ours.dtype, jax.dtypes.prng_key):
            ours, theirs = jax.random.key_data(ours), jax.random.key_data(theirs)
        np.testing.assert_array_equal(ours, theirs)
