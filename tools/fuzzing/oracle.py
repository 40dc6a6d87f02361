"""The oracle: what XLA for the CPU makes of a graph's own text, to which nothing of xgpu's has been done.

Some things must be said otherwise, and are said in the graph. StableHLO lets a compiler take in what a reduction
starts from any number of times; XLA takes it in never, once or for each part that it reduces. So the graph for XLA
takes it in by an operation of its own after the reduction, which starts from what changes nothing. And XLA refuses
reductions of floats of different types together, and fails at windows and scatters of different types, so that each
array there is reduced by itself. And XLA takes the lower bound of a clamp for no larger than the upper one where it
simplifies what follows, so that the graph for it has a maximum and a minimum. And where XLA computes a convolution of
constants itself, sums of integers stay at the largest number instead of wrapping around, as they do in the code that it
compiles: so the graph for it has barriers before convolutions.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from xgpu.dtypes import DType
from xgpu.frontend.mlir_text import parse_module
from xgpu.runtime.reference import Reference
from xgpu.tools.fuzzing.facts import Facts, has_floats
from xgpu.tools.fuzzing.graph import Graph, Node, Value
from xgpu.tools.fuzzing.ops import JOINT, TensorType

_IDENTITIES = {"add": 0, "multiply": 1, "xor": 0}
"""Identity elements of the non-idempotent combiners."""
_IDEMPOTENT = frozenset(("and", "maximum", "minimum", "or"))
"""Combiners of which a reduction may start from anything that is taken in after it too."""


def expected(graph: Graph) -> list[np.ndarray[Any, Any]]:
    """Return the graph's results on its own arguments."""
    return after_steps(graph, 1)


def after_steps(graph: Graph, steps: int) -> list[np.ndarray[Any, Any]]:
    """Return the results after so many steps, each of which takes the results of the one before as first arguments."""
    inputs = [graph.elements(value) for value in graph.arguments]
    count = len(graph.outputs)
    if not steps:
        return inputs[:count]
    text = f"module @graph {{\n{as_xla_means_it(graph).text()}}}\n"
    reference = Reference(parse_module(text, "<graph>"), as_given=True)
    for _ in range(steps - 1):
        inputs = [*reference(inputs), *inputs[count:]]
    return reference(inputs)


def as_xla_means_it(graph: Graph) -> Graph:
    """Return a graph of the same results: reductions have one array and start from what changes nothing, no clamps.

    Reductions of arrays by what is in all of them stay: they start from what may be taken in any number of times, and
    of one type of floats.
    """
    nodes, values = [], dict(graph.values)
    numbers = itertools.count(max(values) + 1)
    for node in graph.nodes:
        if node.params.get("combiners", ("none",))[0] in JOINT:
            nodes.append(node)
        elif node.op == "reduce":
            nodes += _one_by_one(node, values, numbers)
        elif node.op in ("reduce_window", "scatter"):
            nodes += _split(node)
        elif node.op == "clamp":
            nodes += _extrema(node, values, numbers)
        elif node.op == "convolution":
            nodes += _behind_barrier(node, values, numbers)
        else:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes), values=values)


def _split(node: Node) -> list[Node]:
    """Return the nodes that make the results of windows or of a scatter, each from its own arrays."""
    count, made = len(node.results), []
    shared = node.operands[count:-count]
    for i, (result, name) in enumerate(zip(node.results, node.params["combiners"], strict=True)):
        operands = (node.operands[i], *shared, node.operands[len(node.operands) - count + i])
        made.append(replace(node, operands=operands, params={**node.params, "combiners": (name,)}, results=(result,)))
    return made


def _behind_barrier(node: Node, values: dict[int, Value], numbers: Iterator[int]) -> list[Node]:
    """Return a node whose operands are not known to be constants, after a barrier that hands them on."""
    handed = tuple(itertools.islice(numbers, len(node.operands)))
    values.update({new: values[old] for new, old in zip(handed, node.operands, strict=True)})
    return [Node("optimization_barrier", node.operands, {}, handed), replace(node, operands=handed)]


def _extrema(node: Node, values: dict[int, Value], numbers: Iterator[int]) -> list[Node]:
    """Return the nodes that make what a clamp does; their other values are added to ``values``."""
    low, array, high = node.operands
    wide = values[node.results[0]]
    nodes, bounds = [], []
    for bound in (low, high):
        bounds.append(bound)
        if values[bound].type != wide.type:
            bounds[-1] = next(numbers)
            values[bounds[-1]] = Value(wide.type, values[bound].facts)
            params = {"shape": wide.type.shape, "dims": ()}
            nodes.append(Node("broadcast_in_dim", (bound,), params, (bounds[-1],)))
    raised = next(numbers)
    values[raised] = wide
    nodes.append(Node("maximum", (array, bounds[0]), {}, (raised,)))
    return [*nodes, Node("minimum", (raised, bounds[1]), {}, node.results)]


def _one_by_one(node: Node, values: dict[int, Value], numbers: Iterator[int]) -> list[Node]:
    """Return the nodes that make the results of a reduction; their other values are added to ``values``."""

    def new(type_: TensorType, facts: Facts) -> int:
        number = next(numbers)
        values[number] = Value(type_, facts)
        return number

    count, nodes = len(node.results), []
    arrays, starts = node.operands[:count], node.operands[count:]
    for array, given, result, name in zip(arrays, starts, node.results, node.params["combiners"], strict=True):
        type_, start = values[result].type, given
        if name not in _IDEMPOTENT:
            start = new(values[given].type, _exactly(type_.dtype, _IDENTITIES[name]))
            nodes.append(Node("constant", (), {}, (start,)))
        reduced, wide = new(type_, values[result].facts), new(type_, values[given].facts)
        params = {**node.params, "combiners": (name,)}
        nodes.append(replace(node, operands=(array, start), params=params, results=(reduced,)))
        nodes.append(Node("broadcast_in_dim", (given,), {"shape": type_.shape, "dims": ()}, (wide,)))
        nodes.append(Node(name, (wide, reduced), {}, (result,)))
    return nodes


def _exactly(dtype: DType, number: int) -> Facts:
    return Facts(number, number, grid=0, nonzero=number != 0) if has_floats(dtype) else Facts(number, number)
