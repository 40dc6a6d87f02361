"""A compiled program as launches, loops and choices, also where views of values are left to XLA, which it needs not."""

import math
from collections.abc import Iterator
from typing import Any

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast
from xgpu.analysis.constants.counters import unchanging
from xgpu.analysis.control_flow import CONTROL_FLOW
from xgpu.dialects.attributes import COUNTED, FALLBACK, HOST, TRIPS
from xgpu.dtypes import dtype_of_element
from xgpu.errors import Unsupported
from xgpu.frontend.signature import ArgumentSpec
from xgpu.fusion.fallback import BARRIER, fallback_reason
from xgpu.fusion.loops.rotation import is_rotated
from xgpu.hlo.source_location import source_of
from xgpu.interface.api import Compiled
from xgpu.packaging.flow import Branching, Flow, Move, Node, Repeating, launched
from xgpu.structure import body_of, is_argument, is_result_of, producer, terminator_of

_CALL, _LOOP = "func.call", "stablehlo.while"
_ENDS = ("func.return", "stablehlo.return")


def flow_of(program: Compiled) -> Flow:
    """Return what a program does; raises Unsupported, naming what needs XLA, if kernels do not make all of it."""
    arguments = len(program.arguments)
    if program.main is None:
        nodes = [node for each in program.launches for node in launched(each.kernel, each.inputs, each.outputs)]
        return Flow(program.kernels, arguments, program.values, tuple(nodes), program.result_values)
    (main,) = (op.operation for op in program.main.body.operations if _name(op.operation) == "main")
    block = body_of(main)
    if left := list(_left(block)):
        # Others come along with these.
        needed = [op for op in left if fallback_reason(op) is not None] or left
        lines = "\n".join(dict.fromkeys(map(_described, needed)))
        raise Unsupported(f"{program.source.name}: a package has kernels alone, and XLA is needed for\n{lines}")
    reader = _Reader(program)
    for argument in block.arguments:
        reader.add(argument)
    nodes = list(reader.read(block))
    results = tuple(reader.numbers.get(value) for value in terminator_of(block).operands)
    return Flow(program.kernels, arguments, tuple(reader.specs), tuple(nodes), results)


def _name(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _operations(block: ir.Block) -> Iterator[ir.Operation]:
    return (op.operation for op in block.operations)


def _left(block: ir.Block) -> Iterator[ir.Operation]:
    """Yield the operations that neither kernels nor the host do, also in the blocks that the host runs."""
    for op in _operations(block):
        if _is_run_by_host(op):
            for region in list(op.regions)[op.name == _LOOP :]:
                yield from _left(region.blocks[0])
        elif not _is_free(op):
            yield op


def _is_run_by_host(op: ir.Operation) -> bool:
    """Whether the host runs a loop or branch: of a loop it knows the length, or reads it or the condition."""
    if HOST not in op.attributes:
        return False
    if op.name != _LOOP or TRIPS in op.attributes or is_rotated(op):
        return True
    condition, body = (body_of(op, number) for number in (0, 1))
    (goes_on,) = terminator_of(condition).operands
    if not is_result_of(goes_on, "stablehlo.compare"):
        return False
    counter, count = producer(goes_on).operands
    if not (is_argument(counter) and is_argument(count) and counter.owner == count.owner == condition):
        return False
    next_ = terminator_of(body).operands[ir.BlockArgument(counter).arg_number]
    return not is_argument(next_) and _is_counting(producer(next_)) and unchanging(count, op) != count


def _is_free(op: ir.Operation) -> bool:
    """Whether an operation between launches needs nothing done."""
    if op.name in (_CALL, *_ENDS, BARRIER) or is_bitcast(op) or _is_counting(op):
        return True
    return len(op.results) > 0 and not any(map(_has_elements, op.results))


def _is_counting(op: ir.Operation) -> bool:
    return FALLBACK in op.attributes and ir.StringAttr(op.attributes[FALLBACK]).value == COUNTED


def _has_elements(value: ir.Value) -> bool:
    return math.prod(ir.RankedTensorType(value.type).shape) > 0


def _described(op: ir.Operation) -> str:
    place = source_of(op)
    types = ", ".join(str(result.type) for result in op.results)
    at = "" if place is None else f" ({place})"
    why = fallback_reason(op) or "XLA does it together with what it reads"
    if op.name in CONTROL_FLOW:
        why = "control flow that was planned for XLA to run"
    return f"  {op.name} of type {types}{at}: {why}"


class _Reader:
    """Numbers values, and reads blocks as nodes; views have the number of what they view."""

    def __init__(self, program: Compiled):
        self._kernels = {kernel.name: kernel for kernel in program.kernels}
        self.numbers: dict[ir.Value, int] = {}
        self.specs: list[ArgumentSpec] = []

    def add(self, value: ir.Value) -> int:
        """Give a value a number of its own."""
        type_: Any = ir.RankedTensorType(value.type)
        spec = ArgumentSpec(f"value{len(self.specs)}", tuple(type_.shape), dtype_of_element(type_.element_type))
        self.numbers[value] = len(self.specs)
        self.specs.append(spec)
        return self.numbers[value]

    def _number(self, value: ir.Value) -> int:
        return self.numbers[value] if value in self.numbers else self.add(value)

    def read(self, block: ir.Block) -> Iterator[Node]:
        """Yield the nodes of a block whose arguments have numbers."""
        for op in _operations(block):
            if op.name == _CALL:
                kernel = self._kernels[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
                inputs = tuple(map(self._number, op.operands))
                yield from launched(kernel, inputs, tuple(map(self.add, op.results)))
            elif op.name == BARRIER or is_bitcast(op):
                pairs = zip(op.results, op.operands, strict=False)
                self.numbers |= {result: self.numbers[given] for result, given in pairs if given in self.numbers}
            elif HOST in op.attributes:
                yield from self._read_loop(op) if op.name == _LOOP else self._read_choice(op)

    def _read_loop(self, op: ir.Operation) -> Iterator[Node]:
        """Yield a loop after the move of its first state; what it never changes has the number from before it."""
        condition, body = (body_of(op, number) for number in (0, 1))
        ends = list(terminator_of(body).operands)
        changing: list[tuple[int, int, ir.Value]] = []
        for position, (start, argument, end) in enumerate(zip(op.operands, body.arguments, ends, strict=True)):
            # The host's own counter has no number, and what has no elements no need of one.
            if start not in self.numbers or not _has_elements(start):
                continue
            if end == argument:
                self.numbers[argument] = self.numbers[start]
            else:
                changing.append((self.add(argument), self.numbers[start], end))
            for same in (condition.arguments[position], op.results[position]):
                self.numbers[same] = self.numbers[argument]
        inside = list(self.read(body))
        inside.append(Move(tuple((state, self.numbers[end]) for state, _, end in changing)))
        trips = ir.IntegerAttr(op.attributes[TRIPS]).value if TRIPS in op.attributes else None
        yield Move(tuple((state, start) for state, start, _ in changing))
        (goes_on,) = terminator_of(condition).operands
        if trips is not None:
            yield Repeating(tuple(inside), trips, None)
        elif is_argument(goes_on):
            yield Repeating(tuple(inside), None, self.numbers[goes_on])
        else:
            # The host's counter is compared with what it counts to, which the loop does not change.
            _, count = producer(goes_on).operands
            yield Repeating(tuple(inside), None, None, self.numbers[count])

    def _read_choice(self, op: ir.Operation) -> Iterator[Node]:
        """Yield a choice, each of whose branches ends with the move of its results."""
        blocks = [region.blocks[0] for region in op.regions]
        branches = [list(self.read(block)) for block in blocks]
        results = [(position, self.add(each)) for position, each in enumerate(op.results) if _has_elements(each)]
        for block, branch in zip(blocks, branches, strict=True):
            ends = list(terminator_of(block).operands)
            branch.append(Move(tuple((number, self.numbers[ends[position]]) for position, number in results)))
        (index,) = op.operands
        yield Branching(tuple(map(tuple, branches)), self.numbers[index], op.name == "stablehlo.if")
