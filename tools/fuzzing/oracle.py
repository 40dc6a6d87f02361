"""The oracle: what XLA for the CPU makes of a graph's own text, to which nothing of xgpu's has been done.

One thing must be said otherwise, and is said in the graph. StableHLO lets a compiler take in what a reduction starts
from any number of times; XLA takes it in never, once or for each part that it reduces. So the graph for XLA takes it
in by an operation of its own after the reduction, which starts from what changes nothing.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from xgpu.dtypes import DType
from xgpu.frontend.mlir_text import parse_module
from xgpu.runtime.reference import Reference
from xgpu.tools.fuzzing.facts import Facts
from xgpu.tools.fuzzing.graph import Graph, Node, Value
from xgpu.tools.fuzzing.ops import TensorType

_IDENTITIES = {"add": 0, "multiply": 1, "xor": 0}
"""Identity elements of the non-idempotent combiners."""
_IDEMPOTENT = frozenset(("and", "maximum", "minimum", "or"))
"""Combiners of which a reduction may start from anything that is taken in after it too."""


def expected(graph: Graph) -> list[np.ndarray[Any, Any]]:
    """Return the graph's results on its own arguments."""
    text = f"module @graph {{\n{with_initial_values_after(graph).text()}}}\n"
    reference = Reference(parse_module(text, "<graph>"), as_given=True)
    return reference([graph.elements(value) for value in graph.arguments])


def with_initial_values_after(graph: Graph) -> Graph:
    """Return a graph of the same results, whatever number of times a reduction takes in what it starts from.

    Reductions to an argmax stay: they start from what is taken in any number of times.
    """
    nodes, values = [], dict(graph.values)
    numbers = itertools.count(max(values) + 1)
    for node in graph.nodes:
        if node.op == "reduce" and node.params["combiners"] != ("argmax",):
            nodes += _taken_in_after(node, values, numbers)
        else:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes), values=values)


def _taken_in_after(node: Node, values: dict[int, Value], numbers: Iterator[int]) -> list[Node]:
    """Return the nodes that make the results of a reduction; their other values are added to ``values``."""

    def new(type_: TensorType, facts: Facts) -> int:
        number = next(numbers)
        values[number] = Value(type_, facts)
        return number

    count = len(node.results)
    starts, before, after = list(node.operands[count:]), [], []
    reduced = tuple(new(values[result].type, values[result].facts) for result in node.results)
    for i, (result, name) in enumerate(zip(node.results, node.params["combiners"], strict=True)):
        given, shape = starts[i], values[result].type.shape
        if name not in _IDEMPOTENT:
            starts[i] = new(values[given].type, _exactly(values[given].type.dtype, _IDENTITIES[name]))
            before.append(Node("constant", (), {}, (starts[i],)))
        wide = new(values[result].type, values[given].facts)
        after.append(Node("broadcast_in_dim", (given,), {"shape": shape, "dims": ()}, (wide,)))
        after.append(Node(name, (wide, reduced[i]), {}, (result,)))
    return [*before, replace(node, operands=(*node.operands[:count], *starts), results=reduced), *after]


def _exactly(dtype: DType, number: int) -> Facts:
    return Facts(number, number, grid=0, nonzero=number != 0) if dtype.is_float else Facts(number, number)
