"""What is wrong in a block program is said with the user's line, before anything is compiled."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu import block
from xgpu.errors import InvalidInput, Unsupported
from xgpu.interface.block_calls import source_of_program

X = jax.ShapeDtypeStruct((8, 8), jnp.float32)
OUTSIDE = np.arange(8, dtype=np.float32)


def refused(function: Callable[..., Any], *types: Any) -> InvalidInput:
    """The error of a kernel, which must name the line that has the comment ``# here``."""
    with pytest.raises(InvalidInput) as caught:
        source_of_program(block.kernel(function).program(*(types or (X,))))
    location = caught.value.location
    assert location is not None
    code = function.__code__
    lines = Path(code.co_filename).read_text().splitlines()
    marked = [number for number, line in enumerate(lines, 1) if number >= code.co_firstlineno and "# here" in line]
    assert (Path(location.file).name, location.line) == (Path(__file__).name, marked[0])
    return caught.value


def test_of_an_index_of_another_rank() -> None:
    def kernel(x: Any) -> Any:
        (i,) = block.grid(1)
        return block.store(x.tile((8, 8), (i,)), (8, 8))  # here

    assert "tile of 'x': expected an index of 2 numbers, one for each dimension, got 1" in str(refused(kernel))


@pytest.mark.parametrize("index", [0.5, "a", None, np.float32(1)])
def test_of_an_index_that_is_no_integer(index: Any) -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        return block.store(x.tile((8, 8), (0, index)), (8, 8))  # here

    message = "tile of 'x', dimension 1: expected an integer, or a number of a block or step, got"
    assert message in str(refused(kernel))


def test_of_an_index_that_is_an_element() -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        tile = x.tile((8, 8))
        return block.store(x.tile((8, 8), (0, tile[0, 0])), (8, 8))  # here

    assert "dimension 1: expected an integer, or a number of a block or step" in str(refused(kernel))


def test_of_a_product_of_numbers() -> None:
    def kernel(x: Any) -> Any:
        i, j = block.grid(2, 1)
        return block.store(x.tile((4, 8), (i * j, 0)), (8, 8), (i, 0))  # here

    assert "'i * j' is not affine: one of the factors must be a constant" in str(refused(kernel))


def test_of_a_division_by_a_number() -> None:
    def kernel(x: Any) -> Any:
        i, j = block.grid(2, 1)
        return block.store(x.tile((4, 8), (8 // (i + j), 0)), (8, 8), (i, 0))  # here

    assert "'8 // (i + j)' is not affine: the divisor must be a constant" in str(refused(kernel))


def test_of_an_index_whose_text_is_not_known() -> None:
    source = "def kernel(x):\n    i, j = block.grid(2, 1)\n    x.tile((4, 8), (i * j, 0))"
    names: dict[str, Any] = {"block": block}
    exec(source, names)
    with pytest.raises(InvalidInput, match="this product is not affine: one of the factors must be a constant"):
        source_of_program(block.kernel(names["kernel"]).program(X))


@pytest.mark.parametrize("divisor", [0, -2])
def test_of_a_division_by_no_divisor(divisor: int) -> None:
    def kernel(x: Any) -> Any:
        (i,) = block.grid(2)
        return block.store(x.tile((4, 8), (i % divisor, 0)), (8, 8), (i, 0))  # here

    assert f"'i % divisor': expected a divisor of at least 1, got {divisor}" in str(refused(kernel))


def test_of_a_condition_on_a_number() -> None:
    def kernel(x: Any) -> Any:
        (i,) = block.grid(2)
        first = i == 0  # here
        return block.store(x.tile((4, 8)) * first, (8, 8), (i, 0))

    assert "a number of a block or step is known only when the kernel runs" in str(refused(kernel))


def test_of_a_number_among_tiles() -> None:
    def kernel(x: Any) -> Any:
        (i,) = block.grid(2)
        return block.store(x.tile((4, 8), (i, 0)) + i, (8, 8), (i, 0))  # here

    assert "a number of a block or step is no array: block.index makes a tile" in str(refused(kernel))


def test_of_a_step_that_is_over() -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        kept: list[Any] = []
        block.steps(2, lambda step, carried: kept.append(step) or carried, jnp.zeros(3))
        return block.store(x.tile((8, 8), (kept[0], 0)), (8, 8))  # here

    assert "tile of 'x': an index is the number of a step, outside of these steps" in str(refused(kernel))


@pytest.mark.parametrize("use", [jnp.exp, lambda x: x * 2, lambda x: x[0], lambda x: jnp.zeros((8, 8)) + x])
def test_of_a_whole_array(use: Callable[[Any], Any]) -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        return block.store(use(x), (8, 8))

    with pytest.raises(InvalidInput, match=r"read a tile of it|by its method tile"):
        block.kernel(kernel).program(X)


def test_of_an_array_from_outside() -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        tile = x.tile((8, 8))
        return block.store(tile + OUTSIDE, (8, 8))  # here

    assert "uses an array from outside, float32[8]: make it an argument of the kernel" in str(refused(kernel))


def test_of_a_traced_array_from_outside() -> None:
    def function(y: Any) -> Any:
        @block.kernel
        def kernel(x: Any) -> Any:
            block.grid(1)
            return block.store(x.tile((8, 8)) + y, (8, 8))

        return kernel(jnp.zeros((8, 8)))

    with pytest.raises(InvalidInput, match=re.escape("uses an array from outside, float32[8]")):
        jax.jit(function)(jnp.zeros(8))


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda t: lax.fori_loop(0, 9, lambda n, t: t * 2, t), "stablehlo.while.*block.steps has the steps of a block"),
        (lambda t: lax.while_loop(lambda t: t[0, 0] < 9, lambda t: t * 2, t), "stablehlo.while.*block.steps has"),
        (lambda t: jnp.sort(t), "stablehlo.sort of type tensor<8x8xf32>: .*no operation on tiles"),
        (lambda t: jnp.take(t, t[0].astype(int), axis=0), "stablehlo.gather.*read a tile of an array at numbers"),
        (lambda t: t.at[t[0].astype(int)].set(0.0), "stablehlo.scatter.*store tiles"),
        (lambda t: jnp.cumsum(t, 0), "xgpu.scan.*no operation on tiles"),
        (lambda t: lax.dynamic_slice(t, (t[0, 0].astype(int), 0), (8, 8)), "stablehlo.dynamic_slice.*read a tile"),
        (lambda t: t * (jnp.argmax(t, 0) == 0), "stablehlo.reduce.*reductions on tiles are of one operand"),
        (lambda t: lax.cond(t[0, 0] > 0, lambda: t, lambda: -t), "stablehlo.case.*select elements by jnp.where"),
    ],
)
def test_of_an_operation_that_tiles_have_not(use: Callable[[Any], Any], message: str) -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        return block.store(use(x.tile((8, 8))), (8, 8))

    with pytest.raises(Unsupported, match=message) as caught:
        source_of_program(block.kernel(kernel).program(X))
    assert caught.value.location is not None
    assert Path(caught.value.location.file).name == Path(__file__).name
    assert "kernel kernel" in str(caught.value)


@pytest.mark.parametrize("around", [jax.jit, lambda f: lambda: lax.fori_loop(0, 2, lambda n, t: t + f(), f())])
def test_of_tiles_that_are_read_inside_of_another_trace(around: Callable[[Any], Any]) -> None:
    def kernel(x: Any) -> Any:
        (i,) = block.grid(1)
        return block.store(around(lambda: x.tile((8, 8), (i, 0)))(), (8, 8))

    with pytest.raises(
        InvalidInput, match=r"tile of 'x' must stand in the kernel's function or in a body of block\.steps"
    ):
        block.kernel(kernel).program(X)


def test_of_blocks_that_store_the_same() -> None:
    def kernel(x: Any) -> Any:
        i, _ = block.grid(2, 2)
        return block.store(x.tile((4, 8), (i, 0)), (8, 8), (i, 0))  # here

    expected = "kernel kernel, result 'result0': all blocks along dimension 1 of the grid store the same elements"
    assert expected in str(refused(kernel))


def test_of_tiles_that_overlap() -> None:
    def kernel(x: Any) -> Any:
        (i,) = block.grid(2)
        return block.store(x.tile((8, 8), offset=(i * 2, 0)), (8, 8), offset=(i * 2, 0))  # here

    assert "element 2 along dimension 0 is stored 2 times, by blocks or tiles that overlap" in str(refused(kernel))


def test_of_overlapping_tiles_of_one_block() -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        out = block.output((8, 8), jnp.float32)
        out.store(x.tile((8, 4)), (0, 0))
        return out.store(x.tile((8, 6)), offset=(0, 2))  # here

    assert "element (0, 2) is stored 2 times" in str(refused(kernel))


def test_of_elements_that_no_block_stores() -> None:
    def kernel(x: Any) -> Any:
        (i,) = block.grid(2)
        return block.store(x.tile((3, 8), (i, 0)), (8, 8), (i, 0))  # here

    assert "element 6 along dimension 0 is stored by no block" in str(refused(kernel))


def test_of_an_output_without_tiles() -> None:
    def kernel(x: Any) -> Any:  # here
        block.grid(1)
        return block.output((8, 8), jnp.float32, "y")

    assert "kernel kernel, result 'y': nothing is stored into it" in str(refused(kernel))


def test_of_a_store_in_steps() -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        out = block.output((8, 8), jnp.float32)
        block.steps(2, lambda step, carried: out.store(carried) and carried, jnp.zeros((8, 8)))  # here
        return out

    assert "store into 'result0': tiles are stored after the steps" in str(refused(kernel))


def test_of_steps_in_steps() -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        zero = jnp.zeros((8, 8))
        total = block.steps(2, lambda step, carried: block.steps(2, lambda s, c: c, carried), zero)  # here
        return block.store(total, (8, 8))

    assert "steps cannot be nested" in str(refused(kernel))


def test_of_a_carried_tile_that_changes() -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)

        def step(number: Any, carried: Any) -> Any:
            return {"total": (carried["total"] + x.tile((8, 8))).astype(jnp.bfloat16)}

        found = block.steps(4, step, {"total": jnp.zeros((8, 8))})  # here
        return block.store(found["total"], (8, 8))

    expected = (
        "carried tile ['total'] changes in a step of step: expected float32[8, 8], as it began, got bfloat16[8, 8]"
    )
    assert expected in str(refused(kernel))


def test_of_a_carried_tree_that_changes() -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        found = block.steps(4, lambda step, carried: (carried, carried), jnp.zeros((8, 8)))  # here
        return block.store(found, (8, 8))

    assert "block.steps: a step takes PyTreeDef(*), expected the same" in str(refused(kernel))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0,), "block.grid: expected sizes from 1, got (0,)"),
        ((), "block.grid: expected 1 to 3 dimensions, got 0"),
        ((1, 1, 1, 1), "block.grid: expected 1 to 3 dimensions, got 4"),
        ((1 << 16, 1 << 16), "block.grid: expected at most 2147483647 blocks in all"),
        ((1.5,), "block.grid: expected sizes that are integers, got 1.5"),
    ],
)
def test_of_a_grid(sizes: tuple[Any, ...], message: str) -> None:
    def kernel(x: Any) -> Any:
        block.grid(*sizes)  # here
        return block.store(x.tile((8, 8)), (8, 8))

    assert message in str(refused(kernel))


def test_of_a_second_grid() -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        block.grid(1)  # here

    assert "block.grid is called once in a kernel" in str(refused(kernel))


def test_of_no_grid() -> None:
    def kernel(x: Any) -> Any:
        return block.store(x.tile((8, 8)), (8, 8))  # here

    assert "call block.grid first" in str(refused(kernel))


@pytest.mark.parametrize("result", [lambda x: None, lambda x: x.tile((8, 8))])
def test_of_a_result_that_is_no_output(result: Callable[[Any], Any]) -> None:
    def kernel(x: Any) -> Any:  # here
        block.grid(1)
        return result(x)

    assert "kernel kernel: expected its outputs to be returned" in str(refused(kernel))


@pytest.mark.parametrize("keyword", ["copyy", "stages"])
def test_of_an_unknown_decision(keyword: str) -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        return block.store(x.tile((8, 8), **{keyword: 2}), (8, 8))  # here

    expected = f"unexpected keyword '{keyword}'; what can be decided here: copy, place, layout, panel, swizzle"
    assert expected in str(refused(kernel))


def test_of_tiles_whose_shapes_do_not_fit() -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        return block.store(x.tile((8, 8)) @ x.tile((4, 8)), (8, 8))  # here

    assert "tracing kernel kernel failed: TypeError: dot_general requires" in str(refused(kernel))


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        (jax.ShapeDtypeStruct((0, 8), jnp.float32), "argument 'x' has no elements: (0, 8)"),  # type: ignore[no-untyped-call]
        (jax.ShapeDtypeStruct((8, 8), jnp.complex64), "argument 'x': tiles have no complex elements"),  # type: ignore[no-untyped-call]
    ],
)
def test_of_an_array_that_has_no_tiles(type_: Any, message: str) -> None:
    def kernel(x: Any) -> Any:  # here
        block.grid(1)
        return block.store(x.tile((8, 8)), (8, 8))

    assert message in str(refused(kernel, type_))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"threads": 100}, "threads"),
        ({"threads": 2048}, "threads"),
        ({"emitter": "loop"}, "expected an emitter of block"),
    ],
)
def test_of_a_kernel(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        block.kernel(lambda x: None, **keywords)


def test_of_what_stands_outside_of_kernels() -> None:
    with pytest.raises(InvalidInput, match=r"call this inside a function that block\.kernel decorates"):
        block.grid(1)


def test_of_a_gradient_that_nobody_gave() -> None:
    @block.kernel
    def doubled(x: Any) -> Any:
        block.grid(1)
        return block.store(x.tile((8, 8)) * 2, (8, 8))

    with pytest.raises(InvalidInput, match=r"kernel doubled has no gradient: give it one with doubled\.defvjp"):
        jax.grad(lambda x: doubled(x).sum())(jnp.zeros((8, 8)))


def test_of_an_array_by_keyword() -> None:
    @block.kernel
    def kernel(x: Any, *, y: Any) -> Any:
        block.grid(1)
        return block.store(x.tile((8, 8)), (8, 8))

    with pytest.raises(InvalidInput, match="arrays are given by position"):
        kernel(jnp.zeros((8, 8)), y=jnp.zeros(3))


def test_of_missing_arguments() -> None:
    @block.kernel
    def kernel(x: Any, y: Any) -> Any:
        block.grid(1)
        return block.store(x.tile((8, 8)), (8, 8))

    with pytest.raises(InvalidInput, match=r"kernel kernel: missing a required argument: 'y'; .*example_args"):
        kernel(jnp.zeros((8, 8)))
    with pytest.raises(InvalidInput, match="missing a required argument: 'x'"):
        xgpu.compile(kernel)


def test_of_a_kernel_in_a_kernel() -> None:
    @block.kernel
    def inner(x: Any) -> Any:
        block.grid(1)
        return block.store(x.tile((8, 8)), (8, 8))

    def outer(x: Any) -> Any:
        block.grid(1)
        return block.store(inner(x.tile((8, 8))), (8, 8))  # here

    assert "stablehlo.custom_call" in str(refused(outer))


def test_of_calls_of_python() -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        tile = x.tile((8, 8))
        jax.debug.print("{}", tile)  # here
        return block.store(tile, (8, 8))

    def steps(x: Any) -> Any:
        block.grid(1)

        def step(number: Any) -> Any:
            jax.debug.print("step")  # here
            return x.tile((8, 8), (number, number))

        return block.store(block.accumulate(1, step), (8, 8))

    for each in (kernel, steps):
        assert f"kernel {each.__name__}: no operation on tiles calls Python" in str(refused(each))


def test_of_an_array_without_dimensions() -> None:
    def kernel(x: Any, number: Any) -> Any:
        block.grid(1)
        return block.store(x.tile((8, 8)) * number, (8, 8))  # here

    message = r"'number' is an array without dimensions: read its element, number.tile((), ()), or give a constant by"
    assert message in str(refused(kernel, X, jax.ShapeDtypeStruct((), jnp.float32)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: block.kernel(copy="asynch"), "block.kernel: expected a copy of plain, async, bulk, got 'asynch'"),
        (lambda: block.kernel(stages="two"), "keyword 'stages': expected whole numbers, got 'two'"),
        (lambda: block.kernel(threads="64"), "threads = '64': expected a number from 32"),
        (lambda: block.kernel(emitter="product", schedule=[1]), "expected a schedule of numbers by name, got [1]"),
        (lambda: block.cdiv(8, 0), "block.cdiv, the tile: expected sizes from 1, got (0,)"),
        (lambda: block.cdiv(8, 2.0), "block.cdiv, the tile: expected sizes that are integers, got 2.0"),
        (lambda: block.kernel(abs)("x"), "kernel abs, argument 0: expected an array, got 'x' of type str"),
        (lambda: block.kernel(abs)(None), "kernel abs, argument 0: expected an array, got None of type NoneType"),
    ],
)
def test_of_calls_outside_of_kernels(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)) as caught:
        make()
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


@pytest.mark.parametrize(
    ("fill", "dtype"),
    [(1.5, "int32"), (np.inf, "int32"), (300, "int8"), (-1, "uint8"), (2, "bool"), ("a", "float32"), ([1, 2], "int8")],
    ids=str,
)
def test_of_a_filling_that_the_type_has_not(fill: Any, dtype: str) -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        return block.store(x.tile((16, 8), (0, 0), fill=fill), (16, 8))  # here

    found = refused(kernel, jax.ShapeDtypeStruct((8, 8), jnp.dtype(dtype)))
    assert f"tile of 'x', fill: expected a number that {dtype} has, got {fill!r}" in str(found)


@pytest.mark.parametrize(("fill", "dtype"), [(2.0, "int32"), (True, "bool"), (-np.inf, "bfloat16"), (1e9, "float16")])
def test_fillings_that_the_type_has(fill: Any, dtype: str) -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        return block.store(x.tile((16, 8), (0, 0), fill=fill), (16, 8))

    x = jnp.zeros((8, 8), jnp.dtype(dtype))
    with np.errstate(over="ignore"):
        expected = np.asarray(fill).astype(x.dtype)
    found = np.asarray(block.kernel(kernel)(x))
    assert np.all(found[8:] == expected) and not np.any(found[:8])


def test_of_products_of_tiles_that_do_not_fit() -> None:
    def kernel(x: Any) -> Any:
        block.grid(1)
        return block.store(block.dot(x.tile((8, 8)), x.tile((4, 8), (0, 0))), (8, 8))  # here

    assert re.search(r"block\.dot: expected two tiles.* got shapes \(8, 8\) and \(4, 8\)", str(refused(kernel)))
