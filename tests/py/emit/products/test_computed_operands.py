"""Products whose kernels compute an operand on its way from memory: weights of 8 or 4 bits, in registers."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from tests.py.emit.emitters import emitter_of
from xgpu.emit.families.products.product import ProductEmitter
from xgpu.indexing.tiles.fragments import warpgroup_left
from xgpu.target.nvptx.cubin import find_ptxas

from .products import KERNELS, compiled, is_exact, whole_numbers

BF16, F32 = jnp.bfloat16, jnp.float32
X = "bf16[16,256]"


def plain(x: Any, q: Any) -> Any:
    return x @ q.astype(x.dtype)


def narrow_scale(x: Any, q: Any, scale: Any) -> Any:
    return x @ (q.astype(x.dtype) * scale)


def by_output(x: Any, q: Any, scale: Any) -> Any:
    return x @ (q.astype(F32) * scale).astype(x.dtype)


def by_input(x: Any, q: Any, scale: Any) -> Any:
    return x @ (q.astype(F32) * scale[:, None]).astype(x.dtype)


def by_group(x: Any, q: Any, scale: Any) -> Any:
    (k, n), groups = q.shape, scale.shape[0]
    w = q.astype(F32).reshape(groups, k // groups, n) * scale[:, None, :]
    return x @ w.reshape(k, n).astype(x.dtype)


def with_zero_point(x: Any, q: Any, scale: Any, zero: Any) -> Any:
    (k, n), groups = q.shape, scale.shape[0]
    w = q.astype(F32).reshape(groups, k // groups, n) - zero.astype(F32)[:, None, :]
    return x @ (w * scale[:, None, :]).reshape(k, n).astype(x.dtype)


def integer_zero_point(x: Any, q: Any, zero: Any) -> Any:
    return x @ (q.astype(jnp.int32) - zero).astype(x.dtype)


def of_codes(x: Any, q: Any) -> Any:
    """Weights that are no linear function of what is stored: any element-wise code will do."""
    low, high = q & 15, q >> 4
    return x @ jnp.where(low > 7, low.astype(F32) * 0.5, -high.astype(F32)).astype(x.dtype)


def named(value: Any) -> str:
    """Return the name of a function, and any other value as it is."""
    return getattr(value, "__name__", str(value))


FORMS: list[tuple[Callable[..., Any], tuple[str, ...]]] = [
    (plain, ("s8[256,128]",)),
    (plain, ("u8[256,128]",)),
    (plain, ("f8e4m3fn[256,128]",)),
    (plain, ("f8e5m2[256,128]",)),
    (narrow_scale, ("s8[256,128]", "bf16[128]")),
    (by_output, ("s8[256,128]", "f32[128]")),
    (by_output, ("f8e4m3fn[256,128]", "f32[128]")),
    (by_input, ("s8[256,128]", "f32[256]")),
    (by_group, ("u8[256,128]", "f32[2,128]")),
    (by_group, ("s8[256,128]", "f32[8,128]")),
    (with_zero_point, ("u8[256,128]", "f32[2,128]", "u8[2,128]")),
    (integer_zero_point, ("s8[256,128]", "s32[128]")),
    (of_codes, ("u8[256,128]",)),
    (plain, ("s4[256,128]",)),
    (plain, ("u4[256,128]",)),
    (by_group, ("s4[256,128]", "f32[2,128]")),
    (with_zero_point, ("u4[256,128]", "f32[2,128]", "u4[2,128]")),
    (integer_zero_point, ("s4[256,128]", "s32[128]")),
]


def turned(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the program whose weights lie in memory with the contracted dimension last."""
    return lambda x, q, *others: function(x, q.T, *others)


def turned_spec(spec: str) -> str:
    """Return a type of two dimensions with these exchanged."""
    name, _, sizes = spec.rstrip("]").partition("[")
    return f"{name}[{','.join(sizes.split(',')[::-1])}]"


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize(("function", "specs"), FORMS, ids=named)
def test_forms(function: Callable[..., Any], specs: tuple[str, ...], is_turned: bool) -> None:
    """Both layouts of weights; what is stored is the product alone."""
    weights, *others = specs
    if is_turned:
        function, weights = turned(function), turned_spec(weights)
    is_exact(compiled(function, X, weights, *others))


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize(
    ("name", "rows", "schedule"),
    [
        ("s8", 5, {"tile_m": 64, "split": 2}),
        ("s4", 70, {"tile_m": 128, "split": 2, "tile_n": 32}),
        ("s8", 70, {"tile_m": 128, "split": 1, "tile_n": 96, "blocks": 1}),
        ("s4", 130, {"tile_m": 128, "groups": 1, "tile_n": 24, "stages": 2}),
        ("s4", 300, {"tile_m": 64, "split": 1, "tile_n": 136, "blocks": 3}),
        ("s8", 300, {"tile_m": 128, "split": 1, "tile_n": 256, "blocks": 2}),
    ],
    ids=str,
)
def test_schedules(name: str, rows: int, schedule: dict[str, int], is_turned: bool) -> None:
    """Rows and columns that no tile divides, parts of sums in clusters, several tiles a block and a small ring."""
    weights = f"{name}[224,512]" if is_turned else f"{name}[512,224]"
    function = turned(by_output) if is_turned else by_output
    is_exact(compiled(function, f"bf16[{rows},512]", weights, "f32[224]", swapped=True, **schedule))


def test_f16() -> None:
    is_exact(compiled(by_output, "f16[16,256]", "s8[256,128]", "f32[128]"))


def test_operand_that_is_the_first() -> None:
    """Its rows are those of the result."""
    function = lambda q, x, scale: (q.astype(F32) * scale[:, None]).astype(BF16) @ x  # noqa: E731
    is_exact(compiled(function, "s8[192,256]", "bf16[256,24]", "f32[192]"))


def test_epilogue() -> None:
    function = lambda x, q, scale, bias: jax.nn.relu(by_output(x, q, scale) + bias)  # noqa: E731
    is_exact(compiled(function, X, "s8[256,128]", "f32[128]", "bf16[128]"))


def test_values_of_many_rows_are_close_to_float64() -> None:
    program = compiled(by_output, "bf16[64,1024]", "s8[1024,192]", "f32[192]")
    generator = np.random.default_rng(0)
    x = generator.standard_normal((64, 1024)).astype(BF16)
    q = generator.integers(-128, 128, (1024, 192)).astype(np.int8)
    scale = (generator.uniform(0.5, 2, 192) / 128).astype(np.float32)
    (result,) = program.run(x, q, scale, sanitize=True)
    weights = (q.astype(np.float32) * scale).astype(BF16).astype(np.float64)
    exact = x.astype(np.float64) @ weights
    bound = np.abs(x.astype(np.float64)) @ np.abs(weights)
    assert (np.abs(result.astype(np.float64) - exact) <= 2.0**-8 * np.abs(exact) + 2.0**-20 * bound).all()


@pytest.mark.parametrize(("name", "numbers"), [("s8", 256), ("u8", 256), ("s4", 16), ("u4", 16)])
def test_all_codes_become_their_numbers(name: str, numbers: int) -> None:
    """Each is an element of a column of its own, times one."""
    program = compiled(plain, "bf16[8,128]", f"{name}[128,256]")
    first = -numbers // 2 if name.startswith("s") else 0
    x = np.zeros((8, 128), BF16)
    x[3, 77] = 1
    q = np.zeros((128, 256), program.arguments[1].dtype.numpy)
    q[77] = np.arange(256) % numbers + first
    (result,) = program.run(x, q)
    np.testing.assert_array_equal(result[3].astype(np.float32), np.arange(256) % numbers + first)


@pytest.mark.parametrize("is_turned", [False, True])
def test_every_element_is_written_once(is_turned: bool) -> None:
    weights = "s8[208,256]" if is_turned else "s8[256,208]"
    function = turned(by_output) if is_turned else by_output
    for split in (1, 2):
        program = compiled(
            function, "bf16[40,256]", weights, "f32[208]", tile_m=64, tile_n=16, split=split, swapped=True
        )
        emitter = emitter_of(program)
        assert isinstance(emitter, ProductEmitter)
        assert emitter.product.has_paired_rows(emitter.schedule.sizes) is not is_turned
        assert emitter.thread_to_output(0).coverage((40, 208)).is_exact


@pytest.mark.parametrize("paired", [False, True])
def test_threads_of_a_warp_group_hold_each_element_of_a_left_operand_once(paired: bool) -> None:
    assert warpgroup_left(64, paired).coverage((64, 64)).is_exact


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize(
    ("rows", "function", "specs"),
    [
        (256, by_output, ("s8[512,512]", "f32[512]")),
        (16, by_output, ("f8e4m3fn[512,512]", "f32[512]")),
        (256, by_input, ("s8[512,512]", "f32[512]")),
        (256, by_group, ("s4[512,512]", "f32[4,512]")),
        (256, with_zero_point, ("u8[512,512]", "f32[4,512]", "u8[4,512]")),
    ],
    ids=named,
)
def test_operands_stay_in_registers(
    rows: int, function: Callable[..., Any], specs: tuple[str, ...], is_turned: bool
) -> None:
    """Nor does ptxas say that products of a warp group wait for each other."""
    given = turned(function) if is_turned else function
    wide = {"tile_m": 128, "tile_n": min(rows, 256), "swapped": True}
    assembled = compiled(given, f"bf16[{rows},512]", *specs, **wide).kernels[0].assembled
    assert (assembled.spill_bytes, assembled.remarks) == (0, ())


def test_operands_that_no_kernel_computes_are_stored() -> None:
    """What others read, too; sums that are no multiple of a step; masks, which have as many elements as weights."""
    shared = lambda x, y, q: (plain(x, q), plain(y, q))  # noqa: E731
    masked = lambda x, q, mask: x @ (q * mask).astype(BF16)  # noqa: E731
    for function, specs in (
        (shared, (X, "bf16[24,256]", "s8[256,128]")),
        (plain, ("bf16[16,272]", "s8[272,128]")),
        (plain, ("bf16[16,256]", "s8[256,120]")),
        (plain, ("bf16[16,256]", "s4[256,144]")),
        (masked, (X, "s8[256,128]", "s8[256,128]")),
        (by_output, (X, "s32[256,128]", "f32[128]")),
    ):
        program = xgpu.compile(function, *specs, options=KERNELS)
        assert "xgpu.prologue" not in program.ir("fusions")
        given = whole_numbers(program)
        for one, other in zip(program.run(*given), program.reference(*given), strict=True):
            np.testing.assert_array_equal(one.astype(np.float32), other.astype(np.float32))


def layers(x: Any, q: Any, scale: Any) -> Any:
    return jax.lax.scan(lambda x, layer: (jnp.clip(by_output(x, *layer), -4, 4), None), x, (q, scale))[0]


@pytest.mark.parametrize(
    ("function", "specs", "emitters"),
    [
        (lambda x, q, scale: by_output(x, q[1], scale), ("s8[3,256,128]", "f32[128]"), ["product"]),
        (lambda x, q, scale: by_output(x, q[64:320], scale), ("s8[512,128]", "f32[128]"), ["product"]),
        (
            lambda x, q, p, scale: by_output(x, jnp.concatenate([q, p], 1), scale),
            ("s8[256,128]", "s8[256,128]", "f32[256]"),
            ["concatenate", "product"],
        ),
        (
            lambda x, q, scale: by_output(x, q, jnp.max(scale, 1)),
            ("s8[256,128]", "f32[128,64]"),
            ["reduce_row", "product"],
        ),
        (layers, ("s8[3,256,256]", "f32[3,256]"), ["parts", "product"]),
    ],
    ids=["layer", "rows", "joined", "reduced", "scanned"],
)
def test_what_weights_are_made_of(function: Callable[..., Any], specs: tuple[str, ...], emitters: list[str]) -> None:
    """What no kernel computes on tiles is stored first, as narrow as it is; parts of arrays are tiles of them."""
    program = xgpu.compile(function, X, *specs, options=KERNELS)
    assert [kernel.emitter for kernel in program.kernels] == emitters
    assert "xgpu.prologue" in program.ir("fusions")
    given = whole_numbers(program)
    (result,), (expected,) = program.run(*given), program.reference(*given)
    np.testing.assert_array_equal(result.astype(np.float32), expected.astype(np.float32))
