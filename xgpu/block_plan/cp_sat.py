"""OR-tools' solver of integer programs, where it is installed: ``pip install xgpu[plan]``.

It runs alone, from a fixed seed and within a limit that does not depend on the time, so that it always finds the same.
"""

import functools
import importlib
from typing import Any

_MOST_WORK = 0.5
"""Its own measure of work, about seconds."""


@functools.cache
def cp_sat() -> Any:
    """Return OR-tools' module of CP-SAT, None where it is not installed."""
    try:
        return importlib.import_module("ortools.sat.python.cp_model")
    except ImportError:
        return None


def solve(model: Any) -> Any | None:
    """Return a solver that has found a best solution of a model; None if it has not within the limit."""
    solver = cp_sat().CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = _MOST_WORK
    return solver if solver.solve(model) == cp_sat().OPTIMAL else None
