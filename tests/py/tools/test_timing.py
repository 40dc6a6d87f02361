"""The tools that time kernels on a GPU: what they do without one, and that each of their cases can be built."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

import xgpu
from xgpu.errors import ToolError
from xgpu.interface.api import compile_to, default_device
from xgpu.target.nvptx.cubin import find_ptxas
from xgpu.tools.timing import attention, block_kernels, loop_products, queued, ragged_products

Main = Callable[[Sequence[str] | None], int]
TOOLS = {
    "attention": attention.main,
    "block_kernels": block_kernels.main,
    "loop_products": loop_products.main,
    "ragged_products": ragged_products.main,
}
CASES = {case.name: case for case in [*block_kernels.cases(), *loop_products.cases()]}


@pytest.mark.parametrize("tool", TOOLS)
def test_without_a_gpu(tool: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def missing() -> None:
        raise ToolError("no GPU")

    monkeypatch.setattr(queued, "gpu_device", missing)
    assert TOOLS[tool]([]) == 1
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", f"{tool}: error: no GPU\n")


@pytest.mark.parametrize("tool", TOOLS)
def test_words_that_choose_nothing(tool: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert TOOLS[tool](["fft"]) == 1
    assert capsys.readouterr().err == f"{tool}: error: no case has a name with one of: fft\n"


def test_rounds_are_some(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        loop_products.main(["--rounds", "0"])
    assert ended.value.code == 2
    assert "--rounds: expected a number of at least 1, got 0" in capsys.readouterr().err


def test_what_is_wrong_is_in_the_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(queued, "has_gpu", lambda tool: True)
    right = block_kernels.transpose(8, 40, 8, 64)
    wrong = replace(right, name="wrong", reference=lambda x: x.T + 1, work=0.0)
    missing = replace(right, name="missing", source="no text")
    assert queued.measure("tool", None, [right], ["--rounds", "1"]) == 0
    assert re.search(r"^transpose 8 x 40 +block +ok +0\.0e\+00( +[0-9.]+){5} TB/s$", capsys.readouterr().out, re.M)
    assert queued.measure("tool", None, [right, wrong, missing], ["--rounds", "1", "wrong", "missing"]) == 1
    found = capsys.readouterr().out
    assert re.search(r"^wrong +block +WRONG +[0-9.e+-]+$", found, re.M)
    assert "missing: FAILED: InvalidInput: " in found
    assert "0 right, 2 failed or wrong" in found


def test_attention_has_a_line_and_errors(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(attention, "has_gpu", lambda tool: True)
    monkeypatch.setattr(attention, "cases", lambda: [attention.Case("small", 1, 64, 1, 64, causal=True)])
    monkeypatch.setattr(attention, "masks", list)
    assert attention.main(["--rounds", "1"]) == 0
    (errors,) = re.findall(r"^small .* folded ([0-9.]+) off ([0-9.]+)", capsys.readouterr().out, re.M)
    # Results are rounded twice, and sums of f32 in their own order; twice that would be a wrong row.
    assert all(0 < float(each) < 2 for each in errors)


def test_products_of_groups_have_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    case = ragged_products.Case
    monkeypatch.setattr(ragged_products, "has_gpu", lambda tool: True)
    monkeypatch.setattr(ragged_products, "SECONDS", float("inf"))
    small = [
        case(40, 64, 72, 4, "skewed"),
        case(20, 64, 72, 4, "drawn", "gated"),
        case(16, 64, 72, 4, "routed", "layer"),
    ]
    monkeypatch.setattr(ragged_products, "cases", lambda: small)
    assert ragged_products.main(["--rounds", "1"]) == 0
    errors = re.findall(r"^(\w+) .* ok .* ours ([0-9.e+-]+) XLA ([0-9.e+-]+)$", capsys.readouterr().out, re.M)
    assert [kind for kind, *_ in errors] == ["product", "gated", "layer"]
    assert ragged_products.main(["--rounds", "1", "--schedule", "tile_m=64,tile_n=64,groups=1", "gated"]) == 0
    assert re.search(r"^gated .* nan .* ours [0-9.e+-]+$", capsys.readouterr().out, re.M)
    # Results are rounded to bf16; XLA's of the layer are what ours are compared with.
    assert all(0 < float(each) < 0.02 for _, *both in errors[:2] for each in both)


def test_products_of_other_groups_are_wrong() -> None:
    case = ragged_products.Case(40, 64, 72, 4, "skewed")
    arguments = case.draw(case.specs)
    right = case.function(*arguments)
    assert case.error(right, None, arguments) < 0.01
    assert case.error(right[::-1], None, arguments) > 0.1


def test_names_of_cases_differ() -> None:
    timed: list[Sequence[Any]] = [attention.cases(), attention.masks(), block_kernels.cases(), loop_products.cases()]
    for cases in (*timed, ragged_products.cases()):
        assert len({case.name for case in cases}) == len(cases)


@pytest.mark.parametrize("name", CASES)
def test_kernels_have_the_types_of_what_they_are_compared_with(name: str) -> None:
    case = CASES[name]
    program = compile_to(None, case.source, case.specs, default_device(), xgpu.Options())
    expected = jax.eval_shape(case.reference, *queued.structs(program.arguments))
    (found,) = program.results
    assert (found.shape, np.dtype(found.dtype.numpy)) == (expected.shape, expected.dtype)
    assert len(program.kernels) == 1


@pytest.mark.parametrize("case", [*attention.cases(), *attention.masks()], ids=lambda case: case.name)
def test_attention_is_a_kernel_of_each_form(case: attention.Case | attention.Hidden) -> None:
    for form, is_folded in attention.FORMS.items():
        planned = attention.with_form(case, form).ir("fusions")
        assert f"folded = {str(is_folded).lower()}" in planned
        assert f"folded = {str(not is_folded).lower()}" not in planned
    expected = jax.eval_shape(case.function, *case.specs)
    assert expected == case.specs[0]


@pytest.mark.parametrize("case", ragged_products.cases(), ids=lambda case: case.name)
def test_products_of_groups_are_kernels(case: ragged_products.Case) -> None:
    """The gradients of matrices alone, whose groups are along the contracted dimension, are XLA's."""
    program = compile_to("fusions", case.function, case.specs, default_device(), xgpu.Options())
    kinds = [each.emitter for each in program.kernels]
    left = [line for line in program.ir("fusions").splitlines() if "ragged_dot" in line and "no gain" in line]
    assert kinds.count("product") == {"layer": 2}.get(case.kind, 1)
    assert len(left) == (case.kind == "gradients")
    found = jax.eval_shape(case.function, *case.specs)
    assert [each.dtype for each in jax.tree.leaves(found)] == [jax.numpy.bfloat16] * len(program.results)
    assert jax.eval_shape(case.dense, *case.dense_specs) is not None


def test_attention_with_schedules(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One that a kernel cannot have is a failure, and the others are measured; a word chooses cases."""
    monkeypatch.setattr(attention, "has_gpu", lambda tool: True)
    cases = [attention.Case(name, 1, 64, 1, 64, causal=True) for name in ("small", "other")]
    monkeypatch.setattr(attention, "cases", lambda: cases)
    given = ["--schedule", "folded=false,tile_n=32", "--schedule", "other: tile_n=72", "small", "other"]
    assert attention.main(["--rounds", "1", *given]) == 1
    found = capsys.readouterr().out
    assert "other: tile_n=72: FAILED: InvalidInput: " in found
    assert "small: tile_n=72" not in found
    errors = re.findall(r"^  (?:as chosen|folded=false,tile_n=32) .* ([0-9.]+)$", found, re.M)
    assert len(errors) == 4
    assert all(0 < float(each) < 2 for each in errors)


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
def test_what_ptxas_makes_of_schedules(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(attention, "cases", lambda: [attention.Case("small", 1, 64, 1, 64)])
    assert attention.main(["--compile-only", "small", "--schedule", "reuse=true"]) == 0
    found = capsys.readouterr().out
    assert re.findall(r"^small: (as chosen|reuse=true) +\d+ bytes shared, 0 spilled$", found, re.M) == [
        "as chosen",
        "reuse=true",
    ]


def test_schedules_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        attention.main(["--schedule", "tile_n"])
    assert ended.value.code == 2
    assert "expected [word:] name=number or name=true, ..., got 'tile_n'" in capsys.readouterr().err
