"""The pass `share-vectors`."""

from collections.abc import Mapping
from typing import ClassVar

from xgpu import ir
from xgpu.dialects.attributes import map_of
from xgpu.dialects.xgpu import ApplyIndexingOp
from xgpu.indexing.affine import AffineExpr, constant, dim
from xgpu.passes.framework.base import Pass, functions
from xgpu.passes.support.ranges import constant_of
from xgpu.records import dataclass
from xgpu.structure import body_of, defining_op, replace_op

_READ, _LOAD = "vector.transfer_read", "tensor.extract"

type _Place = tuple[ir.Value, tuple[ir.Value, ...], AffineExpr]
"""A tensor, and the index in it without its constant: an expression of these operands."""
type _Vectors = Mapping[_Place, Mapping[int, tuple[ir.Value, int]]]
"""For each place the vectors' elements by the constants of their indices: the vector, and the position in it."""


@dataclass(frozen=True)
class ShareVectors(Pass):
    """Takes elements from vectors that were read before, instead of loading them alone.

    The neighbour of a thread's element on the right is mostly the thread's next element, which an access to a vector
    has read. Needs: loops unrolled, and indices simplified (simplify-indexing), so that they differ in a constant.

    ```mlir
    %v = vector.transfer_read %t[%k], %zero {in_bounds = [true]} : tensor<128xf32>, vector<4xf32>
    %l = "xgpu.apply_indexing"(%n) {map = #xgpu.map<(d0) -> (d0 * 4 + 1), d0 in [0, 31]>} : (index) -> index
    %x = tensor.extract %t[%l] : tensor<128xf32>
    ```
    becomes, where ``%k`` is ``d0 * 4``,
    ```mlir
    %x = vector.extract %v[1] : f32 from vector<4xf32>
    ```
    """

    NAME: ClassVar[str] = "share-vectors"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_READ,))

    def apply(self, module: ir.Module) -> None:
        """Share the vectors of every function of ``module``."""
        for function in functions(module):
            _share(body_of(function.operation), {})


def _share(block: ir.Block, before: _Vectors) -> None:
    """Take what ``block`` loads from vectors that it reads, or that were read ``before``."""
    vectors = {place: dict(elements) for place, elements in before.items()}
    for view in list(block.operations):
        op = view.operation
        if op.name == _READ:
            _add(vectors, op)
        elif op.name == _LOAD and len(op.operands) == 2:
            place, offset = _place_of(op.operands[0], op.operands[1])
            if (found := vectors.get(place, {}).get(offset)) is not None:
                with ir.InsertionPoint(op), op.location:
                    replace_op(op, [_element(*found)])
            continue
        for region in op.regions:
            for inner in region.blocks:
                _share(inner, vectors)


def _add(vectors: dict[_Place, dict[int, tuple[ir.Value, int]]], read: ir.Operation) -> None:
    """Note the elements of a vector that was read."""
    type_ = ir.VectorType(read.results[0].type)
    if len(read.operands) != 3 or len(type_.shape) != 1:
        return
    place, offset = _place_of(read.operands[0], read.operands[1])
    elements = vectors.setdefault(place, {})
    for position in range(type_.shape[0]):
        elements.setdefault(offset + position, (read.results[0], position))


def _place_of(tensor: ir.Value, index: ir.Value) -> tuple[_Place, int]:
    """Return where in a tensor an index is, and the constant that it has beside that."""
    if (number := constant_of(index)) is not None:
        return (tensor, (), constant(0)), number
    op = defining_op(index)
    if op is None or op.name != ApplyIndexingOp.OPERATION_NAME or (map_ := map_of(op.attributes["map"])).symbols:
        return (tensor, (index,), dim(0)), 0
    expr = map_.results[ir.OpResult(index).result_number]
    used = sorted(expr.variables()[0])
    places = {old: dim(new) for new, old in enumerate(used)}
    rest = expr - expr.constant
    return (tensor, tuple(op.operands[each] for each in used), rest.substitute(places)), expr.constant


def _element(vector: ir.Value, position: int) -> ir.Value:
    """Create the element of a vector at a position that is known."""
    return ir.Operation.create(
        "vector.extract",
        results=[ir.VectorType(vector.type).element_type],
        operands=[vector],
        attributes={"static_position": ir.DenseI64ArrayAttr.get([position])},
    ).results[0]
