"""The combiners of a scatter: the functions of an element and its update that its region computes for each operand."""

from typing import Literal

from xgpu import ir
from xgpu.records import dataclass
from xgpu.structure import dtype_of, element_of, is_argument, producer

Function = Literal["overwrite", "add", "multiply", "minimum", "maximum", "and", "or", "xor", "other"]

BINARY: dict[str, Function] = {
    "stablehlo.add": "add",
    "stablehlo.multiply": "multiply",
    "stablehlo.minimum": "minimum",
    "stablehlo.maximum": "maximum",
    "stablehlo.and": "and",
    "stablehlo.or": "or",
    "stablehlo.xor": "xor",
}
"""The functions that are one operation of StableHLO."""
_OPERATIONS = {function: name for name, function in BINARY.items()}


def is_binary(function: Function) -> bool:
    """Whether a function is one operation of StableHLO."""
    return function in _OPERATIONS


def combined(function: Function, left: ir.Value, right: ir.Value) -> ir.Value:
    """Combine two arrays by a function that is one operation, at the insertion point."""
    return ir.Operation.create(_OPERATIONS[function], results=[left.type], operands=[left, right]).results[0]


@dataclass(frozen=True)
class Combiner:
    """The function that computes one result of a scatter's region from the region's arguments.

    ``function`` names what is made of the operand's element and its update; ``alone`` tells whether the result depends
    on the element and the update of its own operand only.
    """

    function: Function
    alone: bool


def promises(op: ir.Operation, name: str) -> bool:
    """Return the attribute ``unique_indices`` or ``indices_are_sorted`` of a scatter, false where it is left out."""
    return name in op.attributes and bool(ir.BoolAttr(op.attributes[name]).value)


def has_own_types(op: ir.Operation) -> bool:
    """Whether the region of a scatter takes elements of the operands' types, which the updates have as well."""
    count = len(op.results)
    values = [*list(op.operands)[:count], *list(op.operands)[count + 1 :]]
    found, own = ([element_of(value) for value in each] for each in (op.regions[0].blocks[0].arguments, values))
    return found == own


def combiners(op: ir.Operation) -> tuple[Combiner, ...]:
    """Return the combiner of each operand of a scatter."""
    block = op.regions[0].blocks[0]
    arguments, count = list(block.arguments), len(op.results)
    *_, end = block.operations
    found = []
    for number, value in enumerate(end.operation.operands):
        old, update = arguments[number], arguments[count + number]
        alone = _arguments_of(value) <= {old, update}
        found.append(Combiner(_function(value, old, update), alone))
    return tuple(found)


def is_unordered(op: ir.Operation) -> bool:
    """Whether the updates of an element give the same result, to the last bit, in any order.

    Integer arithmetic does, and the smaller or larger of two numbers of any type.
    """
    for value, each in zip(op.results, combiners(op), strict=True):
        is_exact = dtype_of(value).kind in ("bool", "signed", "unsigned")
        if not each.alone or each.function in ("overwrite", "other"):
            return False
        if each.function in ("add", "multiply") and not is_exact:
            return False
    return True


def _function(value: ir.Value, old: ir.Value, update: ir.Value) -> Function:
    if value == update:
        return "overwrite"
    if is_argument(value):
        return "other"
    op = producer(value)
    operands = list(op.operands)
    return BINARY.get(op.name, "other") if operands in ([old, update], [update, old]) else "other"


def _arguments_of(value: ir.Value) -> set[ir.Value]:
    """Return the region's arguments that ``value`` depends on."""
    pending, seen, found = [value], set[ir.Value](), set[ir.Value]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if is_argument(value):
            found.add(value)
        else:
            pending += producer(value).operands
    return found
