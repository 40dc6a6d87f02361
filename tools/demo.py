"""Compiles two JAX functions, shows their levels, runs them and compares the results with ``jax.jit``."""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import xgpu
from xgpu.errors import ToolError, XgpuError
from xgpu.levels.pipeline import GRAPH, LEVELS
from xgpu.runtime.compare import compare
from xgpu.runtime.jax_backend import gpu_device

_EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
_SHOWN = [level for level in LEVELS[: LEVELS.index("ptx") + 1] if not GRAPH.level(level).is_of_some]


def main() -> int:
    """Run the demonstration; returns 1 if a result disagrees."""
    where = _device()
    folder = Path(tempfile.mkdtemp(prefix="xgpu-demo-"))
    agree = True
    try:
        for file, function in (("fused_gelu.py", "gelu_bias_residual"), ("shift_tokens.py", "shift_tokens")):
            agree &= _show(f"{_EXAMPLES / file}:{function}", function, folder, where)
    except XgpuError as error:
        print(f"demo: error: {error}", file=sys.stderr)
        return 1
    return 0 if agree else 1


def _device() -> str:
    try:
        print(f"Running on {gpu_device().device_kind}.\n")
    except ToolError:
        print("No GPU is here; running on the host executor.\n")
        return "host"
    return "gpu"


def _show(source: str, name: str, folder: Path, where: str) -> bool:
    start = time.perf_counter()
    program = xgpu.compile(source)
    ptx = program.ir("ptx")
    print(f"{name}({', '.join(map(str, program.arguments))})")
    print(f"  compiled in {(time.perf_counter() - start) * 1e3:.0f} ms; lines at each level:")
    for level in _SHOWN:
        print(f"    {level:10} {len(program.ir(level).splitlines()):5}")
    for kernel in program.kernels:
        print(f"  kernel {kernel.name}: {kernel.emitter} emitter, grid {kernel.grid}, block {kernel.block}")
    path = folder / f"{name}.ptx"
    path.write_text(ptx)
    print(f"  PTX: {path}")
    inputs = program.random_inputs(seed=0)
    got = program.run(*inputs, on=where)
    expected = program.reference(*inputs)
    return all(_report(index, *pair) for index, pair in enumerate(zip(got, expected, strict=True)))


def _report(index: int, got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> bool:
    result = compare(got, expected)
    print(f"  result {index}: largest error against jax.jit on the CPU: {result}\n")
    return result.agrees


if __name__ == "__main__":
    sys.exit(main())
