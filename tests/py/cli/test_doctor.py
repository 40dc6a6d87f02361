"""``xgpu doctor`` says what was found and what is missing for what, and starts nothing."""

import ctypes
import shutil
from typing import Any

import pytest

from xgpu.cli import doctor
from xgpu.cli.main import main
from xgpu.target.nvptx.cuda_driver import Driver, ask


class Library:
    """A driver of two GPUs, as ctypes calls one."""

    def __init__(self, init: int = 0):
        self._init = init

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = 12080
        return 0

    def cuInit(self, flags: int) -> int:
        return self._init

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 2
        return 0

    def cuDeviceGet(self, device: Any, index: int) -> int:
        device._obj.value = index
        return 0

    def cuDeviceGetName(self, name: Any, size: int, device: Any) -> int:
        ctypes.memmove(name, f"GPU number {device.value}".encode(), 12)
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: Any) -> int:
        value._obj.value = {75: 9 - device.value, 76: 0}[attribute]
        return 0


def test_a_driver() -> None:
    assert ask(Library()) == Driver("12.8", (("GPU number 0", "sm_90"), ("GPU number 1", "sm_80")))
    assert ask(Library(init=100)) == Driver("12.8", (), "the driver reports error 100")


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    assert main(["doctor"]) == 0
    return {line[:12].strip(): line[12:] for line in capsys.readouterr().out.splitlines()}


def test_what_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    gpus = (("GPU A", "sm_90"), ("GPU B", "sm_75"))
    monkeypatch.setattr("xgpu.target.nvptx.cuda_driver.find_driver", lambda: Driver("13.0", gpus))
    lines = said(capsys)
    assert lines["driver"] == "for CUDA 13.0"
    assert (lines["GPU 0"], lines["GPU 1"]) == ("GPU A, sm_90", "GPU B, sm_75: no target of xgpu's, see xgpu devices")
    assert lines["jax"].startswith("0.")
    assert lines["cache"].startswith("off")


def test_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("xgpu.target.nvptx.cuda_driver.find_driver", lambda: None)
    monkeypatch.setattr("xgpu.target.nvptx.cubin._find_tool", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(doctor, "_version_of", lambda package: "")
    lines = said(capsys)
    assert lines["driver"] == "missing: needed for running on a GPU"
    uses = "levels cubin and sass, machine code in exported packages, and first runs on a GPU without a wait"
    assert lines["ptxas"] == f"missing: needed for {uses}"
    assert lines["c++"] == "missing: needed for C++ programs of exported packages"
    assert lines["JAX on GPUs"].startswith("missing: needed for running on a GPU: pip install")
