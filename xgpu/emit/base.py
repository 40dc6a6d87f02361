"""What every emitter offers: how a kernel is launched, which thread computes which elements, its entry function."""

from dataclasses import dataclass
from typing import Protocol

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.dialects.discardable import MAX_GRID
from xgpu.emit.builders import signless_tensor
from xgpu.errors import Unsupported
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.options import Options


@dataclass(frozen=True)
class LaunchDimensions:
    """Blocks of the grid and threads of a block, each as (x, y, z)."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]


@dataclass(frozen=True)
class Fusion:
    """A fusion to emit: a function over StableHLO whose results are what the kernel writes.

    ``aliases`` has, if any result is an update in place, an entry for each: the number of the parameter whose memory
    it takes over, or -1.
    """

    name: str
    body: ir.Block
    device: Device
    options: Options
    aliases: tuple[int, ...] = ()

    @classmethod
    def of(cls, function: ir.Operation, device: Device, options: Options) -> "Fusion":
        """Return the fusion that a function of level ``fusions`` is."""
        given = function.attributes
        aliases = attributes.int_array_of(given[attributes.ALIASES]) if attributes.ALIASES in given else ()
        name = ir.StringAttr(given["sym_name"]).value
        return cls(name, function.regions[0].blocks[0], device, options, aliases)

    @property
    def heroes(self) -> list[ir.Operation]:
        """The operations that the kernel is built around, in order."""
        return [op.operation for op in self.body.operations if attributes.HERO in op.operation.attributes]

    @property
    def results(self) -> list[ir.Value]:
        """What the kernel writes."""
        return list(list(self.body.operations)[-1].operation.operands)

    @property
    def parameter_types(self) -> list[ir.Type]:
        """Signless tensor types of the parameters."""
        return [signless_tensor(value.type) for value in self.body.arguments]

    @property
    def result_types(self) -> list[ir.Type]:
        """Signless tensor types of the results."""
        return [signless_tensor(value.type) for value in self.results]


class Emitter(Protocol):
    """Writes the kernel of a fusion, as its schedule says. One class a file; `families` names them all."""

    NAME: str

    def launch_dimensions(self) -> LaunchDimensions:
        """Return the launch of the kernel."""

    def thread_to_output(self, output: int) -> IndexingMap:
        """Return the map from (thread, block) and range variables to the elements of an output that they write."""

    def emit(self) -> None:
        """Write the entry function and the subgraph functions at the current insertion point."""


def entry_function(fusion: Fusion, emitter: Emitter) -> ir.Block:
    """Write the head of a kernel's entry function and return its body: parameters are the inputs, then the outputs."""
    outputs = fusion.result_types
    type_ = ir.FunctionType.get([*fusion.parameter_types, *outputs], outputs)
    function = ir.func.FuncOp(fusion.name, type_)
    launch = emitter.launch_dimensions()
    if launch.grid[0] > MAX_GRID[0]:
        raise Unsupported(f"a kernel of {launch.grid[0]} blocks is more than a launch has, which is {MAX_GRID[0]}")
    function.operation.attributes[attributes.KERNEL] = ir.UnitAttr.get()
    function.operation.attributes[attributes.EMITTER] = ir.StringAttr.get(emitter.NAME)
    function.operation.attributes[attributes.GRID] = attributes.int_array(launch.grid)
    function.operation.attributes[attributes.BLOCK] = attributes.int_array(launch.block)
    if fusion.aliases:
        function.operation.attributes[attributes.ALIASES] = attributes.int_array(fusion.aliases)
    function.operation.attributes[attributes.INPUTS] = attributes.int_attribute(len(fusion.parameter_types))
    return function.add_entry_block()


def thread_and_block(launch: LaunchDimensions) -> list[ir.Value]:
    """Return the thread's and the block's number along x, with their upper bounds."""
    index = ir.IndexType.get()
    return [
        ir.Operation.create(
            name,
            results=[index],
            attributes={
                "dimension": ir.Attribute.parse("#gpu.dim<x>"),
                "upper_bound": ir.IntegerAttr.get(index, bound),
            },
        ).results[0]
        for name, bound in (("gpu.thread_id", launch.block[0]), ("gpu.block_id", launch.grid[0]))
    ]
