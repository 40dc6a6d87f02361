"""Kernels that are matrix products by tiles: which loops go along rows, columns and contracted elements.

Such a kernel has blocks, each with a buffer of sums. It sets them to zero, adds products of 16-bit elements to them
step by step, maybe from tiles that it has copied, and computes results of them, element by element.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from xgpu import ir
from xgpu.dialects.nests.accesses import AccumulateOp, ReadOp, WriteOp
from xgpu.dialects.nests.loops import LaunchOp, NewOp, ParOp, SeqOp
from xgpu.hlo.constants import splat_of
from xgpu.indexing.affine import AffineExpr, Dim
from xgpu.nests.structure import PAR, SEQ, BufferAccess, access_of, accesses_in, loop_of, operations_of, perfect_nest
from xgpu.records import dataclass
from xgpu.structure import defining_op, element_of, owning_op, walk

MULTIPLIED = ("bf16", "f16")
"""Elements of the operands; sums are f32."""
_CONSTANT = "stablehlo.constant"


class NoProductError(Exception):
    """Says why a kernel is no matrix product that is known."""


@dataclass(frozen=True)
class Axis:
    """A dimension of the product: ``tile`` iterations of a loop for each of those of an outer one, if there is any."""

    name: str
    tile: int
    outer: ir.Value | None

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.tile * (1 if self.outer is None else _extent(self.outer))


@dataclass(frozen=True)
class ProductArray:
    """An array, and which axis each of its dimensions is; ``op`` is the read of it."""

    array: ir.Value
    axes: tuple[Axis, ...]
    op: ir.Operation


@dataclass(frozen=True)
class TileProduct:
    """A kernel that is a matrix product: what is multiplied, and what is done with the sums.

    ``reads`` are those of the results' statements, ``None`` for the sums; ``writes`` are the results, all of which have
    the axes ``order``: first those of batches, then two of one matrix.
    """

    left: ProductArray
    right: ProductArray
    order: tuple[Axis, ...]
    contracted: Axis
    statements: tuple[ir.Operation, ...]
    reads: Mapping[ir.Operation, ProductArray | None]
    writes: tuple[ProductArray, ...]
    seq: SeqOp

    @property
    def tile(self) -> tuple[int, int, int]:
        """Rows, columns and contracted elements of a block's step."""
        return self.order[-2].tile, self.order[-1].tile, self.contracted.tile


def tile_product(launch: LaunchOp) -> TileProduct:
    """Return the matrix product that a kernel is. Raises `NoProductError` with a reason if it is none."""
    return _Matcher(launch).match()


def product_loops(launch: LaunchOp) -> list[ParOp]:
    """Return the par loops of a kernel right around sums of products of 16-bit elements, outer ones first."""
    found: list[ParOp] = []
    for op in walk(launch.operation, PAR):
        nest = perfect_nest(op)
        inner = operations_of(nest[-1].body)
        if len(inner) == 1 and inner[0].name == SEQ and _sum_of(inner[0]) is not None:
            found.append(nest[0])
    return found


@dataclass(frozen=True)
class _Sum:
    accumulate: AccumulateOp
    operands: tuple[ReadOp, ReadOp]


def _sum_of(seq: ir.Operation) -> _Sum | None:
    """Return the sum of products of 16-bit elements that a loop is, and nothing else."""
    operations = operations_of(cast(SeqOp, seq.opview).body)
    last = operations[-1].opview if operations else None
    if len(operations) != 6 or not isinstance(last, AccumulateOp) or last.combiner != "add" or last.atomic:
        return None
    product = defining_op(last.value)
    if product is None or product.name != "stablehlo.multiply":
        return None
    reads = []
    for value in product.operands:
        converted = defining_op(value)
        if converted is None or converted.name != "stablehlo.convert" or not _is_f32(value):
            return None
        read = defining_op(converted.operands[0])
        if read is None or not isinstance(read.opview, ReadOp) or read not in operations:
            return None
        if str(ir.RankedTensorType(converted.operands[0].type).element_type) not in MULTIPLIED:
            return None
        reads.append(read.opview)
    return _Sum(last, (reads[0], reads[1]))


def _is_f32(value: ir.Value) -> bool:
    return str(ir.RankedTensorType(value.type).element_type) == "f32"


def _extent(variable: ir.Value) -> int:
    return cast(ParOp, owning_op(variable).opview).extent


type _Linear = dict[ir.Value, int]
"""A sum of variables, each times a number."""


def _linear(expr: AffineExpr, variables: Sequence[ir.Value]) -> _Linear:
    """Return an index as a sum of variables; raises `NoProductError` for any other."""
    if expr.constant or any(not isinstance(atom, Dim) for atom, _ in expr.terms):
        raise NoProductError("an index is no sum of multiples of loops' variables")
    return {variables[cast(Dim, atom).index]: factor for atom, factor in expr.terms}


def _indices(access: BufferAccess) -> list[_Linear]:
    """Return the indices of an access that is made whatever the variables are."""
    if access.guards or access.map.constraints:
        raise NoProductError("an access is under a condition")
    return [_linear(result, access.variables) for result in access.map.results]


class _Matcher:
    def __init__(self, launch: LaunchOp):
        self._launch = launch
        self._blocks: list[ir.Value] = []
        self._outer: dict[str, ir.Value | None] = {}

    def match(self) -> TileProduct:
        """Return the product of the kernel."""
        top = operations_of(self._launch.body)
        if len(top) != 1 or top[0].name != PAR:
            raise NoProductError("it is no par loop of blocks")
        outer = perfect_nest(top[0])
        self._blocks = [loop.variable for loop in outer]
        if any(loop.align is not None or loop.band not in (None, "block") for loop in outer):
            raise NoProductError("its outer loops are not run by blocks")
        self._check_pragmas(outer)
        sums, first, steps, last = self._statements(outer[-1])
        seq, product = self._steps(steps)
        found = _sum_of(operations_of(product[-1].body)[0])
        assert found is not None, "the loop was looked for by its sum"
        contracted = cast(SeqOp, operations_of(product[-1].body)[0].opview)
        target = access_of(found.accumulate.operation)
        if target.buffer != sums.buffer:
            raise NoProductError(f"it does not add to '{sums.called}', the buffer of the block")
        row, column = self._tile_loops(target, product)
        inner = {row: "row", column: "column", contracted.variable: "contracted"}
        operands = [self._operand(read, seq, inner) for read in found.operands]
        self._check_zero(first, sums)
        return self._product(operands, sums, last, seq)

    def _check_pragmas(self, outer: Sequence[ParOp]) -> None:
        """Raise `NoProductError` if the program says what the emitters of products decide: who runs loops, and pads."""
        loops = [cast(ParOp, op.opview) for op in walk(self._launch.operation, PAR)]
        buffers = [cast(NewOp, op.opview) for op in walk(self._launch.operation, NewOp.OPERATION_NAME)]
        if any(loop.threads is not None or loop.vector is not None for loop in loops):
            raise NoProductError("'#threads' or '#vector' says how threads run its loops")
        if any(loop.band is not None and loop not in outer for loop in loops):
            raise NoProductError("a pragma says that threads run a loop inside of its blocks")
        if any(new.pad for new in buffers):
            raise NoProductError("'#pad' says how a tile lies in memory")

    def _statements(self, block: ParOp) -> tuple[NewOp, ir.Operation, ir.Operation, ir.Operation]:
        """Return the four statements of a block."""
        operations = operations_of(block.body)
        expected = [NewOp.OPERATION_NAME, PAR, SEQ, PAR]
        if [op.name for op in operations] != expected:
            raise NoProductError(
                "expected of a block: a buffer, a par loop that sets it to zero, a seq loop over steps, a par loop of"
                " results"
            )
        new, first, steps, last = operations
        type_ = ir.MemRefType(new.results[0].type)
        if type_.rank != 2 or str(type_.element_type) != "f32":
            raise NoProductError(f"expected sums of f32 with rows and columns, got {type_}")
        return cast(NewOp, new.opview), first, steps, last

    def _steps(self, steps: ir.Operation) -> tuple[SeqOp, list[ParOp]]:
        """Return the loop over steps, and the loops of its last statement, the product."""
        seq = cast(SeqOp, steps.opview)
        operations = [op for op in operations_of(seq.body) if op.name != NewOp.OPERATION_NAME]
        if not operations or any(op.name != PAR for op in operations):
            raise NoProductError("expected of a step: tiles, par loops that copy them, and the product")
        nest = perfect_nest(operations[-1])
        inner = operations_of(nest[-1].body)
        if len(nest) != 2 or len(inner) != 1 or inner[0].name != SEQ or _sum_of(inner[0]) is None:
            raise NoProductError("the last statement of a step is no sum of products of 16-bit elements")
        return seq, nest

    def _tile_loops(self, access: BufferAccess, nest: Sequence[ParOp]) -> tuple[ir.Value, ir.Value]:
        """Return the variables that are the indices of a buffer of sums: all of its elements, each once."""
        found = [next(iter(index)) if list(index.values()) == [1] else None for index in _indices(access)]
        extents = [None if variable is None else _extent(variable) for variable in found]
        if set(found) != {loop.variable for loop in nest} or extents != list(access.shape):
            raise NoProductError("the loops do not go once through the sums of the block")
        row, column = cast(list[ir.Value], found)
        return row, column

    def _check_zero(self, first: ir.Operation, sums: NewOp) -> None:
        nest = perfect_nest(first)
        body = operations_of(nest[-1].body)
        if [op.name for op in body] != [_CONSTANT, WriteOp.OPERATION_NAME] or splat_of(body[0]) is None:
            raise NoProductError("the first statement of the block does not set its sums to zero")
        write, zero = access_of(body[1]), splat_of(body[0])
        if write.buffer != sums.buffer or not isinstance(zero, ir.FloatAttr) or zero.value:
            raise NoProductError("the first statement of the block does not set its sums to zero")
        self._tile_loops(write, nest)

    def _operand(self, read: ReadOp, seq: SeqOp, inner: Mapping[ir.Value, str]) -> ProductArray:
        """Return an operand of the product: an array, or one of which the step has copied a tile."""
        access = access_of(read.operation)
        indices = _indices(access)
        array, op = access.buffer, read.operation
        if owning_op(array).name == NewOp.OPERATION_NAME and owning_op(array).block == seq.body:
            array, indices, op = self._copied(access, indices, seq)
        if owning_op(array).name != "func.func" and owning_op(array).parent.name != "func.func":  # type: ignore[union-attr]
            raise NoProductError("what is multiplied is no array, and no tile that the step copies of one")
        return ProductArray(array, self._axes(indices, array, inner, seq.variable), op)

    def _copied(
        self, access: BufferAccess, indices: Sequence[_Linear], seq: SeqOp
    ) -> tuple[ir.Value, list[_Linear], ir.Operation]:
        """Return the array of which a tile is copied, and where in it an access to the tile is."""
        writes = [each for each in accesses_in(seq.operation) if each.buffer == access.buffer and each.writes]
        if len(writes) != 1 or writes[0].op.name != WriteOp.OPERATION_NAME:
            raise NoProductError("expected a tile to be written by one statement")
        (write,) = writes
        source = defining_op(cast(WriteOp, write.op.opview).value)
        if (
            source is None
            or not isinstance(source.opview, ReadOp)
            or operations_of(write.op.block) != [source, write.op]
        ):
            raise NoProductError("expected a tile to be a copy")
        places: dict[ir.Value, _Linear] = {}
        for index, size, at in zip(_indices(write), write.shape, indices, strict=True):
            (variable,) = index if list(index.values()) == [1] else (None,)
            if variable is None or variable in places or _extent(variable) != size or not _is_par(variable):
                raise NoProductError("a copy does not go once through its tile")
            places[variable] = at
        read = access_of(source)
        return read.buffer, [_substituted(index, places) for index in _indices(read)], source

    def _axes(
        self, indices: Sequence[_Linear], array: ir.Value, inner: Mapping[ir.Value, str], step: ir.Value | None
    ) -> tuple[Axis, ...]:
        shape = ir.MemRefType(array.type).shape
        axes = tuple(self._axis(index, inner, step) for index in indices)
        for axis, size in zip(axes, shape, strict=True):
            if axis.size != size:
                raise NoProductError(f"its blocks and steps go through {axis.size} of {size} elements of an array")
        if len(set(axes)) != len(axes):
            raise NoProductError("two dimensions of an array have one index")
        return axes

    def _axis(self, index: _Linear, inner: Mapping[ir.Value, str], step: ir.Value | None) -> Axis:
        own = [variable for variable in index if variable in inner]
        others = [variable for variable in index if variable not in inner]
        if not own and len(others) == 1 and others[0] in self._blocks and index[others[0]] == 1:
            return Axis(f"batch {self._blocks.index(others[0])}", 1, others[0])
        if len(own) != 1 or len(others) > 1 or index[own[0]] != 1:
            raise NoProductError("an index is no tile's number times its size, and an index in the tile")
        name, tile = inner[own[0]], _extent(own[0])
        outer = others[0] if others else None
        known = [step] if name == "contracted" else self._blocks
        if outer is not None and (outer not in known or index[outer] != tile):
            raise NoProductError("an index is no tile's number times its size, and an index in the tile")
        if self._outer.setdefault(name, outer) != outer:
            raise NoProductError("accesses of one loop go through different tiles")
        return Axis(name, tile, outer)

    def _product(self, operands: list[ProductArray], sums: NewOp, last: ir.Operation, seq: SeqOp) -> TileProduct:
        nest = perfect_nest(last)
        statements = operations_of(nest[-1].body)
        reads = [access_of(op) for op in statements if op.name == ReadOp.OPERATION_NAME]
        writes = [access_of(op) for op in statements if op.name == WriteOp.OPERATION_NAME]
        if any(isinstance(element_of(value), ir.ComplexType) for op in statements for value in op.results):
            raise NoProductError("results are computed from complex numbers")
        of_sums = [each for each in reads if each.buffer == sums.buffer]
        if not of_sums or not writes or any(op.name.startswith("xgpu.") for op in _others(statements)):
            raise NoProductError("the last statement of the block does not write results of its sums")
        row, column = self._tile_loops(of_sums[0], nest)
        inner = {row: "row", column: "column"}
        for each in of_sums[1:]:
            if self._tile_loops(each, nest) != (row, column):
                raise NoProductError("results are not computed element by element")
        found = {each.op: self._result_operand(each, sums, inner) for each in reads}
        results = tuple(cast(ProductArray, self._result_operand(each, sums, inner)) for each in writes)
        changed = [each.array for each in results]
        used = {operand.array for operand in (*operands, *(each for each in found.values() if each is not None))}
        if len(set(changed)) != len(changed) or used & set(changed):
            raise NoProductError("an array is changed that is read, or changed twice")
        order, contracted = self._order(results, operands)
        left, right = operands if order[-2] in operands[0].axes else operands[::-1]
        return TileProduct(left, right, order, contracted, tuple(statements), found, results, seq)

    def _result_operand(self, access: BufferAccess, sums: NewOp, inner: Mapping[ir.Value, str]) -> ProductArray | None:
        if access.buffer == sums.buffer:
            if access.writes:
                raise NoProductError("results change the sums")
            return None
        return ProductArray(access.buffer, self._axes(_indices(access), access.buffer, inner, None), access.op)

    def _order(
        self, results: Sequence[ProductArray], operands: Sequence[ProductArray]
    ) -> tuple[tuple[Axis, ...], Axis]:
        """Return the axes of the results, and the contracted one; each operand has one of rows or columns."""
        order = results[0].axes
        batches = set(order[:-2])
        if any(each.axes != order for each in results):
            raise NoProductError("results have their dimensions in different orders")
        if {axis.name for axis in order[-2:]} != {"row", "column"}:
            raise NoProductError("the last two dimensions of results are not rows and columns")
        own = []
        for each in operands:
            contracted = [axis for axis in each.axes if axis.name == "contracted"]
            free = [axis for axis in each.axes if axis.name in ("row", "column")]
            if len(contracted) != 1 or len(free) != 1 or not set(each.axes) - {*contracted, *free} == batches:
                raise NoProductError("an operand has not one dimension that is contracted and one that is not")
            own.append((free[0], contracted[0]))
        if {axis for axis, _ in own} != set(order[-2:]) or own[0][1] != own[1][1]:
            raise NoProductError("operands do not have the rows and the columns of the result")
        used = [axis.outer for axis in order if axis.outer is not None]
        if len(set(used)) != len(used) or any(_extent(v) > 1 and v not in used for v in self._blocks):
            raise NoProductError("blocks are not told apart by rows, columns and batches")
        return order, own[0][1]


def _substituted(index: _Linear, places: Mapping[ir.Value, _Linear]) -> _Linear:
    found: _Linear = {}
    for variable, factor in index.items():
        for inner, times in places.get(variable, {variable: 1}).items():
            found[inner] = found.get(inner, 0) + factor * times
    return found


def _is_par(variable: ir.Value) -> bool:
    loop = loop_of(variable)
    return loop is not None and loop.name == PAR


def _others(statements: Sequence[ir.Operation]) -> list[ir.Operation]:
    accesses = (ReadOp.OPERATION_NAME, WriteOp.OPERATION_NAME)
    return [op for op in statements if op.name not in accesses]
