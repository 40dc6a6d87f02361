"""Initial values of reductions: StableHLO lets a compiler apply one any number of times, xgpu applies it once."""

from collections.abc import Mapping

from xgpu import ir
from xgpu.analysis.combiners import Combiner, combiners
from xgpu.analysis.reduction_shape import REDUCE
from xgpu.hlo.constants import is_number
from xgpu.hlo.stablehlo_builder import Value, broadcast, hlo, shape_of, splat, tensor
from xgpu.structure import copy_module, element_of, producer, walk

_IDENTITIES: Mapping[str, int] = {"add": 0, "multiply": 1, "xor": 0}
"""Identity elements of the non-idempotent combiners."""

_IDEMPOTENT = frozenset(("and", "maximum", "minimum", "or"))
"""Idempotent combiners: an initial value may be applied twice, but not left out."""

_OF_PRED: Mapping[str, str] = {"add": "or", "multiply": "and"}
"""The combiners that these are on pred."""


def start_from_identity(op: ir.Operation) -> None:
    """Start each result with a single combiner from the identity, and combine the initial value afterwards."""
    for number, each in enumerate(combiners(op)):
        name = _name(op, number, each)
        start = _start(op, number)
        if name not in _IDENTITIES or is_number(start, _IDENTITIES[name]):
            continue
        with ir.InsertionPoint(op):
            op.operands[len(op.results) + number] = _scalar(_IDENTITIES[name], element_of(start))
        _combine(op, number, name, start)


def with_initial_values_once(module: ir.Module) -> ir.Module:
    """Return a program whose reductions give the same results if XLA applies initial values any number of times.

    XLA leaves them out of reductions of one element, and applies them to each part of a concatenation or long array.
    The module itself is returned if it has no such reduction, else a copy.
    """
    reductions = walk(module.operation, REDUCE)
    if not any(_matters(op, number) for op in reductions for number in range(len(op.results))):
        return module
    copy = copy_module(module)
    for op in walk(copy.operation, REDUCE):
        with op.location:
            _take_in_again(op)
            start_from_identity(op)
    return copy


def _take_in_again(op: ir.Operation) -> None:
    """Combine results with their initial values, which changes them only if those were left out before."""
    for number, each in enumerate(combiners(op)):
        if _name(op, number, each) in _IDEMPOTENT:
            _combine(op, number, _name(op, number, each), _start(op, number))


def _matters(op: ir.Operation, number: int) -> bool:
    """Whether the result may depend on how often an initial value is applied."""
    name = _name(op, number, combiners(op)[number])
    return name in _IDEMPOTENT or (name in _IDENTITIES and not is_number(_start(op, number), _IDENTITIES[name]))


def _name(op: ir.Operation, number: int, combiner: Combiner) -> str:
    """Return the name of the one operation that computes a result in the region, "other" if there is none."""
    element = element_of(op.results[number])
    if not combiner.alone or element_of(_start(op, number)) != element:
        return "other"
    return _OF_PRED.get(combiner.function, combiner.function) if str(element) == "i1" else combiner.function


def _start(op: ir.Operation, number: int) -> Value:
    start: Value = op.operands[len(op.results) + number]
    return start


def _combine(op: ir.Operation, number: int, name: str, start: Value) -> None:
    """Combine a result with ``start`` and give all its consumers the outcome."""
    result = op.results[number]
    with ir.InsertionPoint.after(op):
        wide = broadcast(start, shape_of(result))
        combined = ir.Operation.create(f"stablehlo.{name}", results=[result.type], operands=[wide, result]).results[0]
    result.replace_all_uses_except(combined, producer(combined))


def _scalar(number: int, element: ir.Type) -> Value:
    if isinstance(element, ir.ComplexType):
        parts = [splat(part, tensor([], element.element_type)) for part in (number, 0)]
        return hlo.complex(*parts)
    return splat(number, tensor([], element))
