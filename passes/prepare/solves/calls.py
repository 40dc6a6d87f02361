"""Calls of libraries for factors and decompositions of matrices, and what computes them without one."""

from collections.abc import Callable
from math import prod

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, reshape, shape_of, splat
from xgpu.passes.prepare.solves import reflections, rotations
from xgpu.passes.prepare.solves.parts import adjoint

_CONFIG = "mhlo.backend_config"


def _batch(value: Value) -> Value:
    """Return matrices with one dimension before their rows."""
    *batch, rows, columns = shape_of(value)
    return reshape(value, [prod(batch), rows, columns])


def _vectors(value: Value) -> Value:
    """Return vectors with one dimension before their elements."""
    *batch, size = shape_of(value)
    return reshape(value, [prod(batch), size])


def _flag(op: ir.Operation, name: str) -> bool:
    given = ir.DictAttr(op.attributes[_CONFIG])
    return name in given and bool(ir.BoolAttr(given[name]).value)


def _zeros(value: Value) -> Value:
    return splat(0, ir.RankedTensorType(value.type))


def _qr(op: ir.Operation) -> list[Value]:
    return list(reflections.factors(_batch(op.operands[0])))


def _q(op: ir.Operation) -> list[Value]:
    packed, taus = _batch(op.operands[0]), _vectors(op.operands[1])
    return [reflections.columns_of_product(packed, taus, shape_of(op.results[0])[-1])]


def _q_times(op: ir.Operation) -> list[Value]:
    packed, taus, right = _batch(op.operands[0]), _vectors(op.operands[1]), _batch(op.operands[2])
    is_turned = _flag(op, "transpose")
    if _flag(op, "left"):
        return [reflections.product(packed, taus, right, is_turned)]
    return [adjoint(reflections.product(packed, taus, adjoint(right), not is_turned))]


def _eigen(op: ir.Operation) -> list[Value]:
    values, vectors = rotations.eigen(_batch(op.operands[0]), _flag(op, "lower"))
    return [vectors, values, _zeros(op.results[2])]


def _singular(op: ir.Operation) -> list[Value]:
    """Return the results of ``gesvdj``, whose last matrix has the right singular vectors in columns."""
    matrices, (_, _, u, v, info) = _batch(op.operands[0]), op.results
    values, left, right = rotations.singular(matrices, shape_of(u)[-1], shape_of(v)[-1])
    return [matrices, values, left, right, _zeros(info)]


def _singular_by_rows(op: ir.Operation) -> list[Value]:
    """Return the results of ``gesvd``: one matrix has right singular vectors in rows, the first if that is said."""
    matrices, (_, _, *found, info) = _batch(op.operands[0]), op.results
    _, rows, columns = shape_of(matrices)
    if not _flag(op, "compute_uv"):
        values, _, _ = rotations.singular(matrices, min(rows, columns), min(rows, columns))
        return [matrices, values, *(_zeros(each) for each in found), _zeros(info)]
    u, v = reversed(found) if _flag(op, "transposed") else found
    values, left, right = rotations.singular(matrices, shape_of(u)[-1], shape_of(v)[-2])
    vectors = [left, adjoint(right)]
    return [matrices, values, *(reversed(vectors) if _flag(op, "transposed") else vectors), _zeros(info)]


DECOMPOSITIONS: dict[str, Callable[[ir.Operation], list[Value]]] = {
    "cusolver_geqrf_ffi": _qr,
    "cusolver_orgqr_ffi": _q,
    "cusolver_ormqr_ffi": _q_times,
    "cusolver_syevd_ffi": _eigen,
    "cusolver_gesvdj_ffi": _singular,
    "cusolver_gesvdp_ffi": _singular,
    "cusolver_gesvd_ffi": _singular_by_rows,
}
"""The calls by name, and what writes their results, each in the form of the loops."""
