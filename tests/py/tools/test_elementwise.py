"""The tool that compares rates of functions: each of its cases can be built, and what it prints."""

import contextlib
from pathlib import Path

import jax
import pytest

from xgpu.dtypes import dtype_named
from xgpu.tools.timing import elementwise
from xgpu.tools.timing.elementwise import CASES, Rate


@pytest.mark.parametrize("name", CASES)
def test_totals_of_numbers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise, "_ELEMENTS", 64)
    case = CASES[name]
    arguments = case.draw(dtype_named("f32").numpy)
    low, high = case.ranges[0]
    assert all(low <= float(each) <= high for each in arguments[0])
    total = jax.eval_shape(case.total, *arguments)
    assert (total.shape, total.dtype) == ((64,), arguments[0].dtype)


def test_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise, "_ELEMENTS", 64)
    found = elementwise.measure("div", "f32", contextlib.nullcontext())
    assert not found.failure
    assert found.ours > 0
    assert found.theirs > 0


def test_a_failure_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise, "_ELEMENTS", 64)
    monkeypatch.setitem(CASES, "wrong", elementwise.Case(lambda x: x.nothing))
    found = elementwise.measure("wrong", "f32", contextlib.nullcontext())
    assert found.line().startswith("wrong              f32  AttributeError: ")


def test_the_table_has_the_slowest_first(capsys: pytest.CaptureFixture[str]) -> None:
    elementwise._print([Rate("fast", "f32", 2.0, 1.0), Rate("none", "f32", failure="E"), Rate("slow", "f32", 1.0, 2.0)])
    assert capsys.readouterr().out.splitlines() == [
        "10^9 values/s     type      ours       XLA   ratio",
        "slow               f32       1.0       2.0    0.50",
        "fast               f32       2.0       1.0    2.00",
        "none               f32  E",
        "f32: geometric mean 1.00, 1 of 2 below 0.95",
    ]


def test_words_choose_functions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert elementwise.main(["nothing", "--jobs", "1", "--out", str(tmp_path / "rates.jsonl")]) == 0
    assert (tmp_path / "rates.jsonl").read_text() == ""
    assert len(capsys.readouterr().out.splitlines()) == 1
