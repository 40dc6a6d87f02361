"""The pass `find-scan-gradients`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

import numpy as np

from xgpu import ir
from xgpu.hlo.scan_op import SCAN
from xgpu.hlo.stablehlo_builder import Value, element_of, hlo, shape_of
from xgpu.passes.framework.base import Pass
from xgpu.passes.normalize.scan_gradients.field import FieldArrays, FieldProgram, Points, subset
from xgpu.passes.normalize.scan_gradients.polynomials import NoPolynomialError, is_pred, number_of
from xgpu.passes.normalize.scan_gradients.recurrence import Recurrence
from xgpu.passes.normalize.scan_gradients.tensors import Tensors
from xgpu.passes.support.unused import erase_unused

_MOST_COTANGENTS = 32
"""Values that may be cotangents, times the results that they may be of, at most."""
_LAST = 16
"""Elements from the end on that say which results' cotangents these are."""
_LONGEST = 1 << 16
"""Elements along a scan at most: the proof takes time for each."""


@dataclass(frozen=True)
class FindScanGradients(Pass):
    """Makes scans of the gradients of scans that were written out by halves, which JAX differentiates as they are.

    The gradient of ``s[i] = c(s[i-1], e[i])`` is a linear recurrence from the end, whose matrices are derivatives of
    ``c``. What JAX makes of the halves is again a recursion, of slices, pads and sums, in a form that depends on which
    cotangents and gradients there are, and on what ``c`` is. So nothing is matched here: a sum of padded arrays that
    is a polynomial of a scan's arrays and of up to as many others is compared with the gradient that the scan would
    have if those others were its results' cotangents. Both are computed at random points of a finite field, with all
    elements along the scan, so that they are the same there only if they are the same polynomials. They differ in
    rounding, as a scan's own results do from those by halves.

    A truth value counts as 0 or 1, and ``select`` as a polynomial of it, so restarting scans are among these. Scans
    whose elements are combined by other functions stay as they are.

    Needs: scans found. What only the old gradients needed is erased.

    ```mlir
    %s = "xgpu.scan"(%e) ({ ... multiply ... }) {dimension = 0, reverse = false} : (tensor<4xf32>) -> tensor<4xf32>
    %g = stablehlo.add %sums, %padded : tensor<4xf32>      // of slices of %e and of %t, level by level
    ```
    becomes
    ```mlir
    %before = stablehlo.slice %s [0:3] : (tensor<4xf32>) -> tensor<3xf32>
    %next = stablehlo.slice %e [1:4] : (tensor<4xf32>) -> tensor<3xf32>
    %m = stablehlo.pad %next, %zero, low = [0], high = [1], interior = [0] : ... -> tensor<4xf32>
    %_, %u = "xgpu.scan"(%m, %t) ({ ... u * m + t ... }) {dimension = 0, reverse = true} : ...
    %rest = stablehlo.slice %u [1:4] : (tensor<4xf32>) -> tensor<3xf32>
    %product = stablehlo.multiply %before, %rest : tensor<3xf32>
    %first = stablehlo.slice %u [0:1] : (tensor<4xf32>) -> tensor<1xf32>
    %g = stablehlo.concatenate %first, %product, dim = 0 : (tensor<1xf32>, tensor<3xf32>) -> tensor<4xf32>
    ```
    """

    NAME: ClassVar[str] = "find-scan-gradients"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((SCAN,))

    def apply(self, module: ir.Module) -> None:
        """Replace all gradients that are found."""
        order: dict[ir.Operation, int] = {}

        def number(op: ir.Operation) -> ir.WalkResult:
            order[op.operation] = len(order)
            return ir.WalkResult.ADVANCE

        module.operation.walk(number, ir.WalkOrder.PRE_ORDER)
        scans = [scan for op in order if op.name == SCAN for scan in _Scan.all_of(op)]
        if not scans:
            return
        finder = _Finder(scans)
        groups: list[_Group] = []
        # Outer levels come after inner ones.
        for op in reversed(order):
            if op.name == "stablehlo.add" and (found := _Sum.of(op)) is not None:
                match = finder.match(found)
                if match is not None and not any(group.take(*match, found) for group in groups):
                    groups.append(_Group(match[0], {match[1]: found}))
        replaced: dict[Value, Value] = {}
        for group in groups:
            _Replacement(group, order, replaced).emit()
        erase_unused(list(replaced), order)


def _maker(value: Value) -> ir.Operation | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


@dataclass(eq=False)
class _Scan:
    """The scan of ``elements`` along a dimension; ``op`` computes it, if anything does, or with them reversed."""

    recurrence: Recurrence
    elements: tuple[Value, ...]
    dimension: int
    op: ir.Operation | None
    points: list[Points] = field(default_factory=list)

    @property
    def key(self) -> tuple[int, tuple[int, ...]]:
        """The dimension and the shape."""
        return self.dimension, tuple(shape_of(self.elements[0]))

    @property
    def element(self) -> ir.Type:
        """The type of those arrays that have gradients."""
        return next(element_of(value) for value in self.elements if not is_pred(value))

    @property
    def numbers(self) -> list[int]:
        """The numbers of the arrays that have gradients."""
        return [i for i, value in enumerate(self.elements) if not is_pred(value)]

    @classmethod
    def all_of(cls, op: ir.Operation) -> "Iterator[_Scan]":
        """Yield the scans that an `xgpu.scan` is, and is the second level of, if all is of polynomials of one type."""
        dimension = ir.IntegerAttr(op.attributes["dimension"]).value
        if len({element_of(value) for value in op.operands if not is_pred(value)}) != 1:
            return
        try:
            recurrence = Recurrence(op.regions[0].blocks[0])
        except NoPolynomialError:
            return
        if not ir.BoolAttr(op.attributes["reverse"]).value:
            yield cls(recurrence, tuple(op.operands), dimension, op)
            above = _above(op, dimension)
            if above is not None:
                yield cls(recurrence, above, dimension, None)
            return
        reversals = [_reversal(value, dimension) for value in op.operands]
        if all(value is not None for value in reversals):
            yield cls(recurrence, tuple(value for value in reversals if value is not None), dimension, op)


def _reversal(value: Value, dimension: int) -> Value | None:
    """Return a value that is another one reversed along the dimension, None if the program has none."""
    users = (use.owner.operation for use in value.uses)
    return next((op.results[0] for op in users if _unreversed(op, dimension) is not None), None)


def _unreversed(op: ir.Operation | None, dimension: int) -> Value | None:
    if op is None or op.name != "stablehlo.reverse":
        return None
    return op.operands[0] if list(ir.DenseI64ArrayAttr(op.attributes["dimensions"])) == [dimension] else None


def _above(op: ir.Operation, dimension: int) -> tuple[Value, ...] | None:
    """Return the arrays whose elements a scan's region combines in pairs to the elements of the scan's arrays."""
    block = op.regions[0].blocks[0]
    results, count = list(list(block.operations)[-1].operation.operands), len(op.operands)
    pending, seen = list(zip(results, op.operands, strict=True)), set[tuple[Value, Value]]()
    found: dict[int, Value] = {}
    while pending:
        pair = pending.pop()
        if pair in seen:
            continue
        seen.add(pair)
        known, maker = pair[0], _maker(pair[1])
        if maker is None:
            return None
        if isinstance(known.owner, ir.Block):
            number = list(block.arguments).index(known)
            part = _every_other(maker, dimension, number // count)
            if part is None or found.setdefault(number % count, part) != part:
                return None
            continue
        inside = known.owner.operation
        if number_of(inside) is not None:
            if number_of(inside) != number_of(maker):
                return None
        elif inside.name != maker.name:
            return None
        else:
            pending += zip(inside.operands, maker.operands, strict=True)
    values = tuple(found[i] for i in sorted(found))
    return values if len(values) == count and len({tuple(shape_of(value)) for value in values}) == 1 else None


def _every_other(op: ir.Operation, dimension: int, start: int) -> Value | None:
    """Return the array of whose pairs of elements an operation takes the one that is ``start``, None if it does not."""
    if op.name != "stablehlo.slice":
        return None
    starts, steps = (list(ir.DenseI64ArrayAttr(op.attributes[name])) for name in ("start_indices", "strides"))
    shape, count = shape_of(op.operands[0]), shape_of(op.results[0])[dimension]
    is_pairs = starts[dimension] == start and (steps[dimension] == 2 or count == 1) and shape[dimension] // 2 == count
    return op.operands[0] if is_pairs else None


@dataclass(frozen=True)
class _Sum:
    """An array that is the sum of padded arrays, and of ``others``, which are not padded."""

    op: ir.Operation
    dimension: int
    padded: tuple[ir.Operation, ...]
    others: tuple[Value, ...]

    @classmethod
    def of(cls, op: ir.Operation) -> "_Sum | None":
        """Return what sum an addition is, if it is one whose last term is spread along a dimension."""
        last = next((found for value in op.operands if (found := _spread(value)) is not None), None)
        if last is None:
            return None
        padded: list[ir.Operation] = []
        others: list[Value] = []
        pending = list(op.operands)
        while pending:
            value = pending.pop()
            maker = _maker(value)
            if maker is not None and maker.name == "stablehlo.pad":
                padded.append(maker)
            elif maker is not None and maker.name == "stablehlo.add" and _has_padded(maker):
                pending += maker.operands
            else:
                others.append(value)
        return cls(op, last, tuple(padded), tuple(others))

    @property
    def value(self) -> Value:
        """The array."""
        return self.op.results[0]


def _has_padded(op: ir.Operation) -> bool:
    """Whether an addition has a padded term, maybe inside the additions that are its terms."""
    makers = [_maker(value) for value in op.operands]
    while makers:
        maker = makers.pop()
        if maker is not None and maker.name == "stablehlo.pad":
            return True
        if maker is not None and maker.name == "stablehlo.add":
            makers += [_maker(value) for value in maker.operands]
    return False


def _spread(value: Value) -> int | None:
    """Return the dimension along which a value is another with an element between each two, None if it is not."""
    maker = _maker(value)
    if maker is None or maker.name != "stablehlo.pad":
        return None
    insides = list(ir.DenseI64ArrayAttr(maker.attributes["interior_padding"]))
    along = [i for i, inside in enumerate(insides) if inside]
    return along[0] if len(along) == 1 and insides[along[0]] == 1 else None


@dataclass(frozen=True)
class _Cotangents:
    """The cotangents of a scan's results by number, as far as they are not zero."""

    scan: _Scan
    values: tuple[tuple[int, Value], ...]

    def together(self, own: frozenset[int], other: "_Cotangents", others: frozenset[int]) -> "_Cotangents | None":
        """Return cotangents that give the gradients by the arrays of both; None if no such are known."""
        if self.scan is not other.scan:
            return None
        values = dict(self.values) | dict(other.values)
        concerns = self.scan.recurrence.concerns
        for known, wanted in ((dict(self.values), own), (dict(other.values), others)):
            differing = [i for i, value in values.items() if i not in known or known[i] != value]
            if any(concerns(i, j) for i in differing for j in wanted):
                return None
        return _Cotangents(self.scan, tuple(sorted(values.items(), key=lambda pair: pair[0])))


@dataclass
class _Group:
    """Sums that are gradients of one scan, by the numbers of its arrays."""

    cotangents: _Cotangents
    sums: dict[int, _Sum]

    def take(self, cotangents: _Cotangents, number: int, found: _Sum) -> bool:
        """Add a sum, which is the gradient by an array, if it is of this scan and can have the same cotangents."""
        together = self.cotangents.together(frozenset(self.sums), cotangents, frozenset([number]))
        if number in self.sums or together is None:
            return False
        self.cotangents = together
        self.sums[number] = found
        return True


class _Finder:
    """Finds which gradient of which scan a sum is."""

    def __init__(self, scans: Sequence[_Scan]):
        self._scans = scans
        self._programs: dict[tuple[int, tuple[int, ...]], FieldProgram] = {}
        self._known: dict[_Cotangents, Mapping[int, Points | None]] = {}
        self._found: list[FieldProgram] = []

    def match(self, found: _Sum) -> tuple[_Cotangents, int] | None:
        """Return the cotangents of which the padded part of a sum is a gradient, and of which array."""
        key = found.dimension, tuple(shape_of(found.value))
        scans = [scan for scan in self._scans if scan.key == key]
        if not scans or key[1][key[0]] > _LONGEST or any(program.has(found.value) for program in self._found):
            return None
        program = self._programs.setdefault(key, FieldProgram(*key))
        try:
            for op in found.padded:
                program.value(op.operands[0])
            total = reduce(lambda left, right: FieldArrays().apply("add", [left, right]), map(program.pad, found.padded))
        except NoPolynomialError:
            return None
        sources = frozenset[Value]().union(*(program.sources(op.operands[0]) for op in found.padded))
        for scan in scans:
            for i in scan.numbers:
                cotangents = self._cotangents(program, scan, sources, i, total)
                if cotangents is not None:
                    self._found.append(program)
                    return cotangents, i
        return None

    def _cotangents(
        self, program: FieldProgram, scan: _Scan, sources: frozenset[Value], wanted: int, total: Points
    ) -> _Cotangents | None:
        """Return the cotangents of which the gradient by an array is ``total``, None if there are none.

        Each is one of the sources that are not the scan's. Gradients are sums of what each cotangent alone gives.
        """
        others = sorted(sources.difference(scan.elements), key=program.place)
        numbers = [i for i in scan.numbers if scan.recurrence.concerns(i, wanted)]
        if not others or len(others) * len(numbers) > _MOST_COTANGENTS:
            return None
        if any(element_of(value) != scan.element for value in others):
            return None
        single = [_Cotangents(scan, ((i, value),)) for i in numbers for value in others]
        parts = [self._gradients(program, each).get(wanted) for each in single]
        known = [(each, part) for each, part in zip(single, parts, strict=True) if part is not None]
        chosen = subset(total[-_LAST:], [part[-_LAST:] for _, part in known])
        if chosen is None:
            return None
        values = dict(known[i][0].values[0] for i in chosen)
        cotangents = _Cotangents(scan, tuple(values.items()))
        gradient = self._gradients(program, cotangents).get(wanted)
        return cotangents if gradient is not None and np.array_equal(gradient, total) else None

    def _gradients(self, program: FieldProgram, cotangents: _Cotangents) -> Mapping[int, Points | None]:
        """Return the gradients by all arrays that have some."""
        if cotangents in self._known:
            return self._known[cotangents]
        scan, arrays = cotangents.scan, FieldArrays()
        elements = [program.value(value) for value in scan.elements]

        def prefixes() -> list[Points]:
            scan.points = scan.points or scan.recurrence.prefixes(arrays, elements)
            return scan.points

        points = {i: program.value(value) for i, value in cotangents.values}
        found: Mapping[int, Points | None] = {}
        with suppress(NoPolynomialError):
            found = scan.recurrence.gradients(
                arrays, program.size, dict(enumerate(elements)), prefixes, points, frozenset(scan.numbers)
            )
        self._known[cotangents] = found
        return found


class _Replacement:
    """Puts a scan in place of gradients that have the same cotangents."""

    def __init__(
        self,
        group: _Group,
        order: Mapping[ir.Operation, int],
        replaced: dict[Value, Value],
    ):
        self._scan, self._cotangents = group.cotangents.scan, group.cotangents
        self._sums, self._order, self._replaced = group.sums, order, replaced
        self._block = next(iter(group.sums.values())).op.block

    def emit(self) -> None:
        """Emit the gradients, and replace the sums by them."""
        scan = self._scan
        sources = [*scan.elements, *(value for _, value in self._cotangents.values)]
        is_reversed = all(_unreversed(_maker(value), scan.dimension) is not None for value in sources)
        known = scan.op if scan.op is not None and scan.op.block == self._block else None
        if known is not None and bool(ir.BoolAttr(known.attributes["reverse"]).value) != is_reversed:
            known = None
        makers = [known, *(_maker(value) for value in sources)]
        here = [op for op in makers if op is not None and op.block == self._block]
        last = max(here, key=lambda op: self._order[op], default=None)
        sums = {
            i: each
            for i, each in self._sums.items()
            if each.op.block == self._block and (last is None or self._order[last] < self._order[each.op])
        }
        if not sums:
            return
        place = ir.InsertionPoint.at_block_begin(self._block) if last is None else ir.InsertionPoint.after(last)
        tensors = Tensors(scan.dimension, scan.element, is_reversed)
        with next(iter(sums.values())).op.location, place:
            gradients = self._gradients(tensors, is_reversed, known, frozenset(sums))
        for i, each in sums.items():
            gradient = gradients[i]
            assert gradient is not None
            self._replace(each, gradient, tensors, is_reversed)

    def _gradients(
        self, tensors: Tensors, is_reversed: bool, known: ir.Operation | None, wanted: frozenset[int]
    ) -> dict[int, Value | None]:
        scan = self._scan

        def source(value: Value) -> Value:
            value = self._replaced.get(value, value)
            maker = _maker(value)
            return maker.operands[0] if is_reversed and maker is not None else value

        elements = [source(value) for value in scan.elements]
        made: list[Value] = [] if known is None else list(known.results)

        def prefixes() -> list[Value]:
            made.extend(scan.recurrence.prefixes(tensors, elements) if not made else ())
            return made

        cotangents = {i: source(value) for i, value in self._cotangents.values}
        size = shape_of(elements[0])[scan.dimension]
        return scan.recurrence.gradients(
            tensors, size, dict(enumerate(elements)), prefixes, cotangents, wanted
        )

    def _replace(self, found: _Sum, gradient: Value, tensors: Tensors, is_reversed: bool) -> None:
        """Replace a sum by a gradient, whose elements are in the order of the program's arrays before they are reversed.
        """
        dimension = self._scan.dimension
        with found.op.location, ir.InsertionPoint(found.op):
            # Zeros of the padded arrays make 0 of -0.
            value = tensors.apply("add", [gradient, 0])
            straight = value
            if is_reversed:
                value = hlo.reverse(value, [dimension])
            for other in found.others:
                value = hlo.add(self._replaced.get(other, other), value)
        if is_reversed and not found.others:
            for use in list(found.value.uses):
                user = use.owner.operation
                if _unreversed(user, dimension) is not None:
                    user.results[0].replace_all_uses_with(straight)
        found.value.replace_all_uses_with(value)
        self._replaced[found.value] = value
