"""Moves broadcasts to the arrays that a scan is of, out of the operations by which it is written."""

from collections.abc import Sequence

from xgpu import ir
from xgpu.hlo.scan_op import ELEMENTWISE, uniform
from xgpu.hlo.stablehlo_builder import Value, broadcast, hlo, shape_of, tensor
from xgpu.indexing.access import integer, integers
from xgpu.passes.normalize.scans.program_order import ProgramOrder
from xgpu.records import dataclass
from xgpu.structure import attributes_of, defining_op, element_of

_CUTTING = ("stablehlo.slice", "stablehlo.pad", "stablehlo.concatenate")


@dataclass(frozen=True)
class _View:
    """The broadcast of a value to ``shape``: its dimensions are those that ``dimensions`` names."""

    dimensions: tuple[int, ...]
    shape: tuple[int, ...]


class Broadcasts:
    """Copies of values in which arrays are broadcast, which have ``size`` elements along ``dimension``, and no others.

    What several arrays of a scan are combined by broadcasts some of them, at each level of the recursion. A copy stands
    right after its original, and is made once.
    """

    def __init__(self, order: ProgramOrder, dimension: int, size: int):
        self._order = order
        self._dimension = dimension
        self._size = size
        self._made: dict[tuple[Value, _View | None], Value] = {}
        self._originals: dict[Value, Value] = {}

    def moved(self, root: Value) -> Value:
        """Return a copy of a value; the value itself if nothing that it is made of is broadcast."""
        pending: list[tuple[Value, _View | None]] = [(root, None)]
        while pending:
            value, view = pending[-1]
            needed = self._needed(value, view, value == root)
            unknown = [] if (value, view) in self._made else [each for each in needed if each not in self._made]
            pending += unknown
            if not unknown:
                pending.pop()
                if (value, view) not in self._made:
                    self._made[value, view] = self._copy(value, view, [self._made[each] for each in needed])
        return self._made[root, None]

    def has(self, value: Value) -> bool:
        """Whether a value is one of the copies."""
        return value in self._originals

    def original(self, copy: Value) -> Value:
        """Return what a value is a copy of."""
        return self._originals[copy]

    @property
    def copies(self) -> list[Value]:
        """All copies."""
        return list(self._originals)

    def _needed(self, value: Value, view: _View | None, is_root: bool) -> list[tuple[Value, _View | None]]:
        """Return of which other values, in which views, a copy is made: none for an array."""
        op, shape = defining_op(value), shape_of(value)
        if op is None or uniform(op) is not None:
            return []
        along = self._dimension if view is None else _source(view, self._dimension)
        if along is None or along >= len(shape):
            return []
        # The result is padded arrays, joined.
        if shape[along] == self._size and not is_root and op.name != "stablehlo.pad":
            return []
        if op.name == "stablehlo.broadcast_in_dim":
            inner = _View(tuple(integers(op, "broadcast_dimensions")), tuple(shape))
            return [(op.operands[0], inner if view is None else _composed(inner, view))]
        if op.name in _CUTTING:
            arrays = list(op.operands)[: 1 if op.name == "stablehlo.pad" else None]
            views = [_resized(view, shape, shape_of(array)) for array in arrays]
            return [] if None in views and view is not None else list(zip(arrays, views, strict=True))
        is_same = all(shape_of(operand) == shape for operand in op.operands)
        return [(operand, view) for operand in op.operands] if op.name in ELEMENTWISE and is_same else []

    def _copy(self, value: Value, view: _View | None, needed: Sequence[Value]) -> Value:
        op = defining_op(value)
        if op is not None and op.name == "stablehlo.broadcast_in_dim" and needed:
            return needed[0]
        if view is None and all(a == b for a, b in zip(needed, op.operands if op is not None else (), strict=False)):
            return value
        owner = value.owner
        place = (
            ir.InsertionPoint.at_block_begin(owner) if isinstance(owner, ir.Block) else ir.InsertionPoint.after(owner)
        )
        with value.location, place:
            copy = self._emit(value, view, needed)
        self._order.add(copy, value)
        self._originals[copy] = value
        return copy

    def _emit(self, value: Value, view: _View | None, needed: Sequence[Value]) -> Value:
        op = defining_op(value)
        if op is None or not needed:
            assert view is not None
            return broadcast(value, view.shape, view.dimensions)
        type_ = value.type if view is None else tensor(view.shape, element_of(value))
        attributes = attributes_of(op)
        if view is not None and op.name == "stablehlo.concatenate":
            return hlo.concatenate(needed, view.dimensions[integer(op, "dimension")])
        if view is not None and op.name in _CUTTING:
            whole = {"start_indices": [0] * len(view.shape), "limit_indices": shape_of(needed[0])}
            for name in (name for name in attributes if isinstance(attributes[name], ir.DenseI64ArrayAttr)):
                numbers = list(whole.get(name, [int(name == "strides")] * len(view.shape)))
                for source, dimension in enumerate(view.dimensions):
                    if shape_of(op.operands[0])[source] == numbers[dimension] or name != "limit_indices":
                        numbers[dimension] = integers(op, name)[source]
                attributes[name] = ir.DenseI64ArrayAttr.get(numbers)
        operands = [*needed, *list(op.operands)[len(needed) :]]
        return ir.Operation.create(op.name, [type_], operands, attributes).results[0]


def _source(view: _View, dimension: int) -> int | None:
    """Return the dimension of the value that is this one of the view, None if it has none."""
    return view.dimensions.index(dimension) if dimension in view.dimensions else None


def _composed(inner: _View, outer: _View) -> _View:
    """Return the view of what is broadcast twice."""
    return _View(tuple(outer.dimensions[dimension] for dimension in inner.dimensions), outer.shape)


def _resized(view: _View | None, shape: Sequence[int], other: Sequence[int]) -> _View | None:
    """Return the view in which a value of an ``other`` shape is cut or padded to what is seen of one of ``shape``.

    None if a dimension of one element is seen as more, and is cut or padded: and for no view.
    """
    if view is None:
        return None
    seen = list(view.shape)
    for source, dimension in enumerate(view.dimensions):
        if shape[source] != other[source] and shape[source] != seen[dimension]:
            return None
        if shape[source] != other[source]:
            seen[dimension] = other[source]
    return _View(view.dimensions, tuple(seen))
