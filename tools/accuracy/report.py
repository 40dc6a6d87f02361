"""Keeps what was measured in docs/accuracy.json, and writes docs/accuracy.md of it."""

import json
import math
from collections.abc import Mapping
from pathlib import Path

from xgpu.tools.accuracy.formats import FORMATS
from xgpu.tools.accuracy.functions import FUNCTIONS
from xgpu.tools.accuracy.measure import Measured

DOCS = Path(__file__).resolve().parents[2] / "docs"
"""The documents of the source tree."""

Results = dict[str, dict[str, dict[str, float]]]
"""The largest errors by column (where, and what was measured), format and function."""

_HEAD = """# Accuracy

<!-- Made by python -m xgpu.tools.accuracy --save; edit tools/accuracy/ instead. -->

The largest errors found, in units in the last place (ULP) of the exact result; 0.5 is as good as rounding gets.

- Measured: every number of bf16 and f16; of wider formats, numbers from equal parts of all bit patterns (2^16 on the
  host, 2^24 on the GPU, 2^20 for XLA; in f64 2^14 and 2^18), a quarter as many where the function does most, special
  values, the neighbours of numbers where an implementation may branch or results over- and underflow, and angles next
  to multiples of pi/2. Of functions of two arguments, pairs: a quarter as many at random, as many where the function
  does most, and all pairs of special values. The exact results are those of f64 for narrower formats, and of long
  double for f64.
- The whole compiler is measured: each function is a JAX program of one operation (`logistic` one of StableHLO).
- Subnormal arguments and results count, and so do the signs of zeros and infinities, and NaN. XLA takes subnormal
  numbers for zero in many functions: in its columns they do not count, and neither do they for `polygamma` and `zeta`,
  which CHLO writes in many operations; those two are measured for ordinary arguments. Errors of `digamma` and `lgamma`
  below 1 count in ULP of 1, as both have zeros.
- Allowed: what the tests allow, which is no more than what is published of XLA, but for 0.501 in place of 0.5: the
  exact result then lies next to the middle between two numbers. XLA, published: what JAX's documentation (Numerical
  accuracy) gives for its GPU code.
- The host column is what tests run, and the GPU columns what `--on gpu` measures: the same operations, but for
  the approximate instructions that f32 uses there.

Each column is measured by a command that writes it here:

```console
$ python -m xgpu.tools.accuracy --save
$ python -m xgpu.tools.accuracy --on gpu --save
$ python -m xgpu.tools.accuracy --on gpu --of xla --save
```

`--save FOLDER` writes elsewhere, to what is in `FOLDER/accuracy.json`. What changed since a GPU was at hand has no
number in its column. To see the argument of the largest error:
`python -m xgpu.tools.accuracy --function exp --type f32`.
"""


def add(results: Results, column: str, form: str, function: str, measured: Measured) -> None:
    """Record one measurement."""
    results.setdefault(column, {}).setdefault(form, {})[function] = measured.error


def load(folder: Path) -> Results:
    """Return what was measured so far; nothing if there is no file."""
    path = folder / "accuracy.json"
    found: Results = json.loads(path.read_text()) if path.is_file() else {}
    return found


def save(folder: Path, results: Results) -> None:
    """Write both files."""
    text = json.dumps(results, indent=1, sort_keys=True, allow_nan=True)
    (folder / "accuracy.json").write_text(text + "\n")
    (folder / "accuracy.md").write_text(document(results))


def document(results: Results) -> str:
    """Return the text of docs/accuracy.md."""
    columns = sorted(results, key=lambda name: (name != "host", "XLA" in name, name))
    return "\n".join([_HEAD, *(_table(results, columns, form) for form in FORMATS)])


def _table(results: Results, columns: list[str], form: str) -> str:
    titles = ["function", "allowed", *columns, "XLA, published"]
    lines = [f"## {form}", "", _row(titles), _row(["---"] + ["---:"] * (len(titles) - 1))]
    position = list(FORMATS).index(form)
    for name, function in FUNCTIONS.items():
        bound = function.bounds[position]
        if bound is not None:
            found = [_number(results[column].get(form, {}), name) for column in columns]
            published = function.published[position]
            lines.append(_row([name, f"{bound:g}", *found, "" if published is None else f"{published:g}"]))
    return "\n".join([*lines, ""])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(values: Mapping[str, float], name: str) -> str:
    if name not in values:
        return ""
    value = values[name]
    if math.isinf(value):
        return "wrong"
    return f"{value:.2f}" if value < 1000 else f"{value:.1e}"
