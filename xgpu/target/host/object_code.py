"""Kernels as an object file for any machine of this architecture, that a linker makes part of another program."""

from collections.abc import Callable, Container, Mapping
from functools import cache

import llvmlite.binding as llvm

from xgpu.errors import CompilerError, Unsupported
from xgpu.target.host.block.library import library_ir
from xgpu.target.host.block_driver import DRIVER_IR, RUN_BLOCKS, RUN_CLUSTERS, entry_name, make_name
from xgpu.target.host.float_conversions import HELPER_IR, HELPER_NAMES
from xgpu.target.host.kernel_source import HostSource
from xgpu.target.host.linker import OPT_LEVEL, opt_level_of
from xgpu.target.llvm.module import optimize, parse_llvm_ir, set_options

_BASELINES = {"x86_64": "x86-64", "aarch64": "generic"}
"""By architecture, LLVM's name of the processor whose instructions all of them have."""

_RUNNERS: dict[str, Callable[[], str]] = {RUN_BLOCKS: lambda: DRIVER_IR, RUN_CLUSTERS: library_ir}


def object_code(sources: Mapping[str, HostSource]) -> bytes:
    """Return an object file of kernels, each under its prefix.

    The functions of a kernel with the prefix P are ``P__blocks`` and, of one whose threads are coroutines, ``P__make``;
    `xgpu.target.host.machine_code` says what they take. All else in it is local, so that several such files may be
    linked into one program, but for the conversions that LLVM's back end calls by fixed names: these are weak and
    hidden. It calls the C library and its functions of floating-point numbers. Kernels are optimised one by one as for
    this process, and not across calls. Raises Unsupported for an architecture without a baseline.
    """
    machine = baseline_machine()
    context = llvm.create_context()
    whole = llvm.parse_assembly("", context=context)
    whole.triple, whole.data_layout = machine.triple, str(machine.target_data)
    texts = [source.llvm_ir for source in sources.values()]
    exported = set()
    for prefix, source in sources.items():
        if source.checks is not None:
            raise CompilerError(f"kernel '{source.name}' has checks, which only the sanitizer reads")
        module = _optimized(source.llvm_ir, machine)
        names = [entry_name(source.name), *([make_name(source.name)] if source.is_coroutine else [])]
        _keep_local(module, names)
        for name in names:
            exported.add(_renamed(module, name, f"{prefix}{name.removeprefix(source.name)}"))
        _link(whole, module, context)
    for runner, text in _RUNNERS.items():
        if any(f"@{runner}(" in each for each in texts):
            _link(whole, _optimized(text(), machine), context)
    _keep_local(whole, exported)
    _link(whole, _conversions(machine), context)
    return bytes(machine.emit_object(whole))


@cache
def baseline_machine() -> llvm.TargetMachine:
    """Return the target machine of every processor of this architecture, for code at any address."""
    set_options()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.get_default_triple()
    architecture = triple.split("-")[0]
    if architecture not in _BASELINES:
        raise Unsupported(f"there are host libraries for {' and '.join(_BASELINES)}, and this machine is {triple}")
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=_BASELINES[architecture], opt=OPT_LEVEL, reloc="pic", codemodel="default"
    )


def _optimized(llvm_ir: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    module = parse_llvm_ir(llvm_ir)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    optimize(module, machine, opt_level_of(llvm_ir, is_checked=False), vectorize=True)
    return module


def _conversions(machine: llvm.TargetMachine) -> llvm.ModuleRef:
    module = _optimized(HELPER_IR, machine)
    for name in HELPER_NAMES:
        function = module.get_function(name)
        function.linkage, function.visibility = llvm.Linkage.weak_any, llvm.Visibility.hidden
    return module


def _keep_local(module: llvm.ModuleRef, names: Container[str]) -> None:
    """Make local what a module defines, but for the functions of these names."""
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name not in names and not value.name.startswith("llvm."):
            value.linkage = llvm.Linkage.internal


def _renamed(module: llvm.ModuleRef, old: str, new: str) -> str:
    function = module.get_function(old)
    function.visibility = llvm.Visibility.hidden
    function.name = new
    return new


def _link(whole: llvm.ModuleRef, module: llvm.ModuleRef, context: llvm.ContextRef) -> None:
    """Add a copy of a module to one of another context."""
    whole.link_in(llvm.parse_bitcode(module.as_bitcode(), context=context))
