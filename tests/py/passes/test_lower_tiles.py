"""What lower-tiles refuses of kernels that were changed by hand, each with the reason; and restarts from text."""

import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.cli.main import main as xgpu_main
from xgpu.cli.opt.main import main as xgpu_opt_main

_ROWS: Any = (((1,), (1,)), ((), ()))


def _function(x: Any, w: Any, b: Any) -> Any:
    return jax.nn.relu(jnp.dot(x, w, preferred_element_type=jnp.float32) + b)


@functools.cache
def _program() -> xgpu.Compiled:
    given = {"tile_m": 64, "tile_n": 64, "groups": 1, "staged": False, "split": 1, "swapped": False}
    options = xgpu.Options(products="kernels", schedules={"function_fusion_0": given})
    return xgpu.compile(_function, "bf16[256,136]", "bf16[136,64]", "f32[64]", options=options)


def _text() -> str:
    return _program().ir("tiles")


def _with_numbers(**numbers: Any) -> str:
    text = _text()
    for name, value in numbers.items():
        text, count = re.subn(rf"\b{name} = \w+(?=[,>])", f"{name} = {value}", text)
        assert count == 1
    return text


def _refusal(text: str) -> str:
    """Return why a text is refused, which it is where it says so, and not by an error of the compiler's own."""
    with pytest.raises(xgpu.XgpuError) as caught:
        xgpu.compile(text).ir("emitted")
    assert caught.value.location is not None
    assert caught.value.location.line > 1
    assert "failed" not in caught.value.message
    return caught.value.message


def test_a_kernel_goes_on_from_its_text() -> None:
    program = _program()
    again = xgpu.compile(_text())
    assert again.ir("tiles") == _text()
    assert again.ir("ptx") == program.ir("ptx")
    arguments = program.random_inputs(1)
    np.testing.assert_array_equal(again.run(*arguments)[0], program.run(*arguments)[0])


def test_xla_runs_a_kernel_of_tiles() -> None:
    """With numbers whose sums are exact, the blocks one after the other give what the whole program gives."""
    program, again = _program(), xgpu.compile(_text())
    arguments = [np.round(array * 4).astype(array.dtype) for array in program.random_inputs(2)]
    np.testing.assert_array_equal(again.reference(*arguments)[0], program.reference(*arguments)[0])
    shifted = xgpu.compile(re.sub(r"stablehlo\.maximum", "stablehlo.minimum", _text()))
    assert np.any(shifted.reference(*arguments)[0] != program.reference(*arguments)[0])


def test_xla_runs_tiles_of_unsigned_numbers() -> None:
    def function(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, _ROWS, preferred_element_type=jnp.uint32) // 3

    options = xgpu.Options(products="kernels")
    program = xgpu.compile(function, "u8[70,144]", "u8[40,144]", options=options)
    again = xgpu.compile(program.ir("tiles"))
    arguments = program.random_inputs(3)
    bits = [array.view(np.int8) for array in arguments]
    np.testing.assert_array_equal(again.reference(*bits)[0].view(np.uint32), program.reference(*arguments)[0])


def test_xla_runs_tiles_of_f32_as_tensor_cores_take_them() -> None:
    options = xgpu.Options(products="kernels")
    program = xgpu.compile(lambda x, y: lax.dot_general(x, y, _ROWS), "f32[70,40]", "f32[40,40]", options=options)
    arguments = program.random_inputs(4)
    (found,), (expected,) = program.run(*arguments), xgpu.compile(program.ir("tiles")).reference(*arguments)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert np.abs(found - program.reference(*arguments)[0]).max() > 1e-4


def test_kernels_without_tiles_are_as_they_were_emitted() -> None:
    options = xgpu.Options(products="kernels")
    program = xgpu.compile(lambda x, w: (x @ w, jnp.sin(w).sum(0)), "bf16[64,64]", "bf16[64,32]", options=options)
    text = program.ir("tiles")
    assert sorted(re.findall(r'xgpu.level = "(\w+)"', text)) == ["emitted", "tiles"]
    again = xgpu.compile(text)
    assert again.ir("tiles") == text
    assert again.ir("ptx") == program.ir("ptx")


def test_commands_take_the_text(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tiles.mlir"
    path.write_text(_text())
    assert xgpu_main(["compile", str(path), "--emit", "ptx"]) == 0
    assert "wgmma.mma_async.sync.aligned" in capsys.readouterr().out
    assert xgpu_opt_main([str(path), "-p", "lower-tiles"]) == 0
    assert "xgpu.warpgroup_mma" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"tile_m": 128}, "expected tile_m, tile_n, tile_k = (64, 64, 64), its tiles"),
        ({"tile_m": 96}, "tile_m = 96: expected a power of two, 64 to 256"),
        ({"tile_n": 0}, "tile_n = 0: expected a number from 8 to 256"),
        ({"tile_k": 32}, "expected tile_m, tile_n, tile_k = (64, 64, 64)"),
        ({"stages": 1}, "stages = 1: expected a number from 2 to 16"),
        ({"stages": 16}, "stages = 16: expected so few that 232448 bytes of shared memory suffice, not 281088"),
        ({"stages": 10**9}, "stages = 1000000000: expected a number from 2 to 16"),
        ({"groups": 0}, "groups = 0: expected a number from 1 to 3"),
        ({"groups": 2}, "attribute 'xgpu.block': expected (384, 1, 1), as its schedule says"),
        ({"blocks": 0}, "blocks = 0: expected a number from 1"),
        ({"blocks": 3}, "attribute 'xgpu.grid': expected (3, 1, 1), as its schedule says"),
        ({"cluster": 3}, "cluster = 3: expected a power of two up to 8"),
        ({"cluster": 8}, "cluster = 8: expected a divisor of 4, the rows of tiles, and of 4, the blocks"),
        ({"cluster": 2}, "band = 4: expected a divisor of 2, the rows of tiles, or of clusters"),
        ({"band": 0}, "band = 0: expected a number from 1"),
        ({"band": 3}, "band = 3: expected a divisor of 4"),
        ({"staged": 2}, "staged = 2: expected true or false"),
        ({"split": 3}, "split = 3: expected a power of two up to 8"),
        ({"split": 16}, "split = 16: expected a power of two up to 8"),
        ({"split": 4}, "split = 4: expected at most 3, the steps of a tile"),
        ({"split": 2}, "blocks = 4: expected 8, one for each of 2 parts of 4 tiles"),
        ({"split": 2, "cluster": 2, "band": 2}, "cluster = 2: expected 1 where a tile is split"),
        ({"split": 2, "staged": "true"}, "staged = true: expected false where a tile is split or swapped"),
        ({"swapped": "true", "staged": "true"}, "staged = true: expected false where a tile is split or swapped"),
        ({"swapped": 1}, "swapped = 1: expected true or false"),
    ],
    ids=str,
)
def test_other_numbers(numbers: dict[str, int], message: str) -> None:
    assert message in _refusal(_with_numbers(**numbers))


def test_groups_share_whole_products() -> None:
    text = _with_numbers(groups=2).replace("xgpu.block = array<i64: 256", "xgpu.block = array<i64: 384")
    assert "groups = 2: expected each to have a multiple of 64 rows" in _refusal(text)


_TILE = "%arg4, %arg5, %arg6, %arg8"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("#xgpu.schedule<", "#xgpu.schedule<more = 1, ", "expected xgpu.schedule with the numbers tile_m, tile_n"),
        (", band = 4", "", "expected xgpu.schedule with the numbers tile_m, tile_n"),
        ("xgpu.kernel, xgpu.schedule = #xgpu.schedule<", "xgpu.kernel, other.schedule = #xgpu.schedule<", "got none"),
        ("count = 3", "count = 0", "expected a value and a step, got 1 values and 0 steps"),
        ("count = 3", "count = 2", "d3 in [0, 1], the numbers that there are, got"),
        ("grid = array<i64: 1, 4, 1>", "grid = array<i64: 1, 2, 1>", "d1 in [0, 1], d2 in [0, 0]"),
        (_TILE, "%arg5, %arg4, %arg6, %arg8", "expected the 4 numbers of block and step, in their order"),
        ("[1] x [0]", "[0] x [0]", "expected a product of two matrices, contracting_dims = [1] x [0]"),
        ("dense<0.0", "dense<1.0", "expected the first step to take a constant of zeros"),
        (
            "stablehlo.add %arg9, %",
            "stablehlo.subtract %arg9, %",
            "expected each step to add one stablehlo.dot_general",
        ),
        (
            "s1 in [0, 135]>",
            "s1 in [1, 135]>",
            "cannot be copied as boxes: elements of it are left out that boxes have",
        ),
        (
            "s1 in [0, 135]>",
            "s1 in [0, 135], s0 + s1 in [0, 9]>",
            "cannot be copied as boxes: elements of it are left out",
        ),
        ("xgpu.inputs = 3", "xgpu.inputs = 2", "expected xgpu.inputs inputs, then the outputs"),
    ],
    ids=str,
)
def test_other_programs(old: str, new: str, message: str) -> None:
    assert old in _text()
    assert message in _refusal(_text().replace(old, new))


@pytest.mark.parametrize(
    ("element", "total", "more", "message"),
    [
        ("f32", "f32", "", "expected operand 1, of f32, to be contiguous in memory along the contracted dimension"),
        ("f32", "f32", "HIGHEST", "expected precision DEFAULT, with which operands of f32 may be taken for tf32"),
        ("ui8", "i32", "", "expected arrays of signless integers, got tensor<256x"),
        ("i8", "i16", "", "expected a sum of s32, got s16"),
        ("bf16", "bf16", "", "expected a sum of f32, got bf16"),
        ("bf16", "f64", "", "expected a result of f32, bf16, f16, f8e4m3fn, f8e5m2, got f64"),
        ("i16", "i32", "", "expected operands of one of bf16, f16, f32"),
    ],
)
def test_other_elements(element: str, total: str, more: str, message: str) -> None:
    step = {"f32": 32, "bf16": 64, "i16": 64}.get(element, 128)
    text = _of_elements(element, total, step)
    assert message in _refusal(text.replace("DEFAULT, DEFAULT", f"{more}, {more}") if more else text)


def _of_elements(element: str, total: str, step: int) -> str:
    """A product of 256 x k by k x 64, in two steps, without anything that follows."""
    zero = "0" if total.startswith("i") else "0.0"
    sizes = "d0 in [0, 0], d1 in [0, 3], d2 in [0, 0]"
    sides = [(f"256x{2 * step}", f"64x{step}", f"d1 * 64 + s0, d3 * {step} + s1", (64, step))]
    sides += [(f"{2 * step}x64", f"{step}x64", f"d3 * {step} + s0, s1", (step, 64))]
    tiles = "\n".join(
        f"""%t{i} = "xgpu.tile"(%a{i}, %b, %i, %j, %k) {{map = #xgpu.map<(d0, d1, d2, d3)[s0, s1] -> ({place}), {sizes},
            d3 in [0, 1], s0 in [0, {rows - 1}], s1 in [0, {columns - 1}]>}}
            : (tensor<{whole}x{element}>, index, index, index, index) -> tensor<{part}x{element}>"""
        for i, (whole, part, place, (rows, columns)) in enumerate(sides)
    )
    return f"""module attributes {{xgpu.level = "tiles"}} {{
      func.func @f(%a0: tensor<256x{2 * step}x{element}>, %a1: tensor<{2 * step}x64x{element}>,
          %o: tensor<256x64x{total}>) -> tensor<256x64x{total}> attributes {{xgpu.block = array<i64: 256, 1, 1>,
          xgpu.emitter = "product", xgpu.grid = array<i64: 4, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel,
          xgpu.schedule = #xgpu.schedule<tile_m = 64, tile_n = 64, tile_k = {step},
          stages = 2, groups = 1, blocks = 4, cluster = 1, staged = false, band = 4, split = 1,
          swapped = false>}} {{
        %0 = "xgpu.blocks"(%o) ({{
        ^bb0(%b: index, %i: index, %j: index, %out: tensor<256x64x{total}>):
          %zero = stablehlo.constant dense<{zero}> : tensor<64x64x{total}>
          %sum = "xgpu.steps"(%zero) ({{
          ^bb0(%k: index, %part: tensor<64x64x{total}>):
            {tiles}
            %p = stablehlo.dot_general %t0, %t1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT]
                : (tensor<64x{step}x{element}>, tensor<{step}x64x{element}>) -> tensor<64x64x{total}>
            %n = stablehlo.add %part, %p : tensor<64x64x{total}>
            "xgpu.yield"(%n) : (tensor<64x64x{total}>) -> ()
          }}) {{count = 2 : i64}} : (tensor<64x64x{total}>) -> tensor<64x64x{total}>
          %new = "xgpu.insert_tile"(%sum, %out, %b, %i, %j) {{map = #xgpu.map<(d0, d1, d2)[s0, s1] ->
              (d1 * 64 + s0, s1), {sizes}, s0 in [0, 63], s1 in [0, 63]>}}
              : (tensor<64x64x{total}>, tensor<256x64x{total}>, index, index, index) -> tensor<256x64x{total}>
          "xgpu.yield"(%new) : (tensor<256x64x{total}>) -> ()
        }}) {{grid = array<i64: 1, 4, 1>}} : (tensor<256x64x{total}>) -> tensor<256x64x{total}>
        return %0 : tensor<256x64x{total}>
      }}
    }}"""


def test_sums_of_other_numbers() -> None:
    text = _text().replace("dense<0.000000e+00>", "dense<(0.0,0.0)>").replace("f32", "complex<f32>")
    assert "expected the first step to take a constant of zeros" in _refusal(text)


def test_tiles_are_of_their_level() -> None:
    text = _text().replace('xgpu.level = "tiles"', 'xgpu.level = "emitted"')
    with pytest.raises(xgpu.InvalidInput, match=r"'stablehlo\.\w+' is no operation of kernels of level 'emitted'"):
        xgpu.compile(text)


def test_an_output_is_not_read() -> None:
    """Other blocks may have written it, or not yet."""
    written = re.search(r"\{map = [^}]*\}(?= : \(tensor<64x64xf32>, tensor<256x64xf32>)", _text())
    assert written is not None
    tile = f'"xgpu.tile"(%arg3, %arg4, %arg5, %arg6) {written[0]} : (tensor<256x64xf32>, index, index, index) -> '
    text = re.sub(r'"xgpu\.tile"\(%arg2[^\n]* -> (?=tensor)', tile, _text())
    assert "'xgpu.tile': expected a tile of an input of the kernel" in _refusal(text)


def test_operations_on_more_than_an_element() -> None:
    transposed = "stablehlo.transpose %3, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>"
    text = re.sub(r"stablehlo\.maximum [^\n]*", transposed, _text())
    assert "'stablehlo.transpose': expected an operation on single elements" in _refusal(text)


def test_other_gpus() -> None:
    with pytest.raises(
        xgpu.XgpuError, match=r"expected a GPU with setmaxnreg, tensormap\.replace, wgmma; sm_80 has no"
    ):
        xgpu.compile(_text(), target="sm_80").ir("ptx")


def test_a_mark_on_a_product_that_no_kernel_computes() -> None:
    text = _program().ir("fusions").replace("136xbf16>", "135xbf16>").replace("<136x", "<135x")
    with pytest.raises(xgpu.InvalidInput) as caught:
        xgpu.compile(text)
    assert "'stablehlo.dot_general' attribute 'xgpu.product': expected operands that can be copied as boxes" in str(
        caught.value
    )
    assert caught.value.location is not None
    assert "stablehlo.dot_general" in text.split("\n")[caught.value.location.line - 1]


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (
            "tile_n = 72, swapped = false",
            "tile_n = 72: expected operands that can be copied as boxes, but of operand 1",
        ),
        ("tile_n = 60", "tile_n = 60: expected a number of columns that the instruction has"),
        ("tile_n = 512", "tile_n = 512: expected a number from 8 to 256"),
        ("tile_k = 128", "tile_k = 128: expected 64, rows of 128 bytes"),
        ("tile_m = 32", "tile_m = 32: expected a power of two, 64 to 256"),
        ("groups = 3", "groups = 3: expected each to have a multiple of 64 rows"),
        (
            "tile_m = 256, groups = 1, tile_n = 128",
            "groups = 1: expected so many that a thread has at most 192 sums, not 256",
        ),
        ("stages = 1", "stages = 1: expected a number from 2 to 16"),
        (
            "tile_m = 128, groups = 2, tile_n = 256, stages = 8",
            "expected so few that 232448 bytes of shared memory suffice",
        ),
        (
            "tile_m = 64, groups = 1, cluster = 8, split = 1, swapped = false",
            "cluster = 8: expected a divisor of 4, the rows of tiles",
        ),
        ("tile_m = 64, groups = 1, band = 7, split = 1, swapped = false", "band = 7: expected a divisor of 4"),
        ("staged = 3", "staged = 3: expected true or false"),
    ],
)
def test_schedules_of_plans(schedule: str, message: str) -> None:
    text = re.sub(r"#xgpu\.schedule<[^>]*>", f"#xgpu.schedule<{schedule}>", _program().ir("fusions"))
    with pytest.raises(xgpu.InvalidInput) as caught:
        xgpu.compile(text)
    assert message in caught.value.message
    assert "of emitter 'product'" in caught.value.message
