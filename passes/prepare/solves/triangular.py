"""Solutions of small triangular systems by substitution."""

from xgpu.hlo.stablehlo_builder import Value, hlo, shape_of
from xgpu.passes.prepare.solves.elements import elements_of, part_of, spread, stacked
from xgpu.records import dataclass


@dataclass(frozen=True)
class Triangular:
    """A system ``a x = b``, or ``x a = b`` if not ``left``; ``transposed`` stands for the transpose of ``a``.

    ``lower`` says which triangle of ``a`` as it is given counts, ``unit`` that its diagonal counts as ones.
    """

    left: bool
    lower: bool
    transposed: bool
    unit: bool

    def solve(self, matrices: Value, right: Value) -> Value:
        """Return the solutions for ``right``, whose rows are those of ``a``, or its columns if not ``left``."""
        rows = elements_of(matrices)
        size, rank = len(rows), len(shape_of(right))
        axis = rank - 2 if self.left else rank - 1
        # With x from the right the system is that of the transpose.
        is_turned = self.transposed == self.left
        order = range(size) if self.lower != is_turned else range(size - 1, -1, -1)
        found: dict[int, Value] = {}
        for i in order:
            rest = part_of(right, {axis: i})
            for j, solved in found.items():
                element = rows[j][i] if is_turned else rows[i][j]
                rest = hlo.subtract(rest, hlo.multiply(spread(element, rest), solved))
            found[i] = rest if self.unit else hlo.divide(rest, spread(rows[i][i], rest))
        return stacked([found[i] for i in range(size)], axis)
