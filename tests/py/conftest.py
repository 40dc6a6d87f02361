"""How many cases the property tests try, and which.

By default they are the same ones on every machine and in every run. With ``XGPU_HYPOTHESIS=thorough`` they are more,
and other ones each time; one that fails is tried first by the next such run. With ``brief`` they are a tenth, and
accesses of the test programs' kernels are not checked: enough for another version of the bindings.
"""

import os
import signal
from typing import Any

from hypothesis import HealthCheck, settings

# Kernels kept from another run would hide what the code does now; tests of the cache have folders of their own.
os.environ["XGPU_CACHE"] = "off"

# What a shell runs in the background ignores interrupts, and so does all that it starts, which tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Programs take as long as they take: a slow machine must not fail a test, nor a strategy that draws large examples.
COMMON: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}

settings.register_profile("quick", max_examples=100, derandomize=True, **COMMON)
settings.register_profile("brief", max_examples=10, derandomize=True, **COMMON)
settings.register_profile("thorough", max_examples=3000, **COMMON)
settings.load_profile(os.environ.get("XGPU_HYPOTHESIS", "quick"))
