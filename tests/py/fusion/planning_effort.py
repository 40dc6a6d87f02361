"""How much work the planner does: counted, so that it does not depend on the machine."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from xgpu.driver.compiler import plan_program
from xgpu.frontend.signature import Source

_EVENTS = (sys.monitoring.events.PY_START, sys.monitoring.events.PY_RESUME, sys.monitoring.events.PY_THROW)


def calls_to_plan(source: Source) -> int:
    """Return how many functions are called to plan a program."""
    with counted_calls() as calls:
        plan_program(source.module)
    return calls()


@contextmanager
def counted_calls() -> Iterator[Callable[[], int]]:
    """Give a function that says how many functions have been called in the body; a generator is, by each ``next``.

    A profiling function (``sys.setprofile``) is called at each return as well, and at each call of a builtin function.
    """
    calls = 0

    def count(*event: object) -> None:
        nonlocal calls
        calls += 1

    tool, events = sys.monitoring.PROFILER_ID, 0
    sys.monitoring.use_tool_id(tool, __name__)
    for each in _EVENTS:
        sys.monitoring.register_callback(tool, each, count)
        events |= each
    sys.monitoring.set_events(tool, events)
    try:
        yield lambda: calls
    finally:
        sys.monitoring.set_events(tool, 0)
        for each in _EVENTS:
            sys.monitoring.register_callback(tool, each, None)
        sys.monitoring.free_tool_id(tool)
