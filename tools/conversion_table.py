"""Writes docs/conversions.md, what each conversion between two types does, after trying them all out.

``python -m xgpu.tools.conversion_table`` in the tree. Every conversion is run by a kernel on the values of
`conversions.all_values`, and compared with exact arithmetic to the bit; the command fails if one differs.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from xgpu.dtypes import DType
from xgpu.runtime.compare import difference
from xgpu.tools.programs.base import Array
from xgpu.tools.programs.scalars.conversions import REAL_TYPES, XLA_DIFFERENCES, all_values, convert_exactly
from xgpu.tools.programs.scalars.types import conversions

PLACE = Path(__file__).resolve().parent.parent / "docs" / "conversions.md"

_HEAD = """\
# Conversions

<!-- Made by python -m xgpu.tools.conversion_table, which also tries them all out. -->

What a conversion from the type of a row to the type of a column does:

| | |
|---|---|
| = | every value is kept |
| w | integers keep their lower bits |
| r | rounded once, to the nearest value and ties to even; nothing overflows |
| r∞ | rounded; overflow gives infinity |
| rN | rounded; overflow gives NaN, as there is no infinity |
| rM | rounded; overflow and infinity give the largest number, NaN gives -0, as there are neither |
| p | rounded to a power of two, halfway upwards, at least 2^-127; zero, negative numbers and overflow give NaN |
| t | rounded towards zero; out of range gives the nearest integer of the type, NaN gives 0 |
| b | true unless zero |

NaN gives NaN where the type has one; types without a negative zero make it zero. Complex numbers are converted part by
part, and to a real type lose the imaginary one.

"""

_TESTED = """
## What was tested

Every value of the types of up to 16 bits, and 65,536 values of each wider type: all exponents or lengths, many of them
halfway between two values of a narrower type, or the least bit beside that. Each result is compared with exact
arithmetic to the bit (all NaNs are one), on the host executor in the test suite and on a GPU by `make gpu-check`. XLA
on the CPU gives the same results but for these, where it gives the exact result or the one that is described:

"""


def effect(source: DType, target: DType) -> str:
    """Return the sign of the table's legend for a conversion."""
    if target.kind == "bool":
        return "b"
    if target.hlo == "f8e8m0fnu":
        return "p"
    if not target.is_float:
        return "t" if source.is_float else "=" if _contains(target, source) else "w"
    values = all_values(source)
    results = convert_exactly(values, source, target)
    if source.kind == "bool" or difference(convert_exactly(results, target, source), values) is None:
        return "="
    return f"r{_overflow(values, results, target)}"


def _contains(target: DType, source: DType) -> bool:
    """Tell whether an integer type has every value of another."""
    magnitudes = source.bits - source.is_signed <= target.bits - target.is_signed
    return magnitudes and (target.is_signed or not source.is_signed)


def _overflow(values: Array, results: Array, target: DType) -> str:
    """Return what numbers beyond the largest become, or nothing if there are none."""
    if target.hlo == "f4e2m1fn":
        return "M"
    with np.errstate(invalid="ignore"):
        wide = results[np.isfinite(values.astype(np.float64))].astype(np.float64)
    return "N" if np.isnan(wide).any() else "∞" if np.isinf(wide).any() else ""


def table() -> str:
    """Return the table of all conversions, in Markdown."""
    lines = ["| from \\ to | " + " | ".join(map(str, REAL_TYPES)) + " |", "|---" * (len(REAL_TYPES) + 1) + "|"]
    for source in REAL_TYPES:
        cells = [" " if source == target else effect(source, target) for target in REAL_TYPES]
        lines.append(f"| **{source}** | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def failures(on: str) -> list[str]:
    """Run every conversion on the host executor or a GPU; return what is not as exact arithmetic says."""
    problems = []
    for source in REAL_TYPES:
        program = conversions(source)
        assert program.inputs is not None and program.expected is not None
        inputs = program.inputs()
        results = program.compile().run(*inputs, on=on)
        expected = program.expected(inputs)
        targets = [target for target in REAL_TYPES if target != source]
        for target, got, wanted in zip(targets, results, expected, strict=True):
            if problem := difference(got, wanted):
                problems.append(f"{source} to {target}: {problem}")
    return problems


def main(argv: Sequence[str] | None = None) -> int:
    """Try all conversions, then write the document; returns 1 if a conversion is wrong."""
    parser = argparse.ArgumentParser("conversion_table", description=__doc__)
    parser.add_argument("--on", choices=("gpu", "host"), default="host", help="where conversions run; host if left out")
    arguments = parser.parse_args(argv)
    problems = failures(arguments.on)
    for problem in problems:
        print(f"conversion_table: {problem}", file=sys.stderr)
    if problems:
        return 1
    PLACE.write_text(document())
    print(f"{len(REAL_TYPES) * (len(REAL_TYPES) - 1)} conversions are exact; wrote {PLACE.name}")
    return 0


def document() -> str:
    """Return the text of docs/conversions.md."""
    return _HEAD + table() + _TESTED + XLA_DIFFERENCES


if __name__ == "__main__":
    sys.exit(main())
