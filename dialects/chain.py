"""The operation of the xgpu dialect that holds what one kernel computes of several products."""

from collections.abc import Iterator, Mapping

from xgpu import ir
from xgpu.dialects.base import TENSOR, BodyOp, Values, declare
from xgpu.dialects.namespace import XgpuDialect

CHAIN = "xgpu.chain"
"""The operation's name."""
_RETURN = "stablehlo.return"


@ir.register_operation(XgpuDialect)
@declare
class ChainOp(BodyOp):
    """Products of which one reads what is computed from the other, and all between them, for one kernel to compute.

    The region is the program as it was written, on whole arrays. It takes the operands, which are in memory, and uses
    nothing else from outside. It returns what is stored: a product, or what later operations read of those between.

    ```mlir
    %y = "xgpu.chain"(%q, %k, %v) ({
    ^bb0(%0: tensor<64x64xbf16>, %1: tensor<64x64xbf16>, %2: tensor<64x64xbf16>):
      %scores = stablehlo.dot_general %0, %1, contracting_dims = [1] x [1] : ...
      ...
      %sums = stablehlo.dot_general %weights, %2, contracting_dims = [1] x [0] : ...
      stablehlo.return %sums : tensor<64x64xbf16>
    }) : (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
    ```
    """

    OPERATION_NAME = CHAIN
    OPERANDS = (Values("inputs", TENSOR, "The arrays that it reads.", variadic=True),)
    RESULTS = (Values("stored", TENSOR, "What the region returns.", variadic=True),)

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The region takes the operands and returns the results, at least one."""
        blocks = self.operation.regions[0].blocks
        if len(blocks) != 1:
            yield f"expected a region of one block, got {len(blocks)}"
            return
        expected = [str(value.type) for value in self.operation.operands]
        got = [str(argument.type) for argument in blocks[0].arguments]
        if got != expected:
            yield f"expected region arguments ({', '.join(expected)}), got ({', '.join(got)})"
            return
        operations = list(blocks[0].operations)
        end = operations[-1].operation if operations else None
        if end is None or end.name != _RETURN:
            yield f"expected the region to end with {_RETURN}"
            return
        results, returned = ([str(value.type) for value in values] for values in (self.operation.results, end.operands))
        if returned != results or not results:
            wanted = ", ".join(results) or "a tensor"
            yield f"expected {_RETURN} of {wanted}, got ({', '.join(returned)})"


def returned(chain: ir.Operation) -> list[ir.Value]:
    """Return what the region of a chain returns, its results as they are inside."""
    *_, end = chain.regions[0].blocks[0].operations
    return list(end.operation.operands)
