"""Contexts of modules that are not kept: a thread shares one among a few, and drops it."""

import gc
import io
import threading
import weakref

import pytest

from xgpu import ir
from xgpu.passes.framework import manager

_TEXT = "module { func.func @f(%x: i32) -> i32 { %y = arith.addi %x, %x : i32 return %y : i32 } }"


def _bytecode(text: str = _TEXT) -> bytes:
    stream = io.BytesIO()
    ir.Module.parse(text, ir.make_context()).operation.write_bytecode(stream)
    return stream.getvalue()


@pytest.fixture(autouse=True)
def _no_context(monkeypatch):
    monkeypatch.setattr(ir, "_thread", ir._Thread())


def test_a_thread_shares_a_context_among_a_few_modules():
    bytecode = _bytecode()
    contexts = [ir.parse_briefly(bytecode).context for _ in range(2 * ir._MOST_USES)]
    assert [each is contexts[0] for each in contexts] == [True] * ir._MOST_USES + [False] * ir._MOST_USES
    assert len({id(each) for each in contexts}) == 2


def test_threads_have_contexts_of_their_own():
    bytecode, found = _bytecode(), [ir.parse_briefly(_bytecode()).context]
    thread = threading.Thread(target=lambda: found.append(ir.parse_briefly(bytecode).context))
    thread.start()
    thread.join()
    assert found[0] is not found[1]


def test_what_a_large_module_has_is_not_kept(monkeypatch):
    bytecode = _bytecode()
    shared = ir.parse_briefly(bytecode).context
    monkeypatch.setattr(ir, "_MOST_BYTES", len(bytecode) - 1)
    assert ir.parse_briefly(bytecode).context is not shared


@pytest.mark.usefixtures("own_garbage")
def test_mlir_passes_are_made_once_in_a_context_and_go_with_it(monkeypatch):
    made = []
    original = manager._mlir_pipeline
    monkeypatch.setattr(manager, "_mlir_pipeline", lambda text: made.append(text) or original(text))
    steps = [manager.MlirPass("canonicalize"), manager.MlirPass("cse"), manager.MlirPass("canonicalize")]
    for count in (1, 2):
        module = ir.Module.parse(_TEXT, ir.make_context())
        context = weakref.ref(module.context)
        manager.run(module, steps)
        manager.run(module, steps)
        assert made == ["canonicalize", "cse"] * count
        del module
        gc.collect()
        assert context() is None
