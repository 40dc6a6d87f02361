"""Does operations in wider element types than theirs, between conversions."""

from collections.abc import Callable, Iterable

from xgpu import ir
from xgpu.structure import blocks_of

WiderType = Callable[[ir.Type], ir.Type | None]
"""Returns the element type to compute with instead of one, or None if that will do."""

_IN_REGIONS = frozenset(
    f"stablehlo.{name}" for name in "add multiply subtract maximum minimum select compare and or xor not return".split()
)
"""Operations that a region is made of that can be done as a whole in a wider type."""


class Widening:
    """Widens operations one by one; remembers the wide type of every type it has met."""

    def __init__(self, wider: WiderType) -> None:
        self._wider = wider
        self._types: dict[ir.Type, ir.Type | None] = {}

    def _wide(self, type_: ir.Type) -> ir.Type | None:
        """Return the array type to compute with instead, or None if the type itself will do."""
        if type_ not in self._types:
            self._types[type_] = self._wide_array(type_)
        return self._types[type_]

    def _wide_array(self, type_: ir.Type) -> ir.Type | None:
        if not isinstance(type_, ir.RankedTensorType):
            return None
        element = self._wider(type_.element_type)
        return None if element is None else ir.RankedTensorType.get(type_.shape, element)

    def _any(self, values: Iterable[ir.Value]) -> bool:
        return any(self._wide(value.type) is not None for value in values)

    def is_needed(self, op: ir.Operation) -> bool:
        """Tell whether an operand or result is of narrow floats."""
        return self._any(op.operands) or self._any(op.results)

    def widen(self, op: ir.Operation) -> None:
        """Convert the operands and the results of an operation, and of those in its regions."""
        if not all(self._can_widen(region) for region in op.regions):
            return
        with ir.InsertionPoint(op):
            for position, operand in enumerate(op.operands):
                wide = self._wide(operand.type)
                if wide is not None:
                    op.operands[position] = _convert(operand, wide).results[0]
        for result in op.results:
            self._widen_result(op, result)
        for block in blocks_of(op):
            self._widen_block(block)

    def _widen_result(self, op: ir.Operation, result: ir.Value) -> None:
        narrow, wide = result.type, self._wide(result.type)
        if wide is not None:
            result.set_type(wide)
            _convert_after(op, result, narrow)

    def _can_widen(self, region: ir.Region) -> bool:
        """Tell whether no operation of a region rounds to a narrow type but as its arithmetic does."""
        return all(
            op.operation.name in _IN_REGIONS or op.operation.name == "stablehlo.constant"
            for block in region.blocks
            for op in block.operations
        )

    def _widen_block(self, block: ir.Block) -> None:
        for argument in block.arguments:
            argument.set_type(self._wide(argument.type) or argument.type)
        for view in list(block.operations):
            op = view.operation
            for result in op.results:
                wide = self._wide(result.type)
                if wide is not None and op.name == "stablehlo.constant":
                    _convert_after(op, result, wide)
                elif wide is not None:
                    result.set_type(wide)


def _convert(value: ir.Value, type_: ir.Type) -> ir.Operation:
    return ir.Operation.create("stablehlo.convert", results=[type_], operands=[value])


def _convert_after(op: ir.Operation, result: ir.Value, type_: ir.Type) -> None:
    """Let what uses a result of ``op`` use it converted."""
    with ir.InsertionPoint.after(op), op.location:
        converted = _convert(result, type_)
    result.replace_all_uses_except(converted.results[0], converted)
