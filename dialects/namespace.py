"""The namespace of the xgpu dialect's operations, and the check of how their regions end."""

from collections.abc import Iterator

from xgpu import ir

YIELD = "xgpu.yield"
"""The operation that ends every region of the dialect."""


class XgpuDialect(ir.Dialect):
    """The namespace of the operations that xgpu declares."""

    DIALECT_NAMESPACE = "xgpu"


ir.register_dialect(XgpuDialect)


def terminator_problems(block: ir.Block, expected: list[str]) -> Iterator[str]:
    """Yield errors at the end of a region's block, which must yield values of the ``expected`` types."""
    operations = list(block.operations)
    if not operations or operations[-1].operation.name != YIELD:
        yield f"expected the body to end with {YIELD}"
        return
    yielded = [str(value.type) for value in operations[-1].operation.operands]
    if yielded != expected:
        yield f"expected {YIELD} of ({', '.join(expected)}), got ({', '.join(yielded)})"
