"""Programs measured one after the other, and told from those that compute something else: on the CPU, as on a GPU."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import xgpu
from xgpu.device import device
from xgpu.errors import ToolError
from xgpu.runtime import measuring
from xgpu.runtime.measuring import Gpu, gpu_for

CPU = Gpu(jax.devices("cpu")[0])


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_ROUNDS", 3)
    monkeypatch.setattr(measuring, "_CALLS", (1, 2))


def measured(*functions: Any, specs: tuple[str, ...] = ("f32[40,30]",)) -> list[float | str]:
    programs = [xgpu.compile(function, *specs) for function in functions]
    return CPU.measure(programs[0].arguments, programs)


def test_times_and_wrong_results() -> None:
    def wrong_in_a_row(x: Any) -> Any:
        return (jnp.sin(x) * 2).at[7].add(1)

    right, same, wrong, row = measured(
        lambda x: jnp.sin(x) * 2, lambda x: 2 * jnp.sin(x), lambda x: jnp.sin(x) * 3, wrong_in_a_row
    )
    for each in (right, same):
        assert isinstance(each, float)
        assert 0 < each < 1
    assert wrong == "wrong result 0: 100.00 % of its elements are not what XLA computes"
    assert row == "wrong result 0: 2.50 % of its elements are not what XLA computes"


def test_results_of_any_type_and_special_values() -> None:
    def function(x: Any, i: Any) -> Any:
        return x / 0, x > 0, i + 1, jnp.where(x > 0, jnp.nan, x), jnp.sum(x)

    def other(x: Any, i: Any) -> Any:
        one, two, three, four, five = function(x, i)
        return one, two, three, jnp.where(i > 3, jnp.nan, four), five

    specs = ("bf16[64,64]", "s8[64,64]")
    right, again, wrong = measured(function, function, other, specs=specs)
    assert isinstance(right, float)
    assert isinstance(again, float)
    assert str(wrong).startswith("wrong result 3: ")


@pytest.mark.parametrize(
    "mode",
    [
        lambda: jax.debug_nans(True),
        lambda: jax.debug_infs(True),
        lambda: jax.disable_jit(True),
        lambda: jax.transfer_guard("disallow"),
        lambda: jax.numpy_dtype_promotion("strict"),
    ],
)
def test_modes_of_the_user_are_not_those_of_what_is_measured(mode: Any) -> None:
    """Measured while the user's program is compiled, in its modes: the log of a negative number is no error here."""
    programs = [xgpu.compile(lambda x: jnp.log(x) / 0, "bf16[16,16]") for _ in range(2)]
    with mode():
        found = CPU.measure(programs[0].arguments, programs)
    assert [type(each) for each in found] == [float, float]


def test_a_short_program_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of the program is one of its own: else all would take the time of one."""
    made = []
    jitted = measuring._jitted

    def record(program: Any, repeats: int = 1, **options: Any) -> Any:
        made.append(repeats)
        return jitted(program, repeats, **options)

    monkeypatch.setattr(measuring, "_jitted", record)
    monkeypatch.setattr(measuring, "_SHORT_SECONDS", 1.0)
    measured(jnp.sin)
    assert made == [1, 1, 8]
    program = xgpu.compile(jnp.sin, "f32[40,30]")
    run = jitted(program, 3)
    text = run.lower(jnp.ones((40, 30))).as_text()
    assert text.count("optimization_barrier") == 2
    assert len(run(jnp.ones((40, 30)))) == 3
    monkeypatch.setattr(measuring, "_REPEATED_BYTES", 40 * 30 * 4 * 5)
    measured(jnp.sin)
    assert made[-1] == 5


def test_what_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    call = measuring.call_program

    def fail(program: Any, arrays: Any) -> Any:
        if program is failing:
            raise xgpu.Unsupported("it is too large")
        return call(program, arrays)

    monkeypatch.setattr(measuring, "call_program", fail)
    programs = [xgpu.compile(jnp.sin, "f32[40,30]") for _ in range(2)]
    failing = programs[1]
    assert CPU.measure(programs[0].arguments, programs)[1] == "it is too large"
    failing = programs[0]
    assert CPU.measure(programs[0].arguments, programs) == ["nothing to compare with: it is too large"] * 2

    def exhausted(_: Any) -> Any:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: no memory\nmore of that")

    monkeypatch.setattr(measuring, "_draw", exhausted)
    assert CPU.measure(programs[0].arguments, programs) == ["RESOURCE_EXHAUSTED: no memory"] * 2


def test_a_gpu_that_does_not_run_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        compute_capability, device_kind = "9.0", "NVIDIA H200"

    monkeypatch.setattr(measuring, "gpu_device", Found)
    assert gpu_for(device("sm_90a")).name == "NVIDIA H200"
    with pytest.raises(ToolError, match="JAX's GPU, NVIDIA H200, does not run kernels for sm_100a"):
        gpu_for(device("sm_100a"))
