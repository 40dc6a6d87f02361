"""The text of triangular systems and of Cholesky's factors, with what makes their matrices ones that have them."""

from collections.abc import Mapping, Sequence
from typing import Any

from xgpu.tools.fuzzing.ops import TensorType

_PLACES = """\
%N_row = stablehlo.iota dim = ROW : INDICES
  %N_column = stablehlo.iota dim = COLUMN : INDICES
  %N_diagonal = stablehlo.compare EQ, %N_row, %N_column : (INDICES, INDICES) -> MASK
  """

_SOLUTION = """\
%N_matrix = stablehlo.select %N_diagonal, DIVISORS, MATRIX : MASK, MATRICES
  %N = "stablehlo.triangular_solve"(%N_matrix, RIGHT) {FLAGS} : (MATRICES, SIDES) -> SIDES"""

_FACTOR = """\
%N_zero = stablehlo.constant dense<0.0> : MATRICES
  %N_one = stablehlo.constant dense<1.0> : MATRICES
  %N_below = stablehlo.compare GT, %N_row, %N_column : (INDICES, INDICES) -> MASK
  %N_part = stablehlo.select %N_below, MATRIX, %N_zero : MASK, MATRICES
  %N_factor = stablehlo.select %N_diagonal, %N_one, %N_part : MASK, MATRICES
  %N_product = "stablehlo.dot_general"(%N_factor, %N_factor) {DIMENSIONS} : (MATRICES, MATRICES) -> MATRICES
  %N_made = "stablehlo.cholesky"(%N_product) {lower = LOWER} : (MATRICES) -> MATRICES
  %N_kept = stablehlo.compare ORDER, %N_row, %N_column : (INDICES, INDICES) -> MASK
  %N = stablehlo.select %N_kept, %N_made, %N_zero : MASK, MATRICES"""


def solution_text(number: int, operands: Sequence[str], types: Sequence[TensorType], params: Mapping[str, Any]) -> str:
    """Return the lines of a triangular system: of a matrix, another one that has its diagonal, and right sides.

    ``params``: ``flags`` has the operation's attributes by their names.
    """
    matrix, divisors, right = operands
    flags = ", ".join(f"{name} = {text}" for name, text in params["flags"].items())
    words = {"DIVISORS": divisors, "RIGHT": right, "FLAGS": flags, "SIDES": str(types[2])}
    return _filled(_PLACES + _SOLUTION, number, matrix, types[0], words)


def factor_text(number: int, operands: Sequence[str], types: Sequence[TensorType], params: Mapping[str, Any]) -> str:
    """Return the lines of the factor of a product: of a matrix below whose diagonal of ones the factor's elements are.

    ``params``: ``lower`` tells whether that factor or its transpose is made. The other triangle is zero.
    """
    rank = len(types[0].shape)
    batch = list(range(rank - 2))
    numbers = {"batching": batch, "contracting": [rank - 1]}
    dims = ", ".join(f"{side}_{kind}_dimensions = {dims}" for kind, dims in numbers.items() for side in ("lhs", "rhs"))
    words = {
        "DIMENSIONS": f"dot_dimension_numbers = #stablehlo.dot<{dims}>",
        "LOWER": str(params["lower"]).lower(),
        "ORDER": "GE" if params["lower"] else "LE",
    }
    return _filled(_PLACES + _FACTOR, number, operands[0], types[0], words)


def _filled(text: str, number: int, matrix: str, type_: TensorType, words: Mapping[str, str]) -> str:
    rank = len(type_.shape)
    of = {name: str(type_).replace(f"{type_.dtype.mlir}>", f"{name}>") for name in ("i32", "i1")}
    shared = {
        "MATRICES": str(type_),
        "MATRIX": matrix,
        "INDICES": of["i32"],
        "MASK": of["i1"],
        "ROW": str(rank - 2),
        "COLUMN": str(rank - 1),
        "%N_": f"%v{number}_",
        "%N": f"%{number}",
    }
    for word, replacement in {**words, **shared}.items():
        text = text.replace(word, replacement)
    return text
