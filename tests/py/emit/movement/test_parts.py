"""Kernels side by side in one launch, under the checks of the host executor, against XLA."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from xgpu.fusion.grouping.merging import small_kernels
from xgpu.interface.explanation import explain
from xgpu.runtime.compare import compare


def run(function: Callable[..., Any], *specs: str) -> xgpu.Compiled:
    """Run on the host executor, compare with XLA, and return the compiled program."""
    compiled = xgpu.compile(function, *specs)
    inputs = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(*inputs, sanitize=True), compiled.reference(*inputs), strict=True):
        assert compare(result, expected).agrees
    return compiled


def emitters(compiled: xgpu.Compiled) -> list[str]:
    return [kernel.emitter for kernel in compiled.kernels]


def parts(compiled: xgpu.Compiled) -> list[str]:
    """Return the families of the parts of all kernels, in order."""
    return re.findall(r"func private @\w+_part_\d+\(.*xgpu.emitter = \"(\w+)\"", compiled.ir("fusions"))


def _doubled(*arrays: Any) -> list[Any]:
    return [x + x for x in arrays]


def _squared(*arrays: Any) -> list[Any]:
    return [(x * x).sum() for x in arrays]


@pytest.mark.parametrize(
    "specs",
    [
        ("f32[64]", "f32[65]"),
        ("f32[]", "f32[1]", "f32[1,1]", "f32[129]", "f32[128,3]"),
        ("f64[3,5]", "bf16[700]", "s8[31,33]", "f16[2,3,1,2,5]", "c64[9]", "c128[257]", "s64[40]"),
        ("s4[33]", "f32[300]", "u2[67,3]", "s8[5]", "f64[130]"),
        ("f32[600,513]", "bf16[1023,7]", "s4[999]", "f32[3]", "f64[257,2]"),
    ],
)
def test_loops_of_all_shapes_and_types(specs: tuple[str, ...]) -> None:
    compiled = run(_doubled, *specs)
    assert emitters(compiled) == ["parts"]
    assert parts(compiled) == ["loop"] * len(specs)


def test_pred_and_what_differs_in_type() -> None:
    compiled = run(lambda x, y: (x > 0, x.astype(jnp.bfloat16), y == 3, -y), "f32[33,3]", "s32[129]")
    assert parts(compiled) == ["loop", "loop"]


def test_each_part_computes_what_is_shared() -> None:
    def function(x: Any, y: Any, z: Any) -> Any:
        scale = jnp.sqrt(z * z + 1)
        return x * scale, y / scale, jnp.flip(x)[:20] + y[0]

    assert emitters(run(function, "f32[100]", "f32[30]", "f32[]")) == ["parts"]


def test_more_values_of_one_shape_than_a_thread_stores() -> None:
    compiled = run(_doubled, *["s32[70]"] * 35, "s32[71]")
    assert emitters(compiled) == ["parts"]
    assert compiled.kernels[0].grid == (4, 1, 1)


@pytest.mark.parametrize(
    "specs",
    [
        ("f32[64]", "f32[65]"),
        ("f32[10]", "f32[3,11]", "f32[1023]", "f32[1024]", "f32[4097]", "f32[70,70]"),
        ("f64[300]", "bf16[700]", "f16[2,3,1,20,5]", "s32[31,33]", "c64[90]", "s64[40]"),
        ("f32[300000]", "f32[77]", "bf16[200001]", "f32[1000,513]"),
    ],
)
def test_sums_of_all_shapes_and_types(specs: tuple[str, ...]) -> None:
    """Those of many elements have two stages: the first of all are one kernel, and so are the second."""
    compiled = run(_squared, *specs)
    assert emitters(compiled)[0] == "parts"
    assert len(compiled.launches) <= 2


def test_a_step_clipped_by_the_norm_of_all_gradients() -> None:
    def function(*gradients: Any) -> Any:
        norm = jnp.sqrt(sum(jnp.sum(each * each) for each in gradients))
        return [each * jnp.minimum(1.0, 1.0 / norm) for each in gradients]

    specs = ["f32[300,70]", "f32[64]", "f32[3]", "f32[700,600]", "f32[65,7]"]
    assert emitters(run(function, *specs)) == ["parts", "reduce_row", "parts"]


def test_trust_ratios() -> None:
    """Two norms of each array, of which small ones are row programs that store the result too."""

    def function(*arrays: Any) -> Any:
        pairs = list(zip(arrays[::2], arrays[1::2], strict=True))
        return [p - u * (jnp.linalg.norm(p) / (1 + jnp.linalg.norm(u))) for p, u in pairs]

    specs = [spec for spec in ("f32[30,70]", "f32[64]", "f32[600,70]") for _ in range(2)]
    compiled = run(function, *specs)
    assert emitters(compiled) == ["parts", "loop"]
    assert parts(compiled) == ["rows", "rows", "reduce_row"]


def test_sums_of_slices_of_one_array() -> None:
    """The rows of a stack of autocorrelations."""
    lags = 7
    compiled = run(lambda x: jnp.stack([(x[:, : 48 - k] * x[:, k:]).sum(1) for k in range(lags)], 1), "f32[33,48]")
    assert emitters(compiled) == ["parts", "concatenate_tiled"]
    assert parts(compiled) == ["reduce_row"] * lags


def test_rows_columns_and_loops_side_by_side() -> None:
    def function(x: Any, y: Any, z: Any, w: Any) -> Any:
        return x.sum(1), (y * 2).max(0), jax.nn.softmax(z), jnp.sin(w), jnp.argmax(y, 0), y.min(0)

    compiled = run(function, "f32[9,100]", "f32[300,17]", "f32[5,2000]", "f32[700]")
    assert emitters(compiled) == ["parts"]
    assert sorted(parts(compiled)) == ["loop", "reduce_column", "reduce_row", "rows"]


def test_tiles_are_shared_by_parts_that_need_several() -> None:
    """Row programs take one tile for each reduction, wide columns larger ones; the kernel has as many as one needs."""

    def function(x: Any, y: Any, z: Any) -> Any:
        normed = (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1)
        return normed, y.sum(0), y.max(0), z.sum(1)

    compiled = run(function, "f32[3,3000]", "f32[500,65]", "f32[2,5000]")
    (kernel,) = compiled.kernels
    allocated = re.findall(r"xgpu.allocate_shared\"\(\) : \(\) -> tensor<(\d+)xf32>", compiled.ir("emitted"))
    assert len(allocated) == 2
    assert max(map(int, allocated)) > kernel.block[0] // 32


def test_elements_stay_in_their_order_beside_others() -> None:
    def last(a: Any, b: Any) -> Any:
        return jnp.where(b != 0, b, a)

    compiled = run(lambda x, y: (jax.lax.reduce(x, np.int32(0), last, (0,)), y.sum()), "s32[700]", "s32[900]")
    assert parts(compiled) == ["reduce_row", "reduce_row"]


def test_a_state_is_overwritten_only_where_no_other_part_reads_it() -> None:
    def function(x: Any, y: Any, z: Any) -> Any:
        def body(_: Any, state: Any) -> Any:
            x, y, total, z = state
            return x * 1.5, y + 2, total + (x * x).sum(), z - x[:20]

        return jax.lax.fori_loop(0, 3, body, (x, y, jnp.float32(0), z))

    compiled = xgpu.compile(function, "f32[700]", "f32[33,3]", "f32[20]")
    text = compiled.ir("fusions")
    (kernel,) = [line for line in text.splitlines() if 'xgpu.emitter = "parts"' in line]
    (aliases,) = re.findall(r"xgpu.aliases = array<i64: ([-\d, ]*)>", kernel)
    # Two parts read the first state, that of its squares and the last one; one each of them reads the others.
    updated = [number >= 0 for number in map(int, aliases.split(", "))]
    assert sum(updated) == 3
    inputs = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        assert compare(result, expected).agrees


def test_a_kernel_has_no_more_parts_than_compile_beside_others() -> None:
    compiled = run(_doubled, *(f"s32[{size}]" for size in range(1, 41)))
    assert [kernel.grid for kernel in compiled.kernels] == [(32, 1, 1), (8, 1, 1)]


def test_a_kernel_has_no_more_arrays_than_every_driver_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_kernels, "_MOST_ARRAYS", 10)
    compiled = run(_doubled, *(f"s32[{size}]" for size in range(5, 16)))
    assert [kernel.grid for kernel in compiled.kernels] == [(5, 1, 1), (5, 1, 1), (1, 1, 1)]


def test_a_kernel_has_a_bounded_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(*arrays: Any) -> Any:
        for _ in range(30):
            arrays = tuple(x ^ (x * 3) for x in arrays)
        return arrays

    specs = [f"s32[{size}]" for size in range(5, 9)]
    assert emitters(run(function, *specs)) == ["parts"]
    monkeypatch.setattr(small_kernels, "_MOST_INSTRUCTIONS", 128)
    assert emitters(run(function, *specs)) == ["parts", "parts"]


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        # Memory moves 12 MB while an H200 launches a kernel.
        (("f32[1500,999]", "f32[64]"), ["parts"]),
        (("f32[1500,1001]", "f32[64]"), ["loop", "loop"]),
        (("f32[1500,1001]", "f32[64]", "f32[33]"), ["loop", "parts"]),
    ],
)
def test_what_takes_longer_than_a_launch_has_one_of_its_own(specs: tuple[str, ...], expected: list[str]) -> None:
    assert emitters(xgpu.compile(_doubled, *specs)) == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, y: (x.T, y + y), ["transpose", "loop"]),
        (lambda x, y: (jnp.cumsum(x, 1) * 2, y + y, x[:3] * 2), ["scan_row", "parts"]),
    ],
    ids=["transpose", "scan"],
)
def test_kernels_of_other_families_stay_apart(function: Callable[..., Any], expected: list[str]) -> None:
    assert sorted(emitters(run(function, "s32[70,48]", "s32[33]"))) == sorted(expected)


def test_a_kernel_that_reads_another_ones_result_comes_after_it() -> None:
    """Products read both, and XLA computes them."""

    def function(x: Any, y: Any, w: Any) -> Any:
        first = jnp.sin(x)
        return jnp.cos(first @ w)[:3] * y, jnp.exp(y), first

    compiled = xgpu.compile(function, "f32[64,64]", "f32[3,64]", "f32[64,64]")
    assert emitters(compiled) == ["parts", "loop"]


@pytest.mark.parametrize(
    ("loop", "specs", "threads"),
    [
        # Of so many elements a thread reads and writes 56 registers' worth at once.
        (lambda *arrays: [x * 2 for x in arrays], ["bf16[300,1000]"] * 7, 512),
        (lambda x: [jnp.sin(x * i) * jnp.cos(x + i) ** 1.7 for i in range(14)], ["f32[300,100]"], 256),
        (lambda x: [x * i + 3 for i in range(14)], ["f32[300,100]"], 1024),
    ],
    ids=["of many bytes", "of much code", "of little"],
)
def test_blocks_have_as_many_threads_as_every_part_has_registers_for(
    loop: Callable[..., Any], specs: list[str], threads: int
) -> None:
    compiled = xgpu.compile(lambda x, *arrays: ((x * x).sum(), loop(*arrays)), "f32[5000]", *specs)
    assert emitters(compiled) == ["parts"]
    alone = xgpu.compile(lambda x: (x * x).sum(), "f32[5000]")
    assert (alone.kernels[0].block, compiled.kernels[0].block) == ((1024, 1, 1), (threads, 1, 1))


def test_threads_read_as_if_each_part_had_its_share_of_the_device() -> None:
    """Rows of one kernel alone are given to more threads than those of several kernels beside each other."""
    alone = xgpu.compile(lambda x: (x[:, 1:] * x[:, :-1]).sum(1), "f32[512,480]")
    together = xgpu.compile(lambda x: [(x[:, k:] * x[:, : 480 - k]).sum(1) for k in range(1, 8)], "f32[512,480]")
    assert emitters(together) == ["parts"]
    lanes = [[int(each) for each in re.findall(r"lanes = (\d+), outer", c.ir("fusions"))] for c in (alone, together)]
    assert max(lanes[1]) < lanes[0][0]


def test_a_part_that_gathers_has_no_share_for_its_table() -> None:
    program = xgpu.compile(lambda t, i, y: (t[i] * 2, y.sum(axis=1)), "f32[1000000,64]", "s32[32]", "f32[64,4000]")
    alone = xgpu.compile(lambda t, y: (t * 2, y.sum(axis=1)), "f32[32,64]", "f32[64,4000]")
    schedules = [
        re.findall(r"lanes = \d+, outer_lanes = \d+, groups = \d+", each.ir("fusions")) for each in (program, alone)
    ]
    assert schedules[0] == schedules[1]
    assert schedules[0]


@pytest.mark.parametrize(
    "updated",
    [
        lambda t, i, u: jax.lax.dynamic_update_slice(t, u[None] * 2, (i, 0)),
        lambda t, i, u: t.at[i * jnp.arange(1, 3), :32].add(u.reshape(2, 32) * 2),
    ],
    ids=["slice", "scatter"],
)
def test_a_part_that_updates_an_array_in_place_takes_the_time_of_the_updates(updated: Any) -> None:
    """Its share of the device, and the time that is printed, are those of what it computes, not of the array."""
    program = xgpu.compile(
        lambda t, i, u, y: (updated(t, i, u), y.sum(axis=1)), "f32[1000000,64]", "s32[]", "f32[64]", "f32[64,4000]"
    )
    alone = xgpu.compile(lambda u, y: (u * 2, y.sum(axis=1)), "f32[64]", "f32[64,4000]")
    schedules = [
        re.findall(r"lanes = \d+, outer_lanes = \d+, groups = \d+", each.ir("fusions")) for each in (program, alone)
    ]
    assert schedules[0] == schedules[1]
    assert schedules[0]
    assert max(kernel.seconds for kernel in explain(program).kernels) <= 2 * explain(alone).kernels[0].seconds


def _table(x: Any, length: int) -> Any:
    return jnp.sin(x[:, None] * jnp.arange(length))


@pytest.mark.parametrize(
    ("reduced", "reads"),
    [
        (lambda x: _table(x, 10_000).max(-1), "f32[100]"),
        (lambda x: _table(x, 3000).sum(-1), "f32[250]"),
        (lambda x: jax.lax.lgamma(x[:, None] + jnp.arange(4000.0)).sum(-1), "f32[64]"),
        (lambda x: _table(x, 100).max(0), "f32[4000]"),
    ],
    ids=["maximum", "sum", "lgamma", "columns"],
)
def test_a_part_that_computes_much_of_few_bytes_takes_no_longer_than_alone(reduced: Any, reads: str) -> None:
    """Its share of the device is that of its instructions' time: by its bytes it would have one multiprocessor."""
    beside, *_ = explain(xgpu.compile(lambda x, y: (reduced(x), y * 2), reads, "f32[1500,999]")).kernels
    alone, *_ = explain(xgpu.compile(reduced, reads)).kernels
    assert [part.emitter for part in beside.parts] == [alone.emitter, "loop"]
    assert beside.seconds <= 1.5 * alone.seconds


def _long(y: Any, steps: int) -> Any:
    """Much code without branches: with them, a thread would have one element, and needed fewer registers."""
    for step in range(steps):
        y = jnp.tanh(y + step) * jnp.arctan(y * step)
    return y


@pytest.mark.parametrize("steps", [16, 48])
@pytest.mark.parametrize(
    "reduced",
    [lambda x: x.sum(-1), lambda x: x.sum(0), lambda x: x.argmax(-1), lambda x: x.var(-1), jax.nn.softmax],
    ids=["rows", "columns", "argmax", "variance", "softmax"],
)
def test_a_reduction_beside_a_loop_of_much_code_has_its_small_blocks(reduced: Any, steps: int) -> None:
    """A loop that needs many registers has few threads in a block, and so have reductions of any size beside it."""
    found = set()
    for shape in ("8192,64", "300,1000", "4,33000"):
        program = xgpu.compile(lambda x, y: (reduced(x), _long(y, steps)), f"f32[{shape}]", "f32[2048,300]")
        found |= set(re.findall(r'"parts", xgpu.schedule = #xgpu.schedule<threads = (\d+)>', program.ir("fusions")))
    assert found & {"64", "128"}


def test_a_part_that_computes_much_of_little_has_blocks_for_it() -> None:
    """Counts of 1,024 numbers among 8,192 read 32 KB, and take longer than to move 3 MB beside them."""

    def function(codes: Any, x: Any, y: Any) -> Any:
        return jax.nn.one_hot(codes, 1024).sum(0), ((x - y) ** 2).sum(), x - 2 * y

    program = xgpu.compile(function, "s32[8192]", "f32[4096,64]", "f32[4096,64]")
    schedule = next(line for line in program.ir("fusions").splitlines() if "reduce_column" in line)
    assert int(re.findall(r"row_lanes = (\d+)", schedule)[0]) >= 4
