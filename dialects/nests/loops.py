"""Operations of the xgpu dialect on nests of par and seq loops over buffers: levels ``loops`` and ``mapped``.

Buffers are memrefs, which operations change in the order of the text; elements are tensors of no dimensions, computed
by StableHLO. Where an operation accesses a buffer, a map says which element, as a function of loops' variables.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from xgpu import ir
from xgpu.dialects.attributes import BOOLEAN, INTEGER, MAP, SCHEDULE_VALUES, STRING, choice
from xgpu.dialects.base import (
    SCALAR_TENSOR,
    Attribute,
    BodyOp,
    DeclaredOp,
    Values,
    declare,
)
from xgpu.dialects.namespace import XgpuDialect, terminator_problems
from xgpu.dialects.nests.accesses import BUFFER_OPERAND, MAX_EXTENT, VARIABLES, variable_problems
from xgpu.dialects.threads import TILE_ALIGNMENT
from xgpu.dialects.traits import Traits
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.structure import walk

BANDS = ("grid", "block", "thread")
"""The runners of the iterations of an `xgpu.par`: the threads of all blocks, blocks, or threads of a block."""
ANSWERS = ("proved", "unproved")
"""Whether iterations of an `xgpu.par` are known to be independent."""
MEMORIES = ("register", "shared", "threads", "scratch")
"""The places of an `xgpu.new`: with a thread, a block, each element with a thread of the block, or in global memory."""
ASKED_MEMORIES = ("register", "shared", "scratch")
"""Those that a program may ask for."""
_MOST_THREADS = 1024
SIDES = f"a power of two up to {_MOST_THREADS}"
"""The numbers of iterations that may run at once, in words."""
EMITTERS = ("product", "warp_product")
"""Emitters of kernels that are matrix products: by warp groups, or by warps."""
MAX_STAGES = 16
"""Steps whose tiles shared memory may have room for."""
BLOCK_SCOPE = "block"
WARP_SCOPE = "warp"
SCOPES = (WARP_SCOPE, BLOCK_SCOPE)
"""The threads that an `xgpu.barrier` has wait for each other."""


class _IndexedOp(BodyOp):
    """Base of loops whose body takes the number of the iteration."""

    extent: int

    @property
    def variable(self) -> ir.Value:
        """The number of the iteration, the argument of the body."""
        return self.body.arguments[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The body takes one index and yields nothing; the loop has iterations."""
        if not 1 <= self.extent <= MAX_EXTENT:
            yield f"attribute 'extent': expected 1 to {MAX_EXTENT} iterations, got {self.extent}"
        yield from _body_problems(self.operation, ["index"])


def _body_problems(op: ir.Operation, arguments: list[str]) -> Iterator[str]:
    for region in op.regions:
        if len(region.blocks) != 1:
            yield f"expected a body of one block, got {len(region.blocks)}"
            return
        got = [str(argument.type) for argument in region.blocks[0].arguments]
        if got != arguments:
            yield f"expected body arguments ({', '.join(arguments)}), got ({', '.join(got)})"
            return
        yield from terminator_problems(region.blocks[0], [])


@ir.register_operation(XgpuDialect)
@declare
class LaunchOp(BodyOp):
    """A kernel: what one launch does. What it changes is seen by all launches after it.

    ```mlir
    "xgpu.launch"() ({
      ...
      "xgpu.yield"() : () -> ()
    }) {grid = 64 : i64, block = 128 : i64} : () -> ()
    ```
    """

    OPERATION_NAME = "xgpu.launch"
    ATTRIBUTES = (
        Attribute("grid", INTEGER, "Blocks of the launch.", optional=True),
        Attribute("block", INTEGER, "Threads of a block.", optional=True),
        Attribute("emitter", choice(*EMITTERS), "The emitter of products that writes it, tile by tile.", optional=True),
        Attribute("schedule", SCHEDULE_VALUES, "That emitter's numbers.", optional=True),
    )
    grid: int | None
    block: int | None
    emitter: str | None
    schedule: ir.Attribute | None

    @classmethod
    def build(cls, loc: ir.Location | None = None) -> "LaunchOp":
        """Create the operation with an empty body block; the caller fills it and ends it with `YieldOp`."""
        op: LaunchOp = cls.create(loc=loc)
        op.operation.regions[0].blocks.append()
        return op

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The body takes and yields nothing, and a launch can have these sizes."""
        yield from _body_problems(self.operation, [])
        for name, most, value in (("grid", 2**31 - 1, self.grid), ("block", _MOST_THREADS, self.block)):
            if value is not None and not 1 <= value <= most:
                yield f"attribute '{name}': expected 1 to {most}, got {value}"
        if (self.emitter is None) != (self.schedule is None):
            yield "expected the attributes 'emitter' and 'schedule', or neither"
        if self.operation.parent is None or self.operation.parent.name != "func.func":
            yield "expected to be directly inside a function"


@ir.register_operation(XgpuDialect)
@declare
class ParOp(_IndexedOp):
    """A parallel loop: its iterations are independent of each other, and may run in any order or at once.

    Before the first starts, all that was done before it is done, and what they do is seen by what comes after it. Two
    iterations must not access one element if one of them changes it, unless both do so atomically.

    Those of a loop with ``align`` do run at once, each on a thread of its own: side by side in one block, the first on
    a thread whose number is a multiple of it. There is no parallel loop inside it.

    An iteration of a loop with ``group`` is one of as many threads side by side, which share the loops inside of it.

    ```mlir
    "xgpu.par"() ({
    ^bb0(%i: index):
      ...
      "xgpu.yield"() : () -> ()
    }) {called = "i", extent = 512 : i64} : () -> ()
    ```
    """

    OPERATION_NAME = "xgpu.par"
    TRAITS = Traits(loop=True)
    ATTRIBUTES = (
        Attribute("extent", INTEGER, "How many iterations there are."),
        Attribute("called", STRING, "The name of the variable."),
        Attribute("independent", choice(*ANSWERS), "Whether that is so was proved, or is still open.", optional=True),
        Attribute("band", choice(*BANDS), "Who runs the iterations.", optional=True),
        Attribute("threads", INTEGER, "Threads of a block, as a pragma asks for them.", optional=True),
        Attribute("vector", INTEGER, "Consecutive iterations of a thread, as a pragma asks for them.", optional=True),
        Attribute(
            "together",
            INTEGER,
            "Neighbouring iterations that a thread goes through together, each statement for all of them.",
            optional=True,
        ),
        Attribute("tile", INTEGER, "Iterations that a block has, as a pragma asks for them.", optional=True),
        Attribute("mma", BOOLEAN, "Whether tensor cores multiply, as a pragma asks for it.", optional=True),
        Attribute(
            "block_barrier",
            BOOLEAN,
            "Whether barriers before it are of the block, as a pragma asks for.",
            optional=True,
        ),
        Attribute("align", INTEGER, "That iterations run at once, and where the first one does.", optional=True),
        Attribute("group", INTEGER, "Neighbouring threads that have an iteration together.", optional=True),
        Attribute(
            "map",
            MAP,
            "On the outermost loop of a band: from the thread's number, or the block's, or both, and range variables"
            " that one thread goes through, the last ones together, to the variables of the band's loops.",
            optional=True,
        ),
    )
    called: str
    independent: str | None
    band: str | None
    threads: int | None
    vector: int | None
    together: int | None
    tile: int | None
    mma: bool | None
    block_barrier: bool | None
    align: int | None
    group: int | None
    map: IndexingMap | None

    @classmethod
    def build(
        cls, extent: int, called: str, attributes: Mapping[str, Any] | None = None, loc: ir.Location | None = None
    ) -> "ParOp":
        """Create the loop with an empty body block; the caller fills it and ends it with `YieldOp`."""
        op: ParOp = cls.create(attributes={"extent": extent, "called": called, **(attributes or {})}, loc=loc)
        op.operation.regions[0].blocks.append(ir.IndexType.get())
        return op

    @property
    def side(self) -> int | None:
        """The number of neighbouring threads that the iterations take, idle ones included; None if they need not be."""
        return None if self.align is None else max(self.align, self.extent)

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """Iterations that run at once are a power of two, as their alignment is; a block has threads for them."""
        yield from super().check(symbols)
        if self.together is not None and self.together < 1:
            yield f"attribute 'together': expected a number of iterations, got {self.together}"
        if self.tile is not None and self.tile < 1:
            yield f"attribute 'tile': expected a number of iterations, got {self.tile}"
        if self.group is not None and not is_side_by_side(self.group):
            yield f"attribute 'group': expected {SIDES} of threads that have an iteration together, got {self.group}"
        if self.group is not None and self.band == "block":
            yield "attribute 'band': expected threads to run what groups of them have, got \"block\""
        if self.align is None:
            return
        for name, value in (("extent", self.extent), ("align", self.align)):
            if not is_side_by_side(value):
                yield f"attribute '{name}': expected {SIDES} for iterations that run at once, got {value}"
        if self.band == "block":
            yield "attribute 'band': expected threads to run iterations that run at once, got \"block\""
        if walk(self.operation, self.OPERATION_NAME)[:-1]:
            yield "expected no xgpu.par inside of one whose iterations run at once"


def is_side_by_side(count: int) -> bool:
    """Whether so many iterations may run at once: a power of two, up to the most threads of a block."""
    return 1 <= count <= _MOST_THREADS and count & (count - 1) == 0


@ir.register_operation(XgpuDialect)
@declare
class SeqOp(_IndexedOp):
    """A loop whose iterations run one after the other.

    ```mlir
    "xgpu.seq"() ({
    ^bb0(%k: index):
      ...
      "xgpu.yield"() : () -> ()
    }) {called = "k", extent = 64 : i64} : () -> ()
    ```
    """

    OPERATION_NAME = "xgpu.seq"
    TRAITS = Traits(loop=True)
    ATTRIBUTES = (
        Attribute("extent", INTEGER, "How many iterations there are."),
        Attribute("called", STRING, "The name of the variable."),
        Attribute("stages", INTEGER, "Steps whose tiles there is room for, as a pragma asks for it.", optional=True),
        Attribute(
            "tile",
            INTEGER,
            "Iterations whose reads are staged at once, as a pragma asks for them; 0: none are.",
            optional=True,
        ),
    )
    called: str
    stages: int | None
    tile: int | None

    @classmethod
    def build(
        cls, extent: int, called: str, attributes: Mapping[str, Any] | None = None, loc: ir.Location | None = None
    ) -> "SeqOp":
        """Create the loop with an empty body block; the caller fills it and ends it with `YieldOp`."""
        op: SeqOp = cls.create(attributes={"extent": extent, "called": called, **(attributes or {})}, loc=loc)
        op.operation.regions[0].blocks.append(ir.IndexType.get())
        return op

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """There is room for at least two steps, or nothing is said of it."""
        yield from super().check(symbols)
        if self.stages is not None and not 2 <= self.stages <= MAX_STAGES:
            yield f"attribute 'stages': expected 2 to {MAX_STAGES}, got {self.stages}"
        if self.tile is not None and self.tile < 0:
            yield f"attribute 'tile': expected a number of iterations, or 0, got {self.tile}"


@ir.register_operation(XgpuDialect)
@declare
class WhereOp(DeclaredOp):
    """Does what its first region says where the constraints of a map hold, and what its second says elsewhere.

    ```mlir
    "xgpu.where"(%i) ({
      ...
      "xgpu.yield"() : () -> ()
    }, {
      "xgpu.yield"() : () -> ()
    }) {map = #xgpu.map<(d0) -> (), d0 in [0, 127], d0 * 4 in [0, 99]>} : (index) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.where"
    REGIONS = 2
    _ODS_REGIONS = (2, True)
    OPERANDS = (VARIABLES,)
    ATTRIBUTES = (Attribute("map", MAP, "The map whose constraints are tested; it has no results."),)
    map: IndexingMap
    variables: list[ir.Value]

    @classmethod
    def build(cls, map_: IndexingMap, variables: Sequence[ir.Value], loc: ir.Location | None = None) -> "WhereOp":
        """Create the operation with two empty blocks; the caller fills them and ends them with `YieldOp`."""
        op: WhereOp = cls.create(variables, attributes={"map": map_}, loc=loc)
        for region in op.operation.regions:
            region.blocks.append()
        return op

    @property
    def then(self) -> ir.Block:
        """The block for where the constraints hold."""
        return self.operation.regions[0].blocks[0]

    @property
    def otherwise(self) -> ir.Block:
        """The block for where they do not hold."""
        return self.operation.regions[1].blocks[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The bodies take and yield nothing, and the map has no results."""
        yield from _body_problems(self.operation, [])
        if self.map.results or self.map.symbols:
            yield f"attribute 'map': expected a map without results and range variables, got {self.map}"
        yield from variable_problems(self.map, self.variables)


@ir.register_operation(XgpuDialect)
@declare
class NewOp(DeclaredOp):
    """Makes a buffer, one for each iteration of the loops around it. What it holds is undefined until it is written.

    ```mlir
    %tile = "xgpu.new"() {called = "tile"} : () -> memref<32x32xf32>
    ```
    """

    OPERATION_NAME = "xgpu.new"
    RESULTS = (BUFFER_OPERAND,)
    ATTRIBUTES = (
        Attribute("called", STRING, "The buffer's name."),
        Attribute("memory", choice(*MEMORIES), "Where the buffer lies.", optional=True),
        Attribute("pad", INTEGER, "Elements after each row that nothing uses.", optional=True),
        Attribute("offset", INTEGER, "Its first byte in shared memory, if buffers share some.", optional=True),
    )
    buffer: ir.Value
    called: str
    memory: str | None
    pad: int | None
    offset: int | None

    @classmethod
    def build(
        cls, type_: ir.Type, called: str, attributes: Mapping[str, Any] | None = None, loc: ir.Location | None = None
    ) -> ir.Value:
        """Create the operation and return its buffer."""
        op = cls.create(results=[type_], attributes={"called": called, **(attributes or {})}, loc=loc)
        return op.operation.results[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The buffer has elements."""
        type_ = ir.MemRefType(self.buffer.type)
        if any(size == 0 for size in type_.shape):
            yield f"expected a buffer with elements, got {type_}"
        if self.offset is not None and (self.offset < 0 or self.offset % TILE_ALIGNMENT):
            yield f"attribute 'offset': expected a multiple of {TILE_ALIGNMENT}, got {self.offset}"
        if self.pad is not None and (self.pad < 0 or not type_.rank):
            yield f"attribute 'pad': expected a count for a buffer with rows, got {self.pad} for {type_}"


@ir.register_operation(XgpuDialect)
@declare
class AnchorOp(DeclaredOp):
    """Has a value computed in its place, whether anything takes it or not.

    ```mlir
    "xgpu.anchor"(%x) : (tensor<f32>) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.anchor"
    OPERANDS = (Values("value", SCALAR_TENSOR, "The value."),)
    value: ir.Value

    @classmethod
    def build(cls, value: ir.Value, loc: ir.Location | None = None) -> None:
        """Create the operation."""
        cls.create([value], loc=loc)


@ir.register_operation(XgpuDialect)
@declare
class BarrierOp(DeclaredOp):
    """Threads wait for each other; what each has done to buffers before is then seen by all. At level ``mapped``.

    ```mlir
    "xgpu.barrier"() {scope = "block"} : () -> ()
    ```
    """

    OPERATION_NAME = "xgpu.barrier"
    ATTRIBUTES = (Attribute("scope", choice(*SCOPES), "Which threads."),)
    scope: str

    @classmethod
    def build(cls, scope: str, loc: ir.Location | None = None) -> ir.Operation:
        """Create the operation and return it."""
        return cls.create(attributes={"scope": scope}, loc=loc).operation


LOOP_OPS: tuple[type[DeclaredOp], ...] = (*(LaunchOp, ParOp, SeqOp, WhereOp, NewOp, AnchorOp, BarrierOp),)
"""The operations of this file."""
