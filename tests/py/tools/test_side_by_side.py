"""Tools that time cases beside libraries by kernels: their cases, tables and processes of torch, without a GPU."""

import io
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xgpu.errors import ToolError
from xgpu.tools import kernel_timing
from xgpu.tools.timing import (
    attention,
    attention_passes,
    products,
    queued,
    side_by_side,
    small_batch,
    torch_processes,
    torch_worker,
)
from xgpu.tools.timing.attention_passes import Shape
from xgpu.tools.timing.side_by_side import Case, Row

TOOLS: dict[str, Callable[[Sequence[str] | None], int]] = {
    "small_batch": small_batch.main,
    "products": products.main,
}
KINDS = ["gradients", "decode", "published"]
ANSWERS = """
import json, sys
request = json.loads(sys.stdin.readline())
print("noise", flush=True)
print("ready", flush=True)
sys.stdin.readline()
for number, case in enumerate(request["cases"], 1):
    print(json.dumps({"name": case["name"], "us": 100.0 * number, "by": "queue"}), flush=True)
"""


@pytest.fixture
def without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "worker.py"
    script.write_text('print(\'{"missing": "ImportError: torch"}\')')
    monkeypatch.setattr(torch_processes, "WORKER", script)


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "has_gpu", lambda tool: True)


@pytest.mark.parametrize("tool", TOOLS)
def test_without_a_gpu(tool: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def missing() -> None:
        raise ToolError("no GPU")

    monkeypatch.setattr(queued, "gpu_device", missing)
    assert TOOLS[tool]([]) == 1
    assert capsys.readouterr().err == f"{tool}: error: no GPU\n"
    assert TOOLS[tool](["fft"]) == 1
    assert capsys.readouterr().err == f"{tool}: error: no case has a name with one of: fft\n"


@pytest.mark.parametrize("what", KINDS)
def test_attention_without_a_gpu(what: str, monkeypatch: pytest.MonkeyPatch, with_gpu: None) -> None:
    assert attention.main(["--what", what, "fft"]) == 1
    monkeypatch.setattr(side_by_side, "has_gpu", lambda tool: False)
    assert attention.main(["--what", what]) == 1


@pytest.mark.parametrize("case", products.cases(), ids=lambda case: case.name)
def test_products_are_kernels(case: Case) -> None:
    kinds = [each.emitter for each in case.planned().kernels]
    chained = case.name in ("chains: low-rank adapter", "chains: gated MLP")
    parts = case.specs[0].dtype.itemsize if case.name.startswith("integers") else 1
    wanted = 2 if chained else parts  # `multiply-bytes` makes a product for each byte of an integer
    assert sum("product" in each for each in kinds) == wanted


@pytest.mark.parametrize("case", small_batch.cases(), ids=lambda case: case.name)
def test_programs_of_few_rows_are_planned(case: Case) -> None:
    program = case.planned()
    (found,) = program.results
    assert found.shape == jax.eval_shape(case.function, *case.specs).shape
    assert ("attention" in [each.emitter for each in program.kernels]) == ("attention" in case.name)


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("shape", {*attention_passes.training(), *attention_passes.published()}, ids=lambda s: s.name)
def test_attention_and_its_gradients_are_kernels(shape: Shape, gradients: bool) -> None:
    kinds = [each.emitter for each in shape.case(gradients, ()).planned().kernels]
    assert kinds.count("attention") == 1
    assert (kinds.count("sums") >= 2) == gradients


@pytest.mark.parametrize("shape", attention_passes.decoding(), ids=lambda shape: shape.name)
def test_decoding_is_a_kernel(shape: Shape) -> None:
    case = shape.case(False, ("cuDNN", "XLA"))
    assert case.planned().kernels[0].emitter == "attention"
    assert list(case.others) == ["cuDNN", "XLA"]
    assert shape.key_bytes == 4 * shape.batch * shape.keys * shape.key_heads * shape.width


def test_names_of_cases_differ() -> None:
    shapes = [attention_passes.training(), attention_passes.decoding(), list(attention_passes.published())]
    names = [[each.name for each in found] for found in (*shapes, products.cases(), small_batch.cases())]
    assert all(len({*each}) == len(each) for each in names)


def test_work_of_published_shapes() -> None:
    """As FlashAttention counts: four operations a logit and element, half of them if causal."""
    shape = Shape(1, 16384, 16, 128)
    assert shape in attention_passes.published()
    assert shape.tflop == pytest.approx(4 * 16 * 16384**2 * 128 / 1e12)
    assert replace(shape, causal=True).tflop == shape.tflop / 2
    assert all(each.batch * each.rows == 16384 for each in attention_passes.published())


def test_attention_written_is_attention_and_has_its_gradients() -> None:
    rows = np.random.default_rng(0).standard_normal((4, 1, 40, 2, 8)).astype(np.float32)
    library = attention_passes.with_gradients(lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True))
    ours = attention_passes.with_gradients(lambda q, k, v: attention_passes.written(q, k, v, causal=True))
    for found, wanted in zip(ours(*rows), library(*rows), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def small(name: str, function: Callable[..., Any], **others: Callable[..., Any]) -> Case:
    return Case(name, function, (queued.struct((8, 40), jnp.float32),), others)


def test_what_is_wrong_is_in_a_row(without_torch: None, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(x: Any) -> Any:
        raise TypeError("no such thing")

    cases = [
        small("right", lambda x: x + 1, XLA=lambda x: x + 1),
        replace(small("wrong", lambda x: x + 1, XLA=lambda x: x + 2), torch={"torch": {"program": "none"}}),
        small("alone", lambda x: x * 2, XLA=broken),
        small("missing", broken, XLA=lambda x: x + 1),
    ]
    told: list[Row] = []
    rows = side_by_side.measure(cases, 1, told.append)
    assert told == rows
    right, wrong, alone, missing = rows
    assert right.is_right and right.same_bits and right.difference == 0 and right.ratio("XLA") > 0
    assert right.notes == ["ours by the clock", "XLA by the clock"]
    assert right.emitters == "loop"
    assert not wrong.is_right and wrong.remarks.startswith("WRONG")
    assert np.isnan(alone.difference) and alone.remarks.startswith("-") and np.isnan(alone.ratio("XLA"))
    assert list(missing.us) == ["XLA"] and missing.remarks.startswith("WRONG")
    found = capsys.readouterr().out
    assert "XLA: alone: FAILED: TypeError: no such thing" in found
    assert "torch, none torch: not measured: ImportError: torch" in found


def test_time_is_limited(without_torch: None) -> None:
    limits = side_by_side.Limits(compiling=-1.0, all=-1.0)
    (row,) = side_by_side.measure([small("late", jnp.sin, XLA=jnp.sin)], 1, limits=limits)
    assert (row.us, row.notes) == ({}, ["not measured: -1 s were over"])


def test_operands_of_all_types() -> None:
    kinds = (jnp.bfloat16, jnp.float32, jnp.int8, jnp.bool_, jnp.float8_e4m3fn)
    shapes = ((16, 16), (16,), (3, 300), (700, 900), ())
    case = Case("all", jnp.add, tuple(map(queued.struct, shapes, kinds)), {})
    found = case.draw()
    assert [(each.shape, each.dtype) for each in found] == [*zip(shapes, map(np.dtype, kinds), strict=True)]
    assert np.std(np.asarray(found[0], np.float32)) == pytest.approx(0.5, abs=0.1)
    assert 30 < np.std(np.asarray(found[2], np.float32)) < 50
    assert 0.88 < np.mean(np.asarray(found[3])) < 0.92


def test_torch_has_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "worker.py"
    script.write_text(ANSWERS)
    monkeypatch.setattr(torch_processes, "WORKER", script)
    groups = {"a": [{"name": "one"}, {"name": "two"}], "b": [{"name": "three"}], "none": []}
    with torch_processes.TorchProcesses(groups, 60) as processes:
        processes.wait()
        found = processes.measure(60)
    assert {name: each["us"] for name, each in found.items()} == {"one": 100.0, "two": 200.0, "three": 100.0}


def test_a_process_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "worker.py"
    script.write_text("import time; time.sleep(600)")
    monkeypatch.setattr(torch_processes, "WORKER", script)
    start = time.monotonic()
    with torch_processes.TorchProcesses({"slow": [{"name": "one"}]}, 0.1) as processes:
        processes.wait(0.1)
        assert processes.measure(1) == {}
    assert time.monotonic() - start < 60
    assert capsys.readouterr().out == "torch, slow: not measured: it compiles for too long\n"


def test_the_worker_says_that_there_is_no_torch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps({"seconds": 1, "cases": []}) + "\n"))
    assert torch_worker.main() == 1
    assert "missing" in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("kernels", "expected"),
    [(90.0, {"us": 90.0, "by": "kernels"}), (0.0, {"us": 100.0, "by": "queue"}), (180.0, {"us": 100.0, "by": "queue"})],
)
def test_times_of_torch_are_those_of_kernels_if_they_can_be(
    kernels: float, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_worker, "_kernel_us", lambda *given: kernels)
    monkeypatch.setattr(torch_worker, "_queue_us", lambda *given: 100.0)
    torch = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))
    found = torch_worker.measured(torch, lambda: None)
    assert {name: found[name] for name in expected} == expected


def test_cases_of_torch_have_programs_and_sizes() -> None:
    """What cases say is what functions of the worker take."""
    shapes = [Shape(1, 64, 2, 16), Shape(1, 1, 4, 16, keys=64, key_heads=2)]
    every = [*small_batch.cases(tuple(small_batch.MODES)), *(shape.case(False, ()) for shape in shapes)]
    for case in every:
        for given in case.torch.values():
            function = torch_worker._PROGRAMS[given["program"]]
            taken = function.__code__.co_varnames[1 : function.__code__.co_argcount]
            assert {*given} - {"program", "mode"} <= {*taken}


def test_calls_have_the_times_of_their_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        SimpleNamespace(name=name, start_ns=n, duration_ns=d)
        for n, (name, d) in enumerate([("a", 1e3), ("b", 2e3)] * 2)
    ]
    monkeypatch.setattr(kernel_timing, "kernel_events", lambda *given: events)
    assert kernel_timing.kernel_seconds(len, [], 2) == [pytest.approx(3e-6)] * 2
    assert kernel_timing.kernel_seconds(len, [], 3) == [pytest.approx(2e-6)]
    monkeypatch.setattr(kernel_timing, "kernel_events", lambda *given: [])
    assert kernel_timing.kernel_seconds(len, [], 3) == []


def test_tables_of_attention(
    without_torch: None, with_gpu: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a CPU there is no cuDNN: its cells are empty, and only XLA's results are compared with."""
    shape = Shape(1, 64, 1, 64, causal=True)
    monkeypatch.setattr(attention_passes, "training", lambda: [shape])
    monkeypatch.setattr(attention_passes, "published", lambda: {shape: (600.0, 400.0)})
    assert attention.main(["--what", "gradients"]) == 1
    found = capsys.readouterr().out
    line = r"^1 x 64, 1 heads of 64, causal +[0-9.]+ +- +- +- +-( +[0-9.-]+) +- +- +- +-.*(same|OTHER)$"
    assert re.search(line, found, re.M)
    assert "cuDNN: 1 x 64, 1 heads of 64, causal, forward: FAILED: " in found
    assert "by jax.jit" not in found
    monkeypatch.setattr(attention_passes, "_BESIDE_XLA", shape)
    assert attention.main(["--what", "gradients"]) == 0
    found = capsys.readouterr().out
    beside = r"^1 x 64, 1 heads of 64, causal, (forward|with gradients): \d+ us by jax.jit, [0-9.]+ times ours$"
    assert re.findall(beside, found, re.M) == ["forward", "with gradients"]
    assert attention.main(["--what", "published"]) == 0
    found = capsys.readouterr().out
    assert re.search(r"^forward 1 x 64, 1 heads of 64, causal +[0-9.]+ +[0-9.]+% +- +- +600 +[0-9.]+ +-$", found, re.M)


def test_a_table_of_decoding(
    without_torch: None, with_gpu: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(attention_passes, "decoding", lambda: [Shape(1, 1, 4, 64, keys=256, key_heads=2)])
    monkeypatch.setattr(attention_passes, "_copy_rate", lambda: 4000.0)
    attention.main(["--what", "decode"])
    assert re.search(
        r"^1, 4 \(2\) heads, 256 keys of 64( +[0-9.]+){2} +- +-( +[0-9.]+){3}$", capsys.readouterr().out, re.M
    )


@pytest.mark.parametrize("tool", ["small_batch", "products"])
def test_tables(
    tool: str,
    without_torch: None,
    with_gpu: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if tool == "products":
        names = [products._PLAIN, "epilogues: bias"]
        cases = [small(name, lambda x: x + 1, XLA=lambda x: x + 1) for name in names]
        monkeypatch.setattr(products, "cases", lambda products: cases)
        assert products.main(["epilogues"]) == 0
        found = capsys.readouterr().out
        assert re.search(r"^epilogues: bias( +[-0-9.]+){2}$", found, re.M)
        assert re.search(r"^epilogues: geometric mean beside XLA [0-9.]+$", found, re.M)
        return
    cases = [small(f"gated MLP, {rows}", lambda x: x + 1, XLA=lambda x: x + 1) for rows in (1, 4)]
    monkeypatch.setattr(small_batch, "cases", lambda modes, *given: cases)
    assert small_batch.main([]) == 0
    found = capsys.readouterr().out
    assert re.search(r"^gated MLP, 1 +[0-9.]+ +[0-9.]+ +- +[0-9.]+  ok .* loop", found, re.M)
    assert re.search(r"^geometric mean of 2, beside the best of the others: [0-9.]+$", found, re.M)


def test_what_is_no_number_is_no_result() -> None:
    ones, nothing = np.ones(3, np.float32), np.array([1, np.nan, 1], np.float32)
    assert side_by_side.difference(ones, ones) == 0
    assert side_by_side.difference(ones * 1.5, ones) == 0.5
    for found, wanted in ((nothing, ones), (ones, nothing), (nothing, nothing), (ones[:2], ones)):
        assert side_by_side.difference(found, wanted) == np.inf
