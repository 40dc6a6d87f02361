"""``xgpu run --count``: how many operations each launch executes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[3] / "examples"
BIAS_RELU = f"{EXAMPLES}/bias_relu.py:bias_relu"


def test_counts_are_printed_before_the_comparison(xgpu: Callable[..., Any]) -> None:
    outcome = xgpu("run", BIAS_RELU, "--arg", "f32[33,7]", "--arg", "f32[7]", "--count")
    assert (outcome.code, outcome.err) == (0, "")
    # Two loads, the sum and the maximum.
    assert outcome.out.splitlines()[0] == f"bias_relu_fusion_0: {4 * 33 * 7} operations"
    assert outcome.out.splitlines()[1].startswith("result: f32[33,7]: absolute error 0")


def test_only_on_the_host(xgpu: Callable[..., Any]) -> None:
    outcome = xgpu("run", BIAS_RELU, "--on", "gpu", "--count")
    assert (outcome.code, outcome.err) == (2, "xgpu: error: --count runs on the host: leave out --on gpu\n")
