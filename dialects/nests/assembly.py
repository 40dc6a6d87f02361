"""Operations of the xgpu dialect that are PTX instructions, as a person writes them."""

import re
from collections.abc import Iterator, Mapping, Sequence

from xgpu import ir
from xgpu.dialects.attributes import STRING
from xgpu.dialects.base import SCALAR, SCALAR_TENSOR, Attribute, DeclaredOp, Values, declare
from xgpu.dialects.namespace import XgpuDialect
from xgpu.dialects.traits import Traits
from xgpu.dtypes import dtype_of_element

REGISTER_TYPES = ("u16", "s16", "f16", "bf16", "u32", "s32", "f32", "u64", "s64", "f64")
"""Types that a register of PTX holds: of 16, 32 and 64 bits. Two of 16 bits are a u32."""
MAX_TEXT = 4096
"""Characters of a text, at most."""
_OPERAND = re.compile(r"\$([0-9]*)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_LEAVES = frozenset("bra brx call ret exit trap brkpt".split())
_WAITS = frozenset("bar barrier mbarrier griddepcontrol setmaxnreg wgmma tcgen05".split())
_TOGETHER = re.compile(r"\.(sync|aligned|convergent)\b")
_LABEL = re.compile(r"(^|[;{}])\s*[A-Za-z_$%][\w$]*\s*:")
_REGISTERS = frozenset(("i16", "i32", "i64", "f32", "f64"))


def takes_warp(text: str) -> bool:
    """Whether all 32 threads of a warp execute the instructions of a text together."""
    return _TOGETHER.search(text) is not None


def text_problem(text: str, results: int, operands: int) -> str | None:
    """Return what is wrong with a text of so many results and operands, as far as it is known here; None if nothing."""
    if len(text) > MAX_TEXT or not text.isascii() or not text.isprintable() or '"' in text:
        return f"expected up to {MAX_TEXT} printable characters of ASCII, without quotation marks"
    if not text.rstrip().endswith((";", "}")):
        return "expected instructions that end with ';'"
    found = [match.group(1) for match in _OPERAND.finditer(text)]
    count = results + operands
    unknown = [each for each in found if not each or int(each) >= count]
    if unknown:
        return f"'${unknown[0]}': expected $0 to ${count - 1}, results first" if count else "there are no operands"
    missing = [number for number in range(results) if str(number) not in found]
    if missing:
        return f"nothing is written to '${missing[0]}', a result"
    first_words = {word.group() for part in re.split(r"[;{}]|@!?\S+", text) if (word := _WORD.search(part))}
    if leaving := sorted(first_words & _LEAVES):
        return f"'{leaving[0]}' goes elsewhere: threads go on behind the text"
    if _LABEL.search(text):
        return "it has a label: threads go on behind the text"
    if waiting := sorted(first_words & _WAITS):
        return f"'{waiting[0]}' waits for threads that may never come; barriers are placed by the compiler"
    if "[" in text:
        return "it accesses memory, which only statements do: what they access is known"
    return None


class _TextOp(DeclaredOp):
    """Base of operations that have a text."""

    text: str

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The text fits the operands and results."""
        op = self.operation
        problem = text_problem(self.text, len(op.results), len(op.operands))
        if problem is not None:
            yield f"attribute 'text': {problem}"


_TEXT = Attribute("text", STRING, "Instructions of PTX; ``$0`` and so on are the results, then the operands.")


@ir.register_operation(XgpuDialect)
@declare
class AsmOp(_TextOp):
    """Executes PTX instructions, in iterations that run at once: all of them come by. At level ``loops``.

    A text has no labels, branches, calls, barriers and accesses to memory. It stands inside an `xgpu.par` with
    ``align``, under no condition on that loop's variable or on a value; where its instructions are those of a whole
    warp (``.sync``, ``.aligned``), iterations fill warps.

    ```mlir
    %other = "xgpu.asm"(%x) {text = "shfl.sync.bfly.b32 $0, $1, 1, 31, 0xffffffff;"} : (tensor<f32>) -> tensor<f32>
    ```
    """

    OPERATION_NAME = "xgpu.asm"
    OPERANDS = (Values("operands", SCALAR_TENSOR, "What instructions read, each in a register.", variadic=True),)
    RESULTS = (Values("results", SCALAR_TENSOR, "What instructions write.", variadic=True),)
    ATTRIBUTES = (_TEXT,)

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The text fits the operands and results, which registers hold."""
        yield from super().check(symbols)
        for value in (*self.operation.operands, *self.operation.results):
            dtype = dtype_of_element(ir.RankedTensorType(value.type).element_type)
            if dtype.hlo not in REGISTER_TYPES:
                yield f"expected elements of {', '.join(REGISTER_TYPES)}, got {dtype}"


@ir.register_operation(XgpuDialect)
@declare
class PtxOp(_TextOp):
    """Executes PTX instructions. Threads of a warp execute it together, where its instructions are those of a warp.

    ```mlir
    %y = "xgpu.ptx"(%x) {text = "ex2.approx.f32 $0, $1;"} : (f32) -> f32
    ```
    """

    OPERATION_NAME = "xgpu.ptx"
    TRAITS = Traits(collective=True)
    OPERANDS = (Values("operands", SCALAR, "What instructions read, each in a register.", variadic=True),)
    RESULTS = (Values("results", SCALAR, "What instructions write.", variadic=True),)
    ATTRIBUTES = (_TEXT,)

    @classmethod
    def build(
        cls, text: str, operands: Sequence[ir.Value], types: Sequence[ir.Type], loc: ir.Location | None = None
    ) -> list[ir.Value]:
        """Create the operation and return its results."""
        return list(cls.create(operands, types, {"text": text}, loc).operation.results)

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The text fits the operands and results, which registers hold."""
        yield from super().check(symbols)
        for value in (*self.operation.operands, *self.operation.results):
            if str(value.type) not in _REGISTERS:
                yield f"expected values of i16, i32, i64, f32 or f64, got {value.type}"


ASSEMBLY_OPS: tuple[type[DeclaredOp], ...] = (AsmOp, PtxOp)
"""The operations of this file."""
