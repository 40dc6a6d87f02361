"""The fuzzers: they run clean, and what they would report is reported.

``XGPU_FUZZ_CASES`` sets how many cases of each fuzzer to try, from ``XGPU_FUZZ_SEED`` on. Otherwise every commit has
cases of its own.
"""

import operator
import os
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from xgpu import ir
from xgpu.dtypes import DType
from xgpu.passes.registry import parse_pipeline
from xgpu.tools import fuzz, fuzz_inputs
from xgpu.tools.fuzzing.check import Variant
from xgpu.tools.fuzzing.facts import ALL, Facts, draw, integer_range, on_grid
from xgpu.tools.fuzzing.generate import generate
from xgpu.tools.fuzzing.graph import Graph
from xgpu.tools.fuzzing.minimize import minimize
from xgpu.tools.fuzzing.worker import Worker, WorkerDied


def _seed_of_commit() -> str:
    """Return a number made of the commit that is tested; the day's where there is none."""
    command = ["git", "rev-parse", "--short=7", "HEAD"]
    found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return str(int(found.stdout, 16)) if found.returncode == 0 else f"{datetime.now(UTC):%Y%m%d}000"


_CASES = os.environ.get("XGPU_FUZZ_CASES")
_SEED = os.environ.get("XGPU_FUZZ_SEED") or _seed_of_commit()


@pytest.mark.slow
def test_random_graphs_agree_with_xla(capsys: pytest.CaptureFixture[str]) -> None:
    failed = fuzz.main(["--cases", _CASES or "300", "--seed", _SEED])
    assert not failed, capsys.readouterr().out


@pytest.mark.slow
def test_mutated_inputs_end_in_a_result_or_a_diagnostic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = fuzz_inputs.main(["--cases", _CASES or "200", "--seed", _SEED, "--keep", str(tmp_path)])
    assert not failed, capsys.readouterr().out


def test_a_seed_always_gives_the_same_case() -> None:
    assert generate(7).text() == generate(7).text()
    assert generate(7).text() != generate(8).text()
    texts = fuzz_inputs.corpus()
    assert fuzz_inputs.case_of_seed(7, texts) == fuzz_inputs.case_of_seed(7, texts)


def test_graphs_use_every_operation_that_the_fuzzer_knows() -> None:
    used = {node.op for seed in range(400) for node in generate(seed).nodes}
    assert {"gather", "dynamic_update_slice", "reduce", "pad", "atan2", "bitcast_convert", "iota", "clamp"} <= used
    assert len(used) > 55


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_drawn_elements_obey_the_facts(dtype: DType) -> None:
    generator = np.random.default_rng(0)
    if not dtype.is_float:
        lo, hi = integer_range(dtype)
        drawn = draw(dtype, (1000,), Facts(lo, hi), generator)
        assert {int(drawn.min()), int(drawn.max())} == {lo, hi}
        return
    facts = on_grid(dtype, -3.0, 2.0, 1, special=True)
    assert facts is not None
    halves = draw(dtype, (1000,), facts, generator).astype(np.float64)
    finite = halves[np.isfinite(halves)]
    assert set(finite) == {k / 2 for k in range(-6, 5)}
    assert np.isnan(halves).any()
    positive = draw(dtype, (1000,), Facts(0.25, 3.0, 0.25, nonzero=True), generator).astype(np.float64)
    assert 0.25 <= positive.min() <= positive.max() <= 3.0


def test_minimal_graph_keeps_what_fails_and_no_more() -> None:
    graph = next(g for seed in range(100) if _reverses(g := generate(seed)) and len(g.nodes) > 8)
    variant = Variant(device_threads=64, threads_per_block=32)
    smaller, plainer = minimize(graph, variant, lambda candidate, _: _reverses(candidate), seconds=600)
    assert [node.op for node in smaller.nodes] == ["argument", "reverse"]
    assert smaller.values[smaller.outputs[0]].type.size == 1
    assert plainer == Variant()


def _reverses(graph: Graph) -> bool:
    return any(node.op == "reverse" and graph.values[node.results[0]].type.size for node in graph.nodes)


def test_worker_reports_a_crash_a_hang_and_greed() -> None:
    with Worker(seconds=600, memory=400 << 20) as worker:
        assert worker.call(operator.add, 1, 2) == 3
        with pytest.raises(WorkerDied, match=r"crashed \(SIGABRT\)"):
            worker.call(os.abort)
        with pytest.raises(WorkerDied, match="ended by itself with exit code 3"):
            worker.call(os._exit, 3)
        with pytest.raises(WorkerDied, match="used more than 400 MiB"):
            worker.call(operator.mul, b"x", 1 << 30)
        assert worker.call(operator.add, 1, 2) == 3
    with Worker(seconds=0.5) as worker, pytest.raises(WorkerDied, match=r"no answer within 0\.5 s"):
        worker.call(time.sleep, 3600)


def test_what_counts_as_ending_badly_in_python_too(capfd: pytest.CaptureFixture[str]) -> None:
    program = "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }"
    for what in ("compile", "run"):
        for text, code in ((program, 0), (program.replace("return", "retrun"), 1)):
            case = fuzz_inputs.Case(("python", what, "FILE"), text, ".mlir")
            with capfd.disabled():
                outcome = fuzz_inputs.run_case(case)
            assert outcome.code == code
            assert fuzz_inputs.complaint(case, outcome) is None
    assert "invalid IR" in (fuzz_inputs.complaint(case, fuzz_inputs.Outcome(1, "pass 'cse' failed: no")) or "")


def test_what_counts_as_a_pass_that_breaks() -> None:
    """What xgpu-opt gives to a pass may be anything: that it says so is right, that it breaks is not."""
    case = fuzz_inputs.Case(("xgpu-opt", "FILE"), "", ".mlir")
    refused, broken = (fuzz_inputs.Outcome(1, f"pass 'cse' failed: {reason}") for reason in ("no", "KeyError: 3"))
    assert fuzz_inputs.complaint(case, refused) is None
    assert "KeyError: 3" in (fuzz_inputs.complaint(case, broken) or "")


def test_pipelines_are_ones_that_there_are() -> None:
    texts = fuzz_inputs.corpus()
    cases = [fuzz_inputs.case_of_seed(seed, texts) for seed in range(120)]
    pipelines = {case.command[3] for case in cases if case.command[0] == "xgpu-opt"}
    assert len(pipelines) > 20
    with ir.make_context():
        assert all(parse_pipeline(each.removeprefix("builtin.module(").removesuffix(")")) for each in pipelines)


@pytest.mark.parametrize(
    ("code", "stderr", "wrong"),
    [
        (0, "", None),
        (1, "a.mlir:1:1: error: no", None),
        (2, "usage", None),
        (1, "", "without a diagnostic"),
        (139, "", "exit code 139"),
        (1, "xgpu: internal error: KeyError: 1", "internal error"),
        (1, "Traceback (most recent call last):\n", "Traceback"),
        (1, "pass 'cse' failed: Verification failed", "invalid IR"),
    ],
)
def test_what_counts_as_ending_badly(code: int, stderr: str, wrong: str | None) -> None:
    case = fuzz_inputs.Case(("xgpu", "compile", "FILE"), "", ".mlir")
    complaint = fuzz_inputs.complaint(case, fuzz_inputs.Outcome(code, stderr))
    assert (complaint is None) == (wrong is None)
    assert (wrong or "") in (complaint or "")
