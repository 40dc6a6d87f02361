"""PTX to machine code and back to readable SASS, by NVIDIA's ptxas and nvdisasm where they are installed."""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from xgpu.device import DEFAULT_DEVICE, device
from xgpu.errors import ToolError
from xgpu.records import dataclass


@dataclass(frozen=True)
class AssembledKernel:
    """Machine code with what ptxas reports of it: per thread registers, stack and spills, per block shared memory.

    Of several kernels in one text the figures are the largest.
    """

    cubin: bytes
    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    shared_bytes: int
    barriers: int
    remarks: tuple[str, ...] = ()
    """The other remarks of ptxas about the code, such as that it waits after each product of a warp group."""

    @property
    def spill_bytes(self) -> int:
        """Bytes of spill stores and loads together; 0 for a kernel whose values fit its registers."""
        return self.spill_store_bytes + self.spill_load_bytes


def find_ptxas() -> Path | None:
    """Return ptxas from PATH, ``$CUDA_HOME``, the usual folders or NVIDIA's wheels; None if it is in none."""
    return _find_tool("ptxas")


def find_disassembler() -> Path | None:
    """Return nvdisasm or cuobjdump, from where ptxas is looked for; None if there is neither."""
    return _find_tool("nvdisasm") or _find_tool("cuobjdump")


def ptxas_version() -> str | None:
    """Return the version of ptxas, such as ``12.8``; None if it is not installed, or does not say."""
    ptxas = find_ptxas()
    found = None if ptxas is None else re.search(r"release ([\d.]+)", _run([str(ptxas), "--version"]))
    return None if found is None else found[1]


def ptxas_identity() -> str | None:
    """Return what tells one ptxas from another: its file, and when that was written; None if it is not installed."""
    ptxas = find_ptxas()
    if ptxas is None:
        return None
    try:
        status = ptxas.stat()
    except OSError:
        return None
    return f"{ptxas} {status.st_size} {status.st_mtime_ns}"


def assemble(ptx: str, target: str = DEFAULT_DEVICE, seconds: float | None = None) -> AssembledKernel:
    """Assemble PTX for a target; raises ToolError, with ptxas's messages, if it fails or is not installed.

    So does taking more than ``seconds``.
    """
    ptxas = _require("ptxas")
    with tempfile.TemporaryDirectory(prefix="xgpu-") as folder:
        source, output = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8")
        report = _run([str(ptxas), "-v", f"-arch={device(target).cpu}", str(source), "-o", str(output)], seconds)
        cubin = output.read_bytes()

    def largest(pattern: str) -> int:
        return max((int(number) for number in re.findall(pattern, report)), default=0)

    return AssembledKernel(
        cubin=cubin,
        registers=largest(r"Used (\d+) registers"),
        spill_store_bytes=largest(r"(\d+) bytes spill stores"),
        spill_load_bytes=largest(r"(\d+) bytes spill loads"),
        stack_bytes=largest(r"(\d+) bytes stack frame"),
        shared_bytes=largest(r"(\d+) bytes smem"),
        barriers=largest(r"used (\d+) barriers"),
        remarks=tuple(re.findall(r"^ptxas (?:info *: \(C\d+\)|warning *:) (.*)$", report, re.MULTILINE)),
    )


def disassemble(cubin: bytes) -> str:
    """Return the SASS of a cubin by nvdisasm or cuobjdump; raises ToolError if neither is installed."""
    nvdisasm, cuobjdump = _find_tool("nvdisasm"), _find_tool("cuobjdump")
    with tempfile.TemporaryDirectory(prefix="xgpu-") as folder:
        source = Path(folder, "kernel.cubin")
        source.write_bytes(cubin)
        if nvdisasm is not None:
            return _run([str(nvdisasm), "-c", str(source)])
        if cuobjdump is not None:
            return _run([str(cuobjdump), "-sass", str(source)])
    raise ToolError(f"neither nvdisasm nor cuobjdump was found ({_WHERE}): SASS cannot be shown")


_WHERE = "looked in PATH, $CUDA_HOME, /usr/local/cuda* and the nvidia wheels"


def _require(tool: str) -> Path:
    found = _find_tool(tool)
    if found is None:
        raise ToolError(f"{tool} was not found ({_WHERE}); it comes with CUDA or with: pip install nvidia-cuda-nvcc")
    return found


def _find_tool(name: str) -> Path | None:
    on_path = shutil.which(name)
    if on_path is not None:
        return Path(on_path)
    for folder in _folders():
        candidate = folder / name
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    return None


def _folders() -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable], "bin")
    yield Path("/usr/local/cuda/bin")
    yield from sorted(Path("/usr/local").glob("cuda-*/bin"), reverse=True)
    wheels = importlib.util.find_spec("nvidia")
    for root in (wheels.submodule_search_locations or []) if wheels is not None else []:
        yield from sorted(Path(root).glob("*/bin"), reverse=True)


def _run(command: list[str], seconds: float | None = None) -> str:
    """Run a tool and return all it printed; raises ToolError with that text if it fails, or takes too long."""
    tool = Path(command[0]).name
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise ToolError(f"{tool} takes more than {seconds} seconds") from None
    output = result.stdout + result.stderr
    if result.returncode:
        raise ToolError(f"{tool} failed with exit code {result.returncode}:\n{output.strip()}")
    return output
