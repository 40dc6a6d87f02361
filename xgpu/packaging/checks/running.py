"""Runs a program of launches, loops and choices on the host, with every access of its kernels checked."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xgpu.packaging.flow import Branching, Flow, Move, Node, Repeating
from xgpu.runtime.host_program import HostLaunches, buffer

type Array = np.ndarray[Any, Any]

MOST_TRIPS = 16
"""Iterations of a loop that are run: on random arguments one that values end may never end, and others be long."""


def run_checked(flow: Flow, arrays: Sequence[Array]) -> bool:
    """Run a program on one array per argument; raises `KernelFault` for a fault.

    All kernels run: also those of branches that are not chosen, and of loops that end at once, whose results are then
    not used. Loops run `MOST_TRIPS` times at most. Returns whether any was cut short.
    """
    runner = _Runner(flow, arrays)
    runner.run(flow.nodes)
    return runner.is_cut


class _Runner:
    def __init__(self, flow: Flow, arrays: Sequence[Array]):
        self._flow = flow
        self._kernels = HostLaunches(sanitize=True)
        self._values = {number: buffer(array) for number, array in enumerate(arrays)}
        self._tried = set[tuple[Node, int]]()
        self.is_cut = False

    def run(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, Move):
                self._values |= {target: self._values[source] for target, source in node.pairs}
            elif isinstance(node, Repeating):
                self._run_loop(node)
            elif isinstance(node, Branching):
                self._run_choice(node)
            else:
                specs = [self._flow.values[number] for number in node.outputs]
                inputs = [self._values[number] for number in node.inputs]
                written = self._kernels.get(node.kernel, specs).run(inputs)
                self._values.update(zip(node.outputs, written, strict=True))

    def _try(self, node: Node, number: int, nodes: Sequence[Node]) -> None:
        """Run a part of a node that is not to be run, if it has never been: it leaves no trace."""
        if (node, number) not in self._tried:
            self._tried.add((node, number))
            before = dict(self._values)
            self.run(nodes)
            self._values = before

    def _run_loop(self, loop: Repeating) -> None:
        trip, trips = 0, loop.trips or 0
        if loop.count is not None:
            trips = int(self._values[loop.count].reshape(())[()])
        while self._truth(loop.condition) if loop.condition is not None else trip < trips:
            if trip == MOST_TRIPS:
                self.is_cut = True
                return
            self._tried.add((loop, 0))
            self.run(loop.body)
            trip += 1
        self._try(loop, 0, loop.body)

    def _run_choice(self, choice: Branching) -> None:
        last = len(choice.branches) - 1
        if choice.is_truth:
            chosen = 0 if self._truth(choice.index) else 1
        else:
            given = int(self._values[choice.index].reshape(())[()])
            chosen = given if 0 <= given <= last else last
        for number, branch in enumerate(choice.branches):
            if number != chosen:
                self._try(choice, number, branch)
        self._tried.add((choice, chosen))
        self.run(choice.branches[chosen])

    def _truth(self, variable: int) -> bool:
        return bool(self._values[variable].reshape(())[()])
