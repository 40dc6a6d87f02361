"""The table of first calls, with functions of its own in place of those that are measured."""

import re

import jax.numpy as jnp
import pytest

from xgpu.tools.functions import first_calls
from xgpu.tools.functions.first_calls import STEPS, FirstCall


@pytest.mark.parametrize("is_cold", [False, True])
def test_a_first_call_has_its_steps(monkeypatch: pytest.MonkeyPatch, is_cold: bool) -> None:
    monkeypatch.setattr(first_calls, "cases", lambda: {"sine": (jnp.sin, ["f32[8]"])})
    calls = [first_calls.measure("sine", is_cold, is_ours) for is_ours in (False, True)]
    assert all(getattr(each, step) > 0 for each in calls for step in STEPS)


def test_the_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"quick": (FirstCall(0.25, 0.5, 0.25), FirstCall(1.0, 0.5, 0.5)), "slow": (FirstCall(1, 1, 2),) * 2}

    class Here:
        def __init__(self, *_: object):
            pass

        def __enter__(self) -> "Here":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def submit(self, _: object, name: str, is_cold: bool, is_ours: bool) -> "Here":
            assert is_cold
            self.asked = name, is_ours
            return self

        def result(self) -> FirstCall:
            name, is_ours = self.asked
            return given[name][is_ours]

    monkeypatch.setattr(first_calls, "ProcessPoolExecutor", Here)
    monkeypatch.setattr(first_calls, "cases", lambda: dict.fromkeys((*given, "broken"), ()))
    assert first_calls.main(["--cold", "quick", "slow"]) == 0
    head, quick, slow, mean = capsys.readouterr().out.splitlines()
    assert len(head) == len(quick) == len(slow)
    assert re.findall(r"[.\d]+", quick) == ["0.25", "0.50", "0.25", "1.00", "0.50", "0.50", "1.00", "2.00", "2.00"]
    assert mean == "2 functions: geometric mean 1.41, 0 failed"
    assert first_calls.main(["--cold", "broken"]) == 1
    assert "broken" + " " * 26 + "KeyError: 'broken'" in capsys.readouterr().out
