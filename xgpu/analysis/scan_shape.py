"""The shape of a scan with its dimensions merged, for planning and the emitters."""

import math
from dataclasses import dataclass

from xgpu import ir
from xgpu.indexing.access import integer, shape_of
from xgpu.indexing.affine import AffineExpr, delinearize


@dataclass(frozen=True)
class ScanShape:
    """The scan of arrays of ``shape`` along ``dimension``, from the end if ``reverse``, in chunks of ``chunk``.

    The dimensions before it count as one of ``outer`` elements, those after it as one of ``inner``. Without any, the
    scan is one of *rows*, which are contiguous; else it is one of *columns*. Where nothing is said, a position is
    counted from where the scan starts. If it ``goes_on``, chunks do from numbers that the scan is given.
    """

    shape: tuple[int, ...]
    dimension: int
    reverse: bool
    chunk: int
    goes_on: bool = False

    @classmethod
    def of(cls, op: ir.Operation) -> "ScanShape":
        """Return the shape of an `xgpu.scan`."""
        shape, dimension = shape_of(op.operands[0]), integer(op, "dimension")
        chunk = max(1, min(integer(op, "chunk"), shape[dimension]))
        goes_on = len(op.operands) > len(op.results) and chunk < shape[dimension]
        return cls(shape, dimension, bool(ir.BoolAttr(op.attributes["reverse"]).value), chunk, goes_on)

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
    def chunks(self) -> int:
        """The number of scans one after the other along the dimension."""
        return -(-self.size // self.chunk)

    @property
    def is_rows(self) -> bool:
        """Whether the elements of a scan are neighbours in memory."""
        return self.inner == 1

    @property
    def starts_shape(self) -> tuple[int, ...]:
        """The shape of the chunks' initial values: a number for each chunk but the first."""
        return (*self.shape[: self.dimension], self.chunks - 1, *self.shape[self.dimension + 1 :])

    def indices(self, outer: AffineExpr, index: AffineExpr, inner: AffineExpr) -> tuple[AffineExpr, ...]:
        """Return the arrays' indices, given those of the merged dimensions."""
        before = delinearize(outer, self.shape[: self.dimension])
        return (*before, index, *delinearize(inner, self.shape[self.dimension + 1 :]))
