"""Operands of products that are computed on their way from memory, such as weights that are dequantised."""

from xgpu import ir
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.access import identity_map, shape_of
from xgpu.indexing.affine import Dim, linearize
from xgpu.indexing.hlo_maps import accesses
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.simplify import Simplifier
from xgpu.indexing.tiles.element_tiles import can_be_tiled, is_plain, then
from xgpu.records import dataclass
from xgpu.structure import dtype_of, element_of, is_argument, is_constant, producer

_MOST_OPERATIONS = 32
"""Operations of a prologue at most: threads compute them while the tensor cores wait."""
NARROW_BITS = (4, 8)
"""Bits of the elements of arrays whose tiles threads read from shared memory as they are: bytes, or parts of one."""
_IOTA = "stablehlo.iota"


@dataclass(frozen=True)
class Prologue:
    """The computation of a product's operand, the one of a ``number``, element by element.

    Each of its elements needs one of ``array`` that no other needs, which is where ``access`` leads to from its
    indices. Elements of ``others``, such as scales, are shared by many. ``operations`` compute it, the last one first.
    """

    number: int
    array: ir.Value
    access: IndexingMap
    others: tuple[ir.Value, ...]
    operations: tuple[ir.Operation, ...]

    @property
    def bits(self) -> int:
        """The bits of an element of the array."""
        return dtype_of(self.array).storage_bits

    @classmethod
    def of(cls, product: ir.Operation, number: int) -> "Prologue | str":
        """Return how an operand is computed, or why it is not computed so."""
        value = product.operands[number]
        reading = _Reading(value)
        if reading.problem is not None:
            return reading.problem
        whole = [each for each in reading.read if _is_whole(*each, shape_of(value))]
        if not any(OPERATIONS[op.name].kind == "elementwise" for op in reading.operations):
            return "expected an operand that is computed, got one in memory"
        if len(whole) != 1:
            return f"expected one array with an element for each of the operand, got {len(whole)}"
        ((array, access),) = whole
        if dtype_of(array).storage_bits not in NARROW_BITS:
            return f"expected an array with elements of {narrow_text()}, got one of {dtype_of(array)}"
        others = dict.fromkeys(each for each, _ in reading.read if each != array)
        return cls(number, array, access, tuple(others), tuple(reading.operations))


def narrow_text() -> str:
    """Return the widths of the elements that threads read, in words."""
    return f"{' or '.join(map(str, NARROW_BITS))} bits"


class _Reading:
    """The arrays ``read`` to compute a value, each with the map from the value's indices, or the ``problem``."""

    def __init__(self, value: ir.Value):
        self.read: list[tuple[ir.Value, IndexingMap]] = []
        self.operations: list[ir.Operation] = []
        self.problem: str | None = None
        pending, seen = [(value, identity_map(shape_of(value)))], set[tuple[ir.Value, IndexingMap]]()
        while pending and self.problem is None:
            each, map_ = pending.pop()
            if (each, map_) in seen or (is_constant(each) and can_be_tiled(producer(each))):
                continue
            seen.add((each, map_))
            if not is_plain(element_of(each)):
                self.problem = f"expected elements that are floats or integers, got {each.type}"
            elif is_argument(each) or not _is_computed(producer(each)):
                self.read.append((each, map_))
            else:
                op = producer(each)
                if op not in self.operations:
                    self.operations.append(op)
                pending += [(op.operands[access.operand], then(map_, access.map)) for access in accesses(op)]
            if len(self.operations) > _MOST_OPERATIONS:
                self.problem = f"expected at most {_MOST_OPERATIONS} operations"


def _is_computed(op: ir.Operation) -> bool:
    return op.name in OPERATIONS and op.name != _IOTA and can_be_tiled(op)


def _is_whole(array: ir.Value, access: IndexingMap, shape: tuple[int, ...]) -> bool:
    """Whether an array has an element of its own for each of an operand with a shape, equally far apart in memory."""
    position = Simplifier(access.dims, access.symbols).simplify(linearize(access.results, shape_of(array)))
    alone = {atom.index for atom, _ in position.terms if isinstance(atom, Dim)}
    return alone == {number for number, size in enumerate(shape) if size > 1}
