import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import checkify, io_callback
from jax.extend.core import Primitive
from jax.interpreters import mlir

from xgpu.errors import InvalidInput, Unsupported
from xgpu.frontend.jax_function import from_jax
from xgpu.hlo.source_location import source_of
from xgpu.runtime.reference import Reference


def specs(items):
    return [str(item) for item in items]


def affine(x, y, *, scale):
    return {"sum": x["a"] * scale + y, "kept": x["b"]}


def test_trees_scalars_keywords_and_unused_arguments():
    def program(x, y, unused, *, scale):
        return affine(x, y, scale=scale)

    arguments = ({"a": "f32[4]", "b": np.ones((2, 2), np.int8)}, 1.5, jax.ShapeDtypeStruct((3,), jnp.bfloat16))
    source = from_jax(program, arguments, {"scale": jnp.float32(2)})
    assert source.name == "program"
    assert specs(source.arguments) == [
        "x['a']: f32[4]",
        "x['b']: s8[2,2]",
        "y: f32[]",
        "unused: bf16[3]",
        "scale: f32[]",
    ]
    assert specs(source.results) == ["result['kept']: s8[2,2]", "result['sum']: f32[4]"]
    leaves, tree = jax.tree.flatten((({"a": 0, "b": 1}, 2, 3), {"scale": 4}))
    assert source.in_tree == tree
    assert jax.tree.unflatten(source.out_tree, ["kept", "sum"]) == {"kept": "kept", "sum": "sum"}
    x = np.arange(4, dtype=np.float32)
    values = [x, np.ones((2, 2), np.int8), np.float32(1.5), np.zeros(3, jnp.bfloat16), np.float32(2)]
    np.testing.assert_array_equal(Reference(source.module)(values)[1], x * 2 + 1.5)
    assert len(leaves) == len(source.arguments)


def test_weak_types_stay_weak():
    source = from_jax(lambda x, s: x * s, ["bf16[4]", 2.0])
    assert specs(source.results) == ["result: bf16[4]"]


@pytest.mark.parametrize("name", ["f64", "s64", "u64"])
def test_specifications_of_64_bits_are_not_narrowed(name):
    source = from_jax(lambda x: x + x, [f"{name}[3]"])
    assert specs(source.results) == [f"result: {name}[3]"]
    assert not jax.config.jax_enable_x64


def test_arrays_of_64_bits_are_what_jax_makes_of_them():
    assert specs(from_jax(lambda x: x + x, [np.ones(3)]).arguments) == ["x: f32[3]"]


@pytest.mark.parametrize(
    "name", ["pred", "s8", "u8", "s16", "u16", "s32", "u32", "f16", "bf16", "f32", "f8e4m3fn", "c64"]
)
def test_element_types(name):
    source = from_jax(lambda x: x.reshape(2, 3), [f"{name}[6]"])
    assert specs(source.arguments) == [f"x: {name}[6]"]
    assert specs(source.results) == [f"result: {name}[2,3]"]


def test_static_arguments():
    def program(x, times, mode):
        return x * times if mode == "scale" else x

    source = from_jax(program, ["f32[2]", 3, "scale"], static_argnums=(1, -1))
    assert specs(source.arguments) == ["x: f32[2]"]
    source = from_jax(program, ["f32[2]"], {"times": 3, "mode": "none"}, static_argnames=("times", "mode"))
    assert specs(source.arguments) == ["x: f32[2]"]


def test_callables_of_every_kind():
    class Model:
        def __call__(self, x):
            return x * 2

    for function in (Model(), functools.partial(jnp.multiply, 2), jax.jit(jnp.abs), jax.vmap(jnp.sin)):
        assert specs(from_jax(function, ["f32[2]"]).results) == ["result: f32[2]"]


def test_gradients_and_custom_derivatives():
    def loss(x):
        return jax.nn.logsumexp(jax.nn.silu(x))

    source = from_jax(jax.grad(loss), ["f32[5]"])
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    np.testing.assert_allclose(Reference(source.module)([x])[0], jax.grad(loss)(x), rtol=1e-5)


def test_operations_know_the_users_line():
    def helper(x):
        return jnp.tanh(x)

    def program(x):
        y = jnp.exp(x)
        return helper(y)

    source = from_jax(program, ["f32[2]"])
    operations = source.module.body.operations[0].regions[0].blocks[0].operations
    found = {op.operation.name: source_of(op) for op in operations}
    exponential, tanh = found["stablehlo.exponential"], found["stablehlo.tanh"]
    assert (exponential.file, exponential.line) == (__file__, program.__code__.co_firstlineno + 1)
    assert (tanh.file, tanh.line) == (__file__, helper.__code__.co_firstlineno + 1)
    # The column is that of the call, counted from 1.
    assert tanh.column == len("        return ") + 1


def failing(x):
    return inner(x)


def inner(x):
    return x + jnp.ones((3,))


def test_an_exception_while_tracing_is_at_the_users_innermost_line():
    with pytest.raises(InvalidInput) as caught:
        from_jax(failing, ["f32[8]"])
    error = caught.value
    assert (error.location.file, error.location.line) == (__file__, inner.__code__.co_firstlineno + 1)
    assert error.message == (
        "tracing failing failed: TypeError: add got incompatible shapes for broadcasting: (8,), (3,)."
    )


def test_advice_is_left_out_of_messages():
    def program(x):
        return x if x > 0 else -x

    with pytest.raises(InvalidInput) as caught:
        from_jax(program, ["f32[]"])
    assert "TracerBoolConversionError: Attempted boolean conversion of traced array" in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.location.line == program.__code__.co_firstlineno + 1


@pytest.mark.parametrize("raised", [SystemExit(3), RecursionError(), ValueError("")])
def test_any_exception_is_reported(raised):
    def program(x):
        raise raised

    with pytest.raises(InvalidInput, match=f"tracing program failed: {type(raised).__name__}"):
        from_jax(program, ["f32[]"])


def test_keyboard_interrupts_are_not_swallowed():
    def program(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        from_jax(program, ["f32[]"])


def test_a_wrong_argument_is_reported():
    with pytest.raises(InvalidInput, match="unknown element type 'f31'"):
        from_jax(lambda x: x, ["f31[2]"])


@pytest.mark.parametrize("value", [object(), np.array(["a"]), np.array([object()]), np.array(["2020"], "M8[Y]")])
def test_what_is_no_array_is_named_with_its_place(value):
    """Also in a tree; what it says does not depend on how JAX calls it."""
    expected = r"expected an array, a number or a specification such as f32\[8\], got "
    for arguments, keywords, place in (
        ([value], {}, "0"),
        (["f32[2]", {"a": [1, value]}], {}, r"1\['a'\]\[1\]"),
        (["f32[2]"], {"y": (value,)}, r"'y'\[0\]"),
    ):
        with pytest.raises(InvalidInput, match=rf"<lambda>, argument {place}: {expected}.* of type "):
            from_jax(lambda x, y=None: x, arguments, keywords)


def test_a_number_that_no_type_holds():
    with pytest.raises(InvalidInput, match=r"<lambda>, argument 0: .* too large to convert to int32"):
        from_jax(lambda x: x, [2**40])


@pytest.mark.parametrize("returned", ["s", object()])
def test_what_is_refused_after_a_functions_last_line_is_at_its_first(returned):
    def program(x):
        return returned

    with pytest.raises(InvalidInput, match=r"tracing program failed: TypeError: .*not a valid JAX type") as caught:
        from_jax(program, ["f32[2]"])
    location = caught.value.location
    assert (location.file, location.line) == (__file__, program.__code__.co_firstlineno)


def sine(x):
    return jax.pure_callback(np.sin, x, x)


def print_and_return(x):
    jax.debug.print("{}", x)
    return x


@pytest.mark.parametrize(
    ("function", "culprit", "offset", "message"),
    [
        (sine, sine, 1, "pure_callback of type f32[2]: "),
        (lambda x: lax.cond(x[0] > 0, jax.jit(sine), lambda x: x, x * 2), sine, 1, "pure_callback of type f32[2]: "),
        (print_and_return, print_and_return, 1, "debug_print: "),
        (lambda x: io_callback(np.sin, x, x), None, 0, "io_callback of type f32[2]: "),
    ],
    ids=["pure", "nested", "print", "ordered"],
)
def test_callbacks_are_unsupported_and_named_with_their_line(function, culprit, offset, message):
    """Also pure ones, which JAX would refuse for another platform than the one it runs on."""
    with pytest.raises(Unsupported) as caught:
        from_jax(function, ["f32[2]"])
    assert caught.value.message.startswith(message)
    assert "xgpu.jit runs it" in caught.value.message
    assert caught.value.location.file == __file__
    if culprit is not None:
        assert caught.value.location.line == culprit.__code__.co_firstlineno + offset


def test_callbacks_of_a_lowering_are_unsupported():
    """As libraries have them: an operation that is lowered by tracing a function, which calls Python."""
    checked = Primitive("checked")
    checked.def_abstract_eval(lambda x: x)
    mlir.register_lowering(checked, mlir.lower_fun(sine, multiple_results=False))
    with pytest.raises(Unsupported, match=r"callback in the lowering of an operation: .* xgpu\.jit runs it"):
        from_jax(lambda x: jax.jit(checked.bind)(x), ["f32[2]"])


def test_side_effects_are_unsupported():
    def program(x):
        checkify.check(x[0] > 0, "negative")
        return x

    with pytest.raises(Unsupported) as caught:
        from_jax(program, ["f32[2]"])
    assert caught.value.location.line == program.__code__.co_firstlineno
    assert "program has side effects (ErrorEffect" in str(caught.value)
