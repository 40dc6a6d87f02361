"""Programs of levels ``loops`` and ``mapped`` as a person edits them: what is wrong is refused with a message."""

import pytest

import xgpu
from xgpu.errors import InvalidInput

from .loop_references import FOLDER
from .te import compiled

_MAP = "#xgpu.map<(d0)[s0] -> (d0 floordiv 8, s0 + (d0 mod 8) * 4), d0 in [0, 255], s0 in [0, 3]>"


@pytest.fixture(scope="module")
def mapped() -> str:
    return xgpu.compile(FOLDER / "transpose.te").ir("mapped")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("block = 256 : i64, ", "", "expected the attributes 'grid' and 'block'"),
        ('memory = "shared", ', "", "'xgpu.new': expected the attribute 'memory'"),
        (f", map = {_MAP}", "", "expected the attribute 'map' on the first loop of its band"),
        ('band = "thread", called = "j"', 'called = "j"', "'xgpu.par': expected the attribute 'band'"),
        (_MAP, _MAP.replace("d0 in [0, 255]", "d0 in [0, 127]"), "expected dimensions of [256] numbers"),
        (_MAP, _MAP.replace("s0 + (d0 mod 8) * 4", "s0 + (d0 mod 8) * 2"), "each of [32, 32] iterations once"),
        (_MAP, _MAP.replace(", s0 + (d0 mod 8) * 4", ""), "expected 2 results, one for each loop"),
        (', xgpu.called = "A"', "", ""),
        ('xgpu.access = "in", ', "", "expected the attribute 'xgpu.access' on each argument"),
    ],
)
def test_edited_decisions(mapped: str, old: str, new: str, message: str) -> None:
    assert old in mapped
    edited = mapped.replace(old, new, 1)
    if not message:
        assert xgpu.compile(edited).arguments[0].name == "arg0"
        return
    with pytest.raises(InvalidInput) as caught:
        xgpu.compile(edited)
    assert message in str(caught.value)


def test_another_map_is_another_kernel(mapped: str) -> None:
    turned = "#xgpu.map<(d0)[s0] -> (s0 + (d0 mod 8) * 4, d0 floordiv 8), d0 in [0, 255], s0 in [0, 3]>"
    program = xgpu.compile(mapped.replace(_MAP, turned))
    (values,) = program.random_inputs()
    assert (program.run(values, sanitize=True)[0] == values.T).all()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%0 = arith.constant 1.0 : f32", "expected an operation on elements"),
        ("%0 = stablehlo.constant dense<1.0> : tensor<4xf32>", "expected an operation on elements"),
        (
            "%0 = stablehlo.constant dense<1.0> : tensor<f32>\n%1 = stablehlo.optimization_barrier %0 : tensor<f32>",
            "computes no element",
        ),
        ('"xgpu.barrier"() {scope = "block"} : () -> ()', "nothing is written to 'B'"),
    ],
)
def test_operations_of_others(body: str, message: str) -> None:
    head = 'module attributes {xgpu.level = "loops"} {\nfunc.func @f(%b: memref<4xf32> {xgpu.access = "out", '
    with pytest.raises(InvalidInput, match=message):
        xgpu.compile(f'{head}xgpu.called = "B"}}) {{\n{body}\nreturn\n}}\n}}')


@pytest.mark.parametrize("text", ["", "func.func @f(%x: tensor<f32>) { return }", "func.func private @f()"])
def test_functions_of_others(text: str) -> None:
    with pytest.raises(InvalidInput):
        xgpu.compile(f'module attributes {{xgpu.level = "loops"}} {{\n{text}\n}}')


_AT_ONCE = "(d1 * 8 + d0 floordiv 16, d0 mod 16)"


@pytest.mark.parametrize(
    "lanes",
    [
        "(d1 * 8 + (d0 mod 8), d0 floordiv 8)",
        "(d1 * 8 + d0 floordiv 16, 15 - d0 mod 16)",
        "(d1 * 8 + (d0 floordiv 16) * 2 - (d0 floordiv 64) * 7 + 0, d0 mod 16)",
    ],
)
def test_iterations_that_run_at_once_stay_side_by_side(lanes: str) -> None:
    text = "fn f(A: f32[10, 16], out B: f32[10, 16]) { par 10 w { fully par 16 l { B[w, l] = A[w, l] } } }"
    mapped = compiled(text).ir("mapped")
    assert _AT_ONCE in mapped
    edited = mapped.replace(_AT_ONCE, lanes)
    with pytest.raises(InvalidInput) as caught:
        xgpu.compile(edited)
    assert "attribute 'map': expected" in str(caught.value)
