"""ptxas: what it reports, how it fails, and that its absence is a message."""

from pathlib import Path

import pytest

from xgpu.errors import ToolError
from xgpu.target.nvptx import cubin
from xgpu.target.nvptx.cubin import assemble, disassemble, find_ptxas
from xgpu.target.nvptx.ptx import compile_to_ptx

needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")

KERNEL = """@tile = internal addrspace(3) global [300 x float] poison, align 16
define ptx_kernel void @k(ptr addrspace(1) %p, float %a, i32 %i) {
  %q = getelementptr float, ptr addrspace(3) @tile, i32 %i
  store float %a, ptr addrspace(3) %q
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %r = load float, ptr addrspace(3) @tile
  store float %r, ptr addrspace(1) %p
  ret void
}
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
"""


@needs_ptxas
def test_figures() -> None:
    kernel = assemble(compile_to_ptx(KERNEL))
    assert kernel.shared_bytes == 1200 and kernel.barriers == 1
    assert 0 < kernel.registers < 32
    assert kernel.spill_bytes == kernel.stack_bytes == 0


@needs_ptxas
def test_ptxas_messages_are_reported() -> None:
    with pytest.raises(ToolError, match=r"ptxas failed with exit code \d+:\n.*line 4"):
        assemble(".version 8.3\n.target sm_90a\n.address_size 64\nnonsense\n")


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(cubin, "_folders", lambda: iter(()))


@pytest.mark.usefixtures("nothing_installed")
def test_missing_ptxas() -> None:
    assert find_ptxas() is None
    with pytest.raises(ToolError, match=r"ptxas was not found \(looked in PATH.*pip install nvidia-cuda-nvcc"):
        assemble("")


@pytest.mark.usefixtures("nothing_installed")
def test_missing_disassembler() -> None:
    with pytest.raises(ToolError, match="neither nvdisasm nor cuobjdump was found"):
        disassemble(b"")


def test_tool_in_cuda_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "ptxas"
    tool.parent.mkdir()
    tool.touch(mode=0o755)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert find_ptxas() == tool


def test_disassembler_is_run_on_the_cubin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "nvdisasm"
    tool.write_text('#!/bin/sh\n/bin/cat "$2"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert disassemble(b"the code") == "the code"


@needs_ptxas
def test_what_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "ptxas"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(cubin, "_require", lambda tool: slow)
    with pytest.raises(ToolError, match=r"ptxas takes more than 0.2 seconds"):
        assemble(".version 8.3\n", seconds=0.2)
