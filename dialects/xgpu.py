"""The xgpu dialect: what scalar and tensor programs over threads need and MLIR's own dialects lack."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from xgpu import ir
from xgpu.dialects.attributes import MAP, SYMBOL, map_of
from xgpu.dialects.base import ANY, BOOL, INDEX, Attribute, BodyOp, DeclaredOp, Values, declare
from xgpu.dialects.block.copies import COPY_OPS
from xgpu.dialects.block.matrices import MATRIX_OPS
from xgpu.dialects.block.memory import MEMORY_OPS
from xgpu.dialects.block.tiles import TILE_OPS
from xgpu.dialects.block.waits import WAIT_OPS
from xgpu.dialects.chain import ChainOp
from xgpu.dialects.messages import MESSAGE_OPS
from xgpu.dialects.namespace import YIELD, XgpuDialect, carried_problems
from xgpu.dialects.nests.accesses import ACCESS_OPS
from xgpu.dialects.nests.assembly import ASSEMBLY_OPS
from xgpu.dialects.nests.loops import LOOP_OPS
from xgpu.dialects.scalar_functions import FUNCTION_OPS
from xgpu.dialects.scan import ScanOp
from xgpu.dialects.threads import THREAD_OPS
from xgpu.dialects.traits import Traits
from xgpu.indexing.indexing_map import IndexingMap


def _dim_count(op: ir.OpView) -> int:
    return len(map_of(op.operation.attributes["map"]).dims)


def _symbol_count(op: ir.OpView) -> int:
    return len(map_of(op.operation.attributes["map"]).symbols)


_MAP_VARIABLES = (
    Values("dims", INDEX, "Values of the map's dimensions.", count=_dim_count),
    Values("symbols", INDEX, "Values of the map's range variables.", count=_symbol_count),
)


@ir.register_operation(XgpuDialect)
@declare
class ApplyIndexingOp(DeclaredOp):
    """Evaluates an indexing map: one index per result of the map.

    Undefined where the variables lie outside the map's domain, so a simplification may rely on the domain.

    ```mlir
    %row, %column = "xgpu.apply_indexing"(%thread)
        {map = #xgpu.map<(d0) -> (d0 floordiv 32, d0 mod 32), d0 in [0, 127]>} : (index) -> (index, index)
    ```
    """

    OPERATION_NAME = "xgpu.apply_indexing"
    TRAITS = Traits(pure=True)
    OPERANDS = _MAP_VARIABLES
    RESULTS = (Values("indices", INDEX, "The map's results.", variadic=True),)
    ATTRIBUTES = (Attribute("map", MAP, "The map to evaluate."),)
    map: IndexingMap

    @classmethod
    def build(cls, map_: IndexingMap, variables: Sequence[ir.Value], loc: ir.Location | None = None) -> list[ir.Value]:
        """Create the operation and return its results; ``variables`` are the dimensions, then the range variables."""
        index = ir.IndexType.get()
        return list(cls.create(variables, [index] * len(map_.results), {"map": map_}, loc).operation.results)

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """One result per result of the map."""
        expected, got = len(self.map.results), len(self.operation.results)
        if expected != got:
            yield f"expected {expected} results, one per result of the map, got {got}"


@ir.register_operation(XgpuDialect)
@declare
class InDomainOp(DeclaredOp):
    """Tells whether its variables satisfy the constraints of a map.

    The variables are known to lie within their own ranges; only the constraints are tested.

    ```mlir
    %inside = "xgpu.in_domain"(%i) {map = #xgpu.map<(d0) -> (), d0 in [0, 127], d0 * 4 in [0, 99]>} : (index) -> i1
    ```
    """

    OPERATION_NAME = "xgpu.in_domain"
    TRAITS = Traits(pure=True)
    OPERANDS = _MAP_VARIABLES
    RESULTS = (Values("inside", BOOL, "Whether all constraints hold."),)
    ATTRIBUTES = (Attribute("map", MAP, "The map whose constraints are tested; its results are not used."),)
    map: IndexingMap
    inside: ir.Value

    @classmethod
    def build(cls, map_: IndexingMap, variables: Sequence[ir.Value], loc: ir.Location | None = None) -> ir.Value:
        """Create the operation and return its result."""
        boolean = ir.IntegerType.get_signless(1)
        op = cls.create(variables, [boolean], {"map": map_}, loc)
        return op.operation.results[0]


@ir.register_operation(XgpuDialect)
@declare
class LoopOp(BodyOp):
    """A loop nest over the range variables of a map, the first outermost, skipping points outside the map's domain.

    The body takes the range variables, the map's results at this point, and the values carried from point to point;
    it yields the carried values.

    ```mlir
    %sum = "xgpu.loop"(%thread, %zero) ({
    ^bb0(%s0: index, %i: index, %partial: f32):
      %x = tensor.extract %t[%i] : tensor<512xf32>
      %next = arith.addf %partial, %x : f32
      "xgpu.yield"(%next) : (f32) -> ()
    }) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 127], s0 in [0, 3]>} : (index, f32) -> f32
    ```
    """

    OPERATION_NAME = "xgpu.loop"
    TRAITS = Traits(loop=True, passes_on=True)
    OPERANDS = (_MAP_VARIABLES[0], Values("inits", ANY, "Initial values of what the loop carries.", variadic=True))
    RESULTS = (Values("finals", ANY, "Final values of what the loop carries.", variadic=True),)
    ATTRIBUTES = (Attribute("map", MAP, "Dimensions are operands, range variables are the loops."),)
    map: IndexingMap
    dims: list[ir.Value]
    inits: list[ir.Value]

    @classmethod
    def build(
        cls, map_: IndexingMap, dims: Sequence[ir.Value], inits: Sequence[ir.Value], loc: ir.Location | None = None
    ) -> "LoopOp":
        """Create the loop with an empty body block; the caller fills it and ends it with `YieldOp`."""
        op: LoopOp = cls.create([*dims, *inits], [value.type for value in inits], {"map": map_}, loc)
        index = ir.IndexType.get()
        types = [index] * (len(map_.symbols) + len(map_.results)) + [value.type for value in inits]
        op.operation.regions[0].blocks.append(*types)
        return op

    def _arguments(self) -> list[ir.Value]:
        return list(self.body.arguments)

    @property
    def symbol_arguments(self) -> list[ir.Value]:
        """The body's range variables."""
        return self._arguments()[: len(self.map.symbols)]

    @property
    def result_arguments(self) -> list[ir.Value]:
        """The body's arguments for the map's results."""
        start = len(self.map.symbols)
        return self._arguments()[start : start + len(self.map.results)]

    @property
    def carried_arguments(self) -> list[ir.Value]:
        """The body's arguments for the carried values."""
        return self._arguments()[len(self.map.symbols) + len(self.map.results) :]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The body's arguments, the carried values and the results agree in number and type."""
        yield from carried_problems(self.operation, self.inits, len(self.map.symbols) + len(self.map.results))


@ir.register_operation(XgpuDialect)
@declare
class YieldOp(DeclaredOp):
    """Ends a region of an xgpu operation and gives its values.

    ```mlir
    "xgpu.yield"(%sum) : (f32) -> ()
    ```
    """

    OPERATION_NAME = YIELD
    TRAITS = Traits(passes_on=True)
    OPERANDS = (Values("values", ANY, "The region's results.", variadic=True),)

    @classmethod
    def build(cls, values: Sequence[ir.Value], loc: ir.Location | None = None) -> None:
        """Create the terminator."""
        cls.create(values, loc=loc)

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """Only inside an operation of this dialect."""
        parent = self.operation.parent
        if parent is None or not parent.name.startswith("xgpu."):
            yield f"expected to be inside an xgpu operation with a region, got '{parent.name if parent else 'nothing'}'"


@ir.register_operation(XgpuDialect)
@declare
class PureCallOp(DeclaredOp):
    """Calls a function that has no side effects, such as a subgraph function.

    Calls with the same operands give the same values, so they may be merged, moved or removed.

    ```mlir
    %y = "xgpu.pure_call"(%tensor, %i) {callee = @fusion__root} : (tensor<8xf32>, index) -> f32
    ```
    """

    OPERATION_NAME = "xgpu.pure_call"
    TRAITS = Traits(pure=True, call=True, passes_on=True)
    OPERANDS = (Values("arguments", ANY, "The function's arguments.", variadic=True),)
    RESULTS = (Values("values", ANY, "The function's results.", variadic=True),)
    ATTRIBUTES = (Attribute("callee", SYMBOL, "The function to call."),)
    callee: str

    @classmethod
    def build(
        cls, callee: str, arguments: Sequence[ir.Value], results: Sequence[ir.Type], loc: ir.Location | None = None
    ) -> list[ir.Value]:
        """Create the call and return its results."""
        return list(cls.create(arguments, results, {"callee": callee}, loc).operation.results)

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The callee exists and its type fits."""
        callee = symbols.get(self.callee)
        if callee is None:
            yield f"expected the name of a function of this module, got '@{self.callee}'"
            return
        type_: Any = ir.FunctionType(ir.TypeAttr(callee.attributes["function_type"]).value)
        operands = [value.type for value in self.operation.operands]
        results = [value.type for value in self.operation.results]
        if operands != list(type_.inputs) or results != list(type_.results):
            got = ir.FunctionType.get(operands, results, callee.context)
            yield f"expected operands and results to fit '@{self.callee}' of type {type_}, got {got}"


_OPS: tuple[type[DeclaredOp], ...] = (
    *(ApplyIndexingOp, InDomainOp, LoopOp, YieldOp, PureCallOp),
    *(ScanOp, ChainOp),
    *FUNCTION_OPS,
    *THREAD_OPS,
    *MESSAGE_OPS,
    *TILE_OPS,
    *MEMORY_OPS,
    *COPY_OPS,
    *WAIT_OPS,
    *MATRIX_OPS,
    *LOOP_OPS,
    *ACCESS_OPS,
    *ASSEMBLY_OPS,
)
OPS: dict[str, type[DeclaredOp]] = {op.OPERATION_NAME: op for op in _OPS}
"""Every operation of the dialect by name."""

FUNCTIONS = frozenset(op.OPERATION_NAME for op in FUNCTION_OPS)
"""Functions of scalars, which stay until `expand-math` as those of the math dialect do."""
