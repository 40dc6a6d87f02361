"""What is refused of products of warps that were changed by hand, each with the reason; and restarts from text."""

import functools
import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import xgpu

_SCHEDULE = {
    "tile_m": 64,
    "tile_n": 64,
    "tile_k": 32,
    "stages": 3,
    "down": 2,
    "across": 2,
    "resident": 2,
    "blocks": 4,
    "left_bytes": 8,
    "right_bytes": 2,
    "ahead": False,
    "neighbours": 1,
    "band": 4,
}


@functools.cache
def _program() -> xgpu.Compiled:
    options = xgpu.Options(products="kernels")
    specs = ("bf16[256,132]", "bf16[132,57]")
    name = xgpu.compile(jnp.dot, *specs, target="sm_80", options=options).kernels[0].name
    options = xgpu.Options(products="kernels", schedules={name: _SCHEDULE})
    return xgpu.compile(jnp.dot, *specs, target="sm_80", options=options)


def _text() -> str:
    text: str = _program().ir("tiles")
    return text


def _refusal(text: str, target: str = "sm_80") -> str:
    with pytest.raises(xgpu.XgpuError) as caught:
        xgpu.compile(text, target=target).ir("emitted")
    assert caught.value.location is not None
    assert "failed" not in caught.value.message
    return caught.value.message


def test_a_kernel_goes_on_from_its_text() -> None:
    again = xgpu.compile(_text(), target="sm_80")
    assert again.ir("tiles") == _text()
    assert again.ir("ptx") == _program().ir("ptx")
    arguments = _program().random_inputs(1)
    np.testing.assert_array_equal(again.run(*arguments)[0], _program().run(*arguments)[0])


_NUMBERS: list[tuple[dict[str, Any], str]] = [
    ({"tile_k": 8}, "tile_k = 8: expected a power of two, 16 to 128"),
    ({"stages": 1}, "stages = 1: expected a number from 2 to 8"),
    ({"down": 8}, "down = 8: expected each warp to have a multiple of 16 rows"),
    ({"across": 3}, "across = 3: expected each warp to have a multiple of 16 columns"),
    ({"stages": 8, "resident": 3}, "stages = 8: expected tiles of at most 54954 bytes, the shared memory of 3 blocks"),
    ({"left_bytes": 16}, "left_bytes = 16: expected at most 8, of which what begins a copy is a multiple"),
    ({"right_bytes": 4}, "right_bytes = 4: expected at most 2, of which what begins a copy is a multiple"),
    ({"right_bytes": 1}, "right_bytes = 1: expected a power of two, 2 to 16"),
    ({"ahead": "true"}, "ahead = true: expected operands that are copied asynchronously"),
    ({"neighbours": 3}, "neighbours = 3: expected a power of two up to 8"),
    ({"band": 3}, "band = 3: expected a divisor of 4, the rows of tiles"),
]


@pytest.mark.parametrize(("numbers", "message"), _NUMBERS, ids=str)
@pytest.mark.parametrize("level", ["fusions", "tiles"])
def test_other_numbers(level: str, numbers: dict[str, Any], message: str) -> None:
    text = _program().ir(level)
    for name, value in numbers.items():
        text, count = re.subn(rf"\b{name} = \w+(?=[,>])", f"{name} = {value}", text)
        assert count == 1
    threads = 32 * numbers.get("down", 2) * numbers.get("across", 2)
    text = text.replace("xgpu.block = array<i64: 128,", f"xgpu.block = array<i64: {threads},")
    assert message in _refusal(text)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("tile_m = 256, tile_n = 128, down = 2, across = 2", "has at most 128 sums, not 256"),
        ("tile_m = 128, tile_n = 64, tile_k = 128, down = 1, across = 2", "at most 176 sums and elements, not 256"),
        ("tile_m = 128, tile_n = 128, down = 8, across = 8", "at most 15 warps, not 64"),
        ("groups = 2", "unknown number 'groups' of its schedule"),
    ],
)
def test_schedules_of_plans(schedule: str, message: str) -> None:
    text = re.sub(r"#xgpu\.schedule<[^>]*>", f"#xgpu.schedule<{schedule}>", _program().ir("fusions"))
    assert message in _refusal(text)


def test_other_emitters() -> None:
    text = _text().replace('xgpu.emitter = "warp_product"', 'xgpu.emitter = "product"')
    assert "expected xgpu.schedule with the numbers tile_m, tile_n, tile_k, stages, groups" in _refusal(text)
    text = _text().replace('xgpu.emitter = "warp_product"', 'xgpu.emitter = "loop"')
    assert "expected xgpu.emitter to be product, warp_product, attention, sums or block, got loop" in _refusal(text)


def test_a_tile_without_rows_in_memory() -> None:
    text, count = re.subn(r"\(d1 \* 64 \+ s0, d3 \* 32 \+ s1\)", "(d1 * 64 + s0, (d3 * 32 + s1) floordiv 2)", _text())
    assert count == 1
    assert "the tile cannot be copied by rows: no dimension of it is contiguous in memory" in _refusal(text)


@pytest.mark.parametrize(("element", "name"), [("f32", "f32"), ("f8E4M3FN", "f8e4m3fn")])
@pytest.mark.parametrize("level", ["fusions", "tiles"])
def test_elements_that_only_warp_groups_multiply(level: str, element: str, name: str) -> None:
    text = _program().ir(level).replace("bf16", element)
    assert f"expected operands of bf16 or f16, which warps multiply, got {name}" in _refusal(text)


def test_operands_of_two_types() -> None:
    text = _program().ir("fusions").replace("x57xbf16>", "x57xf16>")
    with pytest.raises(xgpu.InvalidInput, match=r"expected operands of one of bf16, .*, got bf16 and f16"):
        xgpu.compile(text, target="sm_80")
