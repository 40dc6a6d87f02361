"""The fuzzers: they run clean, and what they would report is reported.

``XGPU_FUZZ_CASES`` sets how many cases of each fuzzer to try, from ``XGPU_FUZZ_SEED`` on. Otherwise every commit has
cases of its own.
"""

import importlib
import itertools
import operator
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.py import effort
from xgpu import ir
from xgpu.dtypes import DType, dtype_named
from xgpu.emit import requirements
from xgpu.frontend import load_source
from xgpu.fusion import fusion_writer
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.passes.tiles.blocks import elements
from xgpu.tools import fuzz, fuzz_inputs
from xgpu.tools.fuzzing import check
from xgpu.tools.fuzzing.blocks import fuzz as fuzz_blocks
from xgpu.tools.fuzzing.blocks import programs as block_programs
from xgpu.tools.fuzzing.builder import Builder
from xgpu.tools.fuzzing.check import Variant, failure_of
from xgpu.tools.fuzzing.facts import (
    ALL,
    FLOATS,
    PACKED,
    SMALL_FLOATS,
    Facts,
    draw,
    integer_range,
    on_grid,
    whole_floats,
)
from xgpu.tools.fuzzing.families import solves
from xgpu.tools.fuzzing.generate import STEPS, generate
from xgpu.tools.fuzzing.graph import Graph, Node, Value
from xgpu.tools.fuzzing.minimize import minimize
from xgpu.tools.fuzzing.ops import CHLO, TensorType
from xgpu.tools.fuzzing.oracle import as_xla_means_it, expected
from xgpu.tools.fuzzing.texts.regions import region_of
from xgpu.tools.fuzzing.worker import Worker, WorkerDied

_CASES = os.environ.get("XGPU_FUZZ_CASES")
_SEED = int(os.environ.get("XGPU_FUZZ_SEED") or effort.seed_of_commit())
_PARTS = 4
"""The cases of a fuzzer are tried in so many parts, which may run side by side."""


def _part(number: int, cases: int) -> list[str]:
    """Return the options for one of the parts: consecutive seeds, of which the last part's end where ``cases`` do."""
    count = int(_CASES or cases)
    first, end = (count * each // _PARTS for each in (number, number + 1))
    return ["--cases", str(end - first), "--seed", str(_SEED + first)]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """One for all parts of both: starting it, and compiling the host's library for tiles, takes longer than a part."""
    with fuzz.new_worker() as worker:
        yield worker


@pytest.mark.parametrize("part", range(_PARTS))
@pytest.mark.slow
def test_random_graphs_agree_with_xla(part: int, worker: Worker, capsys: pytest.CaptureFixture[str]) -> None:
    failed = fuzz.main(_part(part, effort.by_level(40, 240, 3000)), worker)
    assert not failed, capsys.readouterr().out


@pytest.mark.parametrize("part", range(_PARTS))
@pytest.mark.slow
def test_random_kernels_on_tiles_agree_with_xla(part: int, worker: Worker, capsys: pytest.CaptureFixture[str]) -> None:
    failed = fuzz_blocks.main(_part(part, effort.by_level(8, 24, 1000)), worker)
    assert not failed, capsys.readouterr().out


@pytest.mark.parametrize("part", range(_PARTS))
@pytest.mark.slow
def test_random_products_of_warp_groups_agree_with_xla(
    part: int, worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = fuzz_blocks.main(["--groups", *_part(part, effort.by_level(4, 12, 500))], worker)
    assert not failed, capsys.readouterr().out


def test_a_kernel_on_tiles_that_computes_something_else_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    program = block_programs.generate(3)
    assert block_programs.generate(3).text == program.text
    assert fuzz_blocks.failure_of_seed(3) is None
    reads = elements.ElementCode.computed
    monkeypatch.setattr(elements.ElementCode, "computed", lambda code, op, at: tuple(reversed(reads(code, op, at))))
    assert any(fuzz_blocks.failure_of_seed(seed) is not None for seed in range(3, 9))


@pytest.mark.parametrize("part", range(_PARTS))
@pytest.mark.slow
def test_mutated_inputs_end_in_a_result_or_a_diagnostic(
    part: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = fuzz_inputs.main([*_part(part, effort.by_level(40, 200, 3000)), "--keep", str(tmp_path)])
    assert not failed, capsys.readouterr().out


def test_parts_are_all_cases_once() -> None:
    options = [_part(number, 10) for number in range(_PARTS)]
    seeds = [int(seed) + case for _, cases, _, seed in options for case in range(int(cases))]
    assert seeds == list(range(_SEED, _SEED + int(_CASES or 10)))


def test_a_wrong_rewrite_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewrites before planning are not applied to the oracle's program."""
    values = {number: Value(TensorType(dtype_named("s32"), (5,)), Facts(-9, 99)) for number in range(3)}
    arguments = [Node("argument", (), {}, (number,)) for number in (0, 1)]
    graph = Graph((*arguments, Node("maximum", (0, 1), {}, (2,))), (2,), values, seed=0)
    assert failure_of(graph, Variant(), "host") is None
    monkeypatch.setattr(check, "load_source", lambda text: load_source(text.replace("maximum", "minimum")))
    failure = failure_of(graph, Variant(), "host")
    assert failure is not None
    assert failure.kind == "mismatch"


def test_a_state_that_is_overwritten_too_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a kernel reads its neighbours' elements of a state, which they overwrite."""
    node = Node("reverse", (0,), {"dims": (0,)}, (1,))
    values = {number: Value(TensorType(dtype_named("s32"), (5,)), Facts(-9, 99)) for number in (0, 1)}
    graph = Graph((Node("argument", (), {}, (0,)), node), (1,), values, seed=0)
    looped = Variant(looped=True)
    assert failure_of(graph, looped, "host") is None
    for module in (fusion_writer, requirements):
        monkeypatch.setattr(module, "overwritten_where_read", lambda roots, values, stored: {*values} - {None})
    failure = failure_of(graph, looped, "host")
    assert failure is not None
    assert failure.kind == "mismatch"


@pytest.mark.parametrize(
    ("name", "combine"),
    [
        ("add", np.add),
        ("multiply", np.multiply),
        ("xor", np.bitwise_xor),
        ("maximum", np.maximum),
        ("and", np.bitwise_and),
    ],
)
def test_a_reduction_takes_in_once_what_it_starts_from(name: str, combine: np.ufunc) -> None:
    types = [TensorType(dtype_named("s32"), shape) for shape in ((5, 3), (), (3,))]
    values = {number: Value(type_, Facts(-9, 99)) for number, type_ in enumerate(types)}
    arguments = [Node("argument", (), {}, (number,)) for number in (0, 1)]
    reduce = Node("reduce", (0, 1), {"dims": (0,), "combiners": (name,)}, (2,))
    graph = Graph((*arguments, reduce), (2,), values, seed=0)
    array, start = (graph.elements(number) for number in graph.arguments)
    np.testing.assert_array_equal(expected(graph)[0], combine(start, combine.reduce(array)))
    # That of each part which XLA reduces is taken in any number of times.
    *_, before, _, _ = as_xla_means_it(graph).nodes
    assert before.op == "reduce"
    assert (before.operands[1] == 1) == (name in ("and", "maximum"))


@pytest.mark.parametrize("shape", [(), (3,)], ids=["scalars", "arrays"])
def test_a_clamp_whose_lower_bound_is_larger_has_the_upper_one(shape: tuple[int, ...]) -> None:
    """XLA takes the larger of the lower bound and a clamp for the clamp."""
    facts = on_grid(dtype_named("f32"), 30, 30, 0), on_grid(dtype_named("f32"), 5, 5, 0)
    assert all(facts)
    known = [facts[0], facts[1], replace(facts[0], lo=19.0, hi=19.0)]
    values = {
        number: Value(TensorType(dtype_named("f32"), shape if number != 1 else (3,)), known[number])
        for number in range(3)
    }
    arguments = [Node("argument", (), {}, (number,)) for number in range(3)]
    params = {"main": 1, "scalars": (0, 2) if not shape else ()}
    values |= {number: Value(TensorType(dtype_named("f32"), (3,)), known[0]) for number in (3, 4, 5)}
    nodes = [
        Node("clamp", (0, 1, 2), params, (3,)),
        Node("broadcast_in_dim", (0,), {"shape": (3,), "dims": tuple(range(len(shape)))}, (4,)),
        Node("maximum", (4, 3), {}, (5,)),
    ]
    graph = Graph((*arguments, *nodes), (3, 5), values, seed=0)
    clamped, larger = expected(graph)
    assert (clamped == 19).all()
    assert (larger == 30).all()
    assert failure_of(graph, Variant(), "host") is None


def test_arrays_that_are_reduced_together_may_be_of_different_floats() -> None:
    """XLA refuses such a reduction; xgpu computes it, and the oracle knows its results."""
    types = [(name, shape) for shape in ((5,), (), ()) for name in ("bf16", "f16")]
    facts = on_grid(dtype_named("bf16"), -4, 4, 0)
    assert facts is not None
    values = {number: Value(TensorType(dtype_named(name), shape), facts) for number, (name, shape) in enumerate(types)}
    arguments = [Node("argument", (), {}, (number,)) for number in range(4)]
    reduce = Node("reduce", (0, 1, 2, 3), {"dims": (0,), "combiners": ("minimum", "add")}, (4, 5))
    graph = Graph((*arguments, reduce), (4, 5), values, seed=0)
    halves, numbers, least, start = (graph.elements(number) for number in range(4))
    assert [float(each) for each in expected(graph)] == [min(halves.min(), least), numbers.sum() + start]
    assert failure_of(graph, Variant(), "host") is None


def test_a_seed_always_gives_the_same_case() -> None:
    assert generate(7).text() == generate(7).text()
    assert generate(7).text() != generate(8).text()
    texts = fuzz_inputs.corpus()
    assert fuzz_inputs.case_of_seed(7, texts) == fuzz_inputs.case_of_seed(7, texts)


def test_sorts_have_several_keys_and_arrays_that_are_none() -> None:
    sorts = [node for seed in range(400) for node in generate(seed).nodes if node.op == "sort"]
    assert max(node.params["keys"] for node in sorts) == 4
    assert max(len(node.operands) - node.params["keys"] for node in sorts) > 2
    text = region_of(
        "sort", {"order": "plain", "keys": 3, "direction": "LT"}, [TensorType(dtype_named("s8"), (5,))] * 4
    )
    assert text.count("stablehlo.compare") == 5
    assert "%l3" in text and "%l3," not in text


@pytest.mark.parametrize("seed", range(6))
def test_factors_and_solutions_are_exact(seed: int) -> None:
    builder = Builder(seed, 2_000)
    factor = solves.cholesky(builder, 0)
    solution = next(made for _ in range(100) if (made := solves.triangular_system(builder, 0)) is not None)
    assert factor is not None
    graph = builder.graph([factor, solution])
    made, _ = expected(graph)
    assert (np.diagonal(made, axis1=-2, axis2=-1) == 1).all()
    assert set(np.unique(made)) <= {-1, 0, 1}
    assert failure_of(graph, Variant(), "host") is None


def test_graphs_use_every_operation_that_the_fuzzer_knows() -> None:
    used = {node.op for seed in range(400) for node in generate(seed).nodes}
    assert {"gather", "dynamic_update_slice", "reduce", "pad", "atan2", "bitcast_convert", "iota", "clamp"} <= used
    assert {"reduce_window", "scatter", "dot_general", "sort", "scan"} <= used
    assert {"branches", "select_and_scatter", "rng_bit_generator", "reduce_precision", "complex", "real"} <= used
    assert {"convolution", "factor", "map", "optimization_barrier", "solution", "top_k", "whiles"} <= used
    assert len(used & CHLO) > 4
    assert len(used) > 80


@pytest.mark.parametrize(
    "family",
    ("convolutions", "functions", "numbers", "operations", "places", "recursive_scans", "selections", "several"),
)
def test_a_family_alone_agrees_with_xla(family: str) -> None:
    """Graphs of operations of a family alone, of arrays of several types."""
    module = importlib.import_module(f"xgpu.tools.fuzzing.families.{family}")
    steps = [getattr(module, step.__name__) for step in STEPS if step.__module__ == module.__name__]
    assert steps
    for seed, name in enumerate(("s32", "f32", "c64", "pred", "bf16")):
        builder = Builder(seed, limit=1000)
        facts = Facts(0, 1) if name == "pred" else replace(Facts(-4, 4), grid=0)
        value = builder.argument(dtype_named(name), (3, 5), facts)
        results = [result for step in steps for _ in range(2) if (result := step(builder, value)) is not None]
        assert failure_of(builder.graph(results or [value]), Variant(), "host") is None


def test_extremes_of_floats_are_drawn() -> None:
    for dtype in FLOATS:
        drawn = draw(dtype, (2000,), whole_floats(dtype), np.random.default_rng(0))
        numbers = drawn.astype(np.float64)
        largest = float(ml_dtypes.finfo(dtype.numpy).max)
        assert {-largest, largest, -np.inf, np.inf, 2.5, 127.5 if dtype.hlo == "bf16" else 2.0**15} <= set(numbers)
        assert np.isnan(numbers).any()
        assert set(np.signbit(numbers[numbers == 0])) == {True, False}


def test_loops_of_no_steps_return_what_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node("reverse", (0,), {"dims": (0,)}, (1,))
    values = {number: Value(TensorType(dtype_named("s32"), (5,)), Facts(-9, 99)) for number in (0, 1)}
    graph = Graph((Node("argument", (), {}, (0,)), node), (1,), values, seed=0)
    assert failure_of(graph, Variant(looped=True, idle=True), "host") is None
    monkeypatch.setattr(check, "load_source", lambda text: load_source(text.replace("LT, %count", "LE, %count")))
    failure = failure_of(graph, Variant(looped=True, idle=True), "host")
    assert failure is not None
    assert failure.kind == "mismatch"


@pytest.mark.parametrize("dtype", (*ALL, *PACKED, *SMALL_FLOATS), ids=str)
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


@pytest.mark.parametrize("dtype", (*FLOATS, *SMALL_FLOATS), ids=str)
def test_drawn_floats_are_in_the_range_of_their_type(dtype: DType) -> None:
    """What is too large for it would be NaN, of which nothing is said."""
    generator = np.random.default_rng(0)
    drawn_facts = [Builder(seed, 1000).fresh_facts(dtype) for seed in range(50)]
    drawn = [draw(dtype, (100,), facts, generator) for facts in drawn_facts if not facts.special]
    assert np.isfinite(np.asarray(drawn).astype(np.float64)).all()


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
    """A pass may refuse any text that xgpu-opt gives it, but must not break on it."""
    case = fuzz_inputs.Case(("xgpu-opt", "FILE"), "", ".mlir")
    refused, broken = (fuzz_inputs.Outcome(1, f"pass 'cse' failed: {reason}") for reason in ("no", "KeyError: 3"))
    assert fuzz_inputs.complaint(case, refused) is None
    assert "KeyError: 3" in (fuzz_inputs.complaint(case, broken) or "")


def test_pipelines_are_ones_that_there_are() -> None:
    texts = fuzz_inputs.corpus()
    cases = [fuzz_inputs.case_of_seed(seed, texts) for seed in range(200)]
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


def test_convolutions_are_computed_at_run_time() -> None:
    """XLA's sums of constants that it convolves itself stay at the largest number, and do not wrap around."""
    graphs = (generate(seed) for seed in itertools.count())
    graph = next(graph for graph in graphs if any(node.op == "convolution" for node in graph.nodes))
    given = as_xla_means_it(graph)
    barriers = {value for node in given.nodes if node.op == "optimization_barrier" for value in node.results}
    assert all(barriers.issuperset(node.operands) for node in given.nodes if node.op == "convolution")
    assert failure_of(graph, Variant(), "host") is None
