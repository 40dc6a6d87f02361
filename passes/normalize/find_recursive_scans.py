"""The pass `find-recursive-scans`."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import ClassVar

from xgpu import ir
from xgpu.hlo.scan_op import ELEMENTWISE, build_scan, uniform
from xgpu.hlo.stablehlo_builder import Value, broadcast, hlo, shape_of, tensor
from xgpu.passes.framework.base import Pass
from xgpu.passes.normalize.scans.broadcasts import Broadcasts
from xgpu.passes.normalize.scans.parts import Pad, Slice, spread_dimension, unreversed
from xgpu.passes.normalize.scans.program_order import ProgramOrder
from xgpu.passes.normalize.scans.ties import is_broken_by_ties
from xgpu.records import dataclass
from xgpu.structure import attributes_of, defining_op, element_of, is_used, producer, users_of

_JOINING = ("stablehlo.add", "stablehlo.or")
"""Operations that put the halves together, each of which has zeros where the other has elements."""
_LARGEST = 1 << 10
"""Values of a combination at most."""


@dataclass(frozen=True)
class FindRecursiveScans(Pass):
    """Converts scans that JAX writes out recursively by halves, `lax.associative_scan`, to `xgpu.scan`.

    Of ``n`` arrays ``e`` along a dimension, JAX combines the elements of each pair to ``r``, which are half as many,
    and scans these to ``o``; what it makes of ``o`` and every other element comes between:

        r = combine(e[0:n-1:2], e[1::2]);  o = scan(r);  s[1::2] = o;  s[0::2] = [e[0], *combine(o, e[2::2])]

    Each level has operations of its own, and only the outermost result says where a scan is. So one of these is taken
    apart level by level; the region is what the first combination does, and every other is compared with it. The arrays
    that a scan has are those that its combinations read, whether the program uses their scans or not. (A function in
    place of JAX's would not be met by a module that has imported it before, nor in text.) A combination that is not
    elementwise, such as a product of matrices, is left, and so is one that is not associative where elements are equal,
    such as the derivative of a maximum. Arrays that a combination broadcasts are broadcast before. What
    only the scan's results needed is erased.

    Needs: calls inlined.

    ```mlir
    %first = stablehlo.slice %x [0:1] : (tensor<2xf32>) -> tensor<1xf32>
    %second = stablehlo.slice %x [1:2] : (tensor<2xf32>) -> tensor<1xf32>
    %0 = stablehlo.add %first, %second : tensor<1xf32>
    %even = stablehlo.pad %first, %zero, low = [0], high = [1], interior = [1] : ... -> tensor<2xf32>
    %odd = stablehlo.pad %0, %zero, low = [1], high = [0], interior = [1] : ... -> tensor<2xf32>
    %1 = stablehlo.add %even, %odd : tensor<2xf32>
    ```
    becomes
    ```mlir
    %1 = "xgpu.scan"(%x) ({ ... add ... }) {dimension = 0, reverse = false}
        : (tensor<2xf32>) -> tensor<2xf32>
    ```
    """

    NAME: ClassVar[str] = "find-recursive-scans"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.pad",))

    def apply(self, module: ir.Module) -> None:
        """Replace the results of all scans that are written out, and erase what only they needed."""
        order = ProgramOrder(module)
        inner: set[Value] = set()
        found: list[_Written] = []
        unused: list[_Written] = []
        finder = _Finder(order)
        # Outer levels come after inner ones.
        for op in reversed(order.operations):
            if op.name in _JOINING and op.results[0] not in inner:
                was_used = is_used(op.results[0])
                written = finder.find(op.results[0])
                if written is not None:
                    (found if was_used else unused).append(written)
                    inner |= written.inner | {finder.original(value) for value in written.inner}
        made: dict[Value, list[tuple[_Written, Mapping[Value, Value]]]] = {}
        replaced: dict[Value, Value] = {}
        # A scan of several arrays is also that of those among them that need no others.
        for each in sorted(found, key=lambda written: -len(written.arrays)):
            known = made.get(each.arrays[0], ())
            scans = next((scans for other, scans in known if other.has(each) and other.is_before(each, order)), None)
            if scans is None and each.is_before(each, order):
                scans = each.emit(order, replaced)
                for array in each.arrays:
                    made.setdefault(array, []).append((each, scans))
            if scans is not None:
                replaced[each.value] = each.use(scans[each.arrays[0]])
        made_of = [value for each in (*found, *unused) for value in (each.value, finder.original(each.value))]
        order.erase_unused([*made_of, *finder.copies])


@dataclass(frozen=True)
class _Interleaved:
    """A value whose even elements along a dimension are those of ``first`` and ``others``, and the odd ones ``odd``.

    ``first`` is the array whose first element is the first one. ``others`` is None where there are none. ``zero`` is
    what is added to each element to put the two together.
    """

    dimension: int
    size: int
    first: Value
    others: Value | None
    odd: Value
    zero: Value

    @classmethod
    def of(cls, value: Value) -> "_Interleaved | None":
        """Return how ``value`` is made of two padded arrays; None if it is not."""
        op = defining_op(value)
        if op is None or op.name not in _JOINING:
            return None
        even, odd = (_spread(operand) for operand in op.operands)
        if even is None or odd is None or even[1] != odd[1] or (even[2], odd[2]) != (0, 1):
            return None
        dimension, size = even[1], shape_of(value)[even[1]]
        joined = defining_op(even[0])
        parts = [even[0]] if joined is None or joined.name != "stablehlo.concatenate" else list(joined.operands)
        head = Slice.of(parts[0], dimension)
        if len(parts) > 2 or head is None or (head.start, head.count) != (0, 1) or head.size != size:
            return None
        others = parts[1] if len(parts) == 2 and shape_of(parts[1])[dimension] else None
        zero = producer(op.operands[0]).operands[1]
        return cls(dimension, size, head.array, others, odd[0], zero)


def _unconverted(value: Value) -> Value:
    """Return what a value is converted from, if that has its type: JAX makes such operations of numbers in Python."""
    op = defining_op(value)
    while op is not None and op.name == "stablehlo.convert" and op.operands[0].type == value.type:
        value = op.operands[0]
        op = defining_op(value)
    return value


def _spread(value: Value) -> tuple[Value, int, int] | None:
    """Return an array, the dimension along which a zero is between each two of its elements, and how many before."""
    op = defining_op(value)
    along = spread_dimension(op)
    pad = None if op is None or along is None else Pad.of(op, along)
    if along is None or pad is None or not {pad.low, pad.high} <= {0, 1}:
        return None
    return pad.array, along, pad.low


class _NoScanError(Exception):
    """Raised for operations that look like a scan and are none."""


@dataclass(frozen=True)
class _Leaf:
    """An element of the array of this number: the one before, or, if ``is_right``, the one that it is combined with."""

    number: int
    is_right: bool


@dataclass
class _Level:
    """The arrays of one level by number, as far as they are known, and the scans of those that are needed."""

    size: int
    arrays: dict[int, Value]
    scans: dict[int, Value]


class _Levels:
    """Takes a result apart, level by level. Raises `_NoScanError` where it is no scan.

    ``region`` has for each array the first value that is what two of its elements are combined to; in these,
    ``leaves`` are the elements. Numbers are given to arrays as they are met.
    """

    def __init__(self, value: Value, outermost: _Interleaved):
        self.dimension = outermost.dimension
        self.region: dict[int, Value] = {}
        self.leaves: dict[Value, _Leaf] = {}
        self.levels = [_Level(outermost.size, {0: outermost.first}, {0: value})]
        self._checked: set[tuple[int, int]] = set()
        while self.levels[-1].size > 1:
            self._take_apart(len(self.levels) - 1)

    def _take_apart(self, depth: int) -> None:
        """Check a level, and find the next one."""
        level = self.levels[depth]
        self.levels.append(_Level(level.size // 2, {}, {}))
        for number, value in list(level.scans.items()):
            joined = self._joined(value, level.size)
            self._set_array(depth, number, joined.first)
            self._set_odd(depth, number, joined.odd)
            if joined.others is not None:
                self._match(number, joined.others, lambda leaf, found: self._meet_between(depth, leaf, found))

    def _joined(self, value: Value, size: int) -> _Interleaved:
        found = _Interleaved.of(value)
        if found is None or (found.dimension, found.size) != (self.dimension, size):
            raise _NoScanError
        return found

    def _set_odd(self, depth: int, number: int, value: Value) -> None:
        """Note the odd elements of a scan, which are the scan of the next level, and the array of that."""
        below = self.levels[depth + 1]
        if below.scans.setdefault(number, value) != value:
            raise _NoScanError
        first = self._joined(value, below.size).first if below.size > 1 else value
        self._set_array(depth + 1, number, first)

    def _set_array(self, depth: int, number: int, value: Value) -> None:
        """Note which array of a level has a number: below the first level it is what pairs above are combined to."""
        if self.levels[depth].arrays.setdefault(number, value) != value:
            raise _NoScanError
        if depth and (depth, number) not in self._checked:
            self._checked.add((depth, number))
            if number not in self.region:
                self._learn(depth - 1, number, value)
            self._match(number, value, lambda leaf, found: self._meet_pair(depth - 1, leaf, found))

    def _learn(self, depth: int, number: int, value: Value) -> None:
        """Take a value of the next level for what two elements are combined to, and find the elements."""
        self.region[number] = value
        level = self.levels[depth]
        numbers = {array: number for number, array in level.arrays.items()}
        pending, seen = [value], {value}
        while pending:
            each = _unconverted(pending.pop())
            part, op = Slice.of(each, self.dimension), defining_op(each)
            if part is not None and part.size == level.size and part.start in (0, 1):
                if part.array not in numbers and depth:
                    raise _NoScanError
                found = numbers.setdefault(part.array, len(numbers))
                self.leaves[each] = _Leaf(found, part.start == 1)
            elif op is None or (uniform(op) is None and op.name not in ELEMENTWISE) or len(seen) > _LARGEST:
                raise _NoScanError
            elif uniform(op) is None:
                pending += set(op.operands) - seen
                seen |= set(op.operands)
        level.arrays.update((number, array) for array, number in numbers.items())

    def _match(self, number: int, value: Value, meet: Callable[[_Leaf, Value], None]) -> None:
        """Check that a value is computed as the region's of this number; ``meet`` is given what stands for elements."""
        pending, seen = [(self.region[number], value)], set[tuple[Value, Value]]()
        while pending:
            known, found = map(_unconverted, pending.pop())
            pair = known, found
            if pair in seen:
                continue
            seen.add(pair)
            if known in self.leaves:
                meet(self.leaves[known], found)
                continue
            op, other = defining_op(known), defining_op(found)
            assert op is not None
            is_same = other is not None and element_of(known) == element_of(found)
            if not is_same or other is None or uniform(op) != uniform(other):
                raise _NoScanError
            if uniform(op) is None:
                if op.name != other.name or attributes_of(op) != attributes_of(other):
                    raise _NoScanError
                pending += zip(op.operands, other.operands, strict=True)

    def _meet_pair(self, depth: int, leaf: _Leaf, value: Value) -> None:
        """Check an element of a pair: every other one of an array."""
        self._meet_part(depth, leaf.number, value, int(leaf.is_right), self.levels[depth].size // 2)

    def _meet_between(self, depth: int, leaf: _Leaf, value: Value) -> None:
        """Check an element of what is between the odd ones: of the scan of the next level, or every other one."""
        size = self.levels[depth].size
        if leaf.is_right:
            self._meet_part(depth, leaf.number, value, 2, (size - 1) // 2)
            return
        if size % 2 == 0:
            part = Slice.of(value, self.dimension)
            if part is None or (part.size, part.start, part.count, part.step) != (size // 2, 0, size // 2 - 1, 1):
                raise _NoScanError
            value = part.array
        self._set_odd(depth, leaf.number, value)

    def _meet_part(self, depth: int, number: int, value: Value, start: int, count: int) -> None:
        part = Slice.of(value, self.dimension)
        size, step = self.levels[depth].size, 2 if count > 1 else 1
        if part is None or (part.size, part.start, part.count, part.step) != (size, start, count, step):
            raise _NoScanError
        self._set_array(depth, number, part.array)


@dataclass(frozen=True)
class _Written:
    """The scan of the first of ``arrays``, as the program has written it out: its result is ``value``.

    ``region`` has what each array's elements are combined to, given those that ``leaves`` are; ``zero`` is added to the
    result. ``inner`` are the scans of the levels below.
    """

    value: Value
    dimension: int
    arrays: tuple[Value, ...]
    region: tuple[Value, ...]
    leaves: Mapping[Value, _Leaf]
    zero: Value
    inner: frozenset[Value]

    @classmethod
    def of(cls, value: Value) -> "_Written":
        """Return the scan that ``value`` is. Raises `_NoScanError` if it is none."""
        outermost = _Interleaved.of(value)
        if outermost is None:
            raise _NoScanError
        levels = _Levels(value, outermost)
        arrays = levels.levels[0].arrays
        shapes = {tuple(shape_of(array)) for array in arrays.values()}
        if set(arrays) != set(levels.region) or len(shapes) > 1:
            raise _NoScanError
        inner = frozenset(scan for level in levels.levels[1:] for scan in level.scans.values())
        numbers = range(len(arrays))
        written = cls(
            value,
            outermost.dimension,
            tuple(arrays[i] for i in numbers),
            tuple(levels.region[i] for i in numbers),
            levels.leaves,
            outermost.zero,
            inner,
        )
        with value.location:
            if is_broken_by_ties([element_of(array) for array in written.arrays], written._emit_region):
                raise _NoScanError
        return written

    def has(self, other: "_Written") -> bool:
        """Whether the other scan is one of those of these arrays, which the same region makes in the same block."""
        own = dict(zip(self.arrays, self.region, strict=True))
        return self._block == other._block and all(
            array in own and own[array] == value for array, value in zip(other.arrays, other.region, strict=True)
        )

    @property
    def _block(self) -> ir.Block:
        op = defining_op(self.value)
        assert op is not None
        return op.block

    def is_before(self, other: "_Written", order: ProgramOrder) -> bool:
        """Whether all arrays are there where the other's result is made."""
        last, op = self._last(order), defining_op(other.value)
        return last is None or op is None or order.place(last) < order.place(op)

    def _last(self, order: ProgramOrder) -> ir.Operation | None:
        """Return the last operation in the block that makes an array, None if none of them does."""
        return order.last(map(defining_op, self.arrays), self._block)

    @property
    def is_reversed(self) -> bool:
        """Whether all arrays are reversed along the dimension, and only that."""
        return all(unreversed(defining_op(array), self.dimension) is not None for array in self.arrays)

    def emit(self, order: ProgramOrder, replaced: Mapping[Value, Value]) -> dict[Value, Value]:
        """Emit the scan of the arrays, of those before they are reversed if they are; return the scans by array.

        ``replaced`` has what has been put in place of results so far.
        """
        last, result = self._last(order), defining_op(self.value)
        assert result is not None
        place = ir.InsertionPoint.at_block_begin(self._block) if last is None else ir.InsertionPoint.after(last)
        arrays = [replaced.get(array, array) for array in self.arrays]
        if self.is_reversed:
            arrays = [op.operands[0] for array in self.arrays if (op := defining_op(array)) is not None]
        with result.location, place:
            scans = build_scan(arrays, self.dimension, self.is_reversed, self._emit_region)
        return dict(zip(self.arrays, scans, strict=True))

    def _emit_region(self, arguments: list[Value]) -> list[Value]:
        """Emit what two elements of each array are combined to, as operations on scalars."""
        half = len(self.arrays)
        values = {v: arguments[leaf.number + half * leaf.is_right] for v, leaf in self.leaves.items()}
        pending = list(reversed(self.region))
        while pending:
            value = pending[-1]
            op = None if value in values else defining_op(value)
            if op is None:
                pending.pop()
            elif (number := uniform(op)) is not None:
                constant = ir.DenseElementsAttr.get_splat(tensor([], element_of(value)), number)
                values[value] = hlo.constant(constant)
            elif unknown := [operand for operand in op.operands if operand not in values]:
                pending += unknown
            else:
                types = [tensor([], element_of(result)) for result in op.results]
                operands = [values[operand] for operand in op.operands]
                values[value] = ir.Operation.create(op.name, types, operands, attributes_of(op)).results[0]
        return [values[value] for value in self.region]

    def use(self, scan: Value) -> Value:
        """Have what uses the result use ``scan``, which is not reversed where the arrays are; return what it uses."""
        op = defining_op(self.value)
        assert op is not None
        with op.location, ir.InsertionPoint(op):
            if op.name == "stablehlo.add" and not isinstance(element_of(scan), ir.IntegerType):
                # It makes 0 of -0.
                scan = hlo.add(scan, broadcast(self.zero, shape_of(scan)))
        if self.is_reversed:
            for user in users_of(self.value):
                if unreversed(user, self.dimension) is not None:
                    user.results[0].replace_all_uses_with(scan)
            with op.location, ir.InsertionPoint(op):
                scan = hlo.reverse(scan, [self.dimension])
        self.value.replace_all_uses_with(scan)
        return scan


class _Finder:
    """Finds scans, those too whose arrays are broadcast where they are combined."""

    def __init__(self, order: ProgramOrder):
        self._order = order
        self._broadcasts: dict[tuple[int, int], Broadcasts] = {}

    def find(self, value: Value) -> _Written | None:
        """Return the scan that a value is, or that a copy is which takes its place; None if it is none."""
        with suppress(_NoScanError):
            return _Written.of(value)
        outermost = _Interleaved.of(value)
        if outermost is None:
            return None
        key = outermost.dimension, outermost.size
        moved = self._broadcasts.setdefault(key, Broadcasts(self._order, *key)).moved(value)
        if moved == value:
            return None
        with suppress(_NoScanError):
            written = _Written.of(moved)
            value.replace_all_uses_with(moved)
            return written
        return None

    def original(self, value: Value) -> Value:
        """Return the program's value in whose place a copy is, the value itself if it is none."""
        return next((made.original(value) for made in self._broadcasts.values() if made.has(value)), value)

    @property
    def copies(self) -> list[Value]:
        """All copies, whether they have become a scan or not."""
        return [copy for made in self._broadcasts.values() for copy in made.copies]
