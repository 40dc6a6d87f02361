"""How much work the planner does: counted, so that it does not depend on the machine."""

import sys

from xgpu.driver.compiler import plan_program
from xgpu.frontend.signature import Source


def calls_to_plan(source: Source) -> int:
    """Return how many functions are called to plan a program."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        plan_program(source.module)
    finally:
        sys.setprofile(None)
    return calls
