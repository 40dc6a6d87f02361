"""Operations without operand maps are refused by name, type and line, the likely ones with a reason."""

import pytest

from tests.py.indexing.hlo_programs import build
from xgpu.errors import Unsupported
from xgpu.indexing.hlo_maps import access_kind, accesses

T = "tensor<4x4xf32>"
ALONE = "no element of its result can be computed alone"
CONTROL = "control flow of the program is not compiled"
DEVICES = "it exchanges data with other devices"
SIZES = "sizes and positions must be constants"
BRANCH = f"({{ stablehlo.return %1 : {T} }}, {{ stablehlo.return %1 : {T} }})"
ADD = """({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %z = stablehlo.add %x, %y : tensor<f32>
  stablehlo.return %z : tensor<f32> })"""
LESS = """({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %z = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %z : tensor<i1> })"""
LOOP = f"""({{ ^bb0(%x: {T}):
  %z = stablehlo.constant dense<true> : tensor<i1>
  stablehlo.return %z : tensor<i1> }}, {{ ^bb0(%x: {T}): stablehlo.return %x : {T} }})"""
SCATTER = "#stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>"
GROUPS = "{replica_groups = dense<[[0]]> : tensor<1x1xi64>}"


@pytest.mark.parametrize(
    ("operation", "operands", "reason"),
    [
        ('"stablehlo.cholesky"(%0)', [T], ALONE),
        (
            '"stablehlo.triangular_solve"(%0, %1) {left_side = true, lower = true, unit_diagonal = false, '
            "transpose_a = #stablehlo<transpose NO_TRANSPOSE>}",
            [T, T],
            ALONE,
        ),
        (f'"stablehlo.sort"(%0) {LESS} {{dimension = 0 : i64}}', [T], ALONE),
        (
            f'"stablehlo.scatter"(%0, %1, %2) {ADD} {{scatter_dimension_numbers = {SCATTER}}}',
            [T, "tensor<1xi32>", "tensor<4xf32>"],
            "its region computes in other types than its operands'",
        ),
        (f'"stablehlo.if"(%0) {BRANCH}', ["tensor<i1>", T], CONTROL),
        (f'"stablehlo.case"(%0) {BRANCH}', ["tensor<i32>", T], CONTROL),
        (f'"stablehlo.while"(%0) {LOOP}', [T], CONTROL),
        (f'"stablehlo.all_reduce"(%0) {ADD} {GROUPS}', [T], DEVICES),
        ('"stablehlo.dynamic_reshape"(%0, %1)', [T, "tensor<2xi32>"], SIZES),
        ('"stablehlo.real_dynamic_slice"(%0, %1, %1, %1)', [T, "tensor<2xi32>"], SIZES),
        ('"stablehlo.dynamic_iota"(%0) {iota_dimension = 0 : i64}', ["tensor<2xi32>"], SIZES),
        (
            '"stablehlo.rng"(%0, %0, %1) {rng_distribution = #stablehlo<rng_distribution UNIFORM>}',
            ["tensor<f32>", "tensor<2xi64>"],
            "it draws on hidden state; use rng_bit_generator, as jax.random does",
        ),
        ('"stablehlo.custom_call"(%0) {call_target_name = "foo"}', [T], "'foo' is code that only the compiler it was"),
    ],
    ids=lambda value: value.split('"')[1].removeprefix("stablehlo.") if '"' in str(value) else "",
)
def test_refusal(operation, operands, reason):
    name = operation.split('"')[1]
    arguments = operation[operation.index("(") + 1 : operation.index(")")].split(", ")
    types = [operands[int(argument[1:])] for argument in arguments]
    _, op = build(operation, operands, T, types)
    for query in (accesses, access_kind):
        with pytest.raises(Unsupported) as caught:
            query(op)
        assert str(caught.value).startswith(f"t.mlir:2:6: {name} of type {T}: operation not supported: {reason}")
