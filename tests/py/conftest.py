"""The setting of all tests: no kernels from the cache, one process, and property tests as `effort` has it."""

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# For what tests share, by its path from the root: pytest's importlib mode puts no folder on the path. Last: where xgpu
# runs from the tree, the folder at the root is a part of the package only.
sys.path.append(str(Path(__file__).parents[2]))

from tests.py import effort
from xgpu import ir

# Kernels kept from another run would hide what the code does now; tests of the cache have folders of their own.
os.environ["XGPU_CACHE"] = "off"

# XLA is what programs are compared with, most of them once: its compiler takes longer than what it makes runs. Without
# optimization it takes half of that, and its results are those of the program as written.
_XLA = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
os.environ["XLA_FLAGS"] = f"{_XLA} {os.environ.get('XLA_FLAGS', '')}".rstrip()

# As many tests run at once as there are cores; those of compilation in several processes set this themselves.
os.environ["XGPU_JOBS"] = "1"

# What a shell runs in the background ignores interrupts, and so does all that it starts, which tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The bindings of some releases of JAX have no answer to ``value == None``, which ``value in a_list`` may ask: here none
# has one, so that the tests find the places whatever the release.
_EQUALS: Callable[[ir.Value, object], bool] = ir.Value.__eq__


def _strictly_equals(left: ir.Value, right: object) -> bool:
    if right is None:
        raise TypeError("a value is compared with None; ask with `is`")
    return _EQUALS(left, right)


ir.Value.__eq__ = _strictly_equals  # type: ignore[method-assign, assignment]

# Programs take as long as they take: a slow machine must not fail a test, nor a strategy that draws large examples.
COMMON: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}

if effort.LEVEL == "thorough":
    # A case that fails is tried first by the next such run.
    settings.register_profile("xgpu", max_examples=3000, **COMMON)
else:
    # The seed below decides; what another run found must not.
    settings.register_profile("xgpu", max_examples=effort.by_level(10, 100, 0), database=None, **COMMON)
settings.load_profile("xgpu")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give Hypothesis, which reads it next, the seed of the commit; not if it was given another."""
    if effort.LEVEL != "thorough" and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(effort.seed_of_commit())


# The collector of garbage looks at new objects after every 700, and at all of them again and again: 3 % of the time.
gc.set_threshold(20_000)


def _pass_over_what_there_is() -> None:
    """Let the collector pass over all objects but the garbage among them, for good."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Modules, and the tests themselves, are there for all the tests."""
    _pass_over_what_there_is()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """What is left when the last test of a file has ended stays, most of it in caches."""
    yield
    if nextitem is None or nextitem.path != item.path:
        _pass_over_what_there_is()


@pytest.fixture
def own_garbage() -> None:
    """Garbage is looked for among what the test makes alone: what hundreds of tests left takes a second each time."""
    _pass_over_what_there_is()
