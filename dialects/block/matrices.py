"""Operations of the xgpu dialect on matrices whose elements are spread over the threads of a warp or warp group.

A thread holds its share of such a matrix, a fragment, as a vector. Where elements are narrower than 32 bits, each i32
of it holds neighbours, the first one lowest.
"""

from collections.abc import Iterator, Mapping

from xgpu import ir
from xgpu.dialects.attributes import BOOLEAN, INTEGER, TYPE
from xgpu.dialects.base import (
    ANY,
    BOOL,
    SHARED_POINTER,
    VECTOR,
    Attribute,
    AttributeKind,
    DeclaredOp,
    TypeConstraint,
    Values,
    declare,
)
from xgpu.dialects.block.copies import SWIZZLES
from xgpu.dialects.namespace import XgpuDialect
from xgpu.dialects.traits import Traits
from xgpu.records import dataclass

ELEMENT_BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "f8E4M3FN": 8,
    "f8E5M2": 8,
    "si8": 8,
    "ui8": 8,
    "f64": 64,
}
"""Bits of a matrix's elements in memory and in fragments, by their type."""
FLOATS_OF_8_BITS = frozenset(("f8E4M3FN", "f8E5M2"))
INTEGERS_OF_8_BITS = frozenset(("si8", "ui8"))
_K_BITS = 256
"""Bits of a row of the left operand that one product of warps contracts, but for f64."""
ROW_GROUP = 8
"""Rows that lie one after the other in shared memory, in every layout of a matrix."""
_ACCUMULATORS = frozenset(f"vector<{count}x{type_}>" for count in range(4, 129, 4) for type_ in ("f32", "i32"))
"""Types of a thread's share of a warp group's accumulators."""
_CHUNK_BYTES = 16
_LAYOUT_NAMES = ("group", "panel", "swizzle", "transposed")
FRAGMENT_OR_SHARED = TypeConstraint(
    "vector<4xi32> or !llvm.ptr<3>", lambda type_: str(type_) == "vector<4xi32>" or SHARED_POINTER.accepts(type_)
)


@dataclass(frozen=True)
class MatrixLayout:
    """The place of a warp group's operand in shared memory, from its pointer on.

    The matrix is cut into panels as wide as the ``swizzle``, 32, 64 or 128 bytes, or 16 where that is 0. Eight rows of
    a panel lie one after the other; from such a group to the next are ``group`` bytes, from a panel to the next
    ``panel`` bytes. The chunk of 16 bytes at address ``a`` is found at ``a xor ((a / 128 mod (swizzle / 16)) * 16)``.
    Rows go along the contracted dimension; in a ``transposed`` matrix, that is the number of the row.
    """

    swizzle: int
    group: int
    panel: int
    transposed: bool = False

    @property
    def row_bytes(self) -> int:
        """The width of a panel."""
        return self.swizzle or _CHUNK_BYTES

    def span(self, rows: int, contracted: int, element_bytes: int) -> int:
        """The bytes from the pointer to the end of a matrix of so many rows, and contracted elements in each."""
        lines, line = (contracted, rows) if self.transposed else (rows, contracted)
        panels, rest = divmod(line * element_bytes - 1, self.row_bytes)
        groups = lines // ROW_GROUP - 1
        last = rest if panels == 0 else self.row_bytes - 1
        return panels * self.panel + groups * self.group + (ROW_GROUP - 1) * self.row_bytes + last + 1

    def problem(self) -> str | None:
        """Return what is wrong with the numbers, None if nothing is."""
        if self.swizzle not in SWIZZLES.values():
            return f"expected a swizzle of 0, 32, 64 or 128 bytes, got {self.swizzle}"
        for name, value in (("group", self.group), ("panel", self.panel)):
            if value % _CHUNK_BYTES or not 0 <= value < 1 << 18:
                return f"expected '{name}' to be a multiple of 16 bytes below 2^18, got {value}"
        return None


def _encode_layout(layout: MatrixLayout) -> ir.Attribute:
    i64 = ir.IntegerType.get_signless(64)
    numbers = {name: ir.IntegerAttr.get(i64, getattr(layout, name)) for name in _LAYOUT_NAMES[:-1]}
    return ir.DictAttr.get({**numbers, "transposed": ir.BoolAttr.get(layout.transposed)})


def _decode_layout(attribute: ir.Attribute) -> MatrixLayout:
    entries = ir.DictAttr(attribute)
    numbers = {name: ir.IntegerAttr(entries[name]).value for name in _LAYOUT_NAMES[:-1]}
    return MatrixLayout(**numbers, transposed=ir.BoolAttr(entries["transposed"]).value)


def _is_layout(attribute: ir.Attribute) -> bool:
    if not isinstance(attribute, ir.DictAttr) or len(attribute) != len(_LAYOUT_NAMES):
        return False
    if any(name not in attribute for name in _LAYOUT_NAMES):
        return False
    *numbers, transposed = (attribute[name] for name in _LAYOUT_NAMES)
    return isinstance(transposed, ir.BoolAttr) and all(isinstance(each, ir.IntegerAttr) for each in numbers)


LAYOUT = AttributeKind(
    "{group = bytes, panel = bytes, swizzle = bytes, transposed = true or false}",
    _is_layout,
    _encode_layout,
    _decode_layout,
    lambda attribute: _decode_layout(attribute).problem(),
)


@ir.register_operation(XgpuDialect)
@declare
class LoadMatrixOp(DeclaredOp):
    """Reads matrices of 8 x 8 elements of 16 bits from shared memory, spread over the lanes of a warp (``ldmatrix``).

    Lane ``8 m + r`` gives the address of row ``r`` of matrix ``m``, 16 bytes, so aligned. Of matrix ``m`` lane ``l``
    gets, in number ``m`` of its result, the elements ``2 (l mod 4)`` and the next of row ``l / 4``; of a ``transposed``
    one, of column ``l / 4``. All 32 lanes of the warp execute it.

    ```mlir
    %fragment = "xgpu.load_matrix"(%row) {transposed = false} : (!llvm.ptr<3>) -> vector<4xi32>
    ```
    """

    OPERATION_NAME = "xgpu.load_matrix"
    TRAITS = Traits(collective=True)
    OPERANDS = (Values("row", SHARED_POINTER, "The row whose address this lane gives."),)
    RESULTS = (Values("fragment", VECTOR, "This lane's elements: i32s, one for each of 1, 2 or 4 matrices."),)
    ATTRIBUTES = (Attribute("transposed", BOOLEAN, "Whether lanes get columns."),)
    transposed: bool

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The number of matrices is one that the instruction has."""
        yield from _matrices(self.operation.results[0].type)


@ir.register_operation(XgpuDialect)
@declare
class StoreMatrixOp(DeclaredOp):
    """Writes matrices of 8 x 8 elements of 16 bits to shared memory: the reverse of `xgpu.load_matrix` (``stmatrix``).

    ```mlir
    "xgpu.store_matrix"(%fragment, %row) {transposed = false} : (vector<4xi32>, !llvm.ptr<3>) -> ()
    ```
    """

    OPERATION_NAME = "xgpu.store_matrix"
    TRAITS = Traits(collective=True)
    OPERANDS = (
        Values("fragment", VECTOR, "This lane's elements: i32s, one for each of 1, 2 or 4 matrices."),
        Values("row", SHARED_POINTER, "The row whose address this lane gives."),
    )
    ATTRIBUTES = (Attribute("transposed", BOOLEAN, "Whether lanes have columns."),)
    transposed: bool

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The number of matrices is one that the instruction has."""
        yield from _matrices(self.operation.operands[0].type)


_ELEMENTS = (
    Attribute("a_element", TYPE, "Elements of the left operand: f16, bf16, tf32, f8E4M3FN, f8E5M2, si8, ui8 or f64."),
    Attribute("b_element", TYPE, "Those of the right operand: the same, or another type of 8 bits."),
)


@ir.register_operation(XgpuDialect)
@declare
class MmaOp(DeclaredOp):
    """A product of a warp: 16 x k by k x 8, added to 16 x 8 (``mma.sync``). All 32 lanes execute it.

    A row of the left operand has 32 bytes: ``k`` is 16 for 16 bits, 8 for tf32, 32 for 8 bits. Accumulators are f32,
    for integers i32. For f64 it is 8 x 4 by 4 x 8, added to 8 x 8.

    ```mlir
    %d = "xgpu.mma"(%a, %b, %c) {a_element = bf16, b_element = bf16}
        : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
    ```
    """

    OPERATION_NAME = "xgpu.mma"
    TRAITS = Traits(collective=True)
    OPERANDS = (
        Values("a", VECTOR, "This lane's share of the left operand: vector<4xi32>, or vector<1xf64>."),
        Values("b", VECTOR, "That of the right operand: vector<2xi32>, or vector<1xf64>."),
        Values("c", VECTOR, "That of what is added: vector<4xf32>, vector<4xi32> or vector<2xf64>."),
    )
    RESULTS = (Values("d", VECTOR, "That of the sum."),)
    ATTRIBUTES = _ELEMENTS
    a_element: ir.Type
    b_element: ir.Type

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The types are of one instruction, and the fragments fit them."""
        problem = _element_problem(str(self.a_element), str(self.b_element))
        if problem:
            yield problem
            return
        types = [str(value.type) for value in (*self.operation.operands, self.operation.results[0])]
        accumulator = accumulator_of(str(self.a_element))
        sum_ = f"vector<{2 if accumulator == 'f64' else 4}x{accumulator}>"
        operands = ["vector<1xf64>"] * 2 if accumulator == "f64" else ["vector<4xi32>", "vector<2xi32>"]
        if types != [*operands, sum_, sum_]:
            yield f"expected ({', '.join([*operands, sum_])}) -> {sum_}, got ({', '.join(types[:3])}) -> {types[3]}"


@ir.register_operation(XgpuDialect)
@declare
class WarpgroupMmaOp(DeclaredOp):
    """Starts a product of a warp group, four warps: 64 x k by k x n, added to 64 x n (``wgmma``).

    A row of the left operand has 32 bytes, as in `xgpu.mma`. The left operand is in shared memory, or fragments as
    those of four `xgpu.mma`, a warp for 16 rows; the right one is in shared memory. Nothing is known of the result, and
    the operands must not change, until `xgpu.warpgroup_wait` for its group returns the result. All threads of the warp
    group execute it.

    ```mlir
    %d = "xgpu.warpgroup_mma"(%c, %a, %b, %accumulate) {a_element = bf16, b_element = bf16,
        a_layout = {group = 1024, panel = 0, swizzle = 128, transposed = false},
        b_layout = {group = 1024, panel = 8192, swizzle = 128, transposed = true}}
        : (vector<64xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<64xf32>
    ```
    """

    OPERATION_NAME = "xgpu.warpgroup_mma"
    TRAITS = Traits(collective=True, asynchronous=True)
    OPERANDS = (
        Values("c", VECTOR, "This thread's accumulators: n / 2 of f32 or i32."),
        Values("a", FRAGMENT_OR_SHARED, "The left operand."),
        Values("b", SHARED_POINTER, "The right operand."),
        Values("accumulate", BOOL, "Whether to add; else the accumulators are taken for zero."),
    )
    RESULTS = (Values("d", VECTOR, "This thread's accumulators afterwards, once it is waited for."),)
    ATTRIBUTES = (
        *_ELEMENTS,
        Attribute("a_layout", LAYOUT, "Where the left operand lies; not used for a fragment."),
        Attribute("b_layout", LAYOUT, "Where the right operand lies, n rows; transposed: k rows."),
    )
    c: ir.Value
    a: ir.Value
    a_element: ir.Type
    b_element: ir.Type
    a_layout: MatrixLayout
    b_layout: MatrixLayout

    @property
    def columns(self) -> int:
        """The columns of the result, n."""
        return 2 * int(ir.VectorType(self.c.type).shape[0])

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The types and sizes are of one instruction."""
        element = str(self.a_element)
        problem = _element_problem(element, str(self.b_element))
        if problem or element == "f64":
            yield problem or "attribute 'a_element': expected a type of at most 32 bits, got f64"
            return
        type_ = ir.VectorType(self.c.type)
        if str(type_.element_type) != accumulator_of(element) or self.operation.results[0].type != type_:
            yield f"expected accumulators of {accumulator_of(element)}, got {type_} -> {self.operation.results[0].type}"
        elif self.columns not in warpgroup_columns(element):
            yield f"expected a number of columns that the instruction has, up to 256, got {self.columns}"
        elif ELEMENT_BITS[element] != 16 and (self.a_layout.transposed or self.b_layout.transposed):
            yield f"expected operands of {element} with rows along the contracted dimension, got a transposed one"


@ir.register_operation(XgpuDialect)
@declare
class WarpgroupFenceOp(DeclaredOp):
    """Orders accesses to registers before the products of the warp group that follow; before the first of them.

    ```mlir
    "xgpu.warpgroup_fence"() : () -> ()
    ```
    """

    OPERATION_NAME = "xgpu.warpgroup_fence"
    TRAITS = Traits(collective=True)


@ir.register_operation(XgpuDialect)
@declare
class WarpgroupCommitOp(DeclaredOp):
    """Makes a group of those `xgpu.warpgroup_mma` that are in none yet.

    ```mlir
    "xgpu.warpgroup_commit"() : () -> ()
    ```
    """

    OPERATION_NAME = "xgpu.warpgroup_commit"
    TRAITS = Traits(collective=True, asynchronous=True)


@ir.register_operation(XgpuDialect)
@declare
class WarpgroupWaitOp(DeclaredOp):
    """Waits until at most ``pending`` groups of products, the last ones, are under way; gives the accumulators on.

    What the products of the other groups computed is known from then on, as results of this operation.

    ```mlir
    %sum = "xgpu.warpgroup_wait"(%d) {pending = 0 : i64} : (vector<64xf32>) -> vector<64xf32>
    ```
    """

    OPERATION_NAME = "xgpu.warpgroup_wait"
    TRAITS = Traits(collective=True, asynchronous=True)
    OPERANDS = (Values("started", VECTOR, "Accumulators as products gave them.", variadic=True),)
    RESULTS = (Values("finished", ANY, "The accumulators.", variadic=True),)
    ATTRIBUTES = (Attribute("pending", INTEGER, "Groups that need not be complete, from 0 to 7."),)
    pending: int

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """The number is one that the instruction has; each result is of its operand's type."""
        if not 0 <= self.pending <= 7:
            yield f"attribute 'pending': expected 0 to 7, got {self.pending}"
        operands = [str(value.type) for value in self.operation.operands]
        results = [str(value.type) for value in self.operation.results]
        for type_ in operands:
            if type_ not in _ACCUMULATORS:
                yield f"expected accumulators of f32 or i32, a multiple of 4 up to 128, got {type_}"
        if operands != results:
            yield f"expected results of the operands' types ({', '.join(operands)}), got ({', '.join(results)})"


MATRIX_OPS: tuple[type[DeclaredOp], ...] = (
    *(LoadMatrixOp, StoreMatrixOp, MmaOp),
    *(WarpgroupMmaOp, WarpgroupFenceOp, WarpgroupCommitOp, WarpgroupWaitOp),
)
"""The operations of this file."""


def multiplied_as(element: str) -> str:
    """Return the type as which products take elements of a type in memory."""
    return {"i8": "si8", "f32": "tf32"}.get(element, element)


def accumulator_of(element: str) -> str:
    """Return the type in which products of an element type are added."""
    if element in INTEGERS_OF_8_BITS:
        return "i32"
    return "f64" if element == "f64" else "f32"


def contracted(element: str) -> int:
    """Return how many elements of the contracted dimension one product of warps takes, k."""
    return 4 if element == "f64" else _K_BITS // ELEMENT_BITS[element]


def warpgroup_columns(element: str) -> tuple[int, ...]:
    """Return the numbers of columns that products of a warp group may have (PTX ISA, wgmma.mma_async)."""
    if element in INTEGERS_OF_8_BITS:
        return (8, 16, 24, *range(32, 257, 16))
    return tuple(range(8, 257, 8))


def _element_problem(a: str, b: str) -> str | None:
    for name, element in (("a_element", a), ("b_element", b)):
        if element not in ELEMENT_BITS:
            return f"attribute '{name}': expected one of {', '.join(ELEMENT_BITS)}, got {element}"
    if a != b and not any({a, b} <= kinds for kinds in (FLOATS_OF_8_BITS, INTEGERS_OF_8_BITS)):
        return f"attribute 'b_element': expected {a}, as the left operand, got {b}"
    return None


def _matrices(type_: ir.Type) -> Iterator[str]:
    if str(type_) not in ("vector<1xi32>", "vector<2xi32>", "vector<4xi32>"):
        yield f"expected a fragment of 1, 2 or 4 i32, got {type_}"
