"""The report of ``benchmark_models``; the clock and the profile are replaced, as there is no GPU."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import pytest

from xgpu.errors import Unsupported
from xgpu.tools import benchmark_models, kernel_timing
from xgpu.tools.benchmark_models import kernel_times, models

ROOT = Path(__file__).resolve().parents[3]
MODULE = """
import jax.numpy as jnp


def examples(size, dtype):
    x = jnp.ones(3 if size == "tiny" else 300, dtype)
    return {{"{name}": (lambda x: x + 1, (x,)), "twice": (lambda x: x * 2, (x,))}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for stem, name in (("second", "plus"), ("first", "more")):
        (tmp_path / f"{stem}.py").write_text(MODULE.format(name=name))
    (tmp_path / "notes.txt").write_text("no module")
    return tmp_path


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def compare(ours: Any, theirs: Any, arguments: Sequence[Any], repeats: int) -> kernel_timing.Speeds:
        return kernel_timing.Speeds(2e-3, 3e-3, 1.0)

    monkeypatch.setattr(benchmark_models, "gpu_device", lambda: SimpleNamespace(device_kind="a GPU"))
    monkeypatch.setattr(kernel_timing, "compare", compare)


def test_models_are_named_by_module_and_program(folder: Path) -> None:
    found = list(models(folder, "tiny", jnp.bfloat16))
    assert [name for name, _, _ in found] == ["first.more", "first.twice", "second.plus", "second.twice"]
    _, function, (x,) = found[0]
    assert (x.shape, x.dtype) == ((3,), jnp.bfloat16)
    assert function(x)[0] == 2
    assert next(models(folder, "full", jnp.float32))[2][0].shape == (300,)


def test_the_models_of_the_tree_are_found() -> None:
    found = [name for name, _, _ in models(ROOT / "examples" / "models", "tiny", jnp.float32)]
    stems = {path.stem for path in (ROOT / "examples" / "models").glob("*.py")}
    assert {name.partition(".")[0] for name in found} == stems


def test_a_line_for_each_program(folder: Path, with_gpu: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark_models.main(["--models", str(folder), "--size", "tiny", "--type", "f32", "first", "plus"]) == 0
    device, head, *lines = capsys.readouterr().out.splitlines()
    assert device == "device: a GPU, f32"
    assert head.split() == ["xgpu", "ms", "XLA", "ms", "ratio", "first", "XLA", "first"]
    assert [line.split()[:4] for line in lines] == [
        [name, "2.000", "3.000", "1.500"] for name in ("first.more", "first.twice", "second.plus")
    ]


def test_no_program_has_such_a_name(folder: Path, with_gpu: None) -> None:
    assert benchmark_models.main(["--models", str(folder), "third"]) == 1


def test_the_longest_kernels_are_listed(
    folder: Path, with_gpu: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = Counter({"short": 1e-6, "long": 5e-6, "middle": 2e-6})
    monkeypatch.setattr(benchmark_models, "kernel_times", lambda function, arguments: times)
    assert benchmark_models.main(["--models", str(folder), "--size", "tiny", "--profile", "2", "more"]) == 0
    *_, title, first, second = capsys.readouterr().out.splitlines()
    assert title == "first.more, XLA: 8 us in kernels, the longest of 3:"
    assert first.split() == ["5.0", "us", "long"]
    assert second.split() == ["2.0", "us", "middle"]


def plane(name: str, **lines: dict[str, float]) -> SimpleNamespace:
    return SimpleNamespace(
        name=name,
        lines=[
            SimpleNamespace(
                name=line,
                events=[
                    SimpleNamespace(name=kernel, start_ns=start, duration_ns=ns)
                    for start, (kernel, ns) in enumerate(events.items())
                ],
            )
            for line, events in lines.items()
        ],
    )


def test_kernel_times_are_those_of_a_call_on_the_streams_of_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    planes = [
        plane("/device:GPU:0", Stream13={"a": 3000, "b": 600}, XLA={"a": 9e9}),
        plane("/device:GPU:1", Stream14={"a": 1500}),
        plane("/host:CPU", Stream15={"c": 9e9}),
    ]
    profile = SimpleNamespace(from_file=lambda path: SimpleNamespace(planes=planes))
    monkeypatch.setattr(kernel_timing, "ProfileData", profile)
    calls: list[Any] = []

    def function(x: Any) -> Any:
        calls.append(x)
        return x + 1

    found = kernel_times(function, [jnp.ones(3)])
    assert len(calls) == 3
    assert found == {"a": pytest.approx(1.5e-6), "b": pytest.approx(2e-7)}


def test_no_kernel_is_seen_without_a_gpu() -> None:
    assert kernel_times(lambda x: x + 1, [jnp.ones(3)]) == Counter()


def test_without_a_gpu(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def missing() -> None:
        raise Unsupported("no GPU")

    monkeypatch.setattr(benchmark_models, "gpu_device", missing)
    assert benchmark_models.main(["--models", str(folder)]) == 1
    assert "benchmark_models: error: no GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "nowhere"], "--models: expected a folder of Python modules, got 'nowhere'"),
        (["--size", "large"], "argument --size: invalid choice: 'large'"),
        (["--type", "f8"], "argument --type: invalid choice: 'f8'"),
        (["--repeats", "many"], "argument --repeats: invalid int value: 'many'"),
    ],
)
def test_wrong_command_lines(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        benchmark_models.main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
