"""Products of rows in groups (``lax.ragged_dot``), on the host executor against XLA; and which stay XLA's."""

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py import effort
from xgpu.errors import CompilerError
from xgpu.options import Options
from xgpu.target.nvptx.cubin import find_ptxas

from .products import KERNELS, compiled, is_exact, whole_numbers

_FORWARD = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
_BACKWARD = lax.RaggedDotDimensionNumbers((((1,), (2,)), ((), ())), [0], [0])
_COLUMNS = lax.RaggedDotDimensionNumbers((((0,), (1,)), ((), ())), [1], [0])
_INSIDE = lax.RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), [0], [1])


def _product(numbers: Any, result: Any) -> Any:
    def function(x: Any, w: Any, sizes: Any) -> Any:
        return lax.ragged_dot_general(x, w, sizes, numbers, preferred_element_type=result)

    return function


def _given(program: xgpu.Compiled, sizes: list[int], number: int = -1) -> list[Any]:
    """Return small whole numbers, and these sizes of groups."""
    arguments = whole_numbers(program)
    arguments[number] = np.array(sizes, program.arguments[number].dtype.numpy)
    return arguments


def _drawn(count: int) -> list[tuple[str, Any, tuple[str, str, str], list[int], dict[str, int]]]:
    """Return products: dimensions, types, shapes and sizes of groups, which may be more than there are rows."""
    generator = random.Random(effort.seed_of_commit())
    found = []
    for number in range(count):
        m, n, k, groups = (generator.randint(1, most) for most in (300, 150, 200, generator.choice((9, 40))))
        name = generator.choice(("bf16", "f16"))
        numbers, rows, matrices = (
            (_FORWARD, (m, -(-k // 8) * 8), (groups, -(-k // 8) * 8, -(-n // 8) * 8)),
            (_BACKWARD, (m, -(-k // 8) * 8), (groups, n, -(-k // 8) * 8)),
            (_COLUMNS, (k, -(-m // 8) * 8), (groups, k, -(-n // 8) * 8)),
            (_INSIDE, (m, -(-k // 8) * 8), (-(-k // 8) * 8, groups, -(-n // 8) * 8)),
        )[number % 4]
        total = rows[1] if numbers is _COLUMNS else rows[0]
        sizes = [generator.choice((0, generator.randint(-3, 2 * total // groups + 1))) for _ in range(groups)]
        text = [",".join(map(str, shape)) for shape in (rows, matrices)]
        specs = (f"{name}[{text[0]}]", f"{name}[{text[1]}]", f"{generator.choice(('s32', 's64'))}[{groups}]")
        schedule = generator.choice(
            ({}, {"tile_m": 128, "groups": 2, "tile_n": 64}, {"tile_m": 64, "groups": 1, "tile_n": 64, "band": 1})
        )
        found.append((name, numbers, specs, sizes, schedule))
    return found


@pytest.mark.parametrize(
    ("name", "numbers", "specs", "sizes", "schedule"), _drawn(effort.by_level(4, 12, 300)), ids=str
)
def test_sizes(name: str, numbers: Any, specs: tuple[str, ...], sizes: list[int], schedule: dict[str, int]) -> None:
    program = compiled(_product(numbers, jnp.float32), *specs, **schedule)
    is_exact(program, _given(program, sizes))


X, W, SIZES = "bf16[200,64]", "bf16[3,64,72]", "s32[3]"


@pytest.mark.parametrize(
    "sizes",
    [[90, 0, 50], [0, 0, 0], [200, 0, 0], [0, 0, 200], [-4, 300, 2], [64, 128, 8], [1, 1, 198], [63, 65, 72]],
    ids=str,
)
def test_sizes_of_groups(sizes: list[int]) -> None:
    """Groups without rows, that end where tiles do and elsewhere, with more rows than there are, and rows of none."""
    program = compiled(lax.ragged_dot, X, W, SIZES)
    is_exact(program, _given(program, sizes))


@pytest.mark.parametrize("k", [64, 72])
def test_rows_are_multiplied_by_the_matrix_of_their_group_alone(k: int) -> None:
    """Neither what other matrices have nor what rows of no group have gets into a result, nor after the last step."""
    program = compiled(lax.ragged_dot, f"bf16[200,{k}]", f"bf16[3,{k},72]", SIZES)
    x, w, sizes = _given(program, [90, 30, 50])
    x[170:], w[1, 3] = np.nan, np.inf
    x[90:120] = 0
    (found,) = program.run(x, w, sizes)
    wide = found.astype(np.float64)
    expected = x[:90].astype(np.float64) @ w[0].astype(np.float64)
    np.testing.assert_array_equal(found[:90], expected.astype(found.dtype))
    assert np.isnan(wide[90:120]).all()
    assert np.isfinite(wide[120:170]).all()
    assert not wide[170:].any()


@pytest.mark.parametrize(
    ("element", "result"), [("f32", jnp.float32), ("f8e4m3fn", jnp.float32), ("s8", jnp.int32)], ids=str
)
def test_other_types(element: str, result: Any) -> None:
    """Those of 32 and 8 bits lie along the contracted dimension; f32 is multiplied as tf32."""
    program = compiled(_product(_BACKWARD, result), f"{element}[100,80]", f"{element}[4,40,80]", "s32[4]")
    is_exact(program, _given(program, [30, 0, 41, 20]))


def test_sizes_that_i32_does_not_count() -> None:
    program = compiled(lax.ragged_dot, X, W, "s64[3]")
    is_exact(program, _given(program, [90, 1 << 62, 1 << 62]))


def _gated(x: Any, w: Any, v: Any, sizes: Any) -> Any:
    return jax.nn.relu(lax.ragged_dot(x, w, sizes)) * lax.ragged_dot(x, v, sizes)


def _biased(x: Any, w: Any, bias: Any, rows: Any, sizes: Any) -> Any:
    return (jax.nn.relu(lax.ragged_dot(x, w, sizes) + bias) + rows, sizes)[0]


def test_what_follows_is_in_the_kernel() -> None:
    program = compiled(_biased, X, W, "bf16[72]", "bf16[200,72]", SIZES)
    is_exact(program, _given(program, [90, 3, 50]))


def test_products_of_the_same_rows_that_meet_are_one_kernel() -> None:
    program = compiled(_gated, X, W, W, SIZES)
    is_exact(program, _given(program, [0, 120, 50]))
    assert "tile_n" in program.ir("fusions")


def test_rows_of_other_groups_are_another_kernel() -> None:
    """Tiles have other rows then."""

    def function(x: Any, w: Any, v: Any, sizes: Any, others: Any) -> Any:
        return lax.ragged_dot(x, w, sizes) * lax.ragged_dot(x, v, others)

    program = xgpu.compile(function, X, W, W, SIZES, SIZES, options=KERNELS)
    assert "xgpu.joined" not in program.ir("prepared")
    arguments = whole_numbers(program)
    arguments[3:] = np.array([100, 20, 7], np.int32), np.array([0, 120, 80], np.int32)
    (found,), (expected,) = program.run(*arguments), program.reference(*arguments)
    np.testing.assert_array_equal(found, expected)


def test_gradients_by_rows_are_a_kernel() -> None:
    def function(x: Any, w: Any, sizes: Any, given: Any) -> Any:
        return jax.vjp(lambda each: lax.ragged_dot(each, w, sizes), x)[1](given)[0]

    program = compiled(function, X, W, SIZES, "bf16[200,72]")
    is_exact(program, _given(program, [90, 30, 50], 2))


@pytest.mark.parametrize("products", ["auto", "library", "kernels", "all"])
def test_forms_that_no_kernel_has_are_as_exact(products: Any) -> None:
    """Groups along the contracted dimension, batches, and operands that cannot be copied as boxes."""

    def gradient(x: Any, w: Any, sizes: Any, given: Any) -> Any:
        return jax.vjp(lambda each: lax.ragged_dot(x, each, sizes), w)[1](given)[0]

    cases = [
        (gradient, (X, W, SIZES, "bf16[200,72]"), 2),
        (jax.vmap(lax.ragged_dot), ("bf16[2,20,8]", "bf16[2,3,8,8]", "s32[2,3]"), 2),
        (lax.ragged_dot, ("f32[20,8]", "f32[3,8,8]", "s32[3]"), 2),
        (lax.ragged_dot, ("bf16[20,7]", "bf16[3,7,9]", "s32[3]"), 2),
        (lax.ragged_dot, ("bf16[20,8]", "bf16[3,8,8]", "u8[3]"), 2),
        (lax.ragged_dot, ("s32[20,8]", "s32[3,8,8]", "s32[3]"), 2),
        (lax.ragged_dot, ("c64[20,8]", "c64[3,8,8]", "s32[3]"), 2),
        (lax.ragged_dot, ("bf16[20,8]", "bf16[0,8,8]", "s32[0]"), 2),
        (lax.ragged_dot, ("bf16[0,8]", "bf16[3,8,8]", "s32[3]"), 2),
    ]
    for function, specs, number in cases:
        program = xgpu.compile(function, *specs, options=Options(products=products))
        arguments = whole_numbers(program)
        sizes = np.array([9, 0, 8], arguments[number].dtype)[: arguments[number].shape[-1]]
        arguments[number] = np.broadcast_to(sizes, arguments[number].shape).copy()
        # JAX itself lowers it for a CPU.
        (found,), wanted = program.run(*arguments), jax.jit(function)(*arguments)
        np.testing.assert_array_equal(np.asarray(found, np.complex128), np.asarray(wanted, np.complex128))


def test_kernels_are_chosen_that_multiply_less() -> None:
    """XLA multiplies all rows by all matrices."""
    program = xgpu.compile(lax.ragged_dot, "bf16[4096,1024]", "bf16[8,1024,4096]", "s32[8]")
    assert [each.emitter for each in program.kernels] == ["product"]
    assert not xgpu.compile(
        lax.ragged_dot, "bf16[4096,1024]", "bf16[8,1024,4096]", "s32[8]", options=Options(products="library")
    ).kernels


def test_the_level_tiles_says_what_the_kernel_computes() -> None:
    program = compiled(lax.ragged_dot, X, W, SIZES)
    again = xgpu.compile(program.ir("tiles"))
    for sizes in ([90, 0, 50], [-1, 300, 0], [0, 0, 0]):
        arguments = _given(program, sizes)
        (found,), (expected,) = program.run(*arguments), again.reference(*arguments)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rows = 64 : i64", "rows = 32 : i64", "expected a map with"),
        ("split = 1", "split = 2", "where rows are in groups"),
        ("swapped = false", "swapped = true", "where rows are in groups"),
        ('"xgpu.group_rows"(%1, %arg5)', '"xgpu.group_rows"(%1, %arg6)', "of the row of tiles"),
    ],
)
def test_kernels_that_a_person_changes_are_checked(old: str, new: str, message: str) -> None:
    text = compiled(lax.ragged_dot, X, W, SIZES).ir("tiles")
    assert old in text
    with pytest.raises(CompilerError, match=message):
        xgpu.compile(text.replace(old, new))


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
def test_sums_stay_in_registers() -> None:
    program = compiled(lax.ragged_dot, "bf16[4096,512]", "bf16[8,512,1024]", "s32[8]", tile_m=128, tile_n=256, groups=2)
    assembled = program.kernels[0].assembled
    assert (assembled.spill_bytes, assembled.remarks) == (0, ())


def test_transposes_are_read_as_they_lie() -> None:
    def function(x: Any, w: Any, sizes: Any) -> Any:
        return lax.ragged_dot(x.T, jnp.swapaxes(w, 1, 2), sizes)

    program = compiled(function, "bf16[72,200]", "bf16[3,40,72]", SIZES)
    is_exact(program, _given(program, [90, 30, 50]))
