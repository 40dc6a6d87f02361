"""Garbage is collected rarely while programs are compiled, and as before afterwards."""

import gc
import sys
import threading
import types

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


@pytest.fixture
def nothing_frozen():
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    yield
    if frozen:
        gc.freeze()


def _is_old(thing):
    return any(each is thing for each in gc.get_objects(generation=2))


@pytest.mark.usefixtures("nothing_frozen")
@pytest.mark.parametrize("imports", [True, False])
def test_what_modules_bring_is_taken_for_old(monkeypatch, imports):
    with rare_collections():
        made = [[]]
        if imports:
            monkeypatch.setitem(sys.modules, "brought", types.ModuleType("brought"))
    assert _is_old(made) == imports


@pytest.mark.usefixtures("nothing_frozen")
def test_what_somebody_froze_stays_frozen(monkeypatch):
    gc.freeze()
    with rare_collections():
        monkeypatch.setitem(sys.modules, "brought", types.ModuleType("brought"))
    assert gc.get_freeze_count() > YOUNG_OBJECTS
    gc.unfreeze()
