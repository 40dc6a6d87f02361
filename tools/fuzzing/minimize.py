"""Makes a failing graph small: fewer outputs and operations, smaller shapes, the same kind of failure."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from xgpu.tools.fuzzing.check import Variant
from xgpu.tools.fuzzing.graph import Graph, Node
from xgpu.tools.fuzzing.ops import Invalid

Fails = Callable[[Graph, Variant], bool]
"""Whether a graph still fails in the way that is being looked for."""


def minimize(graph: Graph, variant: Variant, fails: Fails, seconds: float) -> tuple[Graph, Variant]:
    """Return a smaller graph that still fails, after at most ``seconds``, and the plainest variant that shows it."""
    limit = time.monotonic() + seconds
    for plainer in _plainer(variant):
        if fails(graph, plainer):
            variant = plainer
            break
    shrunk = True
    while shrunk:
        shrunk = False
        for candidate in _candidates(graph):
            if time.monotonic() > limit:
                return graph, variant
            if fails(candidate, variant):
                graph, shrunk = candidate, True
                break
    return graph, variant


def _plainer(variant: Variant) -> Iterator[Variant]:
    yield Variant()
    yield Variant(looped=variant.looped, idle=variant.idle)
    yield Variant(variant.target, looped=variant.looped, idle=variant.idle)
    yield replace(Variant(), products=variant.products, control_flow=variant.control_flow)
    yield replace(variant, products=Variant.products, control_flow=Variant.control_flow)
    yield replace(variant, opt_level=Variant.opt_level, deterministic=Variant.deterministic)
    yield replace(variant, threads_per_block=128, max_elements_per_thread=None)
    yield replace(variant, max_elements_per_thread=None)


def _candidates(graph: Graph) -> Iterator[Graph]:
    """Smaller graphs, the most promising first."""
    yield from _fewer_outputs(graph)
    yield from _cut(graph)
    yield from _bypassed(graph)
    yield from _smaller(graph)
    yield from _splat(graph)


def _fewer_outputs(graph: Graph) -> Iterator[Graph]:
    if len(graph.outputs) > 1:
        for output in graph.outputs:
            yield replace(graph, outputs=(output,)).pruned()
        for i in range(len(graph.outputs)):
            yield replace(graph, outputs=graph.outputs[:i] + graph.outputs[i + 1 :]).pruned()
    # An operand of an output in its place: the failure may be there already.
    for i, output in enumerate(graph.outputs):
        producer = next(node for node in graph.nodes if output in node.results)
        for operand in producer.operands:
            yield replace(graph, outputs=(*graph.outputs[:i], operand, *graph.outputs[i + 1 :])).pruned()


def _cut(graph: Graph) -> Iterator[Graph]:
    """Replace operations by arguments of which the same is known, those with the most before them first."""
    found, kept = [], graph.places_in_order()
    for position, node in enumerate(graph.nodes):
        if node.op == "argument" or kept.intersection(node.results):
            continue
        arguments = [_argument(graph, value) for value in node.results]
        nodes = (*graph.nodes[:position], *arguments, *graph.nodes[position + 1 :])
        if not set(node.results) & set(graph.outputs):
            found.append(replace(graph, nodes=nodes).pruned())
    yield from sorted(found, key=_operations)


def _operations(graph: Graph) -> int:
    return sum(node.op != "argument" for node in graph.nodes)


def _argument(graph: Graph, value: int) -> Node:
    type_ = graph.values[value].type
    return Node("argument", (), {"dtype": type_.dtype, "shape": type_.shape}, (value,))


def _bypassed(graph: Graph) -> Iterator[Graph]:
    """Replace an operation's result by one of its operands of the same type and no worse facts."""
    kept = graph.places_in_order()
    for node in graph.nodes:
        for operand in node.operands:
            if kept.intersection(node.results):
                continue
            if len(node.results) == 1 and graph.values[operand].type == graph.values[node.results[0]].type:
                yield _renamed(graph, node.results[0], operand).pruned()


def _renamed(graph: Graph, old: int, new: int) -> Graph:
    nodes = []
    for node in graph.nodes:
        operands = tuple(new if value == old else value for value in node.operands)
        nodes.append(node if old in node.results else replace(node, operands=operands))
    outputs = tuple(new if value == old else value for value in graph.outputs)
    return replace(graph, nodes=tuple(nodes), outputs=outputs)


def _smaller(graph: Graph) -> Iterator[Graph]:
    sizes = sorted({size for node in graph.nodes for size in node.params.get("shape", ())}, reverse=True)
    for size in sizes:
        for smaller in sorted({1, 2, 3, size // 4, size // 2, size - 1}):
            if 0 < smaller < size:
                try:
                    yield graph.resized({size: smaller})
                except Invalid:
                    continue


def _splat(graph: Graph) -> Iterator[Graph]:
    for position, node in enumerate(graph.nodes):
        if node.op == "constant" and not node.params.get("splat"):
            changed = replace(node, params={**node.params, "splat": True})
            yield replace(graph, nodes=(*graph.nodes[:position], changed, *graph.nodes[position + 1 :]))
