"""The products that tensor cores compute as a program asks for them, and the reasons why they do not compute others."""

import pytest

from xgpu import ir
from xgpu.hlo.tensor_cores import product_problem


def _problem(left: str, right: str, result: str, more: str = "") -> str | None:
    text = f"""func.func @f(%x: tensor<4x8x{left}>, %y: tensor<4x8x{right}>) {{
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1]{more}
          : (tensor<4x8x{left}>, tensor<4x8x{right}>) -> tensor<4x4x{result}>
      return
    }}"""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        return product_problem(module.body.operations[0].regions[0].blocks[0].operations[0].operation)


def _precision(*asked: str) -> str:
    return f", precision = [{', '.join(asked)}]"


def _algorithm(left: str, right: str, total: str, parts: int = 1, imprecise: bool = False) -> str:
    return f"""{_precision("DEFAULT", "DEFAULT")}, algorithm = <lhs_precision_type = {left},
        rhs_precision_type = {right}, accumulation_type = {total}, lhs_component_count = 1, rhs_component_count = 1,
        num_primitive_operations = {parts}, allow_imprecise_accumulation = {str(imprecise).lower()}>"""


@pytest.mark.parametrize(
    ("left", "right", "result", "more"),
    [
        ("bf16", "bf16", "f32", _precision("HIGHEST", "HIGHEST")),
        ("bf16", "bf16", "bf16", _algorithm("bf16", "bf16", "f32")),
        ("f16", "f16", "f16", ""),
        ("f32", "f32", "f32", ""),
        ("f32", "f32", "f32", _precision("DEFAULT", "DEFAULT")),
        ("f32", "f32", "bf16", _algorithm("tf32", "tf32", "f32")),
        ("f8E4M3FN", "f8E5M2", "f32", _precision("DEFAULT", "DEFAULT")),
        ("f8E5M2", "f8E5M2", "f8E5M2", _algorithm("f8E5M2", "f8E5M2", "f32", imprecise=True)),
        ("i8", "i8", "i32", _precision("HIGHEST", "HIGHEST")),
        ("i8", "ui8", "i8", ""),
        ("ui8", "ui8", "ui32", ""),
    ],
)
def test_products_of_tensor_cores(left: str, right: str, result: str, more: str) -> None:
    assert _problem(left, right, result, more) is None


_TF32 = "expected precision DEFAULT, with which operands of f32 may be taken for tf32, got"
_F8 = "with which products of 8 bits may be added up in few bits"


@pytest.mark.parametrize(
    ("left", "right", "result", "more", "reason"),
    [
        (
            "bf16",
            "f16",
            "f32",
            "",
            "of one of bf16, f16, f32, f8e4m3fn or f8e5m2, s8 or u8, got bf16 and f16",
        ),
        ("i16", "i16", "i32", "", "got s16 and s16"),
        ("f8E5M2", "f8E5M2", "f32", "", "expected an operand other than f8e5m2, as products of 8 bits may be added up"),
        ("f8E4M3", "f8E4M3", "f32", "", "got f8e4m3 and f8e4m3"),
        ("f64", "f64", "f64", "", "got f64 and f64"),
        ("bf16", "bf16", "f64", "", "expected a result of f32, bf16, f16, f8e4m3fn, f8e5m2, got f64"),
        ("i8", "i8", "i64", "", "expected a result of s32, u32, s16, u16, s8, u8, got s64"),
        ("i8", "i8", "f32", "", "expected a result of s32, u32, s16, u16, s8, u8, got f32"),
        ("f32", "f32", "f32", _precision("DEFAULT", "HIGH"), f"{_TF32} DEFAULT, HIGH"),
        ("f32", "f32", "f32", _precision("HIGHEST", "HIGHEST"), f"{_TF32} HIGHEST, HIGHEST"),
        (
            "f8E5M2",
            "f8E5M2",
            "f32",
            _precision("HIGHEST", "HIGHEST"),
            f"precision DEFAULT, {_F8}, got HIGHEST",
        ),
        ("f8E5M2", "f8E5M2", "f32", _algorithm("f8E5M2", "f8E5M2", "f32"), f"expected an algorithm {_F8}"),
        (
            *("f32", "f32", "f32", _algorithm("f32", "f32", "f32")),
            "expected the algorithm tf32 x tf32 -> f32, of 1, 1, 1 parts, got f32 x f32 -> f32, of 1, 1, 1 parts",
        ),
        ("f32", "f32", "f32", _algorithm("bf16", "bf16", "f32", parts=3), "got bf16 x bf16 -> f32, of 1, 1, 3 parts"),
        ("f32", "f32", "f32", _algorithm("tf32", "tf32", "f32", parts=3), "got tf32 x tf32 -> f32, of 1, 1, 3 parts"),
        ("bf16", "bf16", "bf16", _algorithm("bf16", "bf16", "bf16"), "got bf16 x bf16 -> bf16"),
        ("f16", "f16", "f32", _algorithm("f64", "f64", "f64"), "got f64 x f64 -> f64"),
    ],
)
def test_other_products(left: str, right: str, result: str, more: str, reason: str) -> None:
    problem = _problem(left, right, result, more)
    assert problem is not None
    assert reason in problem
