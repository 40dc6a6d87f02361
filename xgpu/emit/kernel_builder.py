"""The builder of kernels: entry functions, loops and conditions that carry values on, tiles in shared memory.

MLIR's values never change, so a loop takes what it changes and gives it back. An emitter writes neither: it has a
`Variable` for whatever changes, names those that change inside a loop, and assigns to them. Where one is missing among
them, what comes after the loop reads a value of its inside, which the verifier refuses.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Protocol

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.dialects.discardable import MAX_GRID
from xgpu.dialects.messages import AwaitOp, PublishOp
from xgpu.dialects.threads import AllocateSharedOp, AtomicRmwOp, SyncThreadsOp, SyncWarpOp
from xgpu.dialects.xgpu import LoopOp, YieldOp
from xgpu.emit.base import Emitter, Fusion, LaunchDimensions, Launched, Signature
from xgpu.emit.builders import Values, apply_map, extract, if_else, insert, launch_index
from xgpu.errors import Unsupported
from xgpu.indexing.affine import dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass
from xgpu.structure import element_of


class Variable:
    """Something that has another value from one operation of a kernel to the next."""

    def __init__(self, value: ir.Value):
        self.value = value


class Tensor(Variable):
    """An output of a kernel, or a tile in shared memory."""

    def insert(self, scalar: ir.Value, indices: Sequence[ir.Value]) -> None:
        """Store an element."""
        self.value = insert(scalar, self.value, indices)

    def extract(self, indices: Sequence[ir.Value]) -> ir.Value:
        """Read an element."""
        return extract(self.value, indices)

    def update_atomically(self, indices: Sequence[ir.Value], new: Callable[[ir.Value], ir.Value]) -> None:
        """Make ``new`` of an element, in one step that other threads cannot see a part of."""
        op = AtomicRmwOp.build(self.value, indices)
        with ir.InsertionPoint(op.body):
            YieldOp.build([new(op.old)])
        self.value = op.operation.results[0]


class Board(Tensor):
    """Memory for messages between blocks."""

    def publish(self, index: ir.Value, values: Sequence[ir.Value]) -> None:
        """Leave a message, whose first word has this number."""
        self.value = PublishOp.build(self.value, index, values)

    def wait_for(self, index: ir.Value, types: Sequence[ir.Type]) -> Values:
        """Return the values of a message, as soon as another block has left it."""
        return AwaitOp.build(self.value, index, types)


class Rotation:
    """Values of which each iteration of a loop takes the next few, which cannot be indexed by a loop's variable.

    These are always the first; they, or what they become, go to the end. So after as many iterations as there are such
    groups of values all are where they were.
    """

    def __init__(self, values: Iterable[ir.Value]):
        self.variables = [Variable(value) for value in values]

    @property
    def values(self) -> Values:
        """All values as they lie now."""
        return values_of(self.variables)

    def first(self, count: int) -> Values:
        """Return the next ``count`` values."""
        return self.values[:count]

    def take(self, count: int) -> Values:
        """Return the next ``count`` values, which go to the end as they are."""
        taken = self.first(count)
        self.turn(taken)
        return taken

    def turn(self, new: Sequence[ir.Value]) -> None:
        """Drop as many values as there are new ones, and put these at the end."""
        assign(self.variables, [*self.values[len(new) :], *new])


class Emits(Protocol):
    """Functions that a kernel calls."""

    def emit(self) -> None:
        """Write the functions at the current insertion point."""


@dataclass(frozen=True)
class KernelTile:
    """Memory that a block's threads share: elements of a type."""

    size: int
    type: ir.Type


class KernelBuilder:
    """A kernel that is being written: its ``inputs``, and its ``outputs``, which it stores to.

    ``board`` is where its blocks leave messages, if it has ``scratch`` words for that, ``attributes`` are those of its
    entry function.
    """

    def __init__(self, fusion: Signature, launch: LaunchDimensions, function: ir.func.FuncOp, scratch: int):
        arguments, count = list(function.entry_block.arguments), len(fusion.parameter_types)
        self.inputs: Values = arguments[:count]
        self.board = Board(arguments.pop()) if scratch else None
        self.outputs = [Tensor(value) for value in arguments[-len(fusion.result_types) :]]
        self.attributes = function.operation.attributes
        self._launch = launch

    @cached_property
    def position(self) -> Values:
        """The thread's and the block's number along x, computed where this is first asked for: outside of loops."""
        return _thread_and_block(self._launch)

    def present_inputs(self, aliases: Sequence[int]) -> Values:
        """Return the inputs, those that outputs overwrite as they are now: ``aliases`` has an entry for each output.

        A thread reads no element of what is overwritten but those that it writes, and these before.
        """
        inputs = list(self.inputs)
        for alias, output in zip(aliases, self.outputs, strict=False):
            if alias >= 0:
                inputs[alias] = output.value
        return inputs

    def shared_tiles(self, tiles: Iterable[KernelTile]) -> list[Tensor]:
        """Return tiles in shared memory."""
        return [each for tile in tiles for each in shared_tiles(tile.size, [tile.type])]


class PartBuilder(KernelBuilder):
    """Some ``blocks`` of a kernel, with those of its ``inputs`` and ``outputs`` that they read and store to.

    They take those of the kernel's ``tiles`` that they need, which other blocks have for other ends.
    """

    def __init__(
        self,
        kernel: KernelBuilder,
        inputs: Sequence[ir.Value],
        outputs: Sequence[Tensor],
        blocks: Interval,
        tiles: Sequence[Tensor],
    ):
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.board, self.attributes = None, kernel.attributes
        self._around, self._blocks = kernel, blocks
        self._tiles = [Tensor(tile.value) for tile in tiles]

    @cached_property
    def position(self) -> Values:
        """The thread's number, and the block's among these."""
        thread, block = self._around.position
        return [thread, *apply_map(IndexingMap((self._blocks,), (), (dim(0) - self._blocks.lower,)), [block])]

    def shared_tiles(self, tiles: Iterable[KernelTile]) -> list[Tensor]:
        """Return tiles of the kernel that are not in use, which may be larger."""
        return [self._taken(tile.type) for tile in tiles]

    def _taken(self, type_: ir.Type) -> Tensor:
        tile = next(each for each in self._tiles if element_of(each.value) == type_)
        self._tiles.remove(tile)
        return tile


class PartEmitter(Emitter, Protocol):
    """An emitter whose kernel may be a part of another, computed by some of its blocks."""

    fusion: Fusion

    @property
    def functions(self) -> Sequence[Emits]:
        """The functions that are called."""

    @property
    def tiles(self) -> Sequence[KernelTile]:
        """The shared memory of a block, all that `write` asks the kernel for."""

    def write(self, kernel: KernelBuilder) -> None:
        """Write what the blocks do."""


def emit_alone(emitter: PartEmitter) -> None:
    """Write the entry function of a kernel of its own, then the functions that it calls."""
    with entry_function(emitter.fusion, emitter, emitter.functions) as kernel:
        emitter.write(kernel)


@contextmanager
def entry_function(
    fusion: Signature, emitter: Launched, functions: Iterable[Emits], scratch: int = 0, resident: int = 0
) -> Iterator[KernelBuilder]:
    """Write a kernel's entry function, with the body of the ``with`` statement, and then the functions that it calls.

    Its parameters are the inputs, then the outputs, which it returns. If its blocks need ``scratch`` words for
    messages, these are one more input, in whose place there is one more output. A multiprocessor is to have room for
    ``resident`` blocks, if that is given.
    """
    launch, board = emitter.launch_dimensions(), _board_types(scratch)
    inputs, outputs = [*fusion.parameter_types, *board], [*fusion.result_types, *board]
    function = ir.func.FuncOp(fusion.name, ir.FunctionType.get([*inputs, *outputs], outputs))
    if launch.grid[0] > MAX_GRID[0]:
        blocks = f"a launch has at most {MAX_GRID[0]} blocks, and this one would need {launch.grid[0]}"
        raise Unsupported(f"fusion @{fusion.name} is too large: {blocks}")
    described = function.operation.attributes
    described[attributes.KERNEL] = ir.UnitAttr.get()
    described[attributes.EMITTER] = ir.StringAttr.get(emitter.NAME)
    described[attributes.GRID] = attributes.int_array(launch.grid)
    described[attributes.BLOCK] = attributes.int_array(launch.block)
    aliases = fusion.aliases or (-1,) * len(fusion.result_types)
    if board:
        described[attributes.SCRATCH] = attributes.int_attribute(scratch)
        aliases = (*aliases, len(inputs) - 1)
    if resident:
        described[attributes.RESIDENT] = attributes.int_attribute(resident)
    if any(number >= 0 for number in aliases):
        described[attributes.ALIASES] = attributes.int_array(aliases)
    described[attributes.INPUTS] = attributes.int_attribute(len(inputs))
    block = function.add_entry_block()
    kernel = KernelBuilder(fusion, launch, function, scratch)
    with ir.InsertionPoint(block):
        yield kernel
        ir.func.return_(values_of([*kernel.outputs, *([kernel.board] if kernel.board else [])]))
    for each in functions:
        each.emit()


def _board_types(scratch: int) -> list[ir.Type]:
    """Return the type of the memory of so many words, if there are any."""
    return [ir.RankedTensorType.get([scratch], ir.IntegerType.get_signless(64))] if scratch else []


def _thread_and_block(launch: LaunchDimensions) -> Values:
    return [launch_index("gpu.thread_id", launch.block[0]), launch_index("gpu.block_id", launch.grid[0])]


def values_of(variables: Iterable[Variable]) -> Values:
    """Return what the variables are now."""
    return [variable.value for variable in variables]


def assign(variables: Iterable[Variable], values: Iterable[ir.Value]) -> None:
    """Give each variable a value."""
    for variable, value in zip(variables, values, strict=True):
        variable.value = value


@contextmanager
def loop(map_: IndexingMap, dims: Sequence[ir.Value], changed: Sequence[Variable]) -> Iterator[LoopOp]:
    """Write a loop over the range variables of a map, whose dimensions are given; ``changed`` is what it assigns to."""
    op = LoopOp.build(map_, dims, values_of(changed))
    assign(changed, op.carried_arguments)
    with ir.InsertionPoint(op.body):
        yield op
        YieldOp.build(values_of(changed))
    assign(changed, op.operation.results)


@contextmanager
def loop_while(condition: Callable[[], ir.Value], changed: Sequence[Variable]) -> Iterator[None]:
    """Write what is done again as long as a condition holds, which is computed before; both read what is assigned."""
    before = values_of(changed)
    types = [value.type for value in before]
    op = ir.Operation.create("scf.while", results=types, operands=before, regions=2)
    test, body = (region.blocks.append(*types) for region in op.regions)
    with ir.InsertionPoint(test):
        assign(changed, test.arguments)
        ir.Operation.create("scf.condition", operands=[condition(), *test.arguments])
    assign(changed, body.arguments)
    with ir.InsertionPoint(body):
        yield
        ir.scf.yield_(values_of(changed))
    assign(changed, op.results)


@contextmanager
def when(condition: ir.Value | None, changed: Sequence[Variable]) -> Iterator[None]:
    """Write what is done only if a condition holds, always if it is None; ``changed`` is what it assigns to."""
    if condition is None:
        yield
        return
    before = values_of(changed)
    op = ir.Operation.create("scf.if", results=[value.type for value in before], operands=[condition], regions=2)
    then, otherwise = (region.blocks.append() for region in op.regions)
    with ir.InsertionPoint(then):
        yield
        ir.scf.yield_(values_of(changed))
    with ir.InsertionPoint(otherwise):
        ir.scf.yield_(before)
    assign(changed, op.results)


def choose(
    condition: ir.Value, changed: Sequence[Variable], then: Callable[[], None], otherwise: Callable[[], None]
) -> None:
    """Write what ``then`` does where a condition holds, and what ``otherwise`` does elsewhere; both assign."""
    before = values_of(changed)

    def branch(write: Callable[[], None]) -> Values:
        assign(changed, before)
        write()
        return values_of(changed)

    types = [value.type for value in before]
    assign(changed, if_else(condition, types, lambda: branch(then), lambda: branch(otherwise)))


def shared_tiles(size: int, types: Iterable[ir.Type]) -> list[Tensor]:
    """Return tiles of ``size`` elements in shared memory, one of each type."""
    return [Tensor(AllocateSharedOp.build([size], type_)) for type_ in types]


def sync_threads(tiles: Sequence[Tensor]) -> None:
    """Have a block's threads wait for each other, so that all see what each has put into the tiles."""
    assign(tiles, SyncThreadsOp.build(values_of(tiles)))


def sync_warps(tiles: Sequence[Tensor]) -> None:
    """Have the threads of each warp wait for each other, so that they see what each of these has put into the tiles."""
    assign(tiles, SyncWarpOp.build(values_of(tiles)))


@contextmanager
def filling(
    map_: IndexingMap, dims: Sequence[ir.Value], tiles: Sequence[Tensor], others: Sequence[Variable] = ()
) -> Iterator[LoopOp]:
    """Write a loop that fills tiles, and assigns to ``others``; then the block's threads wait for each other."""
    with loop(map_, dims, [*tiles, *others]) as op:
        yield op
    sync_threads(tiles)


def put(scalars: Iterable[ir.Value], tensors: Iterable[Tensor], indices: Sequence[ir.Value]) -> None:
    """Store an element in each of some tensors, all at the same indices."""
    for scalar, tensor in zip(scalars, tensors, strict=True):
        tensor.insert(scalar, indices)
