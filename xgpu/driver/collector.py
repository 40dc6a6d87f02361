"""Python's garbage collector during compilations: it runs rarely, as nearly all new objects stay alive."""

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_OBJECTS = 50_000
"""New objects after which garbage is collected during compilations; Python's own number is 700 or 2,000."""


class _Pace:
    """The interpreter's number of new objects, raised while at least one thread compiles."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._compilations = 0
        self._before = (0, 0, 0)
        self._modules = 0

    def slow_down(self) -> None:
        with self._lock:
            if not self._compilations:
                self._before = gc.get_threshold()
                # Zero says that the collector is off.
                if 0 < self._before[0] < YOUNG_OBJECTS:
                    gc.set_threshold(YOUNG_OBJECTS, *self._before[1:])
                self._modules = len(sys.modules)
            self._compilations += 1

    def restore(self) -> None:
        with self._lock:
            self._compilations -= 1
            if not self._compilations:
                if len(sys.modules) > self._modules:
                    _take_all_for_old()
                gc.set_threshold(*self._before)


def _take_all_for_old() -> None:
    """Put all objects among those that the collector rarely looks at, without looking at them.

    What modules bring stays. It would be looked at twice, with all that JAX has, before it counts as old.
    """
    # What somebody froze would not be frozen any more: all of JAX's objects. Python itself freezes a few hundred.
    if gc.get_freeze_count() < YOUNG_OBJECTS:
        gc.freeze()
        gc.unfreeze()


_pace = _Pace()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Context, or decorator, in which garbage is collected rarely in all threads; what was set before comes back."""
    _pace.slow_down()
    try:
        yield
    finally:
        _pace.restore()
