"""The planner says why each value is stored or computed again, and why kernels are one or two."""

import itertools
import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest

from xgpu.driver.compiler import plan_program
from xgpu.emit.family_table import FAMILIES
from xgpu.errors import XgpuError
from xgpu.frontend import load_source
from xgpu.fusion.grouping.decisions import Verdict
from xgpu.fusion.planner import Plan, make_plan
from xgpu.tools.programs import all_programs


def _two_softmaxes(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.nn.softmax(x), jax.nn.softmax(x * 2, axis=0)


def _window(x: jax.Array) -> jax.Array:
    return jax.lax.reduce_window(jnp.tanh(x), 0.0, jax.lax.add, (5, 5), (1, 1), "SAME")


def _product(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.sin(x) @ w


def _slices(x: jax.Array) -> tuple[jax.Array, ...]:
    y = jnp.sin(x)
    return tuple(y[start : start + 64 + start] for start in range(0, 64 * 17, 64))


def _beside(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    return x.sum(1), x * 2, y * 3


def _update(x: jax.Array, i: jax.Array) -> jax.Array:
    return jax.lax.dynamic_update_slice(x, jnp.flip(x, 0)[:4] * 2, (i, 0))


def _loop(x: jax.Array, ws: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda h, w: (jnp.tanh(h * w), None), x, ws)[0]


def _several(*arrays: jax.Array) -> list[jax.Array]:
    return [jnp.sin(x) for x in arrays]


def _spread(x: jax.Array, y: jax.Array) -> jax.Array:
    for number in range(40):
        x = jnp.sin(x + y[number])
    return x * jnp.ones(1000)


CASES: list[tuple[Callable[..., object], tuple[str, ...], str]] = [
    (_window, ("f32[1000,1000]",), r"tanh of .*: stored by \w+: computed [\d.]+ times for each element otherwise"),
    (
        _window,
        ("f32[200,200]",),
        r"tanh of .*: computed again .*: computed [\d.]+ times .* would pay from [\d]+ instructions",
    ),
    (_window, ("f32[200,200]",), r"reduce_window of .*: stored by \w+: a result of the program"),
    (
        _product,
        ("f32[512,512]", "f32[512,512]"),
        r"sine .*: stored by \w+: its reader stablehlo.dot_general is left",
    ),
    (
        _product,
        ("f32[8,8]", "f32[8,8]"),
        r"sine .*: computed again where it is read: computed 8.0 times for each element; storing it would pay",
    ),
    (_slices, ("f32[4096]",), r"slice .* and stablehlo.slice .*: one kernel: both are slices of one value"),
    (_slices, ("f32[4096]",), r"slice .* and stablehlo.slice .*: two kernels: one kernel stores at most 16 values"),
    (_slices, ("f32[4096]",), r"sine .*: computed again where it is read: \d+ kernels compute it, and none comes"),
    (
        _beside,
        ("f32[64,32]",) * 2,
        r"multiply .* and stablehlo.reduce .*: one kernel: the reduction reads the same elements",
    ),
    (
        _update,
        ("f32[64,64]", "s32[]"),
        r"dynamic_update_slice .*: stored by \w+: it is computed in the memory of the array that it updates",
    ),
    (_update, ("f32[64,64]", "s32[]"), r"multiply .*: stored by \w+: its reader updates in place an array"),
    (_loop, ("f32[64]", "f32[100,64]"), r"while of .*: stored by \w+: the last state of a loop that is one kernel"),
    (lambda x: jnp.sin(x.T), ("f32[64,64]",), r"sine .*: emitter: transpose: reading or writing would not coalesce"),
    (
        lambda x: (x.transpose(2, 0, 1), x.transpose(2, 1, 0)),
        ("f32[128,128,48]",),
        r"transpose .* and .*: two kernels: a tile moves elements in one way: a loop of both would read 25,165,824",
    ),
    (lambda x: jnp.sin(x.T), ("f32[64,4]",), r"sine .*: emitter: loop: results are computed at their own indices"),
    (
        lambda x: sum(((x * x).sum(1) + k) ** 0.3 for k in range(5)),
        ("f32[40000,128]",),
        r"reduce .*: stored by \w+: one lane of each row would compute \d+ instructions from it: \d+.\d us, and to",
    ),
    (_beside, ("f32[64,32]",) * 2, r"emitter: reduce_row: neighbours in memory are combined"),
    (_update, ("f32[64,64]", "s32[]"), r"emitter: update_slice: it updates arrays in their own memory"),
    (
        _several,
        ("f32[64]", "f32[65]"),
        r"sine .* and .*: one kernel: neither reads the other's results, and it moves 520 bytes: memory moves",
    ),
    (_several, ("f32[64]", "f32[65]"), r"sine .*: emitter: parts: independent kernels, of which each would take less"),
    (
        _several,
        ("f32[64]", "f32[2048,1024]"),
        r"sine .* and .*: two kernels: it moves 16,777,216 bytes, and memory only 12,000,000 in the time of a launch",
    ),
    (
        _several,
        tuple(f"f32[{size}]" for size in range(64, 97)),
        r"sine .* and .*: two kernels: one kernel has at most 32 parts, of 4096 instructions and 512 arrays",
    ),
    (_spread, ("f32[]", "f32[40]"), r"stored by \w+: every thread of an array reads this one number"),
    (
        _two_softmaxes,
        ("f32[64,1024]",),
        r"divide .* and .*: one kernel: each element needs the reductions of its own row",
    ),
    (_two_softmaxes, ("f32[64,1024]",), r": not stored after all: only the kernel that makes it reads it"),
    (_two_softmaxes, ("f32[64,1024]",), r"divide .* and .*: two kernels: the reduction is not one of rows"),
    (
        _two_softmaxes,
        ("f32[64,65536]",),
        r"divide .* and .*: two kernels: rows of 65,536 elements: the threads of a block",
    ),
    (
        _two_softmaxes,
        ("f32[64,1024]",),
        r"exponential .*: computed again .*: to recompute it takes the time of [\d,]+ bytes .* \(kernels: 1\)",
    ),
]


def _plan(function: Callable[..., object], specs: tuple[str, ...]) -> Plan:
    return make_plan(plan_program(load_source(function, specs).module)["prepared"], FAMILIES.values())


@pytest.mark.parametrize(("function", "specs", "line"), CASES)
def test_reasons(function: Callable[..., object], specs: tuple[str, ...], line: str) -> None:
    lines = _plan(function, specs).why()
    assert any(re.search(line, each) for each in lines), "\n".join(lines)


def test_lines_name_the_source() -> None:
    (line,) = _plan(_product, ("f32[512,512]", "f32[512,512]")).why({Verdict.STORED})
    number = _product.__code__.co_firstlineno + 1
    assert line.startswith(
        f"stablehlo.sine of type tensor<512x512xf32> ({__file__}:{number}): stored by product_fusion_0: "
    )


def test_every_value_that_a_kernel_stores_has_a_reason() -> None:
    planned = 0
    for _, program in itertools.islice(all_programs(), 0, None, 30):
        try:
            plan = _plan(program.function, program.specs)
        except XgpuError:
            continue
        explained = {each.value for each in plan.decisions if each.verdict == Verdict.STORED}
        assert set(plan.kernels) <= explained
        planned += len(plan.kernels)
    assert planned > 20
