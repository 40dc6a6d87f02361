from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xgpu.errors import InvalidInput, Unsupported, XgpuWarning
from xgpu.frontend.hlo_text import from_hlo_text
from xgpu.hlo.source_location import source_of
from xgpu.runtime.reference import Reference

FILE = Path(__file__).parents[2] / "data" / "fused_gpu.hlo"
TEXT = FILE.read_text()


def main_ops(source):
    return list(source.module.body.operations[0].regions[0].blocks[0].operations)


def test_optimized_gpu_hlo_with_a_fusion():
    source = from_hlo_text(TEXT, "fused_gpu.hlo")
    assert source.name == "f"
    assert [str(argument) for argument in source.arguments] == ["x: f32[128,64]", "Arg_1.2: f32[64,128]"]
    assert [str(result) for result in source.results] == ["result0: f32[128,64]", "result1: f32[]"]
    names = [op.operation.name.removeprefix("stablehlo.") for op in main_ops(source)]
    assert names == ["transpose", "add", "tanh", "constant", "reduce", "func.return"]
    x, y = (np.random.default_rng(0).standard_normal(shape, dtype=np.float32) for shape in ((128, 64), (64, 128)))
    first, second = Reference(source.module)([x, y])
    np.testing.assert_allclose(first, np.tanh(x + y.T), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second, np.tanh(x + y.T).sum(), rtol=1e-3)


def test_metadata_gives_source_lines():
    lines = {op.operation.name: str(source_of(op)) for op in main_ops(from_hlo_text(TEXT))}
    assert lines["stablehlo.add"] == "model.py:10"
    assert lines["stablehlo.tanh"] == "model.py:11"


def programs():
    def softmax(x, i):
        return jax.nn.softmax(x, axis=-1)

    def pieces(x, i):
        padded = jnp.concatenate([jnp.pad(x, ((1, 2), (0, 1)), constant_values=3.0), jnp.ones((2, x.shape[1] + 1))])
        updated = jax.lax.dynamic_update_slice(x, x[:2, :2] * 2, (i[0], i[1]))
        return {"rows": padded[::2, 1:][i], "flipped": jnp.flip(padded, 0), "updated": updated}

    def control(x, i):
        return jax.lax.fori_loop(0, 3, lambda k, a: a * 2 + k, x), jnp.sort(x), jnp.cumsum(x, 0)

    return [softmax, pieces, control]


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.__name__)
def test_what_xla_compiled_imports_with_the_same_results(program):
    x = np.random.default_rng(0).standard_normal((6, 8), dtype=np.float32)
    i = np.array([1, -3, 9], np.int32)
    compiled = jax.jit(program, keep_unused=True).lower(x, i).compile()
    found = Reference(from_hlo_text(compiled.as_text()).module)([x, i])
    for array, expected in zip(found, jax.tree.leaves(compiled(x, i)), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("end", range(3, len(TEXT) - 3, 97))
def test_truncated_files(end):
    with pytest.raises(InvalidInput, match=r"^cut\.hlo(:\d+:\d+)?: "):
        from_hlo_text(TEXT[:end], "cut.hlo")


ROOT = "HloModule m\nENTRY e {\n a = f32[4] parameter(0)\n ROOT b = "
FUSION = """add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }

fusion {
  x = f32[4,8] parameter(0)
  zero = f32[] constant(0)
  sums = f32[4] reduce(x, zero), dimensions={1}, to_apply=add
  ROOT both = (f32[4], f32[4,8]) tuple(sums, x)
}
"""


@pytest.mark.parametrize("header", ["", "// a fusion\n", "HloModule m\n\n", "HloModule m, is_scheduled=true\n"])
def test_a_fusion_alone_is_a_program(header):
    source = from_hlo_text(header + FUSION)
    assert [spec.shape for spec in source.arguments] == [(4, 8)]
    assert [spec.shape for spec in source.results] == [(4,), (4, 8)]


METADATA = 'metadata={op_name="add" source_file="x.py" source_line=9}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROOT + "f32[4] adsd(a, a)\n}", "t.hlo:4:18: XLA cannot parse this HLO text: expects opcode but sees: adsd"),
        (ROOT + "f32[4] add(a, c)\n}", "t.hlo:4:"),
        # Errors that MLIR's verifier finds are at the line of the metadata, or else of the instruction.
        (ROOT + "f32[5] add(a, a)\n}", "t.hlo:4:2: 'stablehlo.add' op requires the same shape"),
        (ROOT + f"f32[5] add(a, a), {METADATA}\n}}", "x.py:9: 'stablehlo.add' op requires the same shape"),
        # The importer aborts on these two: they must not take the compiler's process with them.
        (TEXT.partition("\n\n%fused")[0], "t.hlo: the HLO text has no ENTRY computation; is the file complete?"),
        (TEXT.replace("parameter(1)\n  ROOT", "parameter(7)\n  ROOT"), "t.hlo: XLA cannot import this HLO module: "),
        (TEXT.partition("ENTRY")[0], "t.hlo: the HLO text has no ENTRY computation"),
        (
            "HloModule m\nENTRY e { ROOT seed = u64[2] rng-get-and-update-state(), delta=4 }",
            "t.hlo:2:11: mhlo.xla.rng_get_and_update_state: operation not supported",
        ),
        (
            "e { a = f8e4m3fn[8,32] parameter(0) b = f8e4m3fn[32,8] parameter(1) s = f8e8m0fnu[8,1] parameter(2) "
            "t = f8e8m0fnu[1,8] parameter(3)\n ROOT product = f32[8,8] scaled-dot(a, b, s, t), "
            "lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
            "t.hlo:2:2: the HLO instruction 'scaled-dot' ('product') is not supported",
        ),
        ("", "t.hlo"),
        ("HloModule \0", "t.hlo:1: the text contains a null byte"),
    ],
)
def test_invalid_text(text, message):
    with pytest.raises(InvalidInput) as caught:
        from_hlo_text(text, "t.hlo")
    assert message in str(caught.value)


ADD = "HloModule m\n\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\n"
ENTRY = "ENTRY main {\n  a = f32[8,4] parameter(0)\n  b = f32[4] parameter(1)\n"


@pytest.mark.parametrize(
    ("instructions", "message"),
    [
        ("ROOT c = f32[4] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n", "12:3: contracting dim"),
        (
            "c = f32[] constant(0)\nROOT d = f32[4] reduce(a, c), dimensions={1}, to_apply=add\n",
            "13:1: .*inferred type",
        ),
        ("ROOT c = f32[8,4] slice(a), slice={[0:9],[0:4]}\n", "12:3: limit index 9 is larger"),
        # Return has no name of its own.
        (
            "c = (f32[8,4], f32[4]) tuple(a, b)\nROOT d = f32[8,4] get-tuple-element(c), index=1\n",
            "13:1: type of return",
        ),
        (
            "ROOT c = f32[4] fusion(b), kind=kLoop, calls=add\n",
            r"12:3: .* takes \(tensor<f32>, .* are \(tensor<4xf32>\)",
        ),
    ],
    ids=["dot", "reduce", "slice", "return", "fusion"],
)
def test_shapes_that_do_not_fit_are_found_at_their_line(instructions, message):
    with pytest.raises(InvalidInput, match=rf"^t\.hlo:{message}"):
        from_hlo_text(f"{ADD}{ENTRY}  {instructions}}}\n", "t.hlo")


def test_operations_are_at_the_lines_of_their_instructions():
    text = f"{ADD}{ENTRY}  c = f32[] constant(1)\n  ROOT d = f32[8] reduce(a, c), dimensions={{1}}, to_apply=add\n}}\n"
    places = {op.operation.name: str(source_of(op)) for op in main_ops(from_hlo_text(text, "t.hlo"))[:-1]}
    assert places == {"stablehlo.constant": "t.hlo:12:3", "stablehlo.reduce": "t.hlo:13:3"}


def test_an_operation_that_cannot_be_compiled_has_a_line():
    text = "HloModule m\nENTRY e {\n a = f32[4] parameter(0)\n t = token[] after-all()\n ROOT b = f32[4] abs(a)\n}"
    with pytest.raises(Unsupported, match=r"^t\.hlo:4:2: stablehlo\.after_all of type !stablehlo\.token: tokens"):
        from_hlo_text(text, "t.hlo")


LEFT_OUT = """HloModule m
ENTRY %main (a: f32[64]) -> f32[64] {
  %a = f32[64] parameter(0)
  %c = f32[64] constant({...})
  %d = f32[64] constant({...})
  %e = f32[64] add(%c, %d)
  ROOT %r = f32[64] add(%a, %e)
}
"""


def test_constants_that_the_text_leaves_out_are_told():
    with pytest.warns(
        XgpuWarning, match=r"^m.hlo:4:16: the text leaves out the values of 2 constants, \{...\}: others"
    ):
        from_hlo_text(LEFT_OUT, "m.hlo")
