"""The structure of nests: which loops there are, how they are in each other, and what accesses which buffer."""

import math
from collections.abc import Iterator
from typing import cast

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.dialects.namespace import YIELD
from xgpu.dialects.nests.accesses import AccumulateOp, ReadOp, WriteOp
from xgpu.dialects.nests.loops import LaunchOp, NewOp, ParOp, SeqOp, WhereOp
from xgpu.dialects.threads import MOST_ELEMENTS
from xgpu.dtypes import DType, dtype_of_element
from xgpu.errors import Unsupported
from xgpu.hlo.source_location import source_of
from xgpu.indexing.affine import AffineExpr, linearize
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.records import dataclass
from xgpu.structure import owning_op, walk

PAR, SEQ, LAUNCH = ParOp.OPERATION_NAME, SeqOp.OPERATION_NAME, LaunchOp.OPERATION_NAME
ACCESSES = (ReadOp.OPERATION_NAME, WriteOp.OPERATION_NAME, AccumulateOp.OPERATION_NAME)


@dataclass(frozen=True)
class Guard:
    """A condition on loops' variables under which something is done: that a map's constraints hold, or do not."""

    map: IndexingMap
    variables: tuple[ir.Value, ...]
    holds: bool


@dataclass(frozen=True)
class BufferAccess:
    """An operation on an element of a buffer: at which one, as a map of loops' variables, and what it does there.

    It is done under the conditions ``guards``.
    """

    op: ir.Operation
    buffer: ir.Value
    map: IndexingMap
    variables: tuple[ir.Value, ...]
    guards: tuple[Guard, ...] = ()

    @property
    def writes(self) -> bool:
        """Whether it changes the element."""
        return self.op.name != ReadOp.OPERATION_NAME

    @property
    def reads(self) -> bool:
        """Whether it takes the element's value."""
        return self.op.name != WriteOp.OPERATION_NAME

    @property
    def is_atomic(self) -> bool:
        """Whether it is a single step."""
        return self.op.name == AccumulateOp.OPERATION_NAME and cast(AccumulateOp, self.op.opview).atomic

    @property
    def single_step(self) -> str | None:
        """The function by which it combines in a single step; several of one function may be done in any order."""
        return cast(AccumulateOp, self.op.opview).combiner if self.is_atomic else None

    @property
    def dtype(self) -> DType:
        """The element type."""
        return dtype_of_element(ir.MemRefType(self.buffer.type).element_type)

    @property
    def shape(self) -> tuple[int, ...]:
        """The buffer's shape."""
        return tuple(ir.MemRefType(self.buffer.type).shape)

    @property
    def position(self) -> AffineExpr:
        """The element's position in the buffer, counted in elements, rows one after the other."""
        return linearize(list(self.map.results), self.shape)


def access_of(op: ir.Operation) -> BufferAccess:
    """Return what an operation that is one of `ACCESSES` accesses."""
    view = cast(ReadOp, op.opview)
    return BufferAccess(op, view.buffer, view.map, tuple(view.variables), tuple(_guards(op)))


def _guards(op: ir.Operation) -> Iterator[Guard]:
    """Yield the conditions that an operation is under."""
    inner = op
    for outer in ancestors(op):
        if outer.name == WhereOp.OPERATION_NAME:
            where = cast(WhereOp, outer.opview)
            yield Guard(where.map, tuple(where.variables), holds=inner.block == where.then)
        inner = outer


def accesses_in(*within: ir.Operation) -> list[BufferAccess]:
    """Return the accesses inside operations, in the order of the text."""
    return [access_of(op) for each in within for op in walk(each, *ACCESSES)]


def operations_of(block: ir.Block) -> list[ir.Operation]:
    """Return the operations of a block but for its end."""
    return [op.operation for op in block.operations if op.operation.name != YIELD]


def body_of(op: ir.Operation) -> ir.Block:
    """Return the body of a loop or a launch."""
    return op.regions[0].blocks[0]


def perfect_nest(par: ir.Operation) -> list[ParOp]:
    """Return a par loop and the ones inside it, each the only thing in the one before."""
    found = [cast(ParOp, par.opview)]
    while len(inner := operations_of(found[-1].body)) == 1 and inner[0].name == PAR:
        found.append(cast(ParOp, inner[0].opview))
    return found


def has_par(*within: ir.Operation) -> bool:
    """Whether there is a par loop inside these operations, themselves included."""
    return any(walk(op, PAR) for op in within)


def all_launches_of(module: ir.Module) -> list[LaunchOp]:
    """Return the kernels of a module, in order."""
    return [cast(LaunchOp, op.opview) for op in walk(module.operation, LAUNCH)]


def launches_of(module: ir.Module) -> list[LaunchOp]:
    """Return the kernels of a module whose loops threads run as they are: not those that emitters of products write."""
    return [launch for launch in all_launches_of(module) if launch.emitter is None]


def band_at(par: ir.Operation) -> list[ParOp]:
    """Return the loops of the band that begins with a loop: those of its perfect nest that have the same band."""
    nest = perfect_nest(par)
    count = next((n for n, loop in enumerate(nest) if loop.band != nest[0].band), len(nest))
    return nest[:count]


MOST_WRITTEN_OUT = 8
"""Iterations of a seq loop that are written out, at most, where a thread has several iterations of a band."""
_MOST_OPERATIONS = 256
"""Operations that these are, at most."""


def is_short(seq: ir.Operation) -> bool:
    """Whether a seq loop has few iterations, and no loops inside.

    Written out, what it reads in neighbouring iterations of the band around can be read at once.
    """
    extent = cast(SeqOp, seq.opview).extent
    if extent > MOST_WRITTEN_OUT or len(walk(seq, SEQ)) > 1:
        return False
    return extent * len(walk(seq)) <= _MOST_OPERATIONS


def ancestors(op: ir.Operation) -> Iterator[ir.Operation]:
    """Yield the operations that an operation is in, from the inside out."""
    parent = op.parent
    while parent is not None:
        yield parent.operation
        parent = parent.operation.parent


def loop_of(variable: ir.Value) -> ir.Operation | None:
    """Return the loop whose variable this is; None for an index that a value decides."""
    owner = owning_op(variable)
    return owner if owner.name in (PAR, SEQ) else None


def memory_of(buffer: ir.Value) -> str | None:
    """Return where a buffer lies, None if that is not decided; arrays of the program lie where scratch does."""
    owner = owning_op(buffer)
    return cast(NewOp, owner.opview).memory if owner.name == NewOp.OPERATION_NAME else "scratch"


def shared_shape(new: NewOp) -> list[int]:
    """Return the shape that a buffer has in shared memory: its rows are longer by their padding.

    Raises Unsupported if it has more elements than any block has room for.
    """
    type_ = ir.MemRefType(new.buffer.type)
    shape = [*type_.shape[:-1], type_.shape[-1] + (new.pad or 0)] if type_.rank else []
    if (count := math.prod(shape)) > MOST_ELEMENTS:
        problem = f"a buffer in shared memory has at most {MOST_ELEMENTS} elements, this one {count}"
        raise Unsupported(problem, source_of(new.operation))
    return shape


def is_of_block(buffer: ir.Value) -> bool:
    """Whether the threads of a block have a buffer together: in shared memory, each a part of it, or either."""
    return memory_of(buffer) in ("shared", "threads", None)


def access_of_parameter(buffer: ir.Value) -> str:
    """Return ``in``, ``out`` or ``inout`` for an array of the program."""
    described = ir.ArrayAttr(owning_op(buffer).attributes["arg_attrs"])
    entry = ir.DictAttr(described[cast(ir.BlockArgument, buffer).arg_number])
    return ir.StringAttr(entry[attributes.ACCESS]).value


def name_of_buffer(buffer: ir.Value) -> str:
    """Return what a buffer is called."""
    owner = owning_op(buffer)
    if "called" in owner.attributes:
        return ir.StringAttr(owner.attributes["called"]).value
    described = ir.ArrayAttr(owner.attributes["arg_attrs"]) if "arg_attrs" in owner.attributes else None
    number = cast(ir.BlockArgument, buffer).arg_number
    if described is None or "xgpu.called" not in (entry := ir.DictAttr(described[number])):
        return f"arg{number}"
    return ir.StringAttr(entry["xgpu.called"]).value
