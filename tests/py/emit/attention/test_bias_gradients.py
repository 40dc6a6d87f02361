"""Gradients of biases of attention: a kernel stores those of logits, of which they are made, on the host executor."""

import math
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
from tests.py.emit.emitters import emitter_of
from tests.py.planned import TARGET, planned
from xgpu.emit.families.attention.sums import SumsEmitter
from xgpu.passes.prepare.products import find_chains
from xgpu.target.nvptx.cubin import find_ptxas

_Program = Callable[..., Any]
LIT = Path(__file__).parents[3] / "lit"
_ROUNDING = {"bf16": 2.0**-8, "f32": 2.0**-11}
"""The relative error of a rounded operand of a product, at most."""


def _attend(q: Any, k: Any, v: Any, bias: Any, mask: Any = None, fill: float = -1e9) -> Any:
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5 + bias
    s = s if mask is None else jnp.where(mask, s, fill)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, axis=-1).astype(q.dtype), v)


def _distance(q: Any, k: Any) -> Any:
    return jnp.arange(k.shape[1]) - jnp.arange(q.shape[1])[:, None]


def _causal(q: Any, k: Any, v: Any, bias: Any) -> Any:
    return _attend(q, k, v, bias, _distance(q, k) <= 0)


def _causal_by_infinity(q: Any, k: Any, v: Any, bias: Any) -> Any:
    return _attend(q, k, v, bias, _distance(q, k) <= 0, -jnp.inf)


def _with_added_mask(q: Any, k: Any, v: Any, bias: Any, mask: Any) -> Any:
    return _attend(q, k, v, bias + jnp.where(mask, 0, -1e9).astype(bias.dtype))


def _dot_product(q: Any, k: Any, v: Any, bias: Any) -> Any:
    return jax.nn.dot_product_attention(q, k, v, bias=bias)


def _causal_dot_product(q: Any, k: Any, v: Any, bias: Any) -> Any:
    return jax.nn.dot_product_attention(q, k, v, bias=bias, is_causal=True)


def _relative(q: Any, k: Any, v: Any, table: Any) -> Any:
    """Return attention of T5: a bias of each head for each of some ranges of distances."""
    distance, half = _distance(q, k), table.shape[0] // 2
    near, far = half // 2, jnp.abs(distance)
    wide = near + (jnp.log(far / near + 1e-6) / math.log(128 / near) * (half - near)).astype(jnp.int32)
    bucket = (distance > 0) * half + jnp.where(far < near, far, jnp.minimum(wide, half - 1))
    return _attend(q, k, v, table[bucket].transpose(2, 0, 1)[None])


def _tempered(q: Any, k: Any, v: Any, temperatures: Any) -> Any:
    """The gradient of a head's temperature is a sum of logits times their gradients."""
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * temperatures[:, None, None]
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s * q.shape[-1] ** -0.5, axis=-1).astype(q.dtype), v)


def _pairs(q: Any, k: Any, v: Any, pairs: Any, w: Any, mask: Any) -> Any:
    """Return attention of AlphaFold: its bias is a product, moved, and logits are of the operands' type."""
    s = jnp.einsum("bqhd,bkhd->bhqk", q * q.shape[-1] ** -0.5, k)
    s = s + jnp.where(mask, 0, -1e9)[:, None, None].astype(s.dtype) + jnp.einsum("qkc,ch->hqk", pairs, w)[None]
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, axis=-1), v)


def _spec(*shape: int, dtype: str = "f32") -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


def _specs(rows: int, keys: int, heads: int, shared: int, width: int, dtype: str) -> list[str]:
    """Return the types of the result's gradient and of attention's operands, for two batches."""
    of_rows, of_keys = (_spec(2, *sizes, width, dtype=dtype) for sizes in ((rows, heads), (keys, shared)))
    return [of_rows, of_rows, of_keys, of_keys]


def _with_all_gradients(function: _Program) -> _Program:
    """Return a function of the result's gradient and of all arguments: the result, and gradients of all floats."""

    def both(g: Any, *arguments: Any) -> Any:
        floats = [number for number, each in enumerate(arguments) if each.dtype != bool]

        def part(*given: Any) -> Any:
            found = list(arguments)
            for number, each in zip(floats, given, strict=True):
                found[number] = each
            return function(*found)

        result, backward = jax.vjp(part, *(arguments[number] for number in floats))
        return (result, *backward(g))

    return both


def _emitters(function: _Program, *specs: str) -> list[str]:
    return [each.emitter for each in planned(function, specs, TARGET, xgpu.Options()).kernels]


def _inputs(program: xgpu.Compiled, seed: int) -> list[Any]:
    arrays = []
    for each in program.random_inputs(seed):
        array = np.asarray(each)
        arrays.append(array if array.dtype == bool else (array.astype(np.float32) / 2).astype(array.dtype))
    return arrays


def _exact(function: _Program, arrays: list[Any]) -> list[Any]:
    with jax.enable_x64():
        wide = [jnp.asarray(each if each.dtype == bool else each.astype(np.float64)) for each in arrays]
        return [np.asarray(each) for each in jax.tree.leaves(jax.jit(function)(*wide))]


def _are_right(program: xgpu.Compiled, function: _Program, arrays: list[Any], dtype: str, checks: bool = True) -> None:
    """Run on the host, whose sanitizer finds nothing; errors beside float64 are those of products of rounded operands.

    Those of 16 bits are not much larger than those of XLA, which rounds other values.
    """
    found, reference = program.run(*arrays, sanitize=checks), program.reference(*arrays)
    for own, other, exact in zip(found, reference, _exact(function, arrays), strict=True):
        ours, theirs = (np.asarray(each, np.float64) - exact for each in (own, other))
        if dtype == "f32":
            assert np.sqrt(np.mean(ours**2)) <= _ROUNDING[dtype] * np.sqrt(np.mean(exact**2))
        else:
            assert np.sqrt(np.mean(ours**2)) <= 1.5 * np.sqrt(np.mean(theirs**2))
            assert np.max(np.abs(ours)) <= 2.5 * np.max(np.abs(theirs))


@pytest.fixture
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have kernels of attention for sizes with which a library is expected to be faster, too."""
    monkeypatch.setattr(find_chains, "_is_faster", lambda *_: True)


_FORMS: dict[str, tuple[_Program, list[int], list[str]]] = {
    "heads": (_attend, [70, 130, 2, 2, 40], ["{f32}[1,2,70,130]"]),
    "batch": (_attend, [70, 130, 2, 2, 40], ["{own}[2,1,70,130]"]),
    "all": (_attend, [70, 130, 2, 2, 40], ["{own}[2,2,70,130]"]),
    "mask": (_attend, [130, 70, 2, 2, 64], ["{f32}[1,2,130,70]", "pred[2,1,1,70]"]),
    "causal": (_causal, [150, 150, 2, 2, 64], ["{f32}[1,2,150,150]"]),
    "causal, infinity": (_causal_by_infinity, [150, 150, 2, 2, 64], ["{own}[2,1,150,150]"]),
    "added mask": (_with_added_mask, [70, 130, 2, 2, 40], ["{f32}[1,2,70,130]", "pred[2,1,1,130]"]),
    "dot product": (_dot_product, [70, 130, 4, 2, 64], ["{own}[1,4,70,130]"]),
    "dot product, causal": (_causal_dot_product, [150, 150, 4, 1, 64], ["{own}[2,4,150,150]"]),
    "relative": (_relative, [70, 130, 2, 2, 64], ["{own}[32,2]"]),
    "temperatures": (_tempered, [70, 130, 2, 2, 64], ["{f32}[2]"]),
}
_WIDE = ("heads", "dot product, causal", "relative")
"""The forms that are tested with operands of f32, too."""


@pytest.mark.usefixtures("_any_size")
@pytest.mark.parametrize(("form", "dtype"), [*((form, "bf16") for form in _FORMS), *((form, "f32") for form in _WIDE)])
def test_forms(form: str, dtype: str) -> None:
    function, sizes, rest = _FORMS[form]
    both = _with_all_gradients(function)
    program = xgpu.compile(both, *_specs(*sizes, dtype), *(each.format(own=dtype, f32="f32") for each in rest))
    emitters = [kernel.emitter for kernel in program.kernels]
    assert emitters.count("attention") == 1
    assert emitters.count("sums") == 2
    _are_right(program, both, _inputs(program, 1), dtype)


@pytest.mark.usefixtures("_any_size")
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_a_bias_of_pairs(dtype: str) -> None:
    """The gradient of the bias is the operand of products that are left to XLA."""
    both = _with_all_gradients(_pairs)
    rest = (_spec(96, 70, 16, dtype=dtype), _spec(16, 2, dtype=dtype), "pred[2,70]")
    program = xgpu.compile(both, *_specs(96, 70, 2, 2, 32, dtype), *rest)
    assert [kernel.emitter for kernel in program.kernels].count("sums") == 2
    _are_right(program, both, _inputs(program, 2), dtype, checks=False)


@pytest.mark.usefixtures("_any_size")
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_sums_of_all_keys(dtype: str) -> None:
    """A slope's gradient is made of all gradients of logits, of which those of a row add up to zero.

    So its error is that of a row's rounded result, times distances: beside what is added up it is a rounding.
    """

    def function(q: Any, k: Any, v: Any, slopes: Any, bias: Any) -> Any:
        return _causal(q, k, v, bias + slopes[:, None, None] * jnp.abs(_distance(q, k)).astype(slopes.dtype))

    both = _with_all_gradients(function)
    program = xgpu.compile(both, *_specs(140, 140, 2, 2, 64, dtype), "f32[2]", "f32[2,2,140,140]")
    assert [kernel.emitter for kernel in program.kernels].count("sums") == 2
    arrays = _inputs(program, 3)
    found, exact = program.run(*arrays, sanitize=True), _exact(both, arrays)
    added = np.abs(exact[5] * np.abs(np.arange(140) - np.arange(140)[:, None])).sum((0, 2, 3))
    assert np.all(np.abs(np.asarray(found[4], np.float64) - exact[4]) <= _ROUNDING[dtype] * added)
    error = np.sqrt(np.mean((np.asarray(found[5], np.float64) - exact[5]) ** 2))
    assert error <= _ROUNDING[dtype] * np.sqrt(np.mean(exact[5] ** 2))


@pytest.mark.parametrize(
    "schedule",
    [
        {"tile_m": 64, "groups": 1, "tile_n": 32, "stages": 3, "blocks": 1, "turns": False},
        {"tile_m": 192, "groups": 3, "tile_n": 64, "stages": 1, "blocks": 5},
    ],
    ids=str,
)
def test_steps_that_a_mask_skips_have_zeros(schedule: dict[str, int]) -> None:
    both, specs = _with_all_gradients(_causal), [*_specs(260, 260, 1, 1, 64, "bf16"), "f32[2,1,260,260]"]
    kernels = planned(both, specs, TARGET, xgpu.Options()).kernels
    options = xgpu.Options(schedules={each.name: schedule for each in kernels if each.emitter == "sums"})
    program = xgpu.compile(both, *specs, options=options)
    assert "xgpu.visible" in program.ir("tiles")
    arrays = _inputs(program, 4)
    _are_right(program, both, arrays, "bf16")
    *_, of_bias = program.run(*arrays)
    assert not np.triu(of_bias, 1).any()
    assert of_bias[..., 200:, :128].all()


def test_every_element_is_written_once() -> None:
    for function, schedule in (
        (_causal, {"tile_m": 64, "groups": 1, "tile_n": 64, "stages": 2, "blocks": 3, "turns": False}),
        (_attend, {"tile_m": 128, "groups": 2, "tile_n": 32, "stages": 1, "blocks": 4}),
    ):
        both, specs = _with_all_gradients(function), [*_specs(190, 190, 2, 2, 64, "bf16"), "f32[2,2,190,190]"]
        kernels = planned(both, specs, TARGET, xgpu.Options()).kernels
        options = xgpu.Options(schedules={each.name: schedule for each in kernels if each.emitter == "sums"})
        program = xgpu.compile(both, *specs, options=options)
        emitters = [emitter_of(program, n) for n, each in enumerate(program.kernels) if each.emitter == "sums"]
        shapes = []
        for emitter in emitters:
            assert isinstance(emitter, SumsEmitter)
            for output, stored in enumerate(emitter.stored):
                shapes.append(tuple(stored.result.type.shape))
                assert emitter.thread_to_output(output).coverage(shapes[-1]).is_exact
        assert shapes.count((2, 2, 190, 190)) == 1


def test_levels_go_on_from_text() -> None:
    both = _with_all_gradients(_causal)
    program = xgpu.compile(both, *_specs(140, 140, 1, 1, 64, "bf16"), "f32[2,1,140,140]")
    arrays = _inputs(program, 5)
    for level in ("fusions", "tiles"):
        assert xgpu.compile(program.ir(level)).ir("ptx") == program.ir("ptx")
    again = xgpu.compile(program.ir("fusions"))
    for found, expected in zip(again.reference(*arrays), program.run(*arrays), strict=True):
        np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), atol=0.02)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r'"xgpu.steps"\((%\w+), %\w+,', r'"xgpu.steps"(\1, \1,', "expected value 1 to be the array of that number"),
        (r'"xgpu.yield"\((%\w+), %\w+, (%\w+)\)', r'"xgpu.yield"(\1, \1, \2)', "with one tile written"),
        (
            r'emitter = "sums"(.*?), turns = \w+>',
            r'emitter = "attention"\1, folded = true, branched = true, overlap = true,'
            " turns = false, reuse = false, computed = 0, steady = true>",
            "expected steps that write no arrays, as their products overlap",
        ),
    ],
)
def test_refused_steps(old: str, new: str, message: str) -> None:
    text = xgpu.compile((LIT / "emit" / "products" / "sums_elements.mlir").read_text()).ir("tiles")
    text, count = re.subn(old, new, text, count=1)
    assert count == 1
    with pytest.raises(xgpu.XgpuError, match=message):
        xgpu.compile(text).ir("emitted")


def test_layers_that_are_computed_again() -> None:
    """All layers of a loop add to the gradient of one bias."""
    shape = (1, 128, 4, 64)

    def loss(w: Any, x: Any, bias: Any) -> Any:
        def layer(x: Any, w: Any) -> Any:
            q, k, v = (jnp.dot(x, each).reshape(shape) for each in w)
            return x + _attend(q, k, v, bias).reshape(x.shape), None

        return jnp.sum(lax.scan(jax.checkpoint(layer), x, w)[0].astype(jnp.float32) ** 2)

    gradients = jax.grad(loss, (0, 1, 2))
    specs = ("bf16[2,3,256,256]", "bf16[1,128,256]", "f32[4,128,128]")
    assert _emitters(gradients, *specs).count("sums") == 2
    program = xgpu.compile(gradients, *specs)
    arrays = _inputs(program, 6)
    arrays[0] = (arrays[0].astype(np.float32) / 16).astype(arrays[0].dtype)
    _are_right(program, gradients, arrays, "bf16", checks=False)


_SIZES = (512, 512, 8, 8, 64, "bf16")


def test_a_bias_of_no_gradient_is_read_only() -> None:
    def function(q: Any, k: Any, v: Any, bias: Any) -> Any:
        return _attend(q, k, v, lax.stop_gradient(bias))

    specs = [*_specs(*_SIZES), "f32[2,8,512,512]"]
    text = planned(_with_all_gradients(function), specs, TARGET, xgpu.Options()).ir("fusions")
    results = [line.rsplit("->", 1)[1] for line in text.splitlines() if 'xgpu.emitter = "sums"' in line]
    assert sum(each.count("tensor<2x512x8x64xbf16>") for each in results) == 3
    assert "512x512" not in "".join(results)


@pytest.mark.parametrize("reads", [lambda p: p, lambda p: p.mean(1)])
def test_weights_that_are_read_are_in_memory(reads: _Program) -> None:
    """Attention is left in parts, with gradients of a bias or without."""

    def function(q: Any, k: Any, v: Any, bias: Any) -> Any:
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) + bias
        p = jax.nn.softmax(s, axis=-1).astype(q.dtype)
        return jnp.einsum("bhqk,bkhd->bqhd", p, v), reads(p)

    def gradients(g: Any, q: Any, k: Any, v: Any, bias: Any) -> Any:
        (result, read), backward = jax.vjp(function, q, k, v, bias)
        return result, read, backward((g, jnp.zeros_like(read)))

    assert not {"attention", "sums"} & set(_emitters(gradients, *_specs(*_SIZES), "f32[8,512,512]"))


def test_what_is_stored_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time in which memory takes the gradients of logits is added to that of the kernels."""
    found = []
    fast = find_chains.is_gradient_fast
    monkeypatch.setattr(find_chains, "is_gradient_fast", lambda *given: found.append(given[2]) or fast(*given))
    for dtype, count in (("f32", 4), ("bf16", 2)):
        specs = [*_specs(*_SIZES), _spec(2, 8, 512, 512, dtype=dtype)]
        assert "sums" in _emitters(_with_all_gradients(_attend), *specs)
        assert found.pop() == pytest.approx(2 * 8 * 512 * 512 * count / TARGET.memory_bandwidth)
    _emitters(_with_all_gradients(lambda q, k, v: _attend(q, k, v, 0.0)), *_specs(*_SIZES))
    assert found.pop() == 0


def test_neighbours_are_read_and_written_together() -> None:
    """Where memory has them side by side, as for rows of queries; where it has rows side by side, one by one."""
    specs = [*_specs(*_SIZES), "f32[2,8,512,512]"]
    kernels = xgpu.compile(_with_all_gradients(_attend), *specs).kernels
    pairs = {}
    for kernel in kernels:
        if kernel.emitter in ("attention", "sums"):
            accesses = ("ld.global.nc.b32", "ld.global.nc.v2.b32", "st.global.v2.b32")
            pairs["st.global" in kernel.ptx, kernel.emitter] = [kernel.ptx.count(each) for each in accesses]
    assert pairs[True, "attention"][:2] == [0, 64]
    assert pairs[True, "sums"][1:] == [32, 32]


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_elements_are_stored_from_registers(dtype: str) -> None:
    """Nor does ptxas say that products of a warp group wait for each other."""
    specs = [*_specs(512, 512, 8, 8, 64, dtype), "f32[1,8,512,512]"]
    for kernel in xgpu.compile(_with_all_gradients(_causal), *specs).kernels:
        if kernel.emitter == "sums":
            assert kernel.assembled.spill_bytes == 0
            assert not [remark for remark in kernel.assembled.remarks if "serialized" in remark]
