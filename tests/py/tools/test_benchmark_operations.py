"""The report of ``benchmark --all-ops``; the clock is replaced, as there is no GPU."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest

from xgpu.errors import InvalidInput, Unsupported
from xgpu.tools import benchmark
from xgpu.tools.benchmark_operations import (
    TYPES,
    Operation,
    measure_operations,
    operations,
    parse_bytes,
    parse_types,
)
from xgpu.tools.kernel_timing import Speeds, compare
from xgpu.tools.programs.scalars import complex_numbers, elementwise


def speeds_of(ratio: float) -> Speeds:
    return Speeds(1e-4, ratio * 1e-4, 1e8)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_operation_of_the_test_programs_is_measured(dtype: str) -> None:
    names = {each.name for each in operations(dtype)}
    if dtype in complex_numbers.COMPLEX:
        assert {*complex_numbers.UNARY, *complex_numbers.BINARY} <= names
        return
    tables = [*elementwise.UNARY.items(), *elementwise.BINARY.items()]
    assert {name for name, (_, types) in tables if dtype in types} <= names
    assert {"clamp", "select", "eq", "lt"} <= names
    assert any(name.startswith("convert to") for name in names)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "s8", "c64"])
def test_all_of_them_can_be_called(dtype: str) -> None:
    """Both functions take the arguments they get, which are of one size."""

    def measure(ours: Callable[..., Any], theirs: Callable[..., Any], arguments: Sequence[Any]) -> Speeds:
        assert {argument.size for argument in arguments} == {arguments[0].size}
        assert jax.tree.leaves(jax.eval_shape(theirs, *arguments))
        return speeds_of(1.0)

    chosen = operations(dtype)
    report = measure_operations(chosen, 64, 600, measure)
    assert report.skipped == {}
    assert len(report.measured) == len(chosen)


def test_arguments_lie_where_functions_are_defined() -> None:
    seen: dict[int, Any] = {}

    def measure(ours: Callable[..., Any], theirs: Callable[..., Any], arguments: Sequence[Any]) -> Speeds:
        seen[len(seen)] = np.asarray(theirs(*arguments))
        return speeds_of(1.0)

    chosen = [each for each in operations("f32") if each.name in ("acosh", "atanh", "erf_inv", "log", "sqrt")]
    measure_operations(chosen, 1 << 12, 600, measure)
    assert all(np.isfinite(values).all() for values in seen.values()) and len(seen) == 5


def test_the_slowest_are_last() -> None:
    ratios = iter([0.5, 2.0, 0.9, 1.1] + [1.0] * 9)
    chosen = [Operation(f"op{n}", lambda x: x, ("f32",)) for n in range(13)]
    report = measure_operations(chosen, 64, 600, lambda *_: speeds_of(next(ratios)))
    lines = report.text().splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["op1", "op3"]
    assert lines[4] == "the slowest 10:"
    assert [line.split()[0] for line in lines[-3:-1]] == ["op2", "op0"]
    assert lines[-1] == "13 operations, 2 below 0.97; 0 skipped"


def test_what_cannot_be_measured_is_skipped_with_the_reason() -> None:
    times = iter([0.0, 1.0, 2.0, 11.0])

    def measure(ours: Callable[..., Any], theirs: Callable[..., Any], arguments: Sequence[Any]) -> Speeds:
        if arguments[0].dtype == np.int32:
            raise Unsupported("no code for it\nat all")
        return speeds_of(1.0)

    chosen = [Operation(name, lambda x: x, (dtype,)) for name, dtype in (("a", "f32"), ("b", "s32"), ("c", "f32"))]
    report = measure_operations(chosen, 64, 10, measure, clock=lambda: next(times))
    assert list(report.measured) == ["a f32"]
    assert report.skipped == {"b s32": "Unsupported: no code for it", "c f32": "10 seconds had passed"}
    assert "skipped: b s32: Unsupported: no code for it" in report.text()


def test_two_functions_are_timed_alternately() -> None:
    calls: list[str] = []

    def function(name: str) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            calls.append(name)
            return x

        return run

    found = compare(function("ours"), function("theirs"), [jax.numpy.zeros(8)], 2)
    assert found.useful == 64 and found.ours > 0 and found.theirs > 0
    assert calls[:2] == ["ours", "theirs"] and calls[2:] == (["ours"] * 20 + ["theirs"] * 20) * 2


@pytest.mark.parametrize(("text", "size"), [("256MiB", 1 << 28), ("2 GiB", 2 << 30), ("512", 512)])
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0", "12MB", "-1KiB", "MiB"])
def test_wrong_sizes(text: str) -> None:
    with pytest.raises(InvalidInput, match="expected a size such as 256MiB"):
        parse_bytes(text)


def test_wrong_types() -> None:
    assert parse_types("f32,s8") == ["f32", "s8"]
    with pytest.raises(InvalidInput, match=r"operations are measured in f32, .* not in 'f8'"):
        parse_types("f32,f8")


def test_the_command_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--all-ops", "--types", "text"]) == 1
    assert "not in 'text'" in capsys.readouterr().err
    assert benchmark.main(["--all-ops", "--bytes", "large"]) == 1
    assert "got 'large'" in capsys.readouterr().err
