"""Operations of the xgpu dialect on what threads share: tiles, barriers, shuffles, predicated and atomic accesses."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from xgpu import ir
from xgpu.dialects.attributes import INTEGER, SYMBOL
from xgpu.dialects.base import BOOL, INDEX, SCALAR, TENSOR, VECTOR, Attribute, BodyOp, DeclaredOp, Values, declare
from xgpu.dialects.namespace import XgpuDialect, terminator_problems
from xgpu.dialects.traits import Traits, traits_of
from xgpu.structure import element_of, nested

MOST_ELEMENTS = 1 << 20
"""Limit of a tile's elements: far above what any block has room for."""
TILE_ALIGNMENT = 16
"""The multiple of bytes at which tiles begin: what a thread accesses at once, at most."""

_INDICES = Values("indices", INDEX, "The element's position, one index for each dimension.", variadic=True)


@ir.register_operation(XgpuDialect)
@declare
class AllocateSharedOp(DeclaredOp):
    """Makes a tile: a tensor in the shared memory of the block, one for all of its threads.

    Every thread of the block executes it, and once. What the tile holds is undefined until it is written, and what
    another thread wrote can be read only after `xgpu.sync_threads`. Tiles with an offset may share memory: what one
    holds is lost where another one is written.

    ```mlir
    %tile = "xgpu.allocate_shared"() : () -> tensor<32x33xf32>
    ```
    """

    OPERATION_NAME = "xgpu.allocate_shared"
    TRAITS = Traits(allocates=True)
    RESULTS = (Values("tile", TENSOR, "The tile."),)
    ATTRIBUTES = (Attribute("offset", INTEGER, "The tile's first byte in the block's shared memory.", optional=True),)
    tile: ir.Value
    offset: int | None

    @classmethod
    def build(
        cls, shape: Sequence[int], element: ir.Type, loc: ir.Location | None = None, offset: int | None = None
    ) -> ir.Value:
        """Create the operation and return its tile, a tensor of ``shape``."""
        type_ = ir.RankedTensorType.get(list(shape), element)
        attributes = {} if offset is None else {"offset": offset}
        return cls.create(results=[type_], attributes=attributes, loc=loc).operation.results[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The tile has elements, and no more than any block can hold."""
        type_ = ir.RankedTensorType(self.tile.type)
        if any(size == 0 for size in type_.shape):
            yield f"expected a tile with elements, got {type_}"
        elif math.prod(type_.shape) > MOST_ELEMENTS:
            yield f"expected a tile of at most {MOST_ELEMENTS} elements, got {type_}"
        if self.offset is not None and (self.offset < 0 or self.offset % TILE_ALIGNMENT):
            yield f"attribute 'offset': expected a multiple of {TILE_ALIGNMENT}, got {self.offset}"


@ir.register_operation(XgpuDialect)
@declare
class SyncThreadsOp(DeclaredOp):
    """A barrier: waits for all threads of the block; what each wrote into the tiles before is then seen by all.

    All threads of the block execute it, or none. Takes and returns the tiles, so that the accesses after it are those
    of the new values; a barrier without tiles only waits. Outputs of the kernel may be among the tiles: what the
    block's threads wrote into them is then seen by all of the block, too.

    ```mlir
    %filled = "xgpu.sync_threads"(%tile) : (tensor<32x33xf32>) -> tensor<32x33xf32>
    ```
    """

    OPERATION_NAME = "xgpu.sync_threads"
    TRAITS = Traits(collective=True)
    OPERANDS = (Values("tiles", TENSOR, "The tiles as this thread left them.", variadic=True),)
    RESULTS = (Values("synchronized", TENSOR, "The tiles as all threads left them.", variadic=True),)
    tiles: list[ir.Value]

    @classmethod
    def build(cls, tiles: Sequence[ir.Value], loc: ir.Location | None = None) -> list[ir.Value]:
        """Create the operation and return the new values of the tiles."""
        return list(cls.create(tiles, [tile.type for tile in tiles], loc=loc).operation.results)

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The types of operands and results agree."""
        yield from _same_types(self)


@ir.register_operation(XgpuDialect)
@declare
class SyncWarpOp(DeclaredOp):
    """A barrier of each warp by itself: what a thread wrote before is then seen by the threads of its warp.

    All threads of the warp execute it, or none. Otherwise as `xgpu.sync_threads`, which takes longer.

    ```mlir
    %filled = "xgpu.sync_warp"(%tile) : (tensor<32x33xf32>) -> tensor<32x33xf32>
    ```
    """

    OPERATION_NAME = "xgpu.sync_warp"
    TRAITS = Traits(collective=True)
    OPERANDS = (Values("tiles", TENSOR, "The tiles as this thread left them.", variadic=True),)
    RESULTS = (Values("synchronized", TENSOR, "The tiles as all threads of the warp left them.", variadic=True),)
    tiles: list[ir.Value]

    @classmethod
    def build(cls, tiles: Sequence[ir.Value], loc: ir.Location | None = None) -> list[ir.Value]:
        """Create the operation and return the new values of the tiles."""
        return list(cls.create(tiles, [tile.type for tile in tiles], loc=loc).operation.results)

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The types of operands and results agree."""
        yield from _same_types(self)


@ir.register_operation(XgpuDialect)
@declare
class ShuffleReduceOp(DeclaredOp):
    """Combines the values of each lane of a warp with those of the lane whose number differs in one bit.

    Lane ``i`` gets ``combiner(values of i, values of i xor distance)``, so after distances 16, 8, 4, 2 and 1 every lane
    has the combination of all 32 if the combiner is associative and commutative. The combiner takes the lane's values,
    then the other lane's, and returns as many. All 32 lanes of the warp execute it, or none.

    ```mlir
    %1 = "xgpu.shuffle_reduce"(%0) {combiner = @add, distance = 16 : i64} : (f32) -> f32
    ```
    """

    OPERATION_NAME = "xgpu.shuffle_reduce"
    TRAITS = Traits(collective=True, passes_on=True)
    OPERANDS = (Values("values", SCALAR, "This lane's values.", variadic=True),)
    RESULTS = (Values("combined", SCALAR, "The combination with the other lane's values.", variadic=True),)
    ATTRIBUTES = (
        Attribute("combiner", SYMBOL, "A function of this lane's values, then the other lane's."),
        Attribute("distance", INTEGER, "By what the lanes' numbers differ: 1, 2, 4, 8 or 16."),
    )
    combiner: str
    distance: int
    values: list[ir.Value]

    @classmethod
    def build(
        cls, combiner: str, distance: int, values: Sequence[ir.Value], loc: ir.Location | None = None
    ) -> list[ir.Value]:
        """Create the operation and return the combined values; ``combiner`` names a function of the module."""
        attributes = {"combiner": combiner, "distance": distance}
        return list(cls.create(values, [value.type for value in values], attributes, loc).operation.results)

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The distance is one of a butterfly, and the combiner fits the values."""
        if self.distance not in (1, 2, 4, 8, 16):
            yield f"attribute 'distance': expected 1, 2, 4, 8 or 16, got {self.distance}"
            return
        if not self.values:
            yield "expected at least 1 operands, got 0"
            return
        yield from _same_types(self)
        combiner = symbols.get(self.combiner)
        if combiner is None or "function_type" not in combiner.attributes:
            yield f"expected the name of a function of this module, got '@{self.combiner}'"
            return
        type_: Any = ir.TypeAttr(combiner.attributes["function_type"]).value
        values = [value.type for value in self.values]
        if list(type_.inputs) != [*values, *values] or list(type_.results) != values:
            once, twice = (", ".join(map(str, each)) for each in (values, [*values, *values]))
            result = once if len(values) == 1 else f"({once})"
            yield f"expected '@{self.combiner}' to be of type ({twice}) -> {result}, got {type_}"


@ir.register_operation(XgpuDialect)
@declare
class ShuffleOp(DeclaredOp):
    """Gives each lane of a warp the values of the lane that it names.

    All 32 lanes of the warp execute it, or none. Of the lane's number only the lowest five bits count.

    ```mlir
    %1 = "xgpu.shuffle"(%lane, %0) : (index, f32) -> f32
    ```
    """

    OPERATION_NAME = "xgpu.shuffle"
    TRAITS = Traits(collective=True, passes_on=True)
    OPERANDS = (
        Values("lane", INDEX, "The number of the lane whose values this lane gets."),
        Values("values", SCALAR, "This lane's values.", variadic=True),
    )
    RESULTS = (Values("taken", SCALAR, "The other lane's values.", variadic=True),)
    lane: ir.Value
    values: list[ir.Value]

    @classmethod
    def build(cls, lane: ir.Value, values: Sequence[ir.Value], loc: ir.Location | None = None) -> list[ir.Value]:
        """Create the operation and return the other lane's values."""
        return list(cls.create([lane, *values], [value.type for value in values], loc=loc).operation.results)

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """There are values, and the types of operands and results agree."""
        values = [str(value.type) for value in self.values]
        results = [str(value.type) for value in self.operation.results]
        if not values:
            yield "expected at least 2 operands, got 1"
        elif values != results:
            yield f"expected results of the values' types ({', '.join(values)}), got ({', '.join(results)})"


@ir.register_operation(XgpuDialect)
@declare
class PredicatedExtractOp(DeclaredOp):
    """Reads an element of a tensor where a condition holds; gives the fallback, and reads nothing, where it does not.

    ```mlir
    %x = "xgpu.predicated_extract"(%inside, %zero, %tensor, %i) : (i1, f32, tensor<100xf32>, index) -> f32
    ```
    """

    OPERATION_NAME = "xgpu.predicated_extract"
    TRAITS = Traits(reads=2, at_element=True)
    OPERANDS = (
        Values("condition", BOOL, "Whether to read."),
        Values("fallback", SCALAR, "The result if the condition does not hold."),
        Values("tensor", TENSOR, "What to read from."),
        _INDICES,
    )
    RESULTS = (Values("element", SCALAR, "The element, or the fallback."),)
    condition: ir.Value
    fallback: ir.Value
    tensor: ir.Value
    indices: list[ir.Value]

    @classmethod
    def build(
        cls,
        condition: ir.Value,
        fallback: ir.Value,
        tensor: ir.Value,
        indices: Sequence[ir.Value],
        loc: ir.Location | None = None,
    ) -> ir.Value:
        """Create the operation and return its result."""
        operands = [condition, fallback, tensor, *indices]
        return cls.create(operands, [fallback.type], loc=loc).operation.results[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """Fallback and result are of the tensor's element type; one index for each dimension."""
        yield from _access_problems(self.tensor, self.fallback, self.indices)
        if self.operation.results[0].type != self.fallback.type:
            yield f"expected a result of the fallback's type {self.fallback.type}, got {self.operation.results[0].type}"


@ir.register_operation(XgpuDialect)
@declare
class PredicatedInsertOp(DeclaredOp):
    """Writes an element of a tensor where a condition holds; leaves the tensor as it is where it does not.

    ```mlir
    %updated = "xgpu.predicated_insert"(%inside, %x, %tensor, %i)
        : (i1, f32, tensor<100xf32>, index) -> tensor<100xf32>
    ```
    """

    OPERATION_NAME = "xgpu.predicated_insert"
    TRAITS = Traits(updates=2, at_element=True)
    OPERANDS = (
        Values("condition", BOOL, "Whether to write."),
        Values("scalar", SCALAR, "The element's new value."),
        Values("tensor", TENSOR, "What to write into."),
        _INDICES,
    )
    RESULTS = (Values("updated", TENSOR, "The tensor afterwards."),)
    condition: ir.Value
    scalar: ir.Value
    tensor: ir.Value
    indices: list[ir.Value]

    @classmethod
    def build(
        cls,
        condition: ir.Value,
        scalar: ir.Value,
        tensor: ir.Value,
        indices: Sequence[ir.Value],
        loc: ir.Location | None = None,
    ) -> ir.Value:
        """Create the operation and return the updated tensor."""
        operands = [condition, scalar, tensor, *indices]
        return cls.create(operands, [tensor.type], loc=loc).operation.results[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The scalar is of the tensor's element type, the result of the tensor's; one index for each dimension."""
        yield from _access_problems(self.tensor, self.scalar, self.indices)
        yield from _same_tensor(self, self.tensor)


@ir.register_operation(XgpuDialect)
@declare
class AtomicRmwOp(BodyOp):
    """Atomically replaces an element of a tensor by the value that its region computes from the old one.

    Any number of threads of any blocks may update one element, in an unspecified order. The region may be
    evaluated more than once; it has no side effects, and may use values from outside. The update says nothing about
    the order of other accesses to memory.

    ```mlir
    %updated = "xgpu.atomic_rmw"(%tensor, %i) ({
    ^bb0(%old: f32):
      %new = arith.addf %old, %x : f32
      "xgpu.yield"(%new) : (f32) -> ()
    }) : (tensor<100xf32>, index) -> tensor<100xf32>
    ```
    """

    OPERATION_NAME = "xgpu.atomic_rmw"
    TRAITS = Traits(updates=0, at_element=True)
    OPERANDS = (Values("tensor", TENSOR, "What to update."), _INDICES)
    RESULTS = (Values("updated", TENSOR, "The tensor afterwards."),)
    tensor: ir.Value
    indices: list[ir.Value]

    @classmethod
    def build(cls, tensor: ir.Value, indices: Sequence[ir.Value], loc: ir.Location | None = None) -> "AtomicRmwOp":
        """Create the operation with an empty body block; the caller fills it and ends it with `YieldOp`."""
        op: AtomicRmwOp = cls.create([tensor, *indices], [tensor.type], loc=loc)
        op.operation.regions[0].blocks.append(element_of(tensor))
        return op

    @property
    def old(self) -> ir.Value:
        """The element before the update, the argument of the body."""
        return self.body.arguments[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The body takes and yields one element; the result is of the tensor's type; one index for each dimension."""
        yield from _index_problems(self.tensor, self.indices)
        yield from _same_tensor(self, self.tensor)
        element = str(element_of(self.tensor))
        blocks = self.operation.regions[0].blocks
        if len(blocks) != 1:
            yield f"expected a body of one block, got {len(blocks)}"
            return
        got = [str(argument.type) for argument in blocks[0].arguments]
        if got != [element]:
            yield f"expected body arguments ({element}), got ({', '.join(got)})"
            return
        yield from terminator_problems(blocks[0], [element])
        with_effects = sorted({op.name for op in nested(self.operation) if traits_of(op.name).has_effects})
        if with_effects:
            yield f"expected a body without side effects, got '{with_effects[0]}'"


@ir.register_operation(XgpuDialect)
@declare
class AtomicAddOp(DeclaredOp):
    """Adds the elements of a vector to consecutive elements of a tensor, each atomically.

    Several `xgpu.atomic_rmw` of neighbours become one: the additions together are not one atomic step.

    ```mlir
    %updated = "xgpu.atomic_add"(%values, %tensor, %i) : (vector<4xf32>, tensor<100xf32>, index) -> tensor<100xf32>
    ```
    """

    OPERATION_NAME = "xgpu.atomic_add"
    TRAITS = Traits(updates=1)
    OPERANDS = (
        Values("values", VECTOR, "What to add."),
        Values("tensor", TENSOR, "What to update, of one dimension."),
        Values("index", INDEX, "Where the first value goes: a multiple of the vector's length."),
    )
    RESULTS = (Values("updated", TENSOR, "The tensor afterwards."),)
    values: ir.Value
    tensor: ir.Value

    @classmethod
    def build(cls, values: ir.Value, tensor: ir.Value, index: ir.Value, loc: ir.Location | None = None) -> ir.Value:
        """Create the operation and return the updated tensor."""
        return cls.create([values, tensor, index], [tensor.type], loc=loc).operation.results[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The values are of the tensor's element type, a float; the tensor has one dimension."""
        type_ = ir.RankedTensorType(self.tensor.type)
        element = ir.VectorType(self.values.type).element_type
        if type_.rank != 1 or type_.element_type != element or not isinstance(element, ir.FloatType):
            yield f"expected floats for a tensor of one dimension of them, got {self.values.type} and {type_}"
        yield from _same_tensor(self, self.tensor)


THREAD_OPS: tuple[type[DeclaredOp], ...] = (
    AllocateSharedOp,
    SyncThreadsOp,
    SyncWarpOp,
    ShuffleReduceOp,
    ShuffleOp,
    PredicatedExtractOp,
    PredicatedInsertOp,
    AtomicRmwOp,
    AtomicAddOp,
)
"""The operations of this file."""


def _same_types(op: DeclaredOp) -> Iterator[str]:
    operands = [str(value.type) for value in op.operation.operands]
    results = [str(value.type) for value in op.operation.results]
    if operands != results:
        yield f"expected results of the operands' types ({', '.join(operands)}), got ({', '.join(results)})"


def _same_tensor(op: DeclaredOp, tensor: ir.Value) -> Iterator[str]:
    result = op.operation.results[0]
    if result.type != tensor.type:
        yield f"expected a result of the tensor's type {tensor.type}, got {result.type}"


def _access_problems(tensor: ir.Value, element: ir.Value, indices: Sequence[ir.Value]) -> Iterator[str]:
    expected = element_of(tensor)
    if element.type != expected:
        yield f"expected an element of type {expected} for {tensor.type}, got {element.type}"
    yield from _index_problems(tensor, indices)


def _index_problems(tensor: ir.Value, indices: Sequence[ir.Value]) -> Iterator[str]:
    rank = ir.RankedTensorType(tensor.type).rank
    if len(indices) != rank:
        yield f"expected {rank} indices for {tensor.type}, got {len(indices)}"
