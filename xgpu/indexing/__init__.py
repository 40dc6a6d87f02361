"""Indexing maps: intervals, index expressions, their simplification, and the maps made from them."""

from xgpu.indexing.affine import AffineExpr, constant, delinearize, dim, linearize, symbol
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.indexing.simplify import simplify_expr

__all__ = [
    "AffineExpr",
    "IndexingMap",
    "Interval",
    "constant",
    "delinearize",
    "dim",
    "linearize",
    "simplify_expr",
    "symbol",
]
