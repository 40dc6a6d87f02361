"""Finds which padded arrays add up to the gradient of a scan, and proves it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import reduce

import numpy as np

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, shape_of
from xgpu.passes.normalize.scans.field import FieldArrays, FieldProgram, Points, subset
from xgpu.passes.normalize.scans.polynomials import NoPolynomialError
from xgpu.passes.normalize.scans.recurrence import Given
from xgpu.passes.normalize.scans.scan import Scan
from xgpu.passes.normalize.scans.sums import ScanSum
from xgpu.records import dataclass
from xgpu.structure import element_of

_MOST_COTANGENTS = 32
"""Values that may be cotangents, times the results that they may be of, at most."""
_LAST = 16
"""Elements from the end on that say which results' cotangents these are."""
_LONGEST = 1 << 16
"""Elements along a scan at most: the proof takes time for each."""


@dataclass(frozen=True)
class Cotangents:
    """The cotangents of a scan's results by number, as far as they are not zero."""

    scan: Scan
    values: tuple[tuple[int, Value], ...]

    def together(self, own: frozenset[int], other: "Cotangents", others: frozenset[int]) -> "Cotangents | None":
        """Return cotangents that give the gradients by the arrays of both; None if no such are known."""
        if self.scan is not other.scan:
            return None
        values = dict(self.values) | dict(other.values)
        concerns = self.scan.recurrence.concerns
        for known, wanted in ((dict(self.values), own), (dict(other.values), others)):
            differing = [i for i, value in values.items() if i not in known or known[i] != value]
            if any(concerns(i, j) for i in differing for j in wanted):
                return None
        return Cotangents(self.scan, tuple(sorted(values.items(), key=lambda pair: pair[0])))


@dataclass(eq=False)
class ScanGradient:
    """Padded arrays that add up to the gradient by a scan's array, given cotangents; ``sum`` has them among others."""

    sum: ScanSum
    padded: frozenset[Value]
    cotangents: Cotangents
    number: int


@dataclass(eq=False)
class GradientGroup:
    """Gradients by the arrays of one scan, by number, that have the same cotangents."""

    cotangents: Cotangents
    gradients: dict[int, ScanGradient] = field(default_factory=dict)

    def take(self, found: ScanGradient) -> bool:
        """Add a gradient if it is of this scan and can have the same cotangents."""
        together = self.cotangents.together(frozenset(self.gradients), found.cotangents, frozenset([found.number]))
        if found.number in self.gradients or together is None:
            return False
        self.cotangents = together
        self.gradients[found.number] = found
        return True


class Finder:
    """Finds gradients of some scans in sums that are given from the last one on."""

    def __init__(self, scans: Sequence[Scan]):
        self._scans: dict[tuple[int, tuple[int, ...]], list[Scan]] = {}
        for scan in scans:
            self._scans.setdefault(scan.key, []).append(scan)
        self._programs: dict[tuple[int, tuple[int, ...]], FieldProgram] = {}
        self._known: dict[Cotangents, Mapping[int, Points]] = {}
        self._met: dict[Scan, set[Value]] = {scan: set() for scan in scans}
        self._inner = set[Value]()
        self._found: dict[FieldProgram, None] = {}

    def gradients(self, op: ir.Operation) -> list[ScanGradient]:
        """Return the gradients that an addition has, if it is not itself a part of what has been looked at."""
        if op.results[0] in self._inner or any(program.has(op.results[0]) for program in self._found):
            return []
        found = ScanSum.of(op)
        if found is None:
            return []
        self._inner.update(found.additions)
        key = found.dimension, tuple(shape_of(found.value))
        scans = self._scans.get(key, [])
        if not scans or key[1][key[0]] > _LONGEST:
            return []
        program = self._programs.setdefault(key, FieldProgram(*key))
        parts = self._parts(program, found, scans)
        gradients = [each for padded in parts if (each := self._gradient(program, found, padded, scans)) is not None]
        if gradients:
            self._found[program] = None
        if program.forget():
            self._known.clear()
            for scan in scans:
                scan.points.clear()
        return gradients

    def _parts(self, program: FieldProgram, found: ScanSum, scans: Sequence[Scan]) -> list[dict[Value, Points]]:
        """Return those padded arrays that are polynomials, in parts that have no sources in common but scans' arrays.

        What several scans read has several gradients.
        """
        elements = {value for scan in scans for value in scan.elements}
        points: dict[Value, Points] = {}
        sources: dict[Value, frozenset[Value]] = {}
        readers: dict[Value, list[Value]] = {}
        for padded, times in Counter(found.padded).items():
            with suppress(NoPolynomialError):
                points[padded] = FieldArrays().apply("multiply", [program.padded(padded), times])
                sources[padded] = program.padded_sources(padded) - elements
                for source in sources[padded]:
                    readers.setdefault(source, []).append(padded)
        parts: list[dict[Value, Points]] = []
        while readers:
            pending, part = [next(iter(readers))], dict[Value, Points]()
            for source in pending:
                new = [padded for padded in readers.pop(source, []) if padded not in part]
                part |= {padded: points[padded] for padded in new}
                pending += [each for padded in new for each in sources[padded] if each in readers]
            parts.append(part)
        return parts

    def _gradient(
        self, program: FieldProgram, found: ScanSum, padded: Mapping[Value, Points], scans: Sequence[Scan]
    ) -> ScanGradient | None:
        """Return the gradient that padded arrays add up to, None if it is none of these scans'."""
        total = reduce(lambda left, right: FieldArrays().apply("add", [left, right]), padded.values())
        sources = frozenset[Value]().union(*map(program.padded_sources, padded))
        for scan in self._candidates(scans, sources):
            for i in scan.numbers:
                cotangents = self._cotangents(program, scan, sources, i, total)
                if cotangents is not None:
                    self._met[scan].update(value for _, value in cotangents.values)
                    return ScanGradient(found, frozenset(padded), cotangents, i)
        return None

    def _candidates(self, scans: Sequence[Scan], sources: frozenset[Value]) -> list[Scan]:
        """Return the scans of which some array is among the sources, the likeliest first.

        If those are none's, return the scans whose gradients do not depend on arrays, one of those with the same ones.
        Scans of different arrays may have gradients in common. One that has others with these cotangents is best.
        """
        related = [scan for scan in scans if not sources.isdisjoint(scan.elements)]
        found = sorted(
            related or [scan for scan in scans if scan.recurrence.constants is not None],
            key=lambda scan: (self._met[scan].isdisjoint(sources), -len(sources.intersection(scan.elements))),
        )
        return found if related else list({scan.recurrence.constants: scan for scan in reversed(found)}.values())

    def _cotangents(
        self, program: FieldProgram, scan: Scan, sources: frozenset[Value], wanted: int, total: Points
    ) -> Cotangents | None:
        """Return the cotangents of which the gradient by an array is ``total``, None if there are none.

        Each is one of the sources that are not the scan's. Gradients are sums of what each cotangent alone gives.
        """
        others = sorted(sources.difference(scan.elements), key=program.place)
        numbers = [i for i in scan.numbers if scan.recurrence.concerns(i, wanted)]
        if not others or len(others) * len(numbers) > _MOST_COTANGENTS:
            return None
        if any(element_of(value) != scan.element for value in others):
            return None
        single = [Cotangents(scan, ((i, value),)) for i in numbers for value in others]
        parts = [self._gradients(program, each).get(wanted) for each in single]
        known = [(each, part) for each, part in zip(single, parts, strict=True) if part is not None]
        chosen = subset(total[-_LAST:], [part[-_LAST:] for _, part in known])
        if not chosen:
            return None
        values = dict(known[i][0].values[0] for i in chosen)
        cotangents = Cotangents(scan, tuple(values.items()))
        gradient = self._gradients(program, cotangents).get(wanted)
        return cotangents if gradient is not None and np.array_equal(gradient, total) else None

    def _gradients(self, program: FieldProgram, cotangents: Cotangents) -> Mapping[int, Points]:
        """Return the gradients by all arrays that have some."""
        if cotangents in self._known:
            return self._known[cotangents]
        scan, arrays = cotangents.scan, FieldArrays()
        elements = [program.value(value) for value in scan.elements]

        def prefixes() -> list[Points]:
            scan.points.extend([] if scan.points else scan.recurrence.scans(arrays, elements))
            return scan.points

        points = {i: program.value(value) for i, value in cotangents.values}
        found: Mapping[int, Points] = {}
        with suppress(NoPolynomialError):
            given = Given(arrays, program.size, elements, prefixes)
            found = scan.recurrence.gradients(given, points, frozenset(scan.numbers))
        self._known[cotangents] = found
        return found
