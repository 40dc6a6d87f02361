"""The code in XLA's launch of a kernel on CUDA: machine code where that is possible, else PTX.

XLA gives PTX to the driver when a program is first run, which compiles one kernel after the other, 30 ms each. Machine
code takes a tenth of a millisecond, and is made for several kernels at once. XLA hands the text of a call to the driver
as it is, and the driver takes either; as no document says so, a kernel that does next to nothing is tried first.
"""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from operator import attrgetter
from typing import Any

import jax
import numpy as np
from jax import jit as jax_jit
from jax.interpreters import mlir

from xgpu import ir
from xgpu.device import Device
from xgpu.errors import ToolError
from xgpu.jax_internals import Primitive, ShapedArray
from xgpu.runtime.program import CompiledKernel
from xgpu.target.nvptx.cubin import assemble

TARGET = "__gpu$xla.gpu.ptx"
"""The name of XLA's launch."""

_NUMBER = 41
_PROBE = """
.version {version}
.target {target}
.address_size 64
.visible .entry xgpu_probe(.param .u64 p)
{{
  .reg .b64 %a;
  .reg .b32 %n;
  ld.param.u64 %a, [p];
  mov.u32 %n, {number};
  st.global.u32 [%a], %n;
  ret;
}}
"""


def launch_attributes(
    name: str, code: str | bytes, grid: Sequence[int], block: Sequence[int], shared_bytes: int
) -> dict[str, Any]:
    """Return the attributes of a launch of the kernel ``name`` of ``code``, PTX or machine code."""
    return {
        "name": name,
        "kernel_type": "ptx",
        "kernel_data": code if isinstance(code, str) else ir.StringAttr.get(code),
        **{f"grid_{axis}": np.int32(size) for axis, size in zip("xyz", grid, strict=True)},
        **{f"block_{axis}": np.int32(size) for axis, size in zip("xyz", block, strict=True)},
        "shared_mem_bytes": np.int32(shared_bytes),
    }


def level(target: Device) -> str:
    """Return the level that kernels of a program for CUDA are to be compiled to.

    It is ``cubin`` if this process may run them. What XLA takes is then tried meanwhile, if that is not known yet.
    """
    if _gpu() is None:
        return "ptx"
    answer = _answer(target)
    return "ptx" if answer.done() and not answer.result() else "cubin"


def codes(kernels: Sequence[CompiledKernel], is_exported: bool) -> Mapping[CompiledKernel, str | bytes]:
    """Return the code of each kernel for a program that this process runs, or exports to run anywhere."""
    if not kernels or is_exported or level(kernels[0].device) == "ptx":
        return {kernel: kernel.ptx for kernel in kernels}
    # The assembler is a process for each kernel, and runs beside what makes the PTX of the next ones.
    with ThreadPoolExecutor() as pool:
        made = [(kernel, kernel.ptx, pool.submit(attrgetter("machine_code"), kernel)) for kernel in kernels]
        if not _answer(kernels[0].device).result():
            return {kernel: text for kernel, text, _ in made}
        return {kernel: text if (code := future.result()) is None else code for kernel, text, future in made}


def _gpu() -> Any:
    """Return a GPU of this process's; None unless all that may run a program are alike."""
    try:
        gpus = jax.local_devices(backend="cuda")
    except RuntimeError:
        return None
    # Programs of several processes are to be the same text, and their assemblers may differ.
    if jax.process_count() > 1 or len({gpu.compute_capability for gpu in gpus}) != 1:
        return None
    return gpus[0]


_lock = threading.Lock()
_answers: dict[Device, Future[bool]] = {}
"""Whether XLA's launch takes machine code, for each target that was tried."""


def _answer(target: Device) -> Future[bool]:
    """Return what a thread finds out once; in a thread of its own JAX's modes are the usual ones."""
    with _lock:
        if target not in _answers:
            pool = ThreadPoolExecutor(1)
            _answers[target] = pool.submit(_takes_machine_code, target)
            pool.shutdown(wait=False)
        return _answers[target]


def _takes_machine_code(target: Device) -> bool:
    try:
        version = f"{target.ptx_version // 10}.{target.ptx_version % 10}"
        code = assemble(_PROBE.format(version=version, target=target.cpu, number=_NUMBER), target.name).cubin
        with jax.default_device(_gpu()), jax.log_compiles(False):
            probe = jax_jit(lambda: _probe_p.bind(code=code)).lower().compile()  # type: ignore[no-untyped-call]
            return int(np.asarray(probe())[0]) == _NUMBER  # JAX would compile a program that takes the element.
    except (RuntimeError, ValueError, ToolError, OSError):  # XLA's errors are the first two.
        return False


_probe_p = Primitive("xgpu_probe")


@_probe_p.def_abstract_eval  # type: ignore[untyped-decorator]
def _probe_type(code: bytes) -> ShapedArray:
    return ShapedArray((1,), np.dtype(np.uint32))


def _lower_probe(context: Any, code: bytes) -> Any:
    attributes = launch_attributes("xgpu_probe", code, (1, 1, 1), (1, 1, 1), 0)
    return jax.ffi.ffi_lowering(TARGET)(context, **attributes)


mlir.register_lowering(_probe_p, _lower_probe, platform="cuda")
