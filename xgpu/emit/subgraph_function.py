"""Writes the functions of a partitioned fusion: ``(tensors..., indices...) -> scalars``, one per subgraph.

Operations are emitted on demand from the subgraph's roots by an explicit stack, so that a chain of any length needs no
recursion. Only what an operation reads inside a region of its own (the branch of a pad, the body of a reduction) is
emitted recursively, and the partition bounds that nesting.
"""

import functools
import itertools
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Self

from xgpu import ir
from xgpu.analysis.placement import Scope
from xgpu.analysis.subgraphs import Node, Partition, Subgraph, partition
from xgpu.dialects.attributes import FULL, UNROLL, UNROLLED_OPERATIONS, range_attributes
from xgpu.dialects.xgpu import InDomainOp, LoopOp, PureCallOp, YieldOp
from xgpu.emit.base import Fusion
from xgpu.emit.builders import (
    Values,
    apply_map,
    clamped_index,
    if_else,
    scalar_type,
    signless_tensor,
)
from xgpu.emit.scalar.accumulation import accumulation_of
from xgpu.emit.scalar.combiner import emit_combiner
from xgpu.emit.scalar.constants import emit_constant, emit_iota
from xgpu.emit.scalar.op import ScalarOp, constant
from xgpu.emit.scalar.table import build_scalar
from xgpu.indexing.access import Access
from xgpu.indexing.affine import AffineExpr
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.structure import count_ops, dtype_of, element_of, walk

_PREDICATED_OPERATIONS = 7
"""Instructions that NVIDIA's compilers predicate instead of branching around them (CUDA C++ Best Practices Guide)."""


class SubgraphFunctions:
    """The functions of one fusion. ``parameters`` are the fusion's block arguments, in order.

    The roots' function takes them all, every other one those that it reads, itself or by what it calls.
    """

    def __init__(self, name: str, partition: Partition, parameters: Sequence[ir.Value]):
        self.partition = partition
        self.parameters = _parameters_read(partition, parameters)
        self.names = [f"{name}__{self._label(subgraph)}" for subgraph in partition.subgraphs]
        # Which result of its subgraph's function a value is that other functions read.
        self.position = {
            value: number
            for subgraph in partition.subgraphs[1:]
            for number, value in enumerate(self.returned(subgraph))
        }

    @classmethod
    def of(
        cls,
        fusion: Fusion,
        label: str,
        roots: Sequence[ir.Value],
        injected: Mapping[ir.Value, IndexingMap] | None = None,
        followers: Container[ir.Value] = (),
    ) -> Self:
        """Return the functions of values of a fusion, all of one shape, from its parameters and what is injected.

        ``label`` follows the fusion's name in theirs; ``followers`` are those of `partition`.
        """
        parts = partition(fusion.body, roots, injected, followers)
        return cls(f"{fusion.name}__{label}", parts, list(fusion.body.arguments))

    def _label(self, subgraph: Subgraph) -> str:
        if subgraph.number == 0:
            return "root"
        op = self.partition.nodes[subgraph.roots[0]].op
        return f"{op.name.partition('.')[2]}_{subgraph.number}"

    def returned(self, subgraph: Subgraph) -> list[ir.Value]:
        """Return the values of the fusion whose scalars the function returns."""
        if subgraph.number == 0:
            return list(self.partition.results)
        return [value for root in subgraph.roots for value in self.partition.nodes[root].op.results]

    def result_types(self, subgraph: Subgraph) -> list[ir.Type]:
        """Return the types of the scalars that the function returns."""
        return [scalar_type(dtype_of(value)) for value in self.returned(subgraph)]

    def emit_call(self, operands: Sequence[ir.Value]) -> Values:
        """Return what the roots' function computes: of parameters and indices, then of what is injected."""
        return PureCallOp.build(self.names[0], operands, self.result_types(self.partition.subgraphs[0]))

    def emit(self) -> None:
        """Write all functions at the current insertion point, the roots' first."""
        for subgraph in self.partition.subgraphs:
            self._emit_function(subgraph)

    def _emit_function(self, subgraph: Subgraph) -> None:
        returned = self.returned(subgraph)
        shape = ir.RankedTensorType(returned[0].type).shape
        index = ir.IndexType.get()
        injected = tuple(self.partition.injected) if subgraph.number == 0 else ()
        scalars = [scalar_type(dtype_of(value)) for value in injected]
        parameters = self.parameters[subgraph.number]
        tensor_types = [signless_tensor(value.type) for value in parameters]
        inputs = [*tensor_types, *[index] * len(shape), *scalars]
        type_ = ir.FunctionType.get(inputs, self.result_types(subgraph))
        function = ir.func.FuncOp(self.names[subgraph.number], type_, visibility="private")  # type: ignore[call-arg]
        empty = ir.DictAttr.get({})
        ranges = [range_attributes(Interval(0, size - 1)) for size in shape]
        described = [empty] * len(tensor_types) + ranges + [empty] * len(scalars)
        function.operation.attributes["arg_attrs"] = ir.ArrayAttr.get(described)
        arguments = iter(function.add_entry_block().arguments)
        tensors = dict(zip(parameters, arguments, strict=False))
        indices = list(itertools.islice(arguments, len(shape)))
        with ir.InsertionPoint(function.entry_block):
            body = _FunctionBody(self, subgraph, tensors, indices, dict(zip(injected, arguments, strict=True)))
            ir.func.return_(body.values_of(returned))


def _parameters_read(partition: Partition, parameters: Sequence[ir.Value]) -> list[list[ir.Value]]:
    """Return for each subgraph the parameters that its function takes: all for the first one, that of the roots."""
    found: list[set[ir.Value]] = [set() for _ in partition.subgraphs]
    callees: list[set[int]] = [set() for _ in partition.subgraphs]
    for (number, position), scope in partition.scope_of.items():
        node = partition.nodes[number]
        value = node.operand(position)
        if value not in partition.producer:
            found[scope.subgraph].add(value)
        elif not partition.is_injected(value, scope):
            made = partition.nodes[partition.producer[value][0]]
            if not made.is_free and made.scope.subgraph != scope.subgraph:
                callees[scope.subgraph].add(made.scope.subgraph)
    # A subgraph is numbered after all that call it.
    for number in reversed(range(len(found))):
        found[number].update(*(found[callee] for callee in callees[number]))
    return [list(parameters), *([each for each in parameters if each in read] for read in found[1:])]


class _FunctionBody:
    """The state of emitting one function: what has a value so far, and the indices of each scope."""

    def __init__(
        self,
        functions: SubgraphFunctions,
        subgraph: Subgraph,
        tensors: Mapping[ir.Value, ir.Value],
        indices: Values,
        injected: Mapping[ir.Value, ir.Value],
    ):
        self.functions = functions
        self.injected = injected
        self.partition = functions.partition
        self.subgraph = subgraph
        self.tensors = tensors
        self.indices: dict[Scope, Values] = {subgraph.scope: indices}
        self.values: dict[int, Values] = {}
        self.reads: dict[tuple[object, Scope], Values] = {}

    def values_of(self, roots: Sequence[ir.Value]) -> Values:
        """Emit the roots at the function's indices and return their scalars."""
        return [self._evaluate(value, self.subgraph.scope) for value in roots]

    def _evaluate(self, value: ir.Value, scope: Scope) -> ir.Value:
        """Emit what ``value`` needs, then return it at ``scope``, whose indices are known."""
        node = self._local_node(value, scope)
        if node is not None:
            self._emit(node.number)
        return self._read(value, scope)

    def _local_node(self, value: ir.Value, scope: Scope) -> Node | None:
        """Return the node that makes ``value`` if this function emits it for ``scope``."""
        producer = self.partition.producer.get(value)
        if producer is None or self.partition.is_injected(value, scope):
            return None
        node = self.partition.nodes[producer[0]]
        return None if node.is_free or node.scope.subgraph != self.subgraph.number else node

    def _emit(self, target: int) -> None:
        """Emit a node after all it reads. Each frame is a node and the number of its next read."""
        stack = [[target, 0]]
        while stack:
            number, position = stack[-1]
            node = self.partition.nodes[number]
            if number in self.values:
                stack.pop()
            elif position == len(node.reads.accesses):
                with node.op.location:
                    self.values[number] = self._build(node)
                stack.pop()
            else:
                stack[-1][1] += 1
                if not node.reads.deferred[position]:
                    scope = self.partition.scope_of[number, position]
                    with node.op.location:
                        self._open(scope)
                    operand = self._local_node(node.operand(position), scope)
                    if operand is not None:
                        stack.append([operand.number, 0])

    def _open(self, scope: Scope) -> None:
        """Compute the indices of ``scope`` from those of the scope that its first reader is in."""
        closed: list[Scope] = []
        while scope not in self.indices:
            assert scope.parent is not None
            closed.append(scope)
            scope = scope.parent
        for each in reversed(closed):
            if each.reader < 0:
                self.indices[each] = [constant(ir.IndexType.get(), 0) for _ in range(each.rank)]
                continue
            node = self.partition.nodes[each.reader]
            self.indices[each] = apply_map(node.reads.accesses[each.access].map, self._variables(node, each.access))

    def _variables(self, node: Node, position: int) -> Values:
        """Return the values of the dimensions of a read's map: the node's indices, then the runtime indices."""
        runtime = []
        for index in node.reads.accesses[position].runtime:
            operand = node.operand(index.access)
            value = self._read(operand, self.partition.scope_of[node.number, index.access])
            runtime.append(clamped_index(value, dtype_of(operand), index.clamp))
        return [*self.indices[node.scope], *runtime]

    def _read(self, value: ir.Value, scope: Scope) -> ir.Value:
        """Return ``value`` at ``scope``: an element of a parameter, a constant, a local value or another's call."""
        if self.partition.is_injected(value, scope):
            return self.injected[value]
        producer = self.partition.producer.get(value)
        if producer is None:
            if (value, scope) not in self.reads:
                self.reads[value, scope] = [self._extract(self.tensors[value], scope)]
            return self.reads[value, scope][0]
        node = self.partition.nodes[producer[0]]
        if node.is_free:
            return emit_constant(node.op, self.indices[scope])
        if node.scope.subgraph == self.subgraph.number:
            return self.values[node.number][producer[1]]
        callee = self.partition.subgraphs[node.scope.subgraph]
        if (callee.number, scope) not in self.reads:
            tensors = [self.tensors[parameter] for parameter in self.functions.parameters[callee.number]]
            self.reads[callee.number, scope] = PureCallOp.build(
                self.functions.names[callee.number],
                [*tensors, *self.indices[scope]],
                self.functions.result_types(callee),
            )
        return self.reads[callee.number, scope][self.functions.position[value]]

    def _extract(self, tensor: ir.Value, scope: Scope) -> ir.Value:
        element = element_of(tensor)
        operands = [tensor, *self.indices[scope]]
        return ir.Operation.create("tensor.extract", results=[element], operands=operands).results[0]

    def _operand(self, node: Node, position: int) -> ir.Value:
        """Return the value of a read whose scope is open."""
        return self._read(node.operand(position), self.partition.scope_of[node.number, position])

    def _build(self, node: Node) -> Values:
        if node.reads.kind == "generator":
            return [emit_iota(node.op, self.indices[node.scope])]
        if node.reads.kind == "elementwise":
            operands = tuple(self._operand(node, position) for position in range(len(node.reads.accesses)))
            if node.op.regions:
                return emit_combiner(node.op.regions[0].blocks[0], operands)
            return [build_scalar(ScalarOp(node.op, operands, tuple(self.indices[node.scope])))]
        if node.reads.kind == "indexing":
            return [self._operand(node, len(node.reads.accesses) - 1)]
        if node.reads.kind in ("reduce", "contract"):
            return self._build_loop(node)
        pieces = [i for i in range(len(node.reads.accesses)) if node.reads.deferred[i]]
        return [self._build_pieces(node, pieces)]

    def _build_pieces(self, node: Node, pieces: list[int]) -> ir.Value:
        """Emit the choice between reads, the first whose map's constraints hold; the last needs no test."""
        if len(pieces) == 1:
            position = pieces[0]
            scope = self.partition.scope_of[node.number, position]
            self._open(scope)
            return self._evaluate(node.operand(position), scope)
        first, rest = _split(node, pieces)
        test = _test_of(node, first)
        condition = InDomainOp.build(test, self._variables(node, first[0]))
        return if_else(
            condition,
            [scalar_type(dtype_of(node.op.results[0]))],
            lambda: [self._build_pieces(node, first)],
            lambda: [self._build_pieces(node, rest)],
        )[0]

    def _build_loop(self, node: Node) -> Values:
        """Emit a loop over what is read along symbols."""
        reads = [position for position in range(len(node.reads.accesses)) if node.reads.deferred[position]]
        initial = [self._operand(node, position) for position in range(len(reads), len(node.reads.accesses))]
        accumulation = accumulation_of(node.op)
        scopes = list(dict.fromkeys(self.partition.scope_of[node.number, position] for position in reads))
        maps = [node.reads.accesses[scope.access].map for scope in scopes]
        map_ = replace(maps[0], results=tuple(result for each in maps for result in each.results))
        loop = LoopOp.build(map_, self.indices[node.scope], accumulation.emit_start(initial))
        indices = iter(loop.result_arguments)
        for scope, each in zip(scopes, maps, strict=True):
            self.indices[scope] = list(itertools.islice(indices, len(each.results)))
        with ir.InsertionPoint(loop.body):
            elements = [
                self._evaluate(
                    node.operand(position),
                    self.partition.scope_of[node.number, position],
                )
                for position in reads
            ]
            YieldOp.build(accumulation.emit_step(loop.carried_arguments, elements))
        if node.op.name == "stablehlo.reduce_window" and _is_predicated(loop):
            loop.operation.attributes[UNROLL] = ir.StringAttr.get(FULL)
        return accumulation.emit_end(list(loop.operation.results))


def _is_predicated(loop: LoopOp) -> bool:
    """Whether the points of a loop are written out, and a check of one makes no branch."""
    operations = count_ops(loop.operation) - 1
    points = math.prod(interval.size for interval in loop.map.symbols)
    is_short = operations <= _PREDICATED_OPERATIONS and points * operations <= UNROLLED_OPERATIONS
    return is_short and not walk(loop.operation, PureCallOp.OPERATION_NAME)


def _band(access: Access) -> tuple[AffineExpr, Interval] | None:
    """Return the expression without its constant, and the interval it must lie in, if there is just one."""
    if len(access.map.constraints) != 1:
        return None
    expression, interval = access.map.constraints[0]
    return expression - expression.constant, interval - expression.constant


def _split(node: Node, pieces: list[int]) -> tuple[list[int], list[int]]:
    """Split the pieces in two to test between: in halves if they lie along one expression in order, else the first."""
    bands = [band for i in pieces if (band := _band(node.reads.accesses[i])) is not None]
    ordered = len(bands) == len(pieces) and all(
        left[0] == right[0] and left[1].upper < right[1].lower for left, right in itertools.pairwise(bands)
    )
    middle = len(pieces) // 2 if ordered else 1
    return pieces[:middle], pieces[middle:]


def _test_of(node: Node, pieces: list[int]) -> IndexingMap:
    """Return a map without results whose constraints hold where one of ``pieces`` is read."""
    map_ = node.reads.accesses[pieces[0]].map
    constraints = map_.constraints
    if len(pieces) > 1:
        # The first or the last may be empty, so the union of these two is not that of all.
        bands = [band for i in pieces if (band := _band(node.reads.accesses[i])) is not None]
        constraints = ((bands[0][0], functools.reduce(Interval.union, (interval for _, interval in bands))),)
    return IndexingMap(map_.dims, map_.symbols, (), constraints)
