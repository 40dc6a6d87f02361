"""The effort of the tests, and the choice of cases: the one place where they are decided.

``XGPU_HYPOTHESIS`` says how much:

- ``quick``, if it is not set: what every change must pass. Where the cases are more than that has time for, they are
  drawn, and every commit draws others: those of one commit are the same on every machine and in every run.
- ``brief``: for another version of the bindings, after ``quick`` with the newest.
- ``thorough``: all there is, and property tests on other cases each time.
"""

import os
import random
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

LEVEL = os.environ.get("XGPU_HYPOTHESIS", "quick")
LEVELS = ("brief", "quick", "thorough")
if LEVEL not in LEVELS:
    raise ValueError(f"XGPU_HYPOTHESIS={LEVEL}: expected one of {', '.join(LEVELS)}")


def by_level[T](brief: T, quick: T, thorough: T) -> T:
    """Return the value for the level that is tested at."""
    return {"brief": brief, "quick": quick, "thorough": thorough}[LEVEL]


@cache
def seed_of_commit() -> int:
    """Return a number made of the commit that is tested; the day's where there is none."""
    command = ["git", "rev-parse", "--short=7", "HEAD"]
    found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return int(found.stdout, 16) if found.returncode == 0 else int(f"{datetime.now(UTC):%Y%m%d}000")


def drawn[T](items: Sequence[T], count: int) -> list[T]:
    """Return so many of ``items``, or all if they are no more, in their order: others for every commit."""
    chosen = random.Random(seed_of_commit()).sample(range(len(items)), min(count, len(items)))
    return [items[index] for index in sorted(chosen)]
