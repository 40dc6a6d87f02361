"""A graph as the body of a loop, whose states it updates: a kernel may overwrite a state that it reads."""

from dataclasses import replace

import numpy as np

from xgpu.tools.fuzzing.graph import Graph, Node
from xgpu.tools.fuzzing.ops import TensorType

_STATES = 2
"""States of a type, at most."""


def as_step(graph: Graph) -> Graph | None:
    """Return the graph with states as its first arguments, and their next values as outputs.

    States are values of a type that several have: the first of them, as if another program had computed them, with the
    last as their next values. None if no arrays are of one type.
    """
    by_type: dict[TensorType, list[int]] = {}
    kept = graph.places_in_order()
    for node in graph.nodes:
        for value in set(node.results) - kept:
            by_type.setdefault(graph.values[value].type, []).append(value)
    states, outputs = list[int](), list[int]()
    for type_, values in by_type.items():
        count = min(_STATES, len(values) // 2) if type_.size > 1 else 0
        states += values[:count]
        outputs += values[len(values) - count :]
    if not states:
        return None
    cut = [node for node in graph.nodes if not set(states) & set(node.results)]
    arguments = [_argument(value) for value in states]
    others = [
        _argument(value) for node in graph.nodes if node not in cut for value in node.results if value not in states
    ]
    return replace(graph, nodes=(*arguments, *others, *cut), outputs=tuple(outputs))


def _argument(value: int) -> Node:
    return Node("argument", (), {}, (value,))


def looped_text(step: Graph) -> str:
    """Return a program that takes a step, in a loop whose end only its last argument tells.

    So results are those of the step, whatever is known of its arguments alone.
    """
    states = step.arguments[: len(step.outputs)]
    parameters = ", ".join(
        f"%{'first_' if value in states else ''}{value}: {step.values[value].type}" for value in step.arguments
    )
    types = step.types(step.outputs)
    arguments = ", ".join(f"%{{0}}{value}: {step.values[value].type}" for value in states)
    first = ", ".join(f"%first_{value}" for value in states)
    *body, last = step.lines("stablehlo.return")
    outputs = last.split(" : ")[0].removeprefix("  stablehlo.return ")
    return "\n".join(
        [
            f"func.func @main({parameters}, %end: tensor<i32>) -> ({types}) {{",
            "  %start = stablehlo.constant dense<0> : tensor<i32>",
            f'  %results:{len(states) + 1} = "stablehlo.while"(%start, {first}) ({{',
            f"  ^bb0(%count: tensor<i32>, {arguments.format('unused_')}):",
            "  %goes_on = stablehlo.compare LT, %count, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>",
            "  stablehlo.return %goes_on : tensor<i1>",
            "  }, {",
            f"  ^bb0(%count: tensor<i32>, {arguments.format('')}):",
            *body,
            "  %one = stablehlo.constant dense<1> : tensor<i32>",
            "  %next = stablehlo.add %count, %one : tensor<i32>",
            f"  stablehlo.return %next, {outputs} : tensor<i32>, {types}",
            f"  }}) : (tensor<i32>, {types}) -> (tensor<i32>, {types})",
            f"  return {', '.join(f'%results#{number + 1}' for number in range(len(states)))} : {types}",
            "}",
            "",
        ]
    )


_OF_FACTS = frozenset(("argmax", "bitcast_convert", "divide", "popcnt", "power", "remainder"))
"""Operations, and combiners, of whole numbers that are the same everywhere only for what is known of their operands."""


def may_repeat(step: Graph) -> bool:
    """Whether a step's results are the same everywhere whatever its states are: of whole numbers, which all may be."""
    states = step.arguments[: len(step.outputs)]
    needed, dependent = step.pruned(), set(states)
    if not all(step.values[value].type.dtype.is_integer for value in states):
        return False
    for node in needed.nodes:
        if not dependent.intersection(node.operands):
            continue
        dependent.update(node.results)
        names = {node.op, *node.params.get("combiners", ())}
        if names & _OF_FACTS or not all(step.values[value].type.dtype.is_integer for value in node.results):
            return False
    return True


def last_argument(steps: int) -> np.ndarray[tuple[()], np.dtype[np.int32]]:
    """Return what ends the loop after so many steps."""
    return np.array(steps, np.int32)
