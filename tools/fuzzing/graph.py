"""Graphs of StableHLO operations as data: nodes, values, and their text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xgpu.tools.fuzzing.facts import Facts, draw
from xgpu.tools.fuzzing.ops import TensorType, attributes_of, dense, infer, name_of
from xgpu.tools.fuzzing.texts.branches import branches_text
from xgpu.tools.fuzzing.texts.regions import region_of
from xgpu.tools.fuzzing.texts.scans import scan_text
from xgpu.tools.fuzzing.texts.solves import factor_text, solution_text
from xgpu.tools.fuzzing.texts.whiles import whiles_text

_TEXTS = {
    "branches": branches_text,
    "factor": factor_text,
    "scan": scan_text,
    "solution": solution_text,
    "whiles": whiles_text,
}
"""The text of what is several operations, or blocks of them."""


@dataclass(frozen=True)
class Value:
    """Type of a value and what is known of its elements."""

    type: TensorType
    facts: Facts


@dataclass(frozen=True)
class Node:
    """An operation, or an argument of the graph. ``operands`` and ``results`` are numbers of values.

    ``op`` is the name without ``stablehlo.``; what ``params`` holds depends on it, see `ops`.
    """

    op: str
    operands: tuple[int, ...]
    params: Mapping[str, Any]
    results: tuple[int, ...]


@dataclass(frozen=True)
class Graph:
    """Nodes in program order. The elements of its arguments and constants follow from ``seed``."""

    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    values: Mapping[int, Value]
    seed: int

    @property
    def arguments(self) -> list[int]:
        """Values that are arguments, in order."""
        return [node.results[0] for node in self.nodes if node.op == "argument"]

    def elements(self, value: int, splat: bool = False) -> np.ndarray[Any, Any]:
        """Return the array of an argument or constant: independent of every other value."""
        of = self.values[value]
        generator = np.random.default_rng((self.seed, value))
        drawn = draw(of.type.dtype, () if splat else of.type.shape, of.facts, generator)
        return np.broadcast_to(drawn, of.type.shape).copy() if splat else drawn

    def pruned(self) -> "Graph":
        """Return the graph without what its outputs do not need."""
        needed, kept = set(self.outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.results):
                needed.update(node.operands)
                kept.append(node)
        return replace(self, nodes=tuple(reversed(kept)))

    def places_in_order(self) -> set[int]:
        """Return the values that indices are made of of which an operation says that they differ or increase."""
        ordered = (node for node in self.nodes if node.params.get("unique") or node.params.get("sorted"))
        needed = {node.operands[1] for node in ordered}
        for node in reversed(self.nodes):
            if needed.intersection(node.results):
                needed.update(node.operands)
        return needed

    def resized(self, sizes: Mapping[int, int]) -> "Graph":
        """Return the graph with sizes of arguments, constants and results replaced; all else follows from them.

        Raises `Invalid` if an operation's operands no longer fit.
        """
        values, nodes = dict(self.values), []
        for node in self.nodes:
            params = dict(node.params)
            if "shape" in params:
                params["shape"] = tuple(sizes.get(size, size) for size in params["shape"])
            types = infer(node.op, params, [values[operand].type for operand in node.operands])
            for result, type_ in zip(node.results, types, strict=True):
                values[result] = replace(values[result], type=type_)
            nodes.append(replace(node, params=params))
        return replace(self, nodes=tuple(nodes), values=values)

    def text(self) -> str:
        """Return the graph as StableHLO text."""
        parameters = ", ".join(f"%{value}: {self.values[value].type}" for value in self.arguments)
        lines = [f"func.func @main({parameters}) -> ({self.types(self.outputs)}) {{"]
        return "\n".join([*lines, *self.lines("return"), "}", ""])

    def lines(self, terminator: str) -> list[str]:
        """Return the lines of its operations, and one that ends a block by returning the outputs."""
        names = {}
        for node in self.nodes:
            for position, value in enumerate(node.results):
                names[value] = f"%{node.results[0]}" + (f"#{position}" if len(node.results) > 1 else "")
        lines = [f"  {self._line(node, names)}" for node in self.nodes if node.op != "argument"]
        outputs = ", ".join(names[value] for value in self.outputs)
        return [*lines, f"  {terminator} {outputs} : {self.types(self.outputs)}"]

    def types(self, values: Sequence[int]) -> str:
        """Return the types of values, separated by commas."""
        return ", ".join(str(self.values[value].type) for value in values)

    def _line(self, node: Node, names: Mapping[int, str]) -> str:
        count = len(node.results)
        results = f"%{node.results[0]}" + (f":{count}" if count > 1 else "")
        operands = ", ".join(names[value] for value in node.operands)
        attributes = attributes_of(node.op, dict(node.params))
        types = [self.values[value].type for value in node.operands]
        if node.op in _TEXTS:
            return _TEXTS[node.op](node.results[0], [names[value] for value in node.operands], types, node.params)
        if node.op == "constant":
            splat = bool(node.params.get("splat"))
            elements = dense(self.elements(node.results[0], splat), splat)
            attributes = f"value = {elements} : {self.types(node.results)}"
        region = region_of(node.op, dict(node.params), types)
        signature = f"({self.types(node.operands)}) -> ({self.types(node.results)})"
        return f'{results} = "{name_of(node.op)}"({operands}){region} {{{attributes}}} : {signature}'
