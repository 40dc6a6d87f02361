"""The emitter of kernels of nests that are matrix products: they become fusions of the product emitters.

How threads copy tiles, multiply and add is then what those decide for such products, with the tiles of the loops.
"""

from collections.abc import Mapping

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.dialects.nests.loops import LaunchOp
from xgpu.emit.base import Fusion
from xgpu.emit.family_table import FAMILIES, emit_kernel, schedule_kernels
from xgpu.errors import InvalidInput
from xgpu.hlo.constants import splat_of
from xgpu.hlo.tensor_cores import PRECISION
from xgpu.indexing.dot_dimensions import DIMENSIONS
from xgpu.nests.products import Axis, ProductArray, TileProduct, tile_product
from xgpu.options import Options
from xgpu.records import dataclass
from xgpu.structure import attributes_of

INSTRUCTIONS = {"product": attributes.BY_WARP_GROUPS, "warp_product": attributes.BY_WARPS}
"""The emitters, those that are asked first in front, and the instructions that multiply."""
_CONSTANT = "stablehlo.constant"


@dataclass(frozen=True)
class ProductNest:
    """A kernel that is a matrix product: its launch, and the arrays outside of it as it takes them."""

    name: str
    launch: LaunchOp
    product: TileProduct

    @classmethod
    def of(cls, name: str, launch: LaunchOp) -> "ProductNest":
        """Return the kernel of a launch that is such a product."""
        return cls(name, launch, tile_product(launch))

    @property
    def inputs(self) -> tuple[ir.Value, ...]:
        """The arrays that it reads."""
        product = self.product
        others = (each.array for each in product.reads.values() if each is not None)
        return tuple(dict.fromkeys((product.left.array, product.right.array, *others)))

    @property
    def outputs(self) -> tuple[ir.Value, ...]:
        """The arrays that it writes."""
        return tuple(each.array for each in self.product.writes)

    def schedule(self, emitter: str, given: Mapping[str, int], device: Device, options: Options) -> ir.Attribute:
        """Return the schedule of an emitter with the given numbers. Raises `InvalidInput` if there is none."""
        family = FAMILIES[emitter]
        module = self._module(emitter)
        with self.launch.operation.context, self.launch.operation.location:
            fusion = Fusion.of(_function_of(module), device, options)
            if problem := family.problem(fusion):
                raise InvalidInput(problem)
            schedule = family.schedule.made(given, family.facts(fusion))
            return attributes.schedule_attribute(schedule.values)

    def emit(self, device: Device, options: Options) -> ir.Module:
        """Return a new module of level ``tiles`` with the kernel."""
        assert self.launch.emitter is not None and self.launch.schedule is not None, "find-matrix-products writes them"
        module = self._module(self.launch.emitter)
        _function_of(module).attributes[attributes.SCHEDULE] = self.launch.schedule
        schedule_kernels(module, device, options)
        return emit_kernel(_function_of(module), device, options)

    def _module(self, emitter: str) -> ir.Module:
        with self.launch.operation.context, self.launch.operation.location:
            module = ir.Module.create()
            with ir.InsertionPoint(module.body):
                self._function(emitter)
        return module

    def _function(self, emitter: str) -> None:
        """Write the product as a function of whole arrays."""
        parameters = [_tensor(array) for array in self.inputs]
        results = [_tensor(array) for array in self.outputs]
        function = ir.func.FuncOp(self.name, ir.FunctionType.get(parameters, results))
        function.operation.attributes["sym_visibility"] = ir.StringAttr.get("private")
        function.operation.attributes[attributes.EMITTER] = ir.StringAttr.get(emitter)
        block = function.add_entry_block()
        arrays = dict(zip(self.inputs, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            values = self._results(arrays, self._dot(arrays, INSTRUCTIONS[emitter]))
            ir.func.return_([values[each.op.operands[0]] for each in self.product.writes])

    def _dot(self, arrays: Mapping[ir.Value, ir.Value], instructions: str) -> ir.Value:
        product = self.product
        batches = product.order[:-2]
        left, right = (
            ([each.axes.index(axis) for axis in batches], [each.axes.index(product.contracted)])
            for each in (product.left, product.right)
        )
        default = ir.Attribute.parse("#stablehlo<precision DEFAULT>")
        op = ir.Operation.create(
            "stablehlo.dot_general",
            results=[_tensor_of(product.order, ir.F32Type.get())],
            operands=[arrays[product.left.array], arrays[product.right.array]],
            attributes={
                DIMENSIONS: ir.stablehlo.DotDimensionNumbers.get(left[0], right[0], left[1], right[1]),
                PRECISION: ir.ArrayAttr.get([default, default]),
                attributes.HERO: ir.UnitAttr.get(),
                attributes.PRODUCT: ir.StringAttr.get(instructions),
            },
        )
        return op.results[0]

    def _results(self, arrays: Mapping[ir.Value, ir.Value], sums: ir.Value) -> dict[ir.Value, ir.Value]:
        """Write what is computed from the sums: for each element of the statements the array of all of them."""
        values: dict[ir.Value, ir.Value] = {}
        for op in self.product.statements:
            if not op.results:
                continue
            type_ = _tensor_of(self.product.order, ir.RankedTensorType(op.results[0].type).element_type)
            if op in self.product.reads:
                read = self.product.reads[op]
                found = sums if read is None else self._whole(read, arrays[read.array], type_)
            elif op.name == _CONSTANT:
                number = splat_of(op)
                assert number is not None, "constants are of real numbers: sums are"
                splat = ir.DenseElementsAttr.get_splat(type_, number)
                found = ir.Operation.create(op.name, results=[type_], attributes={"value": splat}).results[0]
            else:
                operands = [values[operand] for operand in op.operands]
                made = ir.Operation.create(op.name, [type_], operands, attributes_of(op), loc=op.location)
                found = made.results[0]
            values[op.results[0]] = found
        return values

    def _whole(self, read: ProductArray, array: ir.Value, type_: ir.Type) -> ir.Value:
        """Return an array as an element for each of the results."""
        order = self.product.order
        if read.axes == order:
            return array
        dimensions = ir.DenseI64ArrayAttr.get([order.index(axis) for axis in read.axes])
        return ir.Operation.create(
            "stablehlo.broadcast_in_dim",
            results=[type_],
            operands=[array],
            attributes={"broadcast_dimensions": dimensions},
        ).results[0]


def _function_of(module: ir.Module) -> ir.Operation:
    (function,) = module.body.operations
    return function.operation


def _tensor(array: ir.Value) -> ir.Type:
    type_ = ir.MemRefType(array.type)
    return ir.RankedTensorType.get(list(type_.shape), type_.element_type)


def _tensor_of(axes: tuple[Axis, ...], element: ir.Type) -> ir.Type:
    return ir.RankedTensorType.get([axis.size for axis in axes], element)
