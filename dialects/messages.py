"""Operations of the xgpu dialect by which blocks of a kernel tell each other numbers, through global memory."""

from collections.abc import Iterator, Mapping, Sequence

from xgpu import ir
from xgpu.dialects.base import INDEX, SCALAR, TENSOR, DeclaredOp, Values, declare
from xgpu.dialects.namespace import XgpuDialect
from xgpu.dialects.traits import Traits

PIECE_BITS = 32
"""Bits of a message's values that a word holds, beside the mark that tells that it was written."""
MARK = 1 << PIECE_BITS
"""The bit of a word that tells so."""
_WORD = "i64"


def words_of(types: Sequence[ir.Type]) -> int:
    """Return how many words a message of values of these types takes."""
    return sum(-(-_bits(type_) // PIECE_BITS) for type_ in types)


def _bits(type_: ir.Type) -> int:
    if isinstance(type_, ir.ComplexType):
        return 2 * _bits(type_.element_type)
    return int(type_.width)  # type: ignore[attr-defined]


@ir.register_operation(XgpuDialect)
@declare
class PublishOp(DeclaredOp):
    """Leaves a message for threads of other blocks: writes values where `xgpu.await` finds them.

    A message takes consecutive words, one for each 32 bits of each value. It is written once in a launch, and its words
    are zero before. Each is written undivided and says that it was, so nothing need be ordered.

    ```mlir
    %told = "xgpu.publish"(%board, %i, %x, %n) : (tensor<64xi64>, index, f32, i32) -> tensor<64xi64>
    ```
    """

    OPERATION_NAME = "xgpu.publish"
    TRAITS = Traits(updates=0, passes_on=True)
    OPERANDS = (
        Values("board", TENSOR, "The words, of one dimension."),
        Values("index", INDEX, "The number of the message's first word."),
        Values("values", SCALAR, "What to tell.", variadic=True),
    )
    RESULTS = (Values("updated", TENSOR, "The words afterwards."),)
    board: ir.Value
    index: ir.Value
    values: list[ir.Value]

    @classmethod
    def build(
        cls, board: ir.Value, index: ir.Value, values: Sequence[ir.Value], loc: ir.Location | None = None
    ) -> ir.Value:
        """Create the operation and return the updated words."""
        return cls.create([board, index, *values], [board.type], loc=loc).operation.results[0]

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """There are values, for which there is room; the result is of the operand's type."""
        yield from _board_problems(self.board, [value.type for value in self.values])
        result = self.operation.results[0]
        if result.type != self.board.type:
            yield f"expected a result of the board's type {self.board.type}, got {result.type}"


@ir.register_operation(XgpuDialect)
@declare
class AwaitOp(DeclaredOp):
    """Waits until a thread of another block has published a message, and gives its values.

    That block comes before this one in the order of the grid, so it has started, and waits for none after it.

    ```mlir
    %x, %n = "xgpu.await"(%board, %i) : (tensor<64xi64>, index) -> (f32, i32)
    ```
    """

    OPERATION_NAME = "xgpu.await"
    TRAITS = Traits(reads=0, passes_on=True)
    OPERANDS = (
        Values("board", TENSOR, "The words, of one dimension."),
        Values("index", INDEX, "The number of the message's first word."),
    )
    RESULTS = (Values("values", SCALAR, "What was told.", variadic=True),)
    board: ir.Value
    index: ir.Value
    values: list[ir.Value]

    @classmethod
    def build(
        cls, board: ir.Value, index: ir.Value, types: Sequence[ir.Type], loc: ir.Location | None = None
    ) -> list[ir.Value]:
        """Create the operation and return the values of the message, which are of ``types``."""
        return list(cls.create([board, index], types, loc=loc).operation.results)

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """There are values, for which there is room."""
        yield from _board_problems(self.board, [value.type for value in self.values])


def _board_problems(board: ir.Value, types: Sequence[ir.Type]) -> Iterator[str]:
    type_ = ir.RankedTensorType(board.type)
    if type_.rank != 1 or str(type_.element_type) != _WORD:
        yield f"expected words of {_WORD} in one dimension, got {type_}"
    elif not types:
        yield "expected a message of at least 1 value, got 0"
    elif words_of(types) > type_.shape[0]:
        yield f"expected room for a message of {words_of(types)} words, got {type_}"


MESSAGE_OPS: tuple[type[DeclaredOp], ...] = (PublishOp, AwaitOp)
"""The operations of this file."""
