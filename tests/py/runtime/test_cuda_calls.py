"""Which code a launch on CUDA has: machine code where XLA takes it, else PTX."""

from concurrent.futures import Future
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

import xgpu
from xgpu.device import DEFAULT_DEVICE, Device, device
from xgpu.driver.kernel import ProgramKernel
from xgpu.runtime import cuda_calls
from xgpu.target.nvptx.cubin import find_ptxas

needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
TARGET = device(DEFAULT_DEVICE)

CODE = b'\x7fELF\0\xff"\\'
GPU = SimpleNamespace(compute_capability="9.0")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A GPU whose XLA takes machine code; the names of the kernels for which that is made."""
    names: list[str] = []

    def machine_code(kernel: ProgramKernel) -> bytes | None:
        names.append(kernel.name)
        return CODE

    monkeypatch.setattr(ProgramKernel, "machine_code", property(machine_code))
    monkeypatch.setattr(cuda_calls, "_takes_machine_code", lambda target: True)
    monkeypatch.setattr(cuda_calls, "_answers", {})
    monkeypatch.setattr(jax, "local_devices", lambda backend: [GPU])
    return names


def lowered() -> str:
    traced = jax.jit(lambda x: two_sums(x)).trace(jnp.ones((64, 32)))  # A function of its own: JAX keeps texts.
    return str(traced.lower(lowering_platforms=("cuda",)).as_text())


def two_sums(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    y = xgpu.jit(lambda x: jnp.sum(jnp.sin(x), 1))(x)
    return y, xgpu.jit(lambda x: jnp.sum(jnp.sin(x), 0))(x)


def test_programs_that_run_here_have_machine_code(made: list[str]) -> None:
    text = lowered()
    assert text.count(r'kernel_data = "\7FELF\00\FF\22\\"') == 2 and ".entry" not in text
    assert len(made) == 2


def test_exported_programs_have_ptx(made: list[str]) -> None:
    exported = jax.export.export(jax.jit(two_sums), platforms=["cuda"])(jax.ShapeDtypeStruct((64, 32), jnp.float32))
    assert exported.mlir_module().count(".visible .entry") == 2
    assert not made


def test_what_cannot_be_assembled_stays_ptx(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProgramKernel, "machine_code", None)
    assert lowered().count(".visible .entry") == 2


def test_other_versions_of_xla_get_ptx(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_calls, "_takes_machine_code", lambda target: False)
    assert lowered().count(".visible .entry") == 2


@pytest.mark.parametrize("capabilities", [["8.0"], ["9.0", "8.0"], []])
def test_gpus_are_alike(capabilities: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [SimpleNamespace(compute_capability=each) for each in capabilities]
    monkeypatch.setattr(jax, "local_devices", lambda backend: gpus)
    assert (cuda_calls._gpu() is None) == (len(capabilities) != 1)


def test_several_processes_have_one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "local_devices", lambda backend: [GPU])
    assert cuda_calls._gpu() is GPU
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    assert cuda_calls._gpu() is None


def test_the_level_follows_and_is_tried_once(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Device] = []
    monkeypatch.setattr(cuda_calls, "_takes_machine_code", lambda target: tried.append(target) is None)
    assert [cuda_calls.level(TARGET) for _ in range(3)] == ["cubin"] * 3
    assert cuda_calls._answer(TARGET).result() and tried == [TARGET]
    refused: Future[bool] = Future()
    refused.set_result(False)
    monkeypatch.setitem(cuda_calls._answers, TARGET, refused)
    assert cuda_calls.level(TARGET) == "ptx"
    monkeypatch.setattr(jax, "local_devices", lambda backend: [])
    assert cuda_calls.level(TARGET) == "ptx"


@needs_ptxas
def test_an_xla_that_refuses_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no CUDA here: XLA says that it does not know the launch, as another version might."""
    monkeypatch.setattr(jax, "local_devices", lambda backend: jax.devices("cpu")[:1])
    monkeypatch.setattr(cuda_calls, "_gpu", lambda: jax.devices("cpu")[0])
    assert cuda_calls._takes_machine_code(TARGET) is False


@needs_ptxas
@pytest.mark.parametrize("name", ["sm_80", "sm_90a", "sm_120"])
def test_ptxas_takes_the_probe(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = []
    monkeypatch.setattr(cuda_calls._probe_p, "bind", lambda code: codes.append(code) or [jnp.uint32(0)])
    monkeypatch.setattr(cuda_calls, "_gpu", lambda: jax.devices("cpu")[0])
    assert cuda_calls._takes_machine_code(device(name)) is False
    assert [code[:4] for code in codes] == [b"\x7fELF"]


def test_a_machine_without_room_for_files_has_ptx(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(cuda_calls, "assemble", full)
    assert cuda_calls._takes_machine_code(TARGET) is False
    monkeypatch.setattr("xgpu.target.nvptx.cubin.assemble", full)
    kernel = xgpu.compile(lambda x: jnp.sin(x) * 3, "f32[64]").kernels[0]
    assert kernel.machine_code is None and ".visible .entry" in kernel.ptx
