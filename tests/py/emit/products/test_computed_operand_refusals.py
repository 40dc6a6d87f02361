"""What lower-tiles refuses of kernels that compute an operand, changed by hand; and what XLA makes of their text."""

import functools
import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import xgpu


def _function(x: Any, q: Any, scale: Any) -> Any:
    return x @ (q.astype(jnp.float32) * scale).astype(jnp.bfloat16)


@functools.cache
def _program() -> xgpu.Compiled:
    given = {"tile_m": 128, "tile_n": 16, "stages": 2, "split": 1}
    options = xgpu.Options(products="kernels", schedules={"function_fusion_0": given})
    return xgpu.compile(_function, "bf16[16,256]", "s8[256,128]", "f32[128]", options=options)


def _text() -> str:
    return _program().ir("tiles")


def _refusal(text: str) -> str:
    with pytest.raises(xgpu.XgpuError) as caught:
        xgpu.compile(text).ir("emitted")
    assert caught.value.location is not None and "failed" not in caught.value.message
    return caught.value.message


def test_a_kernel_goes_on_from_its_text() -> None:
    again = xgpu.compile(_text())
    assert again.ir("tiles") == _text()
    assert again.ir("ptx") == _program().ir("ptx")
    arguments = [np.round(array * 4).astype(array.dtype) for array in _program().random_inputs(1)]
    (expected,) = _program().reference(*arguments)
    np.testing.assert_array_equal(again.run(*arguments)[0], expected)
    np.testing.assert_array_equal(again.reference(*arguments)[0], expected)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"tile_k": 64}, "tile_m, tile_n, tile_k = (128, 16, 128), its tiles, got others"),
        ({"groups": 1, "blocks": 1, "tile_m": 256}, "tile_m, tile_n, tile_k = (128, 16, 128), its tiles"),
        ({"cluster": 2, "blocks": 2}, "of a product with an operand that is computed"),
        ({"stages": 16}, "bytes of shared memory suffice"),
    ],
    ids=str,
)
def test_other_numbers(numbers: dict[str, int], message: str) -> None:
    text = _text().replace("xgpu.grid = array<i64: 1,", f"xgpu.grid = array<i64: {numbers.get('blocks', 1)},")
    if "groups" in numbers:
        text = text.replace("xgpu.block = array<i64: 384,", "xgpu.block = array<i64: 256,")
    for name, value in numbers.items():
        text, count = re.subn(rf"\b{name} = \w+(?=[,>])", f"{name} = {value}", text)
        assert count == 1
    assert message in _refusal(text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            r"-> \(d3 \* 128 \+ s1, s0\)",
            "-> (d3 * 128 + s1, d1)",
            "expected operand 0 to be computed from one tile of as many elements, got 0",
        ),
        (r"-> \(d3 \* 128 \+ s1, s0\)", "-> (d3 * 128 + s1, 127 - s0)", "cannot be copied as boxes"),
        (
            r"stablehlo\.multiply (%\w+), %\w+ :",
            r"stablehlo.reverse \1, dims = [0] :",
            "an operation on single elements",
        ),
    ],
    ids=str,
)
def test_other_operands(old: str, new: str, message: str) -> None:
    text, count = re.subn(old, new, _text())
    assert count
    assert message in _refusal(text)


def test_wide_elements() -> None:
    """Threads read bytes."""
    text = _text().replace("256x128xi8", "256x128xi16").replace("128x128xi8", "128x128xi16")
    assert "computed from elements of 4 or 8 bits" in _refusal(text)


def test_warps_compute_no_operand() -> None:
    numbers = "tile_m = 128, tile_n = 16, tile_k = 128, stages = 2, down = 1, across = 1, resident = 1, blocks = 1"
    numbers += ", left_bytes = 16, right_bytes = 16, ahead = false, neighbours = 8, band = 1"
    text = re.sub(r"#xgpu\.schedule<.*?>", f"#xgpu.schedule<{numbers}>", _text()).replace('"product"', '"warp_product"')
    assert "in a kernel of warps" in _refusal(
        text.replace("xgpu.block = array<i64: 384,", "xgpu.block = array<i64: 32,")
    )
