"""Output of ``explain``: a program's kernels, their traffic, and what falls back to XLA."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import xgpu
from xgpu.cli.main import main
from xgpu.interface.explanation import explain

PROGRAM = """\
import jax
import jax.numpy as jnp


def layer(x, w):
    h = jax.nn.softmax(x @ w)
    return jnp.sort(h)


layer.example_args = ("f32[1024,128]", "f32[128,256]")
"""


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "layer.py"
    file.write_text(PROGRAM)
    assert main(["explain", f"{file}:layer"]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split() == [
        "kernel",
        "emitter",
        "grid",
        "x",
        "block",
        "bytes",
        "time/us",
        "sectors",
        "schedule",
        "makes",
    ]
    kernels = lines[: lines.index("")]
    assert kernels
    for number, line in enumerate(kernels):
        assert line.startswith(f"layer_fusion_{number} ")
        assert f"({file}:6)" in line
    left = lines[lines.index("") + 1 :]
    assert left[0] == "left to XLA:"
    assert f"stablehlo.dot_general of type tensor<1024x256xf32> ({file}:6): matrix multiplication" in left[1]
    assert f"stablehlo.sort of type tensor<1024x256xf32> ({file}:7): operation not supported" in left[2]
    assert len(left) == 3


def test_a_jitted_function_explains_itself() -> None:
    report = xgpu.jit(lambda x: jax.nn.gelu(x) + 1).explain(jnp.ones((1024, 1024)))
    (kernel,) = report.kernels
    assert (kernel.emitter, kernel.operation, kernel.bytes) == ("loop", "add", 2 * 4 * 1024 * 1024)
    assert kernel.seconds == pytest.approx(kernel.bytes / 4.8e12, rel=0.6)
    assert report.kernels[0].schedule == {"threads": 128, "vector": 4, "rows": 1, "row": 1024}
    assert "threads = 128, vector = 4, rows = 1" in str(report)
    assert not report.fallbacks


def test_times_are_those_of_what_takes_longest() -> None:
    """Powers are executed longer than memory takes; a product takes as long as its schedule was chosen for."""
    array = jax.ShapeDtypeStruct((1024, 1024), jnp.float32)
    (moved,) = xgpu.jit(lambda x: x + 1).explain(array).kernels
    (executed,) = xgpu.jit(lambda x: x**x**x**x).explain(array).kernels
    assert moved.bytes == executed.bytes
    assert executed.seconds > 3 * moved.seconds
    matrix = jax.ShapeDtypeStruct((4096, 4096), jnp.bfloat16)
    program = xgpu.compile(lambda x, y: x @ y, matrix, matrix, options=xgpu.Options(products="kernels"))
    (product,) = explain(program).kernels
    # Measured on an H200: 170 us.
    assert 140e-6 < product.seconds < 200e-6


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x * 2, 1),
        (lambda x: x[:, ::2] * 2, 3 / 2),
        (lambda x: x[:, ::8] * 2, 9 / 2),
        (lambda x: jnp.sum(x, 1), None),
        (lambda x: x.T * 2, None),
        (lambda x: x[:0] * 2, None),
    ],
    ids=("plain", "every-other", "every-eighth", "reduction", "tile", "empty"),
)
def test_sectors_are_those_that_warps_touch(function: Any, expected: float | None) -> None:
    kernels = xgpu.jit(function).explain(jax.ShapeDtypeStruct((4096, 1024), jnp.float32)).kernels
    assert [kernel.sectors for kernel in kernels] in ([expected], [])


TABLE, ROWS, NUMBERS = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((4096, 128), (16, 128), (16,)))
PLACES, PLACE = (jax.ShapeDtypeStruct(shape, jnp.int32) for shape in ((16,), ()))
ROW = 4 * 128


@pytest.mark.parametrize(
    ("function", "specs", "expected"),
    [
        (lambda t, u, i: jax.lax.dynamic_update_slice(t, u * 2, (i, 0)), (TABLE, ROWS, PLACE), 2 * 16 * ROW + 4),
        (lambda t, u, i: t.at[i].set(u * 2), (TABLE, ROWS, PLACES), 2 * 16 * ROW + 16 * 4),
        (lambda t, u, i: t.at[i].add(u * 2), (TABLE, ROWS, PLACES), 3 * 16 * ROW + 16 * 4),
        (lambda t, u, i: t.at[i, 7].max(u), (TABLE, NUMBERS, PLACES), 3 * 16 * 4 + 16 * 4),
        (lambda t, i: t[i] * 2, (TABLE, PLACES), 2 * 16 * ROW + 16 * 4),
        (lambda t: t[:16] * 2, (TABLE,), 2 * 16 * ROW),
        (lambda t: t[:, :64] * t[:, 64:], (TABLE,), 4096 * (ROW + ROW // 2)),
        (lambda t: jnp.exp(t).sum(1), (TABLE,), 4096 * (ROW + 4)),
        (lambda t: t[:16].sum(1), (TABLE,), 16 * (ROW + 4)),
        # Not in place, since all of the result must be written: the part that is replaced is not read.
        (lambda t, u, i: jax.lax.dynamic_update_slice(t * 2, u, (i, 0)) + 1, (TABLE, ROWS, PLACE), 2 * 4096 * ROW + 4),
    ],
    ids=(
        "update",
        "set",
        "add",
        "max-of-numbers",
        "gather",
        "slice",
        "halves",
        "row-sums",
        "sums-of-a-slice",
        "copied",
    ),
)
def test_bytes_are_those_that_are_moved(function: Any, specs: Any, expected: int) -> None:
    report = xgpu.jit(function).explain(*specs)
    assert [kernel.bytes for kernel in report.kernels] == [expected]


def test_kernels_of_integers_without_a_sign_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "twice.mlir"
    file.write_text(
        """func.func @main(%x: tensor<1000xui32>) -> tensor<1000xui32> {
          %twice = stablehlo.add %x, %x : tensor<1000xui32>
          return %twice : tensor<1000xui32>
        }"""
    )
    assert main(["explain", str(file)]) == 0
    assert " loop " in capsys.readouterr().out


def test_loops_are_left_and_their_blocks_are_not() -> None:
    loop = xgpu.jit(lambda x, n: jax.lax.fori_loop(0, n, lambda i, a: jnp.sin(a[::-1]) + i, x))
    report = loop.explain(jnp.ones((1024,)), 9)
    assert [each.operation for each in report.fallbacks] == ["stablehlo.while"]
    assert [kernel.operation for kernel in report.kernels] == ["add"]


def test_a_kernel_of_an_operations_second_result_is_named_after_it() -> None:
    explanation = xgpu.jit(lambda x: jnp.argmax(x * 2, -1)).explain(jnp.ones((9, 64)))
    (kernel,) = explanation.kernels
    assert kernel.operation == "reduce"


def test_a_kernel_of_parts_explains_each() -> None:
    report = xgpu.jit(lambda x, y: (x[:, ::2] * 2, y.sum(1))).explain(jnp.ones((37, 16)), jnp.ones((5, 300)))
    (kernel,) = report.kernels
    found = [(part.emitter, part.operation, part.bytes, part.sectors) for part in kernel.parts]
    assert found == [("reduce_row", "reduce", 4 * (5 * 300 + 5), None), ("loop", "multiply", 4 * (2 * 37 * 8), 3 / 2)]
    assert (kernel.emitter, kernel.bytes) == ("parts", sum(part.bytes for part in kernel.parts))
    assert kernel.grid[0] == sum(part.grid[0] for part in kernel.parts)
    assert kernel.schedule == {"threads": kernel.parts[1].schedule["threads"]}
    lines = str(report).splitlines()
    assert [line.split()[:2] for line in lines[1:4]] == [
        [kernel.name, "parts"],
        [f"{kernel.name}_part_0", "reduce_row"],
        [f"{kernel.name}_part_1", "loop"],
    ]
