"""The pass `expand-small-solves`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, shape_of
from xgpu.passes.framework.base import OperationRewrite
from xgpu.passes.prepare.solves.elements import is_small
from xgpu.passes.prepare.solves.factors import cholesky_factors, lu_factors, permutation_of
from xgpu.passes.prepare.solves.triangular import Triangular
from xgpu.structure import replace_op

_CALL, _SOLVE, _CHOLESKY = (f"stablehlo.{name}" for name in ("custom_call", "triangular_solve", "cholesky"))
_MOST = 4
"""Rows of the largest matrix whose factors are written out: the operations grow with the cube of it."""
_MOST_TRIANGULAR = 8
"""Rows of the largest triangular system."""


@dataclass(frozen=True)
class ExpandSmallSolves(OperationRewrite):
    """Writes LU and Cholesky's factors of small matrices, and solutions of small triangular systems, as arithmetic.

    Libraries take a launch or more for each of them, however small it is, and what is around cannot be fused: a filter
    that inverts a matrix of 3 x 3 in every step of a loop takes some 20 launches a step. As arithmetic it is a part of
    kernels, and the loop may be one. LU takes the first largest element of a column for its pivot, as LAPACK does.
    Needs: nothing. Run it before whatever decides which loops are one kernel.

    ```mlir
    %x = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, ...}>
        : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
    ```
    becomes ``x0 = b0 / a00`` and ``x1 = (b1 - a10 * x0) / a11``, of slices, put together by ``stablehlo.concatenate``.
    """

    NAME: ClassVar[str] = "expand-small-solves"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_CALL, _SOLVE, _CHOLESKY))

    def rewrite(self, op: ir.Operation) -> None:
        """Replace ``op`` if it is one of those."""
        if op.name == _SOLVE:
            results = _solution(op)
        elif op.name == _CHOLESKY:
            results = _cholesky(op)
        else:
            expand = _CALLS.get(ir.StringAttr(op.attributes["call_target_name"]).value)
            results = None if expand is None else expand(op)
        if results is not None:
            replace_op(op, results)


def _solution(op: ir.Operation) -> list[Value] | None:
    if not is_small(op.operands[0], _MOST_TRIANGULAR) or 0 in shape_of(op.operands[1]):
        return None
    turned = ir.stablehlo.TransposeAttr(op.attributes["transpose_a"]).value
    flags = {name: bool(ir.BoolAttr(op.attributes[name]).value) for name in ("left_side", "lower", "unit_diagonal")}
    system = Triangular(flags["left_side"], flags["lower"], turned != "NO_TRANSPOSE", flags["unit_diagonal"])
    return [system.solve(*op.operands)]


def _cholesky(op: ir.Operation) -> list[Value] | None:
    """StableHLO leaves the result for other matrices open; as elsewhere it is NaN from the minor on."""
    if not is_small(op.operands[0], _MOST):
        return None
    lower = "lower" in op.attributes and bool(ir.BoolAttr(op.attributes["lower"]).value)
    return cholesky_factors(op.operands[0], lower)[:1]


def _lu(op: ir.Operation) -> list[Value] | None:
    return lu_factors(op.operands[0]) if is_small(op.operands[0], _MOST) else None


def _permutation(op: ir.Operation) -> list[Value] | None:
    size = shape_of(op.results[0])[-1]
    return [permutation_of(op.operands[0], size)] if 0 < size <= _MOST else None


def _lapack_solution(op: ir.Operation) -> list[Value] | None:
    if not is_small(op.operands[0], _MOST_TRIANGULAR) or 0 in shape_of(op.operands[1]):
        return None
    given = _letters(op)
    system = Triangular(given["side"] == "L", given["uplo"] == "L", given["trans_x"] != "N", given["diag"] == "U")
    return [system.solve(*op.operands)]


def _factors(op: ir.Operation) -> list[Value] | None:
    if not is_small(op.operands[0], _MOST):
        return None
    config = ir.DictAttr(op.attributes["mhlo.backend_config"])
    is_lower = bool(ir.BoolAttr(config["lower"]).value) if "lower" in config else _letters(op)["uplo"] == "L"
    return cholesky_factors(op.operands[0], is_lower)


def _letters(op: ir.Operation) -> dict[str, str]:
    """Return the letters by which LAPACK's functions are told what to do."""
    config = ir.DictAttr(op.attributes["mhlo.backend_config"])
    return {each.name: chr(ir.IntegerAttr(each.attr).value) for each in config if isinstance(each.attr, ir.IntegerAttr)}


_CALLS: Mapping[str, Callable[[ir.Operation], list[Value] | None]] = {
    "cusolver_getrf_ffi": _lu,
    "lapack_sgetrf_ffi": _lu,
    "lapack_dgetrf_ffi": _lu,
    "cu_lu_pivots_to_permutation": _permutation,
    "lapack_strsm_ffi": _lapack_solution,
    "lapack_dtrsm_ffi": _lapack_solution,
    "lapack_spotrf_ffi": _factors,
    "lapack_dpotrf_ffi": _factors,
    "cusolver_potrf_ffi": _factors,
}
"""What calls of libraries compute, by name: of LAPACK on CPUs, of cuSOLVER on GPUs."""
