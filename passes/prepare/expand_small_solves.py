"""The pass `expand-small-solves`."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, shape_of
from xgpu.passes.framework.base import OperationRewrite, operations_of
from xgpu.passes.prepare.solves.elements import is_small
from xgpu.passes.prepare.solves.factors import cholesky_factors, lu_factors, permutation_of
from xgpu.passes.prepare.solves.triangular import Triangular
from xgpu.records import dataclass
from xgpu.structure import replace_op

_CONFIG = "mhlo.backend_config"
_CALL, _SOLVE, _CHOLESKY = (f"stablehlo.{name}" for name in ("custom_call", "triangular_solve", "cholesky"))
_MOST = 4
"""Rows of the largest matrix whose factors are written out: the operations grow with the cube of it."""
_MOST_TRIANGULAR = 8
"""Rows of the largest triangular system."""
_MOST_OPERATIONS = 2048
"""Operations that may be made in a block, about: planning takes a millisecond or more for each."""


@dataclass(frozen=True)
class ExpandSmallSolves(OperationRewrite):
    """Writes LU and Cholesky's factors of small matrices, and solutions of small triangular systems, as arithmetic.

    Libraries take a launch or more for each of them, however small it is, and what is around cannot be fused: a filter
    that inverts a matrix of 3 x 3 in every step of a loop takes some 20 launches a step. As arithmetic it is a part of
    kernels, and the loop may be one. LU takes the first largest element of a column for its pivot, as LAPACK does.
    A block stays as it is if that would make thousands of operations. Needs: nothing. Run it before whatever decides
    which loops are one kernel.

    ```mlir
    %x = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, ...}>
        : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
    ```
    becomes ``x0 = b0 / a00`` and ``x1 = (b1 - a10 * x0) / a11``, of slices, put together by ``stablehlo.concatenate``.
    """

    NAME: ClassVar[str] = "expand-small-solves"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_CALL, _SOLVE, _CHOLESKY))

    def rewrite_block(self, block: ir.Block) -> None:
        """Expand the operations of ``block``, unless they are too many."""
        made = (form.operations(op) for op in operations_of(block, self.OPERATIONS) if (form := _form(op)) is not None)
        if sum(made) <= _MOST_OPERATIONS:
            super().rewrite_block(block)

    def rewrite(self, op: ir.Operation) -> None:
        """Replace ``op`` if it is one of those."""
        form = _form(op)
        if form is not None and form.operations(op):
            replace_op(op, form.write(op))


@dataclass(frozen=True)
class _Form:
    """A function of matrices that ``write`` expands, of up to ``most`` rows, to about four times ``rows ** power``."""

    write: Callable[[ir.Operation], list[Value]]
    most: int
    power: int

    def operations(self, op: ir.Operation) -> int:
        """Return about how many operations are made of ``op``, 0 if it stays."""
        is_whole = all(0 not in shape_of(value) for value in (*op.operands, *op.results))
        return 4 * shape_of(op.operands[0])[-1] ** self.power if is_whole and is_small(op.operands[0], self.most) else 0


def _form(op: ir.Operation) -> _Form | None:
    """Return what ``op`` computes, if that can be expanded."""
    if op.name != _CALL:
        return _Form(_cholesky, _MOST, 3) if op.name == _CHOLESKY else _Form(_solution, _MOST_TRIANGULAR, 2)
    is_told_how = _CONFIG in op.attributes and isinstance(op.attributes[_CONFIG], ir.DictAttr)
    form = _CALLS.get(ir.StringAttr(op.attributes["call_target_name"]).value)
    return form if is_told_how or form not in (_LAPACK_SOLUTION, _LAPACK_CHOLESKY) else None


def _solution(op: ir.Operation) -> list[Value]:
    turned = ir.stablehlo.TransposeAttr(op.attributes["transpose_a"]).value
    flags = {name: bool(ir.BoolAttr(op.attributes[name]).value) for name in ("left_side", "lower", "unit_diagonal")}
    system = Triangular(flags["left_side"], flags["lower"], turned != "NO_TRANSPOSE", flags["unit_diagonal"])
    return [system.solve(*op.operands)]


def _cholesky(op: ir.Operation) -> list[Value]:
    """StableHLO leaves open what other matrices give: here it is NaN, from the first minor that is not positive on."""
    lower = "lower" in op.attributes and bool(ir.BoolAttr(op.attributes["lower"]).value)
    return cholesky_factors(op.operands[0], lower)[:1]


def _lapack_solution(op: ir.Operation) -> list[Value]:
    given = _letters(op)
    system = Triangular(given["side"] == "L", given["uplo"] == "L", given["trans_x"] != "N", given["diag"] == "U")
    return [system.solve(*op.operands)]


def _lapack_cholesky(op: ir.Operation) -> list[Value]:
    config = ir.DictAttr(op.attributes[_CONFIG])
    is_lower = bool(ir.BoolAttr(config["lower"]).value) if "lower" in config else _letters(op)["uplo"] == "L"
    return cholesky_factors(op.operands[0], is_lower)


def _letters(op: ir.Operation) -> dict[str, str]:
    """Return the letters by which LAPACK's functions are told what to do."""
    config = ir.DictAttr(op.attributes[_CONFIG])
    named = (config[number] for number in range(len(config)))
    return {each.name: chr(ir.IntegerAttr(each.attr).value) for each in named}


@dataclass(frozen=True)
class _Permutation(_Form):
    """The order of rows that pivots give, which are vectors."""

    def operations(self, op: ir.Operation) -> int:
        """Return about how many operations are made of ``op``, 0 if it stays."""
        rows = shape_of(op.results[0])[-1]
        return 4 * rows**self.power if rows <= self.most and 0 not in shape_of(op.operands[0]) else 0


_LU = _Form(lambda op: lu_factors(op.operands[0]), _MOST, 3)
_LAPACK_SOLUTION, _LAPACK_CHOLESKY = _Form(_lapack_solution, _MOST_TRIANGULAR, 2), _Form(_lapack_cholesky, _MOST, 3)
_CALLS: Mapping[str, _Form] = {
    "cusolver_getrf_ffi": _LU,
    "lapack_sgetrf_ffi": _LU,
    "lapack_dgetrf_ffi": _LU,
    "cu_lu_pivots_to_permutation": _Permutation(
        lambda op: [permutation_of(op.operands[0], shape_of(op.results[0])[-1])], _MOST, 2
    ),
    "lapack_strsm_ffi": _LAPACK_SOLUTION,
    "lapack_dtrsm_ffi": _LAPACK_SOLUTION,
    "lapack_spotrf_ffi": _LAPACK_CHOLESKY,
    "lapack_dpotrf_ffi": _LAPACK_CHOLESKY,
    "cusolver_potrf_ffi": _LAPACK_CHOLESKY,
}
"""The functions that calls of libraries compute, by name: of LAPACK on CPUs, of cuSOLVER on GPUs."""
