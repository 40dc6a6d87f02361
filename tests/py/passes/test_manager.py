"""Failures of pipelines name the pass, or say that one of several made the IR wrong where only the last is verified."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from xgpu import ir
from xgpu.driver.kernel import advance
from xgpu.errors import CompilerError, InvalidInput
from xgpu.passes.framework import manager
from xgpu.passes.framework.base import BlockRewrite, ModuleRewrite, OperationRewrite, Pass


@dataclass(frozen=True)
class _Break(Pass):
    NAME: ClassVar[str] = "break"

    def apply(self, module):
        with ir.InsertionPoint(module.body):
            ir.Operation.create("xgpu.no_operation")


@dataclass(frozen=True)
class _Rest(Pass):
    NAME: ClassVar[str] = "rest"

    def apply(self, module):
        pass


@pytest.mark.parametrize(
    ("verify", "blamed"), [("each", "pass 'break' failed"), ("last", "one of the passes up to 'rest' failed")]
)
def test_wrong_ir_is_blamed_on_who_may_have_made_it(verify, blamed):
    with ir.make_context():
        module = ir.Module.parse("module {}")
    with pytest.raises(CompilerError, match=f"{blamed}: is not an operation|{blamed}: 'xgpu.no_operation'"):
        manager.run(module, [_Break(), _Rest()], manager.Instrumentation(verify=verify))


@dataclass(frozen=True)
class _Fail(Pass):
    NAME: ClassVar[str] = "fail"

    def apply(self, module):
        assert not list(module.body.operations), "it takes an empty module"


@pytest.mark.parametrize("later", [_Rest(), _Fail()], ids=str)
def test_compilations_verify_at_the_end_and_blame_the_pass_that_was_wrong(later):
    with ir.make_context():
        module = ir.Module.parse("module {}")
    times = []
    assert str(advance(module, [_Rest(), later], times)) == str(module)
    assert [name for name, _ in times] == ["rest", str(later)]
    with pytest.raises(CompilerError, match=r"pass 'break' failed.*xgpu\.no_operation"):
        advance(module, [_Rest(), _Break(), later, _Rest()], times)
    assert not list(module.body.operations)


def test_compilations_verify_once(monkeypatch):
    with ir.make_context():
        module = ir.Module.parse("module {}")
    verified = []
    monkeypatch.setattr(manager, "verify", verified.append)
    advance(module, [_Rest(), _Rest(), _Rest()], [])
    assert len(verified) == 1


@pytest.mark.parametrize(
    ("base", "missing"),
    [(Pass, "apply"), (BlockRewrite, "rewrite_block"), (OperationRewrite, "rewrite"), (ModuleRewrite, "rewrite")],
)
def test_a_pass_that_lacks_its_rewrite_is_named(base, missing):
    half = type("Half", (base,), {"NAME": "half"})
    with pytest.raises(InvalidInput, match=f"^pass 'half': the class Half does not define {missing}$"):
        half.from_options({})
