"""The values in the body of a loop that are the same in each iteration, and those that pay to be computed before it."""

from collections.abc import Iterator

from xgpu import ir
from xgpu.analysis.control_flow import CONTROL_FLOW
from xgpu.analysis.heroes import is_hero
from xgpu.costs.recomputation import MOST_VISITED
from xgpu.costs.time import bytes_per_instruction
from xgpu.costs.values import byte_size, element_work, elements, instructions
from xgpu.device import Device
from xgpu.dialects.attributes import PRODUCT as PRODUCT_MARK
from xgpu.fusion.fallback import CONTRACTIONS, VIEWS, fallback_reason, is_cast_for
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.hlo_maps import access_kind
from xgpu.structure import body_of, captured, defining_op, producer, terminator_of, users_of

_RETURN = "stablehlo.return"
_LIBRARY = ("stablehlo.cholesky", "stablehlo.fft", "stablehlo.sort", "stablehlo.triangular_solve", "chlo.top_k")
"""Operations beside those of kernels that have the same results each time, and take long."""


def values_before(loop: ir.Operation, target: Device) -> list[ir.Value]:
    """Return the values of the body of ``loop`` to compute before it: the same each time, and read by what changes.

    They follow from reductions, products and what libraries compute; or a library takes them as operands, which each
    iteration would store again. Each has no more bytes than what the loop no longer reads for it. Of one that has more,
    as a broadcast has, what it is computed from is returned. A product that threads compute where they need it is such
    a one, unless that takes them longer than to read it.
    """
    return list(_Invariants(loop, target).before())


class _Invariants:
    """The invariant values of a loop: constants, what is from around it, states that stay, and what follows."""

    def __init__(self, loop: ir.Operation, target: Device):
        self._target = target
        body = body_of(loop, 1)
        ends = terminator_of(body).operands
        changing: set[ir.Value] = {state for state, end in zip(body.arguments, ends, strict=True) if end != state}
        self._is_long: dict[ir.Value, bool] = {}
        """The invariant values that operations make, and whether one that takes long is among these."""
        self._read: dict[ir.Value, None] = {}
        """The values that changing operations read."""
        self._operands: dict[ir.Value, None] = {}
        """The values that libraries read, behind views."""
        self._waiting: set[ir.Value] = set()
        """The changing values of kernels that run after others, or that are built around something."""
        invariant: list[ir.Operation] = []
        for op in (view.operation for view in list(body.operations)[:-1]):
            read = [*op.operands, *captured(op)]
            if _repeats(op) and changing.isdisjoint(read):
                invariant.append(op)
                continue
            changing |= set(op.results)
            self._read |= dict.fromkeys(read)
            if _is_built_around(op) or op.name in CONTROL_FLOW or not self._waiting.isdisjoint(read):
                self._waiting |= set(op.results)
            if op.name in CONTRACTIONS and fallback_reason(op) is not None:
                self._operands |= dict.fromkeys(_behind_views(value, op) for value in op.operands)
        for op in invariant:
            read = [*op.operands, *captured(op)]
            is_long = self._takes_long(op) or any(self._is_long.get(value, False) for value in read)
            self._is_long |= dict.fromkeys(op.results, is_long)

    def before(self) -> Iterator[ir.Value]:
        """Yield the values to compute before the loop, each once."""
        pending = [value for value in self._read if self._is_long.get(value)]
        pending += [value for value in self._operands if value in self._is_long and self._is_work(value)]
        seen = set(pending)
        while pending:
            value = pending.pop()
            if self._saves_reads(value) or (value in self._operands and is_hero(producer(value))):
                yield value
                continue
            op = producer(value)
            more = [each for each in (*op.operands, *captured(op)) if self._is_long.get(each) and each not in seen]
            seen.update(more)
            pending += more

    def _is_work(self, value: ir.Value) -> bool:
        return bool(element_work(producer(value), instructions))

    def _takes_long(self, op: ir.Operation) -> bool:
        """Whether a kernel is built around an operation, or a library computes it, or threads better read it.

        A loop that would have no other such operation may be one kernel, whose threads read it once.
        """
        is_library = op.name not in CONTRACTIONS or PRODUCT_MARK in op.attributes or fallback_reason(op) is not None
        if is_library or not self._waiting or not self._is_made_beside(op.results[0]):
            return _is_built_around(op)
        (result,) = op.results
        repeated = element_work(op, instructions) * elements(result) * bytes_per_instruction(self._target)
        return byte_size(result) <= sum(map(byte_size, op.operands)) + repeated

    def _is_made_beside(self, product: ir.Value) -> bool:
        """Whether the threads that compute a product compute next states of it, or what a library reads."""
        pending, seen = [product], {product}
        while pending:
            for user in users_of(pending.pop()):
                if user.name == _RETURN or fallback_reason(user) is not None:
                    continue
                if access_kind(user) != "elementwise" or not self._waiting.isdisjoint(user.operands):
                    return False
                pending += {*user.results} - seen
                seen.update(user.results)
        return True

    def _saves_reads(self, value: ir.Value) -> bool:
        """Whether the loop reads no more bytes where it reads this value, in place of what it is computed from."""
        if self._takes_long(producer(value)):
            return True
        sources, seen, pending = set[ir.Value](), {value}, [value]
        while pending:
            if len(seen) > MOST_VISITED:
                return False
            each = pending.pop()
            if each in self._is_long and (each == value or not self._takes_long(producer(each))):
                op = producer(each)
                read = {*op.operands, *captured(op)} - seen
                seen |= read
                pending += read
            else:
                sources.add(each)
        return byte_size(value) <= sum(byte_size(each) for each in sources if each not in self._read)


def _is_built_around(op: ir.Operation) -> bool:
    """Whether a kernel is built around an operation, or a library computes it."""
    return is_hero(op) or op.name in _LIBRARY


def _behind_views(value: ir.Value, reader: ir.Operation) -> ir.Value:
    """Return what a library reads for an operand: it turns, reshapes and widens that itself."""
    while (op := defining_op(value)) is not None and len(op.operands):
        if not (op.name in VIEWS or is_cast_for(op, reader.name)):
            break
        value = op.operands[0]
    return value


def _repeats(op: ir.Operation) -> bool:
    """Whether an operation has the same results each time that it is given the same operands."""
    return op.name in OPERATIONS or op.name in _LIBRARY or op.name == "stablehlo.constant"
