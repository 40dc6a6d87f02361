"""How many cases the property tests try: few by default, thousands for each with ``XGPU_HYPOTHESIS=thorough``."""

import os

from hypothesis import HealthCheck, settings

# Programs take as long as they take: a slow machine must not fail a test, nor a strategy that draws large examples.
settings.register_profile(
    "quick",
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=3000)
settings.load_profile(os.environ.get("XGPU_HYPOTHESIS", "quick"))
