"""The programs that emitters are tested with, on the host executor in the test suite and on a GPU by gpu_check."""

from collections.abc import Iterator

from xgpu.tools.programs import (
    concatenations,
    contractions,
    fused,
    indices,
    movement,
    products,
    recurrences,
    reductions,
    rows,
    scans,
    scatters,
    transposes,
    windows,
)
from xgpu.tools.programs.base import TestProgram
from xgpu.tools.programs.scalars import complex_numbers, elementwise, random_bits, types

GROUPS = {
    "elementwise": elementwise,
    "movement": movement,
    "concatenations": concatenations,
    "reductions": reductions,
    "rows": rows,
    "scans": scans,
    "scatters": scatters,
    "transposes": transposes,
    "windows": windows,
    "contractions": contractions,
    "products": products,
    "random": random_bits,
    "recurrences": recurrences,
    "complex": complex_numbers,
    "types": types,
    "indices": indices,
    "fused": fused,
}
"""Modules of programs by name."""


def all_programs() -> Iterator[tuple[str, TestProgram]]:
    """Yield every program with the name of its group."""
    for group, module in GROUPS.items():
        for program in module.programs():
            yield group, program
