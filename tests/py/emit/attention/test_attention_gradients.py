"""Gradients of attention as kernels that compute the weights again, on the host executor against float64."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import xgpu
from tests.py.emit.emitters import emitter_of
from tests.py.planned import TARGET, planned
from xgpu.emit.families.attention.sums import SumsEmitter
from xgpu.passes.prepare.products import find_chains
from xgpu.target.nvptx.cubin import find_ptxas

from .attentions import (
    LOW,
    causal,
    compiled_gradients,
    einsum_attention,
    exact_gradients,
    gradients_are_right,
    with_gradients,
)

LIT = Path(__file__).parents[3] / "lit"


def _spec(*shape: int, dtype: str = "bf16") -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


def _specs(rows: int, keys: int, heads: int, shared: int, width: int, dtype: str = "bf16") -> list[str]:
    """Return the types of the result's gradient and of attention's operands."""
    of_rows, of_keys = (_spec(1, *sizes, width, dtype=dtype) for sizes in ((rows, heads), (keys, shared)))
    return [of_rows, of_rows, of_keys, of_keys]


def _dot_product(q: Any, k: Any, v: Any, *rest: Any, **more: Any) -> Any:
    bias, mask = (*rest, None, None)[:2]
    return jax.nn.dot_product_attention(q, k, v, bias=bias, mask=mask, **more)


def _causal_dot_product(q: Any, k: Any, v: Any) -> Any:
    return _dot_product(q, k, v, is_causal=True)


@pytest.mark.parametrize(
    ("function", "specs"),
    [
        (einsum_attention, _specs(70, 130, 2, 2, 40)),
        (_dot_product, _specs(100, 33, 2, 2, 64, dtype="f16")),
        (_causal_dot_product, _specs(70, 70, 4, 2, 64)),
    ],
)
def test_sizes(function: Callable[..., Any], specs: list[str]) -> None:
    """Odd lengths, heads that share keys, which add up their gradients, rows that are no multiple of a panel."""
    program = compiled_gradients(function, *specs)
    arrays = program.random_inputs(1)
    rows, keys = arrays[1].shape[1], arrays[2].shape[1]
    is_causal = function is _causal_dot_product
    gradients_are_right(program, arrays, np.tril(np.ones((rows, keys), bool)) if is_causal else None)


@pytest.mark.parametrize("is_folded", [True, False])
def test_a_factor_that_is_left_is_in_what_gradients_read(is_folded: bool) -> None:
    """The largest logits of rows are stored as the program has them, hidden ones as the number that they are."""
    specs = _specs(70, 70, 2, 2, 64)
    kernels = planned(with_gradients(_causal_dot_product), specs, TARGET, xgpu.Options()).kernels
    (name,) = (each.name for each in kernels if each.emitter == "attention")
    options = xgpu.Options(schedules={name: {"folded": is_folded}})
    program = xgpu.compile(with_gradients(_causal_dot_product), *specs, options=options)
    gradients_are_right(program, program.random_inputs(3), np.tril(np.ones((70, 70), bool)))


@pytest.mark.parametrize("divides", [False, True])
def test_gradients_of_large_logits(divides: bool) -> None:
    """Rows share a large number, all keys or the last ones; a factor that is left makes no errors larger."""

    def function(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32)
        s = s / np.float32(40**0.5) if divides else s * np.float32(40**-0.5)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, axis=-1).astype(q.dtype), v)

    specs = _specs(70, 300, 1, 1, 40)
    attention, *_ = planned(with_gradients(function), specs, TARGET, xgpu.Options()).kernels
    assert attention.emitter == "attention"
    programs = [
        xgpu.compile(
            with_gradients(function), *specs, options=xgpu.Options(schedules={attention.name: {"folded": is_folded}})
        )
        for is_folded in (True, False)
    ]
    generator = np.random.default_rng(12)
    g, q, k, v = programs[0].random_inputs(12)
    for shared, first in ((2.0**7, 0), (2.0**11, 0), (2.0**7, 200)):
        q[...], k[...] = (generator.integers(-8, 9, each.shape) / 4 for each in (q, k))
        q[0, :, 0, 0], k[0, :, 0, 0] = shared * (np.arange(70) % 3 - 1), shared * (np.arange(300) >= first)
        exact = exact_gradients(g, q, k, v)
        folded, others = (
            [_error(*pair) for pair in zip(each.run(g, q, k, v), exact, strict=True)] for each in programs
        )
        assert all(own <= 1.1 * other for own, other in zip(folded, others, strict=True))


def _error(found: Any, exact: Any) -> float:
    """Return the root of the mean square of errors."""
    return float(np.sqrt(np.mean((np.asarray(found, np.float64) - exact) ** 2)))


def test_wide_rows_have_a_kernel_for_each_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads have no room for the sums of two gradients of 256 columns."""
    monkeypatch.setattr(find_chains, "is_gradient_fast", lambda *_: True)
    program = compiled_gradients(causal, *_specs(70, 70, 1, 1, 256))
    assert [kernel.emitter for kernel in program.kernels].count("sums") == 3
    gradients_are_right(program, program.random_inputs(2), np.tril(np.ones((70, 70), bool)))


@pytest.mark.parametrize(
    "schedule",
    [
        {"tile_m": 128, "groups": 2, "tile_n": 32, "stages": 3, "blocks": 1},
        {"tile_m": 192, "groups": 3, "tile_n": 64, "stages": 1, "blocks": 5},
    ],
    ids=str,
)
def test_schedules(schedule: dict[str, int]) -> None:
    program = compiled_gradients(causal, *_specs(140, 140, 1, 1, 64), **schedule)
    gradients_are_right(program, program.random_inputs(3), np.tril(np.ones((140, 140), bool)))


def test_refused_schedules() -> None:
    for schedule, reason in (
        ({"tile_n": 48}, "tile_n = 48: expected a multiple of 32"),
        ({"tile_n": 256}, "tile_n = 256: expected so few keys that a thread holds at most 224 numbers"),
    ):
        with pytest.raises(xgpu.InvalidInput, match=reason):
            compiled_gradients(causal, *_specs(200, 200, 1, 1, 64), **schedule)


def test_masks_and_biases_are_read() -> None:
    specs = [*_specs(70, 90, 2, 1, 64), "f32[1,2,70,90]", "pred[1,1,70,90]"]
    program = compiled_gradients(_dot_product, *specs)
    *arrays, bias, mask = program.random_inputs(4)
    mask[0, 0, 3] = False
    gradients_are_right(program, [*arrays, bias, mask], mask, LOW, np.asarray(bias, np.float64))


def test_rows_without_keys_have_weights_for_all() -> None:
    """Hidden logits are numbers: a row that sees no keys gives all values its gradient, those that are hidden, too."""

    def function(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return _dot_product(q, k, v, None, mask, is_causal=True)

    program = compiled_gradients(function, *_specs(150, 150, 1, 1, 64), "pred[1,1,150,150]")
    *arrays, mask = program.random_inputs(5)
    mask[...] = np.arange(150) >= 140
    both = mask & np.tril(np.ones((150, 150), bool))
    *_, of_values = gradients_are_right(program, [*arrays, mask], both, LOW)
    assert np.abs(of_values[0, 0]).max() > 0.01


def test_rows_of_nothing_but_minus_infinity_are_not_numbers() -> None:
    """Nor are gradients of all values, which such a row weights; those of keys, which it does not see, are."""
    program = compiled_gradients(einsum_attention, *_specs(70, 70, 1, 1, 64), "pred[70,70]")
    *arrays, mask = program.random_inputs(6)
    mask[5] = False
    result, of_queries, of_keys, of_values = program.run(*arrays, mask, sanitize=True)
    expected = program.reference(*arrays, mask)
    for found, other in zip((result, of_queries, of_keys, of_values), expected, strict=True):
        assert np.array_equal(np.isnan(found.astype(np.float32)), np.isnan(other.astype(np.float32)))
    assert np.isnan(of_values.astype(np.float32)).all()


def test_a_row_that_is_not_a_number_makes_no_others_so() -> None:
    program = compiled_gradients(causal, *_specs(150, 150, 1, 1, 64), tile_m=64, groups=1, tile_n=64)
    g, q, k, v = program.random_inputs(7)
    q[0, 9, 0, 3] = ml_dtypes.bfloat16("nan")
    _, of_queries, of_keys, of_values = (each.astype(np.float32) for each in program.run(g, q, k, v, sanitize=True))
    assert np.isnan(of_queries[0, 9]).all()
    assert not np.isnan(np.delete(of_queries, 9, 1)).any()
    assert np.isnan(of_keys[0, :10]).all()
    assert np.isnan(of_values[0, :64]).all()


def test_a_result_that_is_computed_again_has_a_gradient() -> None:
    """The backward pass has the logits again, and not the result."""
    program = compiled_gradients(jax.checkpoint(_causal_dot_product), *_specs(70, 70, 4, 2, 64))
    assert [kernel.emitter for kernel in program.kernels].count("attention") == 2
    gradients_are_right(program, program.random_inputs(seed=3), np.tri(70, dtype=bool), LOW)


def test_columns_of_results_are_made_of_rows() -> None:
    """The products around attention ask for columns; kernels store rows, which others move."""

    def attend(x: Any, w: Any, o: Any) -> Any:
        q, k, v = (jnp.einsum("ef,tf->et", m, x).reshape(2, 32, 72).transpose(2, 0, 1)[None] for m in w)
        return jnp.einsum("ef,tf->et", o, einsum_attention(q, k, v).reshape(72, 64))

    def gradients(g: Any, *arguments: Any) -> Any:
        return jax.vjp(attend, *arguments)[1](g)

    program = xgpu.compile(gradients, _spec(64, 72), _spec(72, 64), _spec(3, 64, 64), _spec(64, 64))
    assert [kernel.emitter for kernel in program.kernels].count("sums") == 2
    arrays = [np.asarray(each, np.float32).astype(ml_dtypes.bfloat16) for each in program.random_inputs(seed=2)]
    arrays[2:] = [(each * 0.1).astype(ml_dtypes.bfloat16) for each in arrays[2:]]
    found, reference = program.run(*arrays), program.reference(*arrays)
    with jax.enable_x64():
        wide = [jnp.asarray(each.astype(np.float64)) for each in arrays]
        exact = [np.asarray(each) for each in jax.jit(gradients)(*wide)]
    for own, other, value in zip(found, reference, exact, strict=True):
        assert _error(own, value) <= 1.2 * _error(other, value)


def test_functions_of_logits() -> None:
    """Soft caps, and arithmetic of 16 bits as the program has it."""

    def function(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(10 * jnp.tanh(s / 10), -1), v)

    program = compiled_gradients(function, *_specs(70, 70, 1, 1, 64))
    arrays = program.random_inputs(8)
    for found, expected in zip(program.run(*arrays, sanitize=True), program.reference(*arrays), strict=True):
        np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), atol=0.06)


@pytest.mark.parametrize("cap", [2.0, 30.0])
def test_caps_divide_by_products(cap: float) -> None:
    """What is capped, and its gradient, is multiplied by the inverse of the cap: both are rounded later."""

    def function(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * 0.125
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(cap * jnp.tanh(s / cap)).astype(q.dtype), v)

    program = compiled_gradients(function, *_specs(70, 70, 1, 1, 64))
    assert not any("div." in kernel.ptx for kernel in program.kernels if kernel.emitter == "sums")
    arrays = program.random_inputs(8)
    found, reference = program.run(*arrays, sanitize=True), program.reference(*arrays)
    with jax.enable_x64():
        exact = jax.jit(with_gradients(function))(*(jnp.asarray(each.astype(np.float64)) for each in arrays))
    for own, other, value in zip(found, reference, exact, strict=True):
        assert _error(own, np.asarray(value)) <= 1.2 * _error(other, np.asarray(value))


def test_the_result_may_be_merged_before_it_is_read() -> None:
    """The result's gradient is known in another shape, as where heads are joined for a projection."""

    def function(q: Any, k: Any, v: Any) -> Any:
        return causal(q, k, v).reshape(1, 70, 128)

    specs = [_spec(1, 70, 128), *[_spec(1, 70, 2, 64)] * 3]
    program = compiled_gradients(function, *specs)
    arrays = program.random_inputs(9)
    for found, expected in zip(program.run(*arrays, sanitize=True), program.reference(*arrays), strict=True):
        np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), atol=0.03)


def test_levels_go_on_from_text() -> None:
    program = compiled_gradients(causal, *_specs(140, 140, 1, 1, 64))
    arrays = program.random_inputs(10)
    for level in ("fusions", "tiles"):
        assert xgpu.compile(program.ir(level)).ir("ptx") == program.ir("ptx")
    again = xgpu.compile(program.ir("fusions"))
    for found, expected in zip(again.reference(*arrays), program.run(*arrays), strict=True):
        np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), atol=0.03)


@pytest.mark.parametrize("name", ["sums", "sums_elements"])
def test_xla_runs_tiles_as_loops(name: str) -> None:
    """Also where steps carry an array that each of them writes a tile of."""
    kernel = xgpu.compile((LIT / "emit" / "products" / f"{name}.mlir").read_text())
    tiles = xgpu.compile(kernel.ir("tiles"))
    arrays = kernel.random_inputs(11)
    q, k = (np.asarray(each, np.float32) for each in arrays[:2])
    arrays[4] = (q @ k.T).max(1)
    for found, expected in zip(tiles.reference(*arrays), kernel.run(*arrays), strict=True):
        np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), atol=0.05, rtol=0.02)


@pytest.mark.parametrize(("blocks", "rows"), [(1, 300), (7, 300), (3, 190)])
def test_every_element_is_written_once(blocks: int, rows: int) -> None:
    schedule = {"tile_m": 64, "groups": 1, "tile_n": 64, "stages": 2, "blocks": blocks}
    program = compiled_gradients(causal, *_specs(rows, rows, 2, 2, 40), **schedule)
    for number, kernel in enumerate(program.kernels):
        if kernel.emitter == "sums":
            emitter = emitter_of(program, number)
            assert isinstance(emitter, SumsEmitter)
            for output in range(len(emitter.stored)):
                assert emitter.thread_to_output(output).coverage((1, rows, 2, 40)).is_exact


def test_attention_writes_what_there_is_of_rows_once() -> None:
    program = compiled_gradients(causal, *_specs(190, 190, 2, 2, 64))
    emitter = emitter_of(program)
    assert emitter.thread_to_output(0).coverage((1, 190, 2, 64)).is_exact
    for output in (1, 2):
        assert emitter.thread_to_output(output).coverage((1, 2, 190)).is_exact


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("width", [64, 128])
def test_sums_stay_in_registers(width: int) -> None:
    """Nor does ptxas say that products of a warp group wait for each other."""
    program = compiled_gradients(causal, *_specs(512, 512, 16, 16, width))
    for kernel in program.kernels:
        if kernel.emitter in ("attention", "sums"):
            assert kernel.assembled.spill_bytes == 0
            assert not [remark for remark in kernel.assembled.remarks if "serialized" in remark]


def test_a_cpu_has_no_tensor_cores_for_them() -> None:
    program = xgpu.compile(
        with_gradients(causal), *_specs(150, 150, 1, 1, 64), options=xgpu.Options(fuse_attention=False)
    )
    assert not {"attention", "sums"} & {kernel.emitter for kernel in program.kernels}
