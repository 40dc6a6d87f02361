"""The operation of the xgpu dialect that StableHLO lacks: a scan of arrays."""

from collections.abc import Iterator, Mapping

from xgpu import ir
from xgpu.dialects.attributes import BOOLEAN, INTEGER
from xgpu.dialects.base import TENSOR, Attribute, BodyOp, Values, declare
from xgpu.dialects.namespace import XgpuDialect

_RETURN = "stablehlo.return"


@ir.register_operation(XgpuDialect)
@declare
class ScanOp(BodyOp):
    """Combines every element along a dimension of some arrays with all before it: an inclusive scan.

    The region takes an element of each array, or what elements before are combined to, then one of each of what
    follows, and returns their combination. It is associative; it need not be commutative or have an identity. A scan in
    ``reverse`` starts from the last element, which is then the first that the region takes.

    ```mlir
    %sums = "xgpu.scan"(%x) ({
    ^bb0(%before: tensor<f32>, %element: tensor<f32>):
      %sum = stablehlo.add %before, %element : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }) {dimension = 1 : i64, reverse = false} : (tensor<8x1000xf32>) -> tensor<8x1000xf32>
    ```
    """

    OPERATION_NAME = "xgpu.scan"
    OPERANDS = (Values("inputs", TENSOR, "The arrays, of one shape.", variadic=True),)
    RESULTS = (Values("scanned", TENSOR, "The combinations, one array for each operand.", variadic=True),)
    ATTRIBUTES = (
        Attribute("dimension", INTEGER, "The dimension to scan along."),
        Attribute("reverse", BOOLEAN, "Whether to start from the last element."),
    )
    dimension: int
    reverse: bool

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The arrays are of one shape, which has the dimension; the region takes two elements of each."""
        operands = [ir.RankedTensorType(value.type) for value in self.operation.operands]
        results = [ir.RankedTensorType(value.type) for value in self.operation.results]
        if not results:
            yield "expected at least 1 results, got 0"
        elif operands != results:
            expected, got = (", ".join(map(str, types)) for types in (operands, results))
            yield f"expected results of the operands' types ({expected}), got ({got})"
        elif any(list(type_.shape) != list(results[0].shape) for type_ in results):
            yield f"expected arrays of one shape, got ({', '.join(map(str, operands))})"
        elif not 0 <= self.dimension < results[0].rank:
            yield f"attribute 'dimension': expected a dimension of {results[0]}, got {self.dimension}"
        else:
            yield from self._region_problems(results)

    def _region_problems(self, arrays: list[ir.RankedTensorType]) -> Iterator[str]:
        scalars = [f"tensor<{type_.element_type}>" for type_ in arrays]
        blocks = self.operation.regions[0].blocks
        if len(blocks) != 1:
            yield f"expected a region of one block, got {len(blocks)}"
            return
        got = [str(argument.type) for argument in blocks[0].arguments]
        if got != [*scalars, *scalars]:
            yield f"expected region arguments ({', '.join([*scalars, *scalars])}), got ({', '.join(got)})"
            return
        operations = list(blocks[0].operations)
        if not operations or operations[-1].operation.name != _RETURN:
            yield f"expected the region to end with {_RETURN}"
            return
        returned = [str(value.type) for value in operations[-1].operation.operands]
        if returned != scalars:
            yield f"expected {_RETURN} of ({', '.join(scalars)}), got ({', '.join(returned)})"
