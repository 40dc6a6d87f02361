"""Attention of f32, multiplied as tf32, on the host executor against float64."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from tests.py.emit.emitters import emitter_of
from tests.py.planned import TARGET, planned
from xgpu.emit.families.attention.attention import AttentionEmitter
from xgpu.passes.prepare.products import find_chains
from xgpu.target.nvptx.cubin import find_ptxas

from .attentions import LOW, causal, einsum_attention, exact_gradients, with_gradients

_ROUNDING = 2.0**-11
"""The relative error of a number rounded to tf32, at most."""


@pytest.fixture(autouse=True)
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have kernels of attention for sizes with which a library is expected to be faster, too."""
    monkeypatch.setattr(find_chains, "_is_faster", lambda *_: True)


def _compiled(function: Callable[..., Any], *specs: str, **schedule: int) -> xgpu.Compiled:
    """Return a program with a kernel of attention, some numbers of whose schedule are fixed."""
    kernels = planned(function, specs, TARGET, xgpu.Options(attention_parts=1)).kernels
    names = [each.name for each in kernels if each.emitter == "attention"]
    assert len(names) == 1
    options = xgpu.Options(attention_parts=1, schedules={names[0]: schedule} if schedule else {})
    return xgpu.compile(function, *specs, options=options)


def _spec(*shape: int) -> str:
    return f"f32[{','.join(map(str, shape))}]"


def _of_tf32(*shapes: tuple[int, ...], seed: int = 1) -> list[Any]:
    """Return operands that tf32 has as they are: only weights are rounded then."""
    generator = np.random.default_rng(seed)
    return [generator.integers(-64, 65, shape).astype(np.float32) / 32 for shape in shapes]


def _weights(q: Any, k: Any, mask: Any = None, fill: float = -np.inf) -> Any:
    """Return the weights of operands (batch, rows, heads, width) in float64."""
    k = np.repeat(np.asarray(k, np.float64), q.shape[2] // k.shape[2], 2)
    s = np.einsum("bqhd,bkhd->bhqk", np.asarray(q, np.float64), k) * q.shape[-1] ** -0.5
    s = s if mask is None else np.where(mask, s, fill)
    with np.errstate(invalid="ignore"):
        p = np.exp(s - s.max(-1, keepdims=True))
        return p / p.sum(-1, keepdims=True)


def _is_right(found: Any, weights: Any, v: Any) -> None:
    """Errors are those of weights rounded once, and of exponents in f32."""
    v = np.repeat(np.asarray(v, np.float64), weights.shape[1] // v.shape[2], 2)
    expected, size = (np.einsum("bhqk,bkhd->bqhd", weights, each) for each in (v, np.abs(v)))
    error = np.abs(np.asarray(found, np.float64) - expected)
    assert np.array_equal(np.isnan(error), np.isnan(expected))
    assert np.all(np.isnan(error) | (error <= 1.25 * _ROUNDING * size))


@pytest.mark.parametrize(
    ("rows", "keys", "heads", "shared", "width"),
    [(150, 260, 2, 2, 64), (200, 300, 4, 2, 128), (64, 190, 1, 1, 40), (1, 700, 4, 1, 32)],
)
def test_sizes(rows: int, keys: int, heads: int, shared: int, width: int) -> None:
    """Odd lengths, heads that share keys, rows that are no multiple of a panel."""
    shapes = (2, rows, heads, width), *[(2, keys, shared, width)] * 2

    def function(q: Any, k: Any, v: Any) -> Any:
        return einsum_attention(q, *(jnp.repeat(each, heads // shared, 2) for each in (k, v)))

    program = _compiled(function, *(_spec(*shape) for shape in shapes))
    q, k, v = _of_tf32(*shapes)
    _is_right(program.run(q, k, v, sanitize=True)[0], _weights(q, k), v)


@pytest.mark.parametrize(
    "schedule",
    [
        {"tile_m": 64, "groups": 1, "tile_n": 32},
        {"tile_n": 64, "stages": 1, "blocks": 1},
        {"tile_n": 96, "overlap": False, "turns": False},
        {"folded": False, "steady": False, "branched": False},
        {"tile_m": 192, "groups": 3, "tile_n": 64, "stages": 1, "computed": 3},
    ],
    ids=str,
)
def test_schedules(schedule: dict[str, int]) -> None:
    shape = (1, 260, 2, 64)
    program = _compiled(causal, *[_spec(*shape)] * 3, **schedule)
    q, k, v = _of_tf32(*[shape] * 3)
    _is_right(program.run(q, k, v, sanitize=True)[0], _weights(q, k, np.tril(np.ones((260, 260), bool))), v)


def test_refused_schedules() -> None:
    specs = [_spec(1, 260, 2, 64)] * 3
    with pytest.raises(xgpu.InvalidInput, match="tile_n = 80: expected a multiple of 32, as keys are neighbours"):
        _compiled(causal, *specs, tile_n=80)
    with pytest.raises(xgpu.InvalidInput, match="stages = 4: expected so few that"):
        _compiled(causal, *specs, tile_n=128, stages=4)


@pytest.mark.parametrize("overlap", [True, False])
def test_each_weight_meets_its_value(overlap: bool) -> None:
    """Rows whose weights are all of one key have its value, bit for bit: lanes exchange weights with each other."""
    program = _compiled(einsum_attention, *[_spec(1, 256, 1, 64)] * 3, overlap=overlap, turns=overlap)
    generator = np.random.default_rng(2)
    place = generator.permutation(256)
    # Of the four keys of each direction the longest one has the only weight.
    k = np.zeros((1, 256, 1, 64), np.float32)
    k[0, place, 0, np.arange(256) % 64] = 1 + np.arange(256) // 64
    wanted = generator.integers(0, 64, 256)
    q = np.zeros_like(k)
    q[0, np.arange(256), 0, wanted] = 8192
    v = generator.integers(-1024, 1025, (1, 256, 1, 64)).astype(np.float32)
    (found,) = program.run(q, k, v, sanitize=True)
    np.testing.assert_array_equal(found[0, :, 0], v[0, place[192 + wanted], 0])


@pytest.mark.parametrize("order", ["bhsd,bhsd", "bshd,bhds", "bhsd,bhds", "shbd,sbhd"])
def test_operands_in_any_order(order: str) -> None:
    """Those that warp groups cannot multiply as they lie in memory are copied in another order."""
    sizes = {"b": 2, "s": 140, "h": 3, "d": 64}
    of_keys, of_values = order.split(",")

    def function(q: Any, k: Any, v: Any) -> Any:
        k, v = jnp.einsum(f"{of_keys}->bshd", k), jnp.einsum(f"{of_values}->bshd", v)
        return einsum_attention(q, k, v)

    shapes = [tuple(sizes[each] for each in names) for names in ("bshd", of_keys, of_values)]
    program = _compiled(function, *(_spec(*shape) for shape in shapes))
    q, k, v = _of_tf32(*shapes)
    found = program.run(q, k, v, sanitize=True)[0]
    _is_right(found, _weights(q, np.einsum(f"{of_keys}->bshd", k)), np.einsum(f"{of_values}->bshd", v))
    is_in_order = of_values.endswith("s")
    assert ("transpose" in {kernel.emitter for kernel in program.kernels}) != is_in_order


def test_masks_hide_as_in_other_types() -> None:
    """Rows without keys are averages; a query that is no number makes only its own row none."""

    def function(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v, mask=mask)

    shapes = (2, 70, 4, 64), *[(2, 300, 2, 64)] * 2
    specs = [*(_spec(*shape) for shape in shapes), "pred[2,1,70,300]"]
    program = _compiled(function, *specs)
    q, k, v = _of_tf32(*shapes)
    mask = np.random.default_rng(3).random((2, 1, 70, 300)) < 0.5
    mask[0, 0, 3] = False
    _is_right(program.run(q, k, v, mask, sanitize=True)[0], _weights(q, k, mask, LOW), v)
    q[1, 5, 2, 0] = np.nan
    found = np.asarray(program.run(q, k, v, mask)[0])
    assert np.isnan(found[1, 5, 2]).all()
    assert np.isnan(found).any(-1).sum() == 1


def test_one_query_reads_keys_in_parts() -> None:
    shapes = (2, 1, 8, 64), *[(2, 4096, 2, 64)] * 2

    def function(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v)

    program = xgpu.compile(function, *(_spec(*shape) for shape in shapes), options=xgpu.Options(attention_parts=4))
    assert "attention" in {kernel.emitter for kernel in program.kernels}
    q, k, v = _of_tf32(*shapes)
    _is_right(program.run(q, k, v, sanitize=True)[0], _weights(q, k), v)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (einsum_attention, ((1, 200, 2, 40), (1, 130, 2, 40))),
        (causal, ((2, 150, 1, 64), (2, 150, 1, 64))),
        (lambda q, k, v: jax.nn.dot_product_attention(q, k, v), ((1, 140, 4, 128), (1, 140, 2, 128))),
    ],
)
def test_gradients(function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> None:
    """Gradients are computed from weights again, of operands that are copied for the sums of rows and of keys."""
    both, of_rows, of_keys = with_gradients(function), *shapes
    program = xgpu.compile(both, *(_spec(*each) for each in (of_rows, of_rows, of_keys, of_keys)))
    emitters = [kernel.emitter for kernel in program.kernels]
    assert "attention" in emitters
    assert emitters.count("sums") >= 2
    arrays = _of_tf32(of_rows, of_rows, of_keys, of_keys)
    mask = np.tril(np.ones((of_rows[1], of_keys[1]), bool)) if function is causal else None
    for found, exact in zip(
        program.run(*arrays, sanitize=True), exact_gradients(*arrays, mask, -np.inf, 0.0), strict=True
    ):
        error = np.sqrt(np.mean((np.asarray(found, np.float64) - exact) ** 2))
        assert error <= _ROUNDING * np.sqrt(np.mean(exact**2))


@pytest.mark.parametrize("function", [einsum_attention, causal])
def test_gradients_are_finite_differences(function: Callable[..., Any]) -> None:
    """Along directions of each operand, of attention in float64 and, by wider steps, of the kernel itself."""
    shape = (1, 40, 2, 32)
    both = xgpu.compile(with_gradients(function), *[_spec(*shape)] * 4)
    g, *operands = _of_tf32(*[shape] * 4)
    mask = np.tril(np.ones((shape[1], shape[1]), bool)) if function is causal else None
    _, *gradients = both.run(g, *operands)
    forward = _compiled(function, *[_spec(*shape)] * 3)

    def exact(*arrays: Any) -> float:
        return float(np.sum(np.asarray(g, np.float64) * _attended(*arrays, mask)))

    def own(*arrays: Any) -> float:
        return float(np.sum(np.asarray(g, np.float64) * forward.run(*(each.astype(np.float32) for each in arrays))[0]))

    for number, gradient in enumerate(gradients):
        size = np.linalg.norm(np.asarray(gradient, np.float64))
        for seed in range(3):
            # Steep enough for the rounding of the kernel's results not to matter, and no two the same.
            drawn = np.random.default_rng(seed).standard_normal(shape)
            along = drawn / np.linalg.norm(drawn) + np.asarray(gradient, np.float64) / size
            along /= np.linalg.norm(along)
            slope = float(np.sum(np.asarray(gradient, np.float64) * along))
            assert abs(_difference(exact, operands, number, along, 1e-4) - slope) <= _ROUNDING / 2 * size
            assert abs(_difference(own, operands, number, along, 0.25) - slope) <= 0.01 * abs(slope)


def _attended(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return np.einsum("bhqk,bkhd->bqhd", _weights(q, k, mask), np.asarray(v, np.float64))


def _difference(
    function: Callable[..., float], operands: list[Any], number: int, along: np.ndarray[Any, Any], step: float
) -> float:
    """Return the slope of a function along a direction of one operand, by the central difference."""
    ends = []
    for sign in (1, -1):
        moved = [np.asarray(each, np.float64) for each in operands]
        moved[number] = moved[number] + sign * step * along
        ends.append(function(*moved))
    return (ends[0] - ends[1]) / (2 * step)


def test_gradients_of_parts_of_one_array() -> None:
    """A gradient is read where the products of others are still to come: copies are known there."""

    def gradients(g: Any, x: Any) -> Any:
        def attend(x: Any) -> Any:
            weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", x[:, :, 0], x[:, :, 1]))
            return jnp.einsum("bhqk,bkhd->bqhd", weights, x[:, :, 2])

        result, backward = jax.vjp(attend, x)
        return result, *backward(g)

    shapes = (1, 70, 2, 64), (1, 70, 3, 2, 64)
    program = xgpu.compile(gradients, *(_spec(*each) for each in shapes))
    assert [kernel.emitter for kernel in program.kernels].count("sums") == 2
    arrays = [each / 4 for each in _of_tf32(*shapes)]
    with jax.enable_x64():
        wide = [jnp.asarray(each, jnp.float64) for each in arrays]
        expected = [np.asarray(each) for each in jax.jit(gradients)(*wide)]
    for found, exact in zip(program.run(*arrays, sanitize=True), expected, strict=True):
        error = np.sqrt(np.mean((np.asarray(found, np.float64) - exact) ** 2))
        assert error <= _ROUNDING * np.sqrt(np.mean(exact**2))


def _of_same_values(x: Any, y: Any) -> Any:
    return einsum_attention(x, y, y)


def _gradients_of_same_values(g: Any, x: Any, y: Any) -> Any:
    result, backward = jax.vjp(_of_same_values, x, y)
    return result, *backward(g)


def test_arrays_are_copied_once() -> None:
    """The keys are the values: the products of attention and of its gradient read one copy of them."""
    shapes = (1, 72, 2, 64), (1, 72, 2, 64), (1, 96, 2, 64)
    program = xgpu.compile(_gradients_of_same_values, *(_spec(*each) for each in shapes))
    assert [kernel.emitter for kernel in program.kernels].count("sums") == 2
    copies = re.findall(r"^    %\S+ = stablehlo.transpose %arg(\d)", program.ir("prepared"), re.MULTILINE)
    assert sorted(copies) == ["0", "1", "2"]
    arrays = _of_tf32(*shapes)
    result, of_rows, of_keys, of_values = exact_gradients(*arrays, arrays[2], None, -np.inf, 0.0)
    for found, exact in zip(program.run(*arrays, sanitize=True), (result, of_rows, of_keys + of_values), strict=True):
        error = np.sqrt(np.mean((np.asarray(found, np.float64) - exact) ** 2))
        assert error <= _ROUNDING * np.sqrt(np.mean(exact**2))


def test_copies_of_what_is_left_apart_are_undone() -> None:
    """Rows of 160 elements have no room in shared memory: nothing is copied for them."""
    shapes = (1, 70, 2, 160), (1, 70, 2, 160), (1, 90, 2, 160)
    program = xgpu.compile(_gradients_of_same_values, *(_spec(*each) for each in shapes))
    assert "attention" not in {kernel.emitter for kernel in program.kernels}
    assert not re.findall(
        r"^    %\S+ = stablehlo.transpose %arg.*tensor<1x2x160x", program.ir("prepared"), re.MULTILINE
    )
    arrays = program.random_inputs(4)
    for found, expected in zip(program.run(*arrays), program.reference(*arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_levels_go_on_from_text() -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return causal(q, k, v.transpose(0, 3, 1, 2))

    program = _compiled(function, *[_spec(1, 300, 2, 64)] * 2, _spec(1, 2, 64, 300))
    arrays = program.random_inputs(8)
    (expected,) = program.run(*arrays)
    for level in ("fusions", "tiles"):
        again = xgpu.compile(program.ir(level))
        assert again.ir("ptx") == program.ir("ptx")
        (found,) = again.reference(*arrays)
        np.testing.assert_allclose(found, expected, atol=4 * _ROUNDING)


@pytest.mark.parametrize("rows", [300, 64])
def test_every_element_is_written_once(rows: int) -> None:
    program = _compiled(causal, *[_spec(2, rows, 16, 40)] * 3, blocks=7)
    emitter = emitter_of(program, [kernel.emitter for kernel in program.kernels].index("attention"))
    assert isinstance(emitter, AttentionEmitter)
    assert emitter.thread_to_output(0).coverage((2, rows, 16, 40)).is_exact


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("width", [32, 64, 128])
def test_sums_stay_in_registers(width: int) -> None:
    """Nor does ptxas say that products of a warp group wait for each other."""
    for function in (einsum_attention, causal):
        (kernel,) = (
            each for each in _compiled(function, *[_spec(2, 1024, 8, width)] * 3).kernels if each.emitter == "attention"
        )
        assert kernel.assembled.spill_bytes == 0
        assert not [remark for remark in kernel.assembled.remarks if "serialized" in remark]


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_weights_of_f32_and_values_that_become_so(dtype: str) -> None:
    """Queries and keys of 16 bits are multiplied as f32 with them, which is exact; weights are not rounded to 16."""

    def function(q: Any, k: Any, v: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, axis=-1), v)

    program = xgpu.compile(function, f"{dtype}[1,70,2,40]", *[f"{dtype}[1,130,2,40]"] * 2)
    assert [kernel.emitter for kernel in program.kernels].count("attention") == 1
    q, k, v = program.random_inputs(31)
    (found,) = program.run(q, k, v, sanitize=True)
    assert found.dtype == np.float32
    _is_right(found, _weights(q, k), v)
