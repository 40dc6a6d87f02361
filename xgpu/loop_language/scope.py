"""The scope at a place of a program: its names, the ranges of its variables, and the conditions around it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xgpu import ir
from xgpu.dialects.nests.accesses import MAX_INDEX
from xgpu.dtypes import DType
from xgpu.errors import InvalidInput, SourceLocation
from xgpu.indexing.affine import AffineExpr, Division, Ranges, constant, dim
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval
from xgpu.records import dataclass

MAX_INDEX_SIZE = 100
"""Numbers, variables and operators of an index, at most, names written out."""
MAX_INDEX_NESTING = 16
"""The depth to which divisions may nest in an index."""


@dataclass(frozen=True)
class Buffer:
    """A buffer: its value, and what may be done with it."""

    name: str
    value: ir.Value
    dtype: DType
    shape: tuple[int, ...]
    access: str


@dataclass(frozen=True)
class Value:
    """A value with a name: an element, or an index."""

    value: "ir.Value | AffineExpr | float"


Meaning = Buffer | Value


class ScopedNames:
    """The names at a place, and the loops and conditions around it.

    Loops' variables, and indices that values decide, are numbered through the program: index expressions are in these
    numbers. ``written`` holds the buffers that have values so far.
    """

    def __init__(self) -> None:
        self._names: list[dict[str, Meaning]] = [{}]
        self._intervals: list[Interval] = []
        self._ranges = Ranges((), ())
        self._variables: list[ir.Value] = []
        self._constraints: list[Constraint] = []
        self.written: set[str] = set()

    def define(self, name: str, meaning: Meaning, at: SourceLocation) -> None:
        """Give a name its meaning up to the end of the block; raises InvalidInput if it has one."""
        if self.meaning(name) is not None:
            raise InvalidInput(f"'{name}' has a meaning here already", at)
        self._names[-1][name] = meaning

    def meaning(self, name: str) -> Meaning | None:
        """Return what a name means; None if it means nothing."""
        return next((names[name] for names in reversed(self._names) if name in names), None)

    @property
    def names(self) -> list[str]:
        """All names that mean something."""
        return sorted({name for names in self._names for name in names})

    @contextmanager
    def block(self, constraints: Sequence[Constraint] = ()) -> Iterator[None]:
        """Names that are defined in the body of the ``with`` statement end with it, and so do constraints."""
        self._names.append({})
        before = len(self._constraints)
        self._constraints += constraints
        yield
        del self._constraints[before:]
        self._names.pop()

    def new_variable(self, value: ir.Value, extent: int) -> AffineExpr:
        """Return the expression of a variable, which is from 0 to ``extent - 1``."""
        self._variables.append(value)
        self._intervals.append(Interval(0, extent - 1))
        variable = dim(len(self._variables) - 1)
        self._ranges.define(variable.terms[0][0], self._intervals[-1])
        return variable

    def interval(self, expr: AffineExpr) -> Interval:
        """Return the range of an expression, by those of the variables alone."""
        return self._ranges.interval(expr)

    def check_index(self, expr: AffineExpr, at: SourceLocation) -> AffineExpr:
        """Return an index expression; raises InvalidInput if its text or its numbers are too large."""
        if expr.size() > MAX_INDEX_SIZE or _nesting(expr) > MAX_INDEX_NESTING:
            raise InvalidInput(
                f"an index of more than {MAX_INDEX_SIZE} numbers, variables and operators, or of divisions that nest"
                f" more than {MAX_INDEX_NESTING} deep: keep a part of it in a buffer of s32",
                at,
            )
        return self.check_magnitude(expr, at)

    def check_magnitude(self, expr: AffineExpr, at: SourceLocation) -> AffineExpr:
        """Return an index or a position; raises InvalidInput if it need not be computable in 64 bits."""
        if self._ranges.magnitude(expr) > MAX_INDEX:
            raise InvalidInput(f"an index may be beyond {MAX_INDEX}, the largest that is computed, or a part of it", at)
        return expr

    def is_unreachable(self) -> bool:
        """Whether the conditions around this place are known to contradict each other."""
        return self.map_of([], self._constraints, implied=False)[0].simplify().is_empty()

    def map_of(
        self, results: Sequence[AffineExpr], constraints: Sequence[Constraint] = (), implied: bool = True
    ) -> tuple[IndexingMap, list[ir.Value]]:
        """Return the map to ``results`` of the variables in them, and these variables.

        Its domain is that of the iterations that get here, as far as their conditions are about these variables; those
        are left out if they are not to be ``implied``.
        """
        used = set[int]().union(*(expr.variables()[0] for expr in (*results, *(expr for expr, _ in constraints))))
        kept = list(constraints)
        waiting = list(self._constraints) if implied else []
        while added := [each for each in waiting if each[0].variables()[0] & used]:
            waiting = [each for each in waiting if each not in added]
            kept += added
            used = used.union(*(expr.variables()[0] for expr, _ in added))
        numbers = sorted(used)
        renamed = {number: dim(position) for position, number in enumerate(numbers)}
        map_ = IndexingMap(
            tuple(self._intervals[number] for number in numbers),
            (),
            tuple(expr.substitute(renamed) for expr in results),
            tuple((expr.substitute(renamed), interval) for expr, interval in kept),
        )
        map_ = map_.simplify() if results else map_
        map_, positions = map_.remove_unused_dims()
        return map_, [self._variables[numbers[position]] for position in positions]


def as_index(value: float | AffineExpr) -> AffineExpr:
    """Return a whole number as an index expression."""
    return value if isinstance(value, AffineExpr) else constant(int(value))


def _nesting(expr: AffineExpr) -> int:
    """Return how deep divisions nest in an expression."""
    return max((1 + _nesting(atom.expr) for atom, _ in expr.terms if isinstance(atom, Division)), default=0)
