"""Epilogues that a product's kernel computes: elementwise operations after the products, up to one result."""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from xgpu import ir
from xgpu.analysis.bitcasts import is_bitcast, readers
from xgpu.analysis.heroes import Form, follow, is_hero
from xgpu.costs.values import elements
from xgpu.emit.families.products.product import follows
from xgpu.fusion.fallback import CONTRACTIONS, PRODUCT, VIEWS, is_cast_for
from xgpu.fusion.widened_operands import is_in_memory, is_of_xla, widening
from xgpu.hlo.chlo import RAGGED
from xgpu.reasons import Reason
from xgpu.records import dataclass
from xgpu.structure import behind, defining_op, dtype_of, is_argument, producer, users_of

_MOST = 256
"""Operations that are looked at: a kernel computes so many besides, and a longer chain has several readers."""
_VIEWS = tuple(VIEWS - {"stablehlo.transpose"})
_CONVERT = "stablehlo.convert"
_FEW = 16
"""The elements of a product for each one of an array, such as a bias, from which on a kernel may convert that."""
_PRODUCTS = (PRODUCT, RAGGED)
_GENERATORS = ("stablehlo.constant", "stablehlo.iota")

_LONG = Reason("its epilogue is longer than {} operations", (_MOST,))
_SEVERAL = Reason("kernels would store several arrays that are computed from it")
_WIDE = Reason("a value computed from it is stored with wider elements")
_REARRANGED = Reason("its reader reads it through a transpose or a broadcast")
_MADE = Reason("its epilogue reads a result of {}, and may be computed with that")


@dataclass(frozen=True)
class Absorbed:
    """The ``operations`` that a kernel of products computes of them, which make its one ``result``.

    ``read`` are the arrays that they read besides. The result is read ``by_xla``, which needs it in memory, or by other
    kernels, which could compute it of the products.
    """

    operations: tuple[ir.Operation, ...]
    read: tuple[ir.Value, ...]
    result: ir.Value
    by_xla: bool
    by_kernels: bool


def absorbed(products: Sequence[ir.Operation], order: Mapping[ir.Value, int]) -> Absorbed | Reason:
    """Return what a kernel of ``products`` computes of them, or why that is not one array alone, no wider than theirs.

    ``order`` numbers the operations of their block, by their results.
    """
    following = _Following(products, order)
    if (reason := following.find()) is not None:
        return reason
    if len(following.stored) != 1:
        return _SEVERAL
    (result,) = following.stored
    if dtype_of(result).storage_bits > min(dtype_of(op.results[0]).storage_bits for op in products):
        return _WIDE
    by_xla = by_kernels = False
    for reader in readers(result):
        if reader.name in VIEWS:
            return _REARRANGED
        needs_memory = _number(reader, order) is None or reader.name in _PRODUCTS or is_of_xla(reader)
        by_xla, by_kernels = by_xla or needs_memory, by_kernels or not needs_memory
    return Absorbed(tuple(following.operations), tuple(following.read), result, by_xla, by_kernels)


class _Following:
    """The operations that follow products, found so far, and the values of these that others read."""

    def __init__(self, products: Sequence[ir.Operation], order: Mapping[ir.Value, int]):
        self._order = order
        self._first = min(order[op.results[0]] for op in products)
        self._size = elements(products[0].results[0])
        self._forms = {op.results[0]: Form.of_hero(op.results[0]) for op in products}
        self._pending: list[tuple[int, ir.Operation]] = []
        self._seen = set[int]()
        self.operations: list[ir.Operation] = []
        self.read: dict[ir.Value, None] = {}
        self.stored: dict[ir.Value, None] = {}
        for value in self._forms:
            self._know(value)

    def find(self) -> Reason | None:
        """Look at what reads products and what is computed from them, in order; return why a kernel may not compute it.

        An operation comes after all that it reads.
        """
        while self._pending:
            if len(self.operations) == _MOST:
                return _LONG
            _, op = heappop(self._pending)
            own = [operand for operand in op.operands if operand in self._forms]
            form = follow(op, [self._forms.get(operand) for operand in op.operands])
            if form is None or not follows(op, form):
                self.stored |= dict.fromkeys(own)
                continue
            others = [operand for operand in op.operands if operand not in self._forms]
            if (reason := next(filter(None, map(self._problem, others)), None)) is not None:
                return reason
            self.operations.append(op)
            self._forms[op.results[0]] = form
            self._know(op.results[0])
        return None

    def _know(self, value: ir.Value) -> None:
        users = users_of(value)
        for user in users:
            number = _number(user, self._order)
            if number is None:
                self.stored[value] = None
            elif number not in self._seen:
                self._seen.add(number)
                heappush(self._pending, (number, user))
        if not users:
            self.stored[value] = None

    def _problem(self, value: ir.Value) -> Reason | None:
        """Return why a kernel may not read ``value``: it is in memory whoever computes what follows the products, or is
        no array at all. Then it is noted.
        """
        array = behind(value, *_VIEWS)
        if _FEW * elements(array) <= self._size:
            array = behind(array, *_VIEWS, _CONVERT)
        op = defining_op(array)
        if op is not None and op.name not in _GENERATORS:
            # What is made before the first product does not depend on any. XLA may compute what reads another product,
            # or a convolution, with that.
            is_made_before = self._order.get(array, -1) < self._first
            if op.name in CONTRACTIONS or not (is_made_before and (is_of_xla(op) or is_hero(op))):
                return Reason(_MADE.text, (op.name,))
        if op is None or op.name not in _GENERATORS:
            self.read[array] = None
        return None


def _number(op: ir.Operation, order: Mapping[ir.Value, int]) -> int | None:
    """Return the number of an operation of the block; None for its end, and for those of other blocks."""
    return order.get(op.results[0]) if len(op.results) else None


def copied_operand(value: ir.Value, *folded: str) -> str | None:
    """Return what makes an operand that a kernel's tiles would be copied for, though a library reads it as it is.

    Or XLA's kernels do, which convert what they have read. None if it is in memory anyway. Operations that are
    ``folded`` are not there when products are marked.
    """
    array = value
    while not is_argument(array) and (is_bitcast(producer(array)) or producer(array).name in folded):
        array = producer(array).operands[0]
    if is_argument(array):
        return None
    op = producer(array)
    is_read = op.name in VIEWS or op.name in _SLICES
    if is_cast_for(op, PRODUCT):
        is_read = is_in_memory(op.operands[0])
    return op.name if is_read or widening(array) else None


_SLICES = ("stablehlo.slice", "stablehlo.dynamic_slice")
"""Parts of arrays in memory, of which a library is given the address."""
