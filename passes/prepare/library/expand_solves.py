"""The pass `expand-solves`."""

from math import prod
from typing import ClassVar, Literal

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, hlo, reshape, shape_of
from xgpu.passes.framework.base import OperationRewrite
from xgpu.passes.prepare.solves.calls import DECOMPOSITIONS
from xgpu.passes.prepare.solves.loops import cholesky, lu, permutation, solution
from xgpu.passes.prepare.solves.parts import adjoint, conjugate, real_type
from xgpu.records import dataclass
from xgpu.structure import replace_op

_CALL, _SOLVE, _CHOLESKY = (f"stablehlo.{name}" for name in ("custom_call", "triangular_solve", "cholesky"))
_CONFIG = "mhlo.backend_config"
_LU, _LIBRARY_CHOLESKY, _ORDER = "cusolver_getrf_ffi", "cusolver_potrf_ffi", "cu_lu_pivots_to_permutation"


@dataclass(frozen=True)
class ExpandSolves(OperationRewrite):
    """Writes factors, solutions of triangular systems, eigenvalues and singular values as loops.

    Only for ``runs=launches``, where there is no library. Factors of LU, Cholesky and QR, and solutions, are loops over
    columns: an iteration is a launch, or three for LU, which looks for a pivot first, and for QR. Eigenvalues of
    Hermitian matrices and singular values take sweeps of Jacobi's rotations, each a loop over columns, too. All that is
    right for matrices of any size, and slow for large ones. Needs: nothing. Run it after expand-small-solves, whose
    matrices need no loop, and before all that looks at loops.

    ```mlir
    %x = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, ...}>
        : (tensor<64x64xf32>, tensor<64x3xf32>) -> tensor<64x3xf32>
    ```
    becomes a loop of 64 iterations: row ``k`` is divided by ``a[k, k]``, and ``a[i, k]`` times it subtracted from those
    that are not solved yet.
    """

    NAME: ClassVar[str] = "expand-solves"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_CALL, _SOLVE, _CHOLESKY))

    runs: Literal["xla", "launches"] = "launches"
    """The executor of the program."""

    def rewrite(self, op: ir.Operation) -> None:
        """Replace a call of those."""
        sizes = [prod(shape_of(value)) for value in (*op.operands, *op.results)]
        if self.runs != "launches" or 0 in sizes or max(sizes, default=0) >= 1 << 31:
            return
        if (results := _results(op)) is not None:
            shapes = (shape_of(result) for result in op.results)
            replace_op(op, [reshape(*pair) for pair in zip(results, shapes, strict=True)])


def _results(op: ir.Operation) -> list[Value] | None:
    """Return the results in the form of the loops, None for what is none of these."""
    called = ir.StringAttr(op.attributes["call_target_name"]).value if op.name == _CALL else op.name
    if called == _ORDER:
        *batch, count = shape_of(op.operands[0])
        pivots = reshape(op.operands[0], [prod(batch), count])
        return [permutation(pivots, shape_of(op.results[0])[-1])]
    if not op.operands or not isinstance(real_type(op.operands[0]), ir.F32Type | ir.F64Type):
        return None
    if called == _SOLVE:
        return [_solution(op)]
    if called == _LU:
        return list(lu(_batch(op.operands[0])))
    if called in DECOMPOSITIONS:
        return DECOMPOSITIONS[called](op)
    if called not in (_CHOLESKY, _LIBRARY_CHOLESKY):
        return None
    attributes = ir.DictAttr(op.attributes[_CONFIG]) if called == _LIBRARY_CHOLESKY else op.attributes
    is_lower = "lower" in attributes and bool(ir.BoolAttr(attributes["lower"]).value)
    matrices = _batch(op.operands[0])
    factors, failed = cholesky(matrices if is_lower else adjoint(matrices))
    return [factors if is_lower else adjoint(factors), failed][: len(op.results)]


def _solution(op: ir.Operation) -> Value:
    flags = {name: bool(ir.BoolAttr(op.attributes[name]).value) for name in ("left_side", "lower", "unit_diagonal")}
    turn = ir.stablehlo.TransposeAttr(op.attributes["transpose_a"]).value
    is_turned = turn != "NO_TRANSPOSE"
    matrices, right = map(_batch, op.operands)
    if turn == "ADJOINT":
        matrices = conjugate(matrices)
    is_left = flags["left_side"]
    if not is_left:
        # With x from the left the system is that of the transpose.
        right, is_turned = _transposed(right), not is_turned
    found = solution(matrices, right, flags["lower"], is_turned, flags["unit_diagonal"])
    return found if is_left else _transposed(found)


def _batch(value: Value) -> Value:
    """Return matrices with one dimension before their rows."""
    *batch, rows, columns = shape_of(value)
    return reshape(value, [prod(batch), rows, columns])


def _transposed(value: Value) -> Value:
    return hlo.transpose(value, [0, 2, 1])
