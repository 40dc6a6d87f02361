"""LLVM IR text to PTX, by LLVM in process (llvmlite). Needs neither a GPU nor CUDA.

llvmlite runs every call into LLVM under one lock of its own and each compilation has its own LLVM context, so
these functions may be called from several threads at once.
"""

import re
from functools import cache

import llvmlite.binding as llvm

from xgpu.device import DEFAULT_DEVICE, Device, device
from xgpu.errors import CompilerError, InvalidInput
from xgpu.target.llvm.export import NVPTX_TRIPLE
from xgpu.target.llvm.module import optimize, parse_llvm_ir, set_options

_PTX_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_LOCAL = (llvm.Linkage.internal, llvm.Linkage.private)
# Intrinsics for which LLVM's NVPTX back end has no code: it would end the process rather than report an error.
_NO_CODE = set(
    "acos asin atan atan2 cosh exp exp10 llrint llround log log10 log2 lrint lround pow powi sinh tan".split()
)
_NO_CODE_FOR = {"exp2": "f64", "canonicalize": "bf16", "cos": "f64", "sin": "f64", "tanh": "f64"}
# These have code only as the approximate instructions of float, which calls ask for with the flag afn.
_APPROXIMATE = {"cos", "sin", "tanh"}
_NEWER_VERSIONS = {"m16n8k32.row.col.f32.e": 84, "tensormap.replace.": 86}
"""PTX ISA versions, times ten, that kernels with these parts of instructions need.

Products of 8-bit floats came with 8.4. Tensor maps' strides are bytes, but multiples of 16 bytes to the ptxas of CUDA
12.4 and before: it must not assemble the kernel, and does not know 8.6.
"""


def compile_to_ptx(llvm_ir: str, target: str = DEFAULT_DEVICE, opt_level: int = 3) -> str:
    """Return the PTX of LLVM IR text for a target such as ``sm_90a``, optimised at ``opt_level`` (0 to 3).

    Raises InvalidInput for an unknown target and CompilerError, with the offending line, for LLVM IR that does not
    parse or verify, or that calls what does not exist on a GPU.
    """
    machine = _machine(device(target), _version(llvm_ir, device(target)), opt_level)
    module = _optimized(llvm_ir, machine, opt_level)
    ptx = str(machine.emit_assembly(module))
    external = re.search(r"^\.extern \.func.*?(\S+)\s*$", ptx, re.MULTILINE)
    if external is not None:
        raise CompilerError(f"the kernel calls '{external[1]}', which LLVM does not know: no library is on the GPU")
    return _renumbered(ptx)


def _renumbered(ptx: str) -> str:
    """Return PTX whose comments number its calls from 0; LLVM numbers those of all that a process compiles."""
    numbers: dict[str, int] = {}
    return re.sub(r"// callseq (\d+)", lambda call: f"// callseq {numbers.setdefault(call[1], len(numbers))}", ptx)


def _version(llvm_ir: str, target: Device) -> int:
    needed = (version for part, version in _NEWER_VERSIONS.items() if part in llvm_ir)
    return max(target.ptx_version, *needed, 0)


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    set_options()


@cache
def _machine(target: Device, version: int, opt_level: int) -> llvm.TargetMachine:
    _initialize()
    nvptx = llvm.Target.from_triple(NVPTX_TRIPLE)
    return nvptx.create_target_machine(cpu=target.cpu, features=f"+ptx{version}", opt=opt_level)


def _optimized(llvm_ir: str, machine: llvm.TargetMachine, opt_level: int) -> llvm.ModuleRef:
    module = parse_llvm_ir(llvm_ir)
    optimize(module, machine, opt_level, vectorize=True)
    _check_names(module)
    _check_calls(module)
    return module


def _check_names(module: llvm.ModuleRef) -> None:
    """Give what nobody outside names a name that PTX has, and refuse other names: LLVM would end the process."""
    for value in (*module.functions, *module.global_variables):
        name = str(value.name)
        if _PTX_NAME.fullmatch(name) or name.startswith("llvm."):
            continue
        if value.linkage not in _LOCAL:
            raise InvalidInput(f"'{name}' is no name of a kernel in PTX: it has letters, digits, '_' and '$'")
        # LLVM numbers names that are there already.
        value.name = re.sub(r"[^A-Za-z0-9_$]", "_", f"_{name}")


def _check_calls(module: llvm.ModuleRef) -> None:
    """Refuse calls that would end the process in the back end, or that no linker would resolve on the GPU."""
    for function in module.functions:
        if not function.is_declaration:
            continue
        name = str(function.name)
        if not name.startswith("llvm."):
            raise CompilerError(f"the kernel calls '{name}', which is not defined: there is no library on the GPU")
        base, _, suffix = name.removeprefix("llvm.").partition(".")
        if base in _NO_CODE or (base in _NO_CODE_FOR and suffix.endswith(_NO_CODE_FOR[base])):
            raise CompilerError(f"'{name}' has no code on NVPTX: it must be expanded before this level")
        if base in _APPROXIMATE and not _is_always_approximate(module, name):
            raise CompilerError(f"'{name}' has code on NVPTX only with the flag afn: expand it before this level")


def _is_always_approximate(module: llvm.ModuleRef, name: str) -> bool:
    calls = [line for line in str(module).splitlines() if f"@{name}(" in line and " call " in line]
    return all(re.search(r"\bcall (?:\w+ )*(?:afn|fast) ", line) for line in calls)
