"""The text of loops over rows that carry a state: ``lax.scan`` as JAX writes it."""

from collections.abc import Mapping, Sequence
from typing import Any

from xgpu.tools.fuzzing.ops import TensorType

_TEXT = """\
%N_zero = stablehlo.constant dense<0> : tensor<i64>
  %N_factor = stablehlo.constant dense<FACTOR> : tensor<i64>
  %N_offset = stablehlo.constant dense<OFFSET> : tensor<i64>
  %N_end = stablehlo.constant dense<END> : tensor<i64>
  %N_one = stablehlo.constant dense<1> : tensor<i64>
  %N:3 = "stablehlo.while"(%N_zero, FIRST, ROWS) ({
  ^bb0(%N_count: tensor<i64>, %N_old: STATE, %N_all: ALL):
    %N_more = stablehlo.compare LT, %N_count, %N_end : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %N_more : tensor<i1>
  }, {
  ^bb0(%N_count: tensor<i64>, %N_old: STATE, %N_all: ALL):
    %N_scaled = stablehlo.multiply %N_count, %N_factor : tensor<i64>
    %N_place = stablehlo.add %N_scaled, %N_offset : tensor<i64>
    %N_row = stablehlo.dynamic_slice READ, AT, sizes = [SIZES] : (ALL, INDICES) -> ROW
    %N_taken = stablehlo.reshape %N_row : (ROW) -> STATE
    %N_new = stablehlo.COMBINER %N_old, %N_taken : STATE
    %N_made = stablehlo.reshape WRITTEN : (STATE) -> ROW
    %N_stored = stablehlo.dynamic_update_slice %N_all, %N_made, AT : (ALL, ROW, INDICES) -> ALL
    %N_next = stablehlo.add %N_count, %N_one : tensor<i64>
    stablehlo.return %N_next, %N_new, %N_stored : tensor<i64>, STATE, ALL
  }) : (tensor<i64>, STATE, ALL) -> (tensor<i64>, STATE, ALL)"""


def scan_text(number: int, operands: Sequence[str], types: Sequence[TensorType], params: Mapping[str, Any]) -> str:
    """Return the lines of a loop that takes in a row at a time: of the count, the last state, and the states as rows.

    ``params``: ``combiner`` of state and row; ``place`` has the row that each step takes, by the factor of its number
    and an offset, from the end if it is negative; ``idle`` loops take no step; ``own`` reads the rows from the array
    that the states are written to; ``before`` writes the states that the rows were taken into.
    """
    (first, rows), (state, everything) = operands, types
    row = TensorType(everything.dtype, (1, *state.shape))
    at = ["%N_place"] + ["%N_zero"] * len(state.shape)
    factor, offset = params["place"]
    size = everything.shape[0]
    text = _TEXT
    for word, replacement in {
        "READ": "%N_all" if params["own"] else rows,
        "WRITTEN": "%N_old" if params["before"] else "%N_new",
        "FIRST": first,
        "ROWS": rows,
        "FACTOR": str(factor),
        "OFFSET": str(offset if offset >= 0 else size + offset),
        "END": str(0 if params["idle"] else size),
        "STATE": str(state),
        "ALL": str(everything),
        "ROW": str(row),
        "INDICES": ", ".join(["tensor<i64>"] * len(everything.shape)),
        "SIZES": ", ".join(map(str, row.shape)),
        "AT": ", ".join(at),
        "COMBINER": params["combiner"],
        "%N_": f"%v{number}_",
        "%N": f"%{number}",
    }.items():
        text = text.replace(word, replacement)
    return text
