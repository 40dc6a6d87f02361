"""Garbage is collected rarely while programs are compiled, and as before afterwards."""

import gc
import threading

import pytest

import xgpu
from xgpu.driver import compiler
from xgpu.driver.collector import YOUNG_OBJECTS, rare_collections
from xgpu.fusion.planner import plan


@pytest.fixture(autouse=True)
def _threshold():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_compilations_collect_rarely(monkeypatch):
    seen = []

    def counted(*given):
        seen.append(gc.get_threshold()[0])
        return plan(*given)

    monkeypatch.setattr(compiler, "plan", counted)
    before = gc.get_threshold()
    xgpu.compile(lambda x: x + 1, "f32[8]")
    assert seen == [YOUNG_OBJECTS]
    assert gc.get_threshold() == before


@pytest.mark.parametrize("given", [(0, 10, 10), (YOUNG_OBJECTS + 1, 5, 5)])
def test_a_collector_that_is_off_or_rarer_stays_so(given):
    gc.set_threshold(*given)
    with rare_collections():
        assert gc.get_threshold() == given
    assert gc.get_threshold() == given


def test_the_last_of_several_threads_restores():
    gc.set_threshold(700, 10, 10)
    inside, over = threading.Event(), threading.Event()

    def compile_elsewhere():
        with rare_collections():
            inside.set()
            over.wait()

    other = threading.Thread(target=compile_elsewhere)
    with rare_collections():
        other.start()
        inside.wait()
    assert gc.get_threshold()[0] == YOUNG_OBJECTS
    over.set()
    other.join()
    assert gc.get_threshold() == (700, 10, 10)


def test_an_error_restores():
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="no"), rare_collections():
        raise ValueError("no")
    assert gc.get_threshold() == before
