"""The namespace of the xgpu dialect's operations, and the checks of their regions."""

from collections.abc import Iterator, Sequence

from xgpu import ir

YIELD = "xgpu.yield"
"""The operation that ends every region of the dialect."""


class XgpuDialect(ir.Dialect):
    """The namespace of the operations that xgpu declares."""

    DIALECT_NAMESPACE = "xgpu"


ir.register_dialect(XgpuDialect)


def carried_problems(op: ir.Operation, carried: Sequence[ir.Value], numbers: int) -> Iterator[str]:
    """Yield errors of a loop: its body takes so many indices, then what is carried, and yields that; so do results."""
    types = [str(value.type) for value in carried]
    results = [str(value.type) for value in op.results]
    if types != results:
        yield f"expected results of types ({', '.join(types)}), those carried, got ({', '.join(results)})"
        return
    blocks = op.regions[0].blocks
    if len(blocks) != 1:
        yield f"expected a body of one block, got {len(blocks)}"
        return
    expected = ["index"] * numbers + types
    got = [str(argument.type) for argument in blocks[0].arguments]
    if expected != got:
        yield f"expected body arguments ({', '.join(expected)}), got ({', '.join(got)})"
        return
    yield from terminator_problems(blocks[0], types)


def terminator_problems(block: ir.Block, expected: list[str]) -> Iterator[str]:
    """Yield errors at the end of a region's block, which must yield values of the ``expected`` types."""
    operations = list(block.operations)
    if not operations or operations[-1].operation.name != YIELD:
        yield f"expected the body to end with {YIELD}"
        return
    yielded = [str(value.type) for value in operations[-1].operation.operands]
    if yielded != expected:
        yield f"expected {YIELD} of ({', '.join(expected)}), got ({', '.join(yielded)})"
