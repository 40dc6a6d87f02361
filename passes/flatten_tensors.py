"""The pass `flatten-tensors`."""

from math import prod
from typing import ClassVar

from xgpu import ir
from xgpu.dialects.attributes import map_attribute
from xgpu.dialects.traits import traits_of
from xgpu.errors import Unsupported
from xgpu.hlo.source_location import source_of
from xgpu.indexing.affine import dim, linearize
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.passes.framework.base import Pass
from xgpu.passes.support.index_ops import create_apply, create_index
from xgpu.records import dataclass
from xgpu.structure import arguments_of, replace_op, walk


@dataclass(frozen=True)
class FlattenTensors(Pass):
    """Flattens every tensor to rank 1, row-major; the map of the old shape linearises the index.

    Types change in place, in signatures, calls, carried values and constants alike; only accesses to elements are
    rewritten. A tensor of rank 0 becomes one of one element. Attributes of functions and arguments stay.
    Needs: nothing; simplify-indexing folds the maps that this makes into those that computed the indices.

    ```mlir
    %x = tensor.extract %t[%i, %j] : tensor<8x16xf32>
    ```
    becomes
    ```mlir
    %k = "xgpu.apply_indexing"(%i, %j) {map = #xgpu.map<(d0, d1) -> (d0 * 16 + d1), d0 in [0, 7], d1 in [0, 15]>}
    %x = tensor.extract %t[%k] : tensor<128xf32>
    ```
    """

    NAME: ClassVar[str] = "flatten-tensors"

    def apply(self, module: ir.Module) -> None:
        """Flatten every tensor of ``module``. Raises `Unsupported` for a tensor whose shape is not static."""
        flattener = _Flattener()
        for op in module.body.operations:
            if isinstance(op, ir.func.FuncOp):
                flattener.flatten_function(op.operation)


class _Flattener:
    def __init__(self) -> None:
        self._flat: dict[ir.Type, ir.Type | None] = {}
        self._maps: dict[tuple[int, ...], ir.Attribute] = {}

    def flatten_function(self, function: ir.Operation) -> None:
        """Flatten the signature and the body."""
        type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        inputs = [self._flat_type(t, function) or t for t in type_.inputs]
        results = [self._flat_type(t, function) or t for t in type_.results]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
        ops = walk(function)
        # Once the types have changed, the shapes that accesses index are gone.
        accesses = [(op, shape) for op in ops if (shape := _accessed_shape(op)) is not None]
        for op in ops:
            self._flatten_values(op)
        for op, shape in accesses:
            self._linearize(op, shape)

    def _flatten_values(self, op: ir.Operation) -> None:
        """Change the types of the results of ``op`` and of the arguments of its regions."""
        for value in op.results:
            if flat := self._flat_type(value.type, op):
                if op.name == "arith.constant":
                    op.attributes["value"] = _with_type(op.attributes["value"], flat)
                value.set_type(flat)
        for argument in arguments_of(op):
            if flat := self._flat_type(argument.type, op):
                argument.set_type(flat)

    def _flat_type(self, type_: ir.Type, op: ir.Operation) -> ir.Type | None:
        """The rank-1 form of ``type_``; None if ``type_`` is that already or no tensor."""
        if type_ in self._flat:
            return self._flat[type_]
        flat: ir.Type | None = None
        if isinstance(type_, ir.RankedTensorType) and type_.rank != 1:
            if not type_.has_static_shape:
                raise Unsupported(f"'{op.name}': expected tensors of static shape, got {type_}", source_of(op))
            flat = ir.RankedTensorType.get([prod(type_.shape)], type_.element_type)
        self._flat[type_] = flat
        return flat

    def _linearize(self, op: ir.Operation, shape: tuple[int, ...]) -> None:
        """Replace an access with one index per dimension of ``shape`` by one with the row-major index."""
        with ir.InsertionPoint(op), op.location:
            operands = list(op.operands)
            tensor = traits_of(op.name).tensor
            assert tensor is not None
            start = tensor + 1
            position = create_apply(self._row_major(shape), operands[start:]) if shape else create_index(0)
            replacement = ir.Operation.create(
                op.name,
                results=[result.type for result in op.results],
                operands=[*operands[:start], position],
                regions=len(op.regions),
            )
        for old, new in zip(op.regions, replacement.regions, strict=True):
            old.blocks[0].append_to(new)
        replace_op(op, list(replacement.results))

    def _row_major(self, shape: tuple[int, ...]) -> ir.Attribute:
        if shape not in self._maps:
            indices = [dim(i) for i in range(len(shape))]
            ranges = tuple(Interval(0, size - 1) for size in shape)
            self._maps[shape] = map_attribute(IndexingMap(ranges, (), (linearize(indices, shape),)))
        return self._maps[shape]


def _accessed_shape(op: ir.Operation) -> tuple[int, ...] | None:
    """The shape of the tensor of which ``op`` accesses one element, unless it has rank 1 or ``op`` is not an access."""
    traits = traits_of(op.name)
    if traits.tensor is None or not traits.at_element:
        return None
    shape = tuple(ir.ShapedType(op.operands[traits.tensor].type).shape)
    return None if len(shape) == 1 else shape


def _with_type(elements: ir.Attribute, type_: ir.Type) -> ir.Attribute:
    """Reshape the elements of a constant.

    Goes through the text, which spells elements of every type exactly, where buffers exist only for NumPy's types.
    """
    body, _, _ = str(elements).rpartition(" : ")
    if body.startswith("dense<["):
        numbers = body.removeprefix("dense<").removesuffix(">").replace("[", "").replace("]", "")
        body = f"dense<[{numbers}]>"
    return ir.Attribute.parse(f"{body} : {type_}")
