import ml_dtypes
import numpy as np
import pytest

from xgpu import ir
from xgpu.dtypes import DTYPES, dtype_named, dtype_of_element, dtype_of_numpy, format_spec, parse_spec
from xgpu.errors import InvalidInput, Unsupported


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_is_found_under_each_of_its_names(dtype):
    context = ir.make_context()
    element = ir.Type.parse(dtype.mlir, context)
    assert dtype_of_element(element) is dtype
    assert dtype_named(dtype.hlo) is dtype
    assert dtype_named(dtype.numpy.name) is dtype
    assert dtype_of_numpy(dtype.numpy) is dtype
    assert parse_spec(f"{dtype.hlo}[2,3]") == (dtype, (2, 3))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind in ("signed", "unsigned", "bool")], ids=str)
def test_integer_widths_match_mlir(dtype):
    context = ir.make_context()
    element, signless = (ir.IntegerType(ir.Type.parse(text, context)) for text in (dtype.mlir, dtype.signless))
    assert element.width == signless.width == dtype.bits
    assert element.is_unsigned == (dtype.kind == "unsigned")
    assert signless.is_signless


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.is_float], ids=str)
def test_float_widths_match_mlir_and_numpy(dtype):
    assert ir.FloatType(ir.Type.parse(dtype.mlir, ir.make_context())).width == dtype.bits
    assert ml_dtypes.finfo(dtype.numpy).bits == dtype.bits


def test_signs_and_storage():
    pred, s8, u8, f32, c64 = map(dtype_named, ("pred", "s8", "u8", "f32", "c64"))
    assert (pred.bits, pred.storage_bits, pred.is_integer, pred.is_unsigned) == (1, 8, False, True)
    assert (s8.is_signed, s8.is_unsigned, u8.is_signed, u8.is_unsigned) == (True, False, False, True)
    assert (f32.is_float, f32.is_integer, f32.storage_bits) == (True, False, 32)
    assert (c64.is_float, c64.is_signed) == (False, True)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("i8[4]", "s8"),
        ("ui8[4]", "u8"),
        ("i1", "pred"),
        ("f8E5M2[4]", "f8e5m2"),
        ("fp16[4]", "f16"),
        ("half", "f16"),
        ("F32[2,3]", "f32"),
        ("float23[2]", "float32"),
        ("f32(2,3)", "f32[2,3]"),
        ("f32[2x3]", "f32[2,3]"),
        ("f32[2", "f32[2]"),
        ("2x3xf32", "f32[2,3]"),
        ("tensor<2x3xi8>", "s8[2,3]"),
        ("f32[" + "9" * 5000, "f32[" + "9" * 5000 + "]"),
    ],
)
def test_what_was_meant_is_suggested(text, meant):
    with pytest.raises(InvalidInput) as raised:
        parse_spec(text)
    assert f"(did you mean '{meant}'?)" in str(raised.value)


@pytest.mark.parametrize("text", ["f33[2]", "f8[2]", "x", "f32[-1]", "f32[?]", "", "2x3xq7"])
def test_nothing_is_suggested_where_nothing_is_near(text):
    with pytest.raises(InvalidInput) as raised:
        parse_spec(text)
    assert "did you mean" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "name", "shape"),
    [
        ("f32[128,1024]", "f32", (128, 1024)),
        (" bf16 [ 8 , 2 ] ", "bf16", (8, 2)),
        ("pred[]", "pred", ()),
        ("s64", "s64", ()),
        ("float32[0]", "f32", (0,)),
        ("bool[2]", "pred", (2,)),
        ("bfloat16[2]", "bf16", (2,)),
    ],
)
def test_specifications(text, name, shape):
    dtype, found = parse_spec(text)
    assert (dtype.hlo, found) == (name, shape)
    assert parse_spec(format_spec(dtype, found)) == (dtype, shape)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f33[2]", "unknown element type 'f33'; known are pred, s2"),
        ("f32[2", "is not an array specification; expected a form such as f32"),
        ("", "is not an array specification"),
        ("f32[2,]", "'' in 'f32\\[2,\\]' is not a dimension size"),
        ("f32[-1]", "'-1' in .* is not a dimension size"),
        ("f32[٣]", "is not a dimension size"),
        ("f32[2][3]", "is not an array specification"),
        ("f32[99999999999999999999]", "is too large"),
        ("f32[1000000,1000000,1000000]", "is too large; an array has at most 281474976710656 elements"),
        (f"f32[{','.join(['1'] * 100)}]", "has 100 dimensions; an array has at most"),
    ],
)
def test_wrong_specifications(text, message):
    with pytest.raises(InvalidInput, match=message):
        parse_spec(text)


def test_types_that_xla_lacks():
    with pytest.raises(Unsupported, match="'datetime64"):
        dtype_of_numpy("datetime64[s]")
    with pytest.raises(Unsupported, match="element type 'i7'"):
        dtype_of_element("i7")


def test_byte_order_is_not_part_of_a_type():
    assert dtype_of_numpy(np.dtype(">f4")).hlo == "f32"
