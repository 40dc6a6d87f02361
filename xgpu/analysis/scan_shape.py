"""The shape of a scan with its dimensions merged, for planning and the emitters."""

import math

from xgpu import ir
from xgpu.indexing.access import integer, shape_of
from xgpu.indexing.affine import AffineExpr, delinearize
from xgpu.records import dataclass


@dataclass(frozen=True)
class ScanShape:
    """The scan of arrays of ``shape`` along ``dimension``, from the end if ``reverse``.

    The dimensions before it count as one of ``outer`` elements, those after it as one of ``inner``. Without any, the
    scan is one of *rows*, which are contiguous; else it is one of *columns*. Where nothing is said, a position is
    counted from where the scan starts.
    """

    shape: tuple[int, ...]
    dimension: int
    reverse: bool

    @classmethod
    def of(cls, op: ir.Operation) -> "ScanShape":
        """Return the shape of an `xgpu.scan`."""
        reverse = bool(ir.BoolAttr(op.attributes["reverse"]).value)
        return cls(shape_of(op.operands[0]), integer(op, "dimension"), reverse)

    @property
    def size(self) -> int:
        """The number of elements along the dimension."""
        return self.shape[self.dimension]

    @property
    def outer(self) -> int:
        """The number of elements of the dimensions before, taken together."""
        return math.prod(self.shape[: self.dimension])

    @property
    def inner(self) -> int:
        """The number of elements of the dimensions after, taken together."""
        return math.prod(self.shape[self.dimension + 1 :])

    @property
    def is_rows(self) -> bool:
        """Whether the elements of a scan are neighbours in memory."""
        return self.inner == 1

    def indices(self, outer: AffineExpr, index: AffineExpr, inner: AffineExpr) -> tuple[AffineExpr, ...]:
        """Return the arrays' indices, given those of the merged dimensions."""
        before = delinearize(outer, self.shape[: self.dimension])
        return (*before, index, *delinearize(inner, self.shape[self.dimension + 1 :]))
