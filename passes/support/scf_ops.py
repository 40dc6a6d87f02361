"""Building structured control flow: loops, conditionals and their terminators, at the current insertion point."""

from collections.abc import Sequence

from xgpu import ir


def create_integer(value: int, type_: ir.Type) -> ir.Value:
    """Create an ``arith.constant`` of an integer type or index."""
    attribute = ir.IntegerAttr.get(type_, value)
    result: ir.Value = ir.Operation.create("arith.constant", results=[type_], attributes={"value": attribute}).results[
        0
    ]
    return result


def create_index(value: int) -> ir.Value:
    """Create an ``arith.constant`` of type index."""
    return create_integer(value, ir.IndexType.get())


def create_for(
    lower: ir.Value, upper: ir.Value, step: ir.Value, carried: Sequence[ir.Value]
) -> tuple[ir.Operation, ir.Block]:
    """Create an `scf.for` and return it with its body, which has no terminator yet.

    The arguments of the body are the induction variable, then the carried values.
    """
    types = [value.type for value in carried]
    op = ir.Operation.create("scf.for", results=types, operands=[lower, upper, step, *carried], regions=1)
    return op, op.regions[0].blocks.append(lower.type, *types)


def create_if(condition: ir.Value, types: Sequence[ir.Type]) -> tuple[ir.Operation, ir.Block, ir.Block]:
    """Create an `scf.if` with results of ``types``; returns it with its two blocks, which have no terminators yet."""
    op = ir.Operation.create("scf.if", results=list(types), operands=[condition], regions=2)
    then_region, else_region = op.regions
    return op, then_region.blocks.append(), else_region.blocks.append()


def create_yield(values: Sequence[ir.Value]) -> ir.Operation:
    """Create the `scf.yield` that ends a block."""
    return ir.Operation.create("scf.yield", operands=list(values))
