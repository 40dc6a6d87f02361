"""Operations of the xgpu dialect on elements of buffers: levels ``loops`` and ``mapped``.

A map says which element, as a function of loops' variables, and of indices that values decide.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from xgpu import ir
from xgpu.dialects.attributes import BOOLEAN, INTEGER, MAP, choice, map_of
from xgpu.dialects.base import BUFFER, INDEX, SCALAR_TENSOR, Attribute, DeclaredOp, Values, declare
from xgpu.dialects.namespace import XgpuDialect
from xgpu.dialects.traits import Traits
from xgpu.indexing.affine import AffineExpr, Ranges, linearize
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.structure import owning_op

COMBINERS = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")
"""Functions by which `xgpu.accumulate` combines an element with a value: StableHLO's operations of these names."""
MAX_EXTENT = 2**31 - 1
"""The most iterations of a loop."""
MAX_INDEX = 1 << 52
"""The largest absolute value in the computation of an index. Threads beyond the iterations compute some that are up to
1024 times as large before they find out that they are, which 64 bits hold."""


def _dim_count(op: ir.OpView) -> int:
    return len(map_of(op.operation.attributes["map"]).dims)


VARIABLES = Values("variables", INDEX, "Values of the map's dimensions.", count=_dim_count)
BUFFER_OPERAND = Values("buffer", BUFFER, "The buffer.")
_MAP = Attribute("map", MAP, "From the variables to the element's indices.")


class _AccessOp(DeclaredOp):
    """Base of operations on one element of a buffer."""

    map: IndexingMap
    buffer: ir.Value
    variables: list[ir.Value]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The map's results are indices of the buffer, and a value is of its element type."""
        type_ = ir.MemRefType(self.buffer.type)
        values = [
            value.type
            for value in (*self.operation.operands, *self.operation.results)
            if isinstance(value.type, ir.RankedTensorType)
        ]
        for value in values:
            if ir.RankedTensorType(value).element_type != type_.element_type:
                yield f"expected a value of type tensor<{type_.element_type}> for {type_}, got {value}"
                return
        yield from variable_problems(self.map, self.variables)
        if len(self.map.results) != type_.rank or self.map.symbols:
            yield f"attribute 'map': expected {type_.rank} results and no range variables for {type_}, got {self.map}"
            return
        for number, (found, size) in enumerate(zip(self.map.result_ranges(), type_.shape, strict=True)):
            if not Interval(0, size - 1).contains_interval(found):
                yield f"attribute 'map': expected index {number} of {type_} to be in [0, {size - 1}], got {found}"
        yield from magnitude_problems(self.map, linearize(list(self.map.results), type_.shape))


@ir.register_operation(XgpuDialect)
@declare
class ReadOp(_AccessOp):
    """Reads an element of a buffer.

    ```mlir
    %x = "xgpu.read"(%a, %i) {map = #xgpu.map<(d0) -> (d0 * 2), d0 in [0, 3]>} : (memref<8xf32>, index) -> tensor<f32>
    ```
    """

    OPERATION_NAME = "xgpu.read"
    OPERANDS = (BUFFER_OPERAND, VARIABLES)
    RESULTS = (Values("element", SCALAR_TENSOR, "The element."),)
    ATTRIBUTES = (_MAP,)

    @classmethod
    def build(
        cls, buffer: ir.Value, map_: IndexingMap, variables: Sequence[ir.Value], loc: ir.Location | None = None
    ) -> ir.Value:
        """Create the operation and return the element."""
        element = ir.RankedTensorType.get([], ir.MemRefType(buffer.type).element_type)
        return cls.create([buffer, *variables], [element], {"map": map_}, loc).operation.results[0]


@ir.register_operation(XgpuDialect)
@declare
class WriteOp(_AccessOp):
    """Writes an element of a buffer.

    ```mlir
    "xgpu.write"(%x, %a, %i) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 7]>} : (tensor<f32>, memref<8xf32>, index) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.write"
    OPERANDS = (Values("value", SCALAR_TENSOR, "The element's new value."), BUFFER_OPERAND, VARIABLES)
    ATTRIBUTES = (_MAP,)
    value: ir.Value

    @classmethod
    def build(
        cls,
        value: ir.Value,
        buffer: ir.Value,
        map_: IndexingMap,
        variables: Sequence[ir.Value],
        loc: ir.Location | None = None,
    ) -> None:
        """Create the operation."""
        cls.create([value, buffer, *variables], attributes={"map": map_}, loc=loc)


@ir.register_operation(XgpuDialect)
@declare
class AccumulateOp(_AccessOp):
    """Combines an element of a buffer with a value: the element becomes ``combiner(element, value)``.

    One that is ``atomic`` is a single step, so that several iterations of an `xgpu.par` may combine values with one
    element, in an unspecified order.

    ```mlir
    "xgpu.accumulate"(%x, %a, %i) {atomic = false, combiner = "add", map = #xgpu.map<(d0) -> (d0), d0 in [0, 7]>}
        : (tensor<f32>, memref<8xf32>, index) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.accumulate"
    OPERANDS = (Values("value", SCALAR_TENSOR, "What the element is combined with."), BUFFER_OPERAND, VARIABLES)
    ATTRIBUTES = (
        _MAP,
        Attribute("combiner", choice(*COMBINERS), "The StableHLO operation of this name."),
        Attribute("atomic", BOOLEAN, "Whether it is a single step."),
    )
    value: ir.Value
    combiner: str
    atomic: bool

    @classmethod
    def build(
        cls,
        value: ir.Value,
        buffer: ir.Value,
        map_: IndexingMap,
        variables: Sequence[ir.Value],
        combiner: str,
        atomic: bool,
        loc: ir.Location | None = None,
    ) -> None:
        """Create the operation."""
        attributes = {"map": map_, "combiner": combiner, "atomic": atomic}
        cls.create([value, buffer, *variables], attributes=attributes, loc=loc)


@ir.register_operation(XgpuDialect)
@declare
class ToIndexOp(DeclaredOp):
    """Makes an index of an integer, for an access that a value decides. It lies below ``extent``.

    Where it does not, what the access does is undefined; the sanitizer reports it.

    ```mlir
    %i = "xgpu.to_index"(%n) {extent = 100 : i64} : (tensor<i32>) -> index
    ```
    """

    OPERATION_NAME = "xgpu.to_index"
    TRAITS = Traits(pure=True)
    OPERANDS = (Values("value", SCALAR_TENSOR, "The integer."),)
    RESULTS = (Values("index", INDEX, "The same number."),)
    ATTRIBUTES = (Attribute("extent", INTEGER, "What the number is below."),)
    value: ir.Value
    extent: int

    @classmethod
    def build(cls, value: ir.Value, extent: int, loc: ir.Location | None = None) -> ir.Value:
        """Create the operation and return the index."""
        return cls.create([value], [ir.IndexType.get()], {"extent": extent}, loc).operation.results[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The value is an integer, and there are numbers below the extent."""
        element = ir.RankedTensorType(self.value.type).element_type
        if not isinstance(element, ir.IntegerType) or element.width < 8:
            yield f"expected an integer of 8 bits or more, got {self.value.type}"
        if not 1 <= self.extent <= MAX_EXTENT:
            yield f"attribute 'extent': expected 1 to {MAX_EXTENT}, got {self.extent}"


@ir.register_operation(XgpuDialect)
@declare
class FromIndexOp(DeclaredOp):
    """Gives the number that a map makes of loops' variables as a value of type i32.

    ```mlir
    %n = "xgpu.from_index"(%i) {map = #xgpu.map<(d0) -> (d0 * 2), d0 in [0, 3]>} : (index) -> tensor<i32>
    ```
    """

    OPERATION_NAME = "xgpu.from_index"
    TRAITS = Traits(pure=True)
    OPERANDS = (VARIABLES,)
    RESULTS = (Values("value", SCALAR_TENSOR, "The number."),)
    ATTRIBUTES = (Attribute("map", MAP, "From the variables to the number."),)
    map: IndexingMap
    variables: list[ir.Value]

    @classmethod
    def build(cls, map_: IndexingMap, variables: Sequence[ir.Value], loc: ir.Location | None = None) -> ir.Value:
        """Create the operation and return the number."""
        type_ = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
        return cls.create(variables, [type_], {"map": map_}, loc).operation.results[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The map has one result, which the type holds."""
        if len(self.map.results) != 1 or self.map.symbols:
            yield f"attribute 'map': expected one result and no range variables, got {self.map}"
            return
        yield from variable_problems(self.map, self.variables)
        result = self.operation.results[0].type
        if str(result) != "tensor<i32>":
            yield f"expected a result of type tensor<i32>, got {result}"
        (found,) = self.map.result_ranges()
        if not Interval(-(2**31), 2**31 - 1).contains_interval(found):
            yield f"attribute 'map': expected a number that i32 holds, got {found}"


ACCESS_OPS: tuple[type[DeclaredOp], ...] = (ReadOp, WriteOp, AccumulateOp, ToIndexOp, FromIndexOp)
"""The operations of this file."""
_INDEXED = frozenset(("xgpu.par", "xgpu.seq", ToIndexOp.OPERATION_NAME))
"""The operations that make variables: those below, whose ``extent`` they are."""


def variable_problems(map_: IndexingMap, variables: Sequence[ir.Value]) -> Iterator[str]:
    """Yield errors of variables whose loops run over less, or more, than the map's dimensions."""
    for number, (variable, interval) in enumerate(zip(variables, map_.dims, strict=True)):
        extent = extent_of(variable)
        if extent is None:
            yield f"operand {number} of the map: expected a variable of a loop, or xgpu.to_index, with an extent"
        elif not Interval(0, extent - 1).contains_interval(interval):
            yield f"attribute 'map': expected dimension {number} to be in [0, {extent - 1}], got {interval}"
    yield from magnitude_problems(map_)


def magnitude_problems(map_: IndexingMap, *others: AffineExpr) -> Iterator[str]:
    """Yield an error if the map's expressions, or others of its variables, need not be computable in 64 bits."""
    ranges = Ranges(map_.dims, map_.symbols)
    numbers = [abs(bound) for _, interval in map_.constraints for bound in (interval.lower, interval.upper)]
    exprs = (*map_.results, *(expr for expr, _ in map_.constraints), *others)
    if max([*numbers, *(ranges.magnitude(expr) for expr in exprs)], default=0) > MAX_INDEX:
        yield f"attribute 'map': expected no number beyond {MAX_INDEX} in all that is computed, got {map_}"


def extent_of(variable: ir.Value) -> int | None:
    """Return below which number a loop's variable, or an index that a value decides, lies; None for others."""
    owner = owning_op(variable)
    if owner.name not in _INDEXED:
        return None
    # The operation around may not have been verified yet.
    extent = owner.attributes.get("extent")
    return extent.value if isinstance(extent, ir.IntegerAttr) else None


def elements_of(buffer: ir.Value) -> int:
    """Return how many elements a buffer has."""
    return math.prod(ir.MemRefType(buffer.type).shape)
