"""The emitter of nests: a launch of level ``mapped``, whose decisions are all made, as a kernel of level ``emitted``.

Buffers become tensors: those that the kernel is given its inputs and outputs, those of blocks tiles in shared memory.
Those of threads become values, an element each. A loop then takes what is changed in it and gives it back, as in every
kernel (`xgpu.emit.kernel_builder`).
"""

from collections.abc import Iterator

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.dialects.nests.loops import LaunchOp
from xgpu.dtypes import dtype_of_element
from xgpu.emit.base import LaunchDimensions
from xgpu.emit.builders import scalar_type
from xgpu.emit.kernel_builder import entry_function
from xgpu.emit.nests.body import BodyWriter, Memories
from xgpu.emit.nests.products import ProductNest
from xgpu.nests.structure import access_of_parameter, accesses_in, all_launches_of
from xgpu.records import dataclass
from xgpu.structure import owning_op

LEVEL = "emitted"


@dataclass(frozen=True)
class NestKernel:
    """A kernel: its launch, and the buffers outside of it, in the order in which it takes them.

    ``inputs`` are those that it reads, and those that it changes a part of; ``outputs`` those that it changes.
    """

    NAME = "nest"

    name: str
    launch: LaunchOp
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]

    @property
    def aliases(self) -> tuple[int, ...]:
        """For each output the number of the input that it starts as, -1 if it starts as anything."""
        found = tuple(self.inputs.index(each) if each in self.inputs else -1 for each in self.outputs)
        return found if any(number >= 0 for number in found) else ()

    @property
    def parameter_types(self) -> list[ir.Type]:
        """Signless tensor types of the inputs."""
        return [tensor_type(value) for value in self.inputs]

    @property
    def result_types(self) -> list[ir.Type]:
        """Signless tensor types of the outputs."""
        return [tensor_type(value) for value in self.outputs]

    def launch_dimensions(self) -> LaunchDimensions:
        """Blocks and threads along x."""
        assert self.launch.grid is not None and self.launch.block is not None, "map-threads writes them"
        return LaunchDimensions.along_x(self.launch.grid, self.launch.block)

    def emit(self) -> ir.Module:
        """Return a new module with the kernel, in the context of the launch."""
        with self.launch.operation.context, self.launch.operation.location:
            module = ir.Module.create()
            module.operation.attributes[attributes.LEVEL] = ir.StringAttr.get(LEVEL)
            with ir.InsertionPoint(module.body), entry_function(self, self, ()) as kernel:
                inputs = dict(zip(self.inputs, kernel.inputs, strict=True))
                outputs = dict(zip(self.outputs, kernel.outputs, strict=True))
                memories = Memories.of(self.launch, inputs, outputs)
                BodyWriter(memories, kernel.position).write(self.launch.body)
        return module


def tensor_type(buffer: ir.Value, pad: int = 0) -> ir.Type:
    """Return the signless tensor type of a buffer, its rows ``pad`` elements longer."""
    type_ = ir.MemRefType(buffer.type)
    shape = list(type_.shape)
    if pad:
        shape[-1] += pad
    return ir.RankedTensorType.get(shape, scalar_type(dtype_of_element(type_.element_type)))


def kernels_of(module: ir.Module, name: str) -> Iterator[NestKernel | ProductNest]:
    """Yield the kernels of a program of level ``mapped``, in order.

    A buffer that has a value when a kernel starts, and that it changes, is updated in place. A kernel that changes none
    outside of it does nothing, and is left out.
    """
    written: set[ir.Value] = set()
    for number, launch in enumerate(all_launches_of(module)):
        if launch.emitter is not None:
            product = ProductNest.of(f"{name}_{number}", launch)
            written.update(product.outputs)
            yield product
            continue
        accesses = [access for access in accesses_in(launch.operation) if _is_outside(access.buffer, launch)]
        changed = list(dict.fromkeys(access.buffer for access in accesses if access.writes))
        if not changed:
            continue
        read = list(dict.fromkeys(access.buffer for access in accesses if access.buffer not in changed))
        given = [buffer for buffer in changed if buffer in written or _is_given(buffer)]
        yield NestKernel(f"{name}_{number}", launch, (*read, *given), tuple(changed))
        written.update(changed)


def _is_outside(buffer: ir.Value, launch: LaunchOp) -> bool:
    owner = owning_op(buffer)
    return owner.name == "func.func" or owner.parent.name == "func.func"  # type: ignore[union-attr]


def _is_given(buffer: ir.Value) -> bool:
    """Whether a buffer is an argument of the program that it starts with: not an output."""
    owner = owning_op(buffer)
    return owner.name == "func.func" and access_of_parameter(buffer) != "out"
