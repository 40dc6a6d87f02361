"""LLVM IR as machine code in this process: the host's target machine, and the JIT linker with what kernels call.

llvmlite runs every call into LLVM under one lock of its own, but an object of LLVM's that two threads both make is
made twice, and a second linker ends the process. So this module makes each of them once, under a lock of ours.
"""

import itertools
import re
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

from xgpu.errors import CompilerError
from xgpu.target.host.access_checks import CHECK, CHECK_IR
from xgpu.target.host.block.library import CHECKED_EXPORTS, EXPORTS, checked_library_ir, library_ir
from xgpu.target.host.block_driver import DRIVER_IR, RUN_BLOCKS, RUN_CHECKED_CLUSTERS, RUN_CLUSTERS
from xgpu.target.host.float_conversions import HELPED_TYPES, HELPER_IR, HELPER_NAMES
from xgpu.target.llvm.module import drop_unreached, optimize, parse_llvm_ir

OPT_LEVEL = 2
"""LLVM's level for kernels, and for what they call: at level 3 they take as long, and more time to compile."""
WAITING_OPT_LEVEL = 1
"""That of kernels whose threads wait: coroutines, of which every part is optimized, and which run as fast at level 2.

Where threads wait at different places, most of the time is the runtime's, which LLVM sees calls of.
"""
CHECKED_OPT_LEVEL = 0
"""That of code which checks its accesses: checks are calls, which take most of its time, and LLVM moves little across.
"""
# These CPU features convert to bf16 with subnormals flushed to zero, which is not what the program says.
_FLUSHING_FEATURES = ("avx512bf16", "avxneconvert", "avx10.2", "avx10.2-256", "avx10.2-512")
# On processors with AVX-512 LLVM 22.1 makes one instruction of a mask of sign bits and its move to a general register,
# and erases the mask though it is read again by what also writes it (llvm/llvm-project#198197), or reads a register
# that the new instruction cannot name (#191304). Without this feature there are no such masks but those of bytes.
_MASK_FEATURE = "avx512dq"
# These would become vpmovmskb: VEX, opcode, and two registers. Code that has it is made again without masks of bytes.
_BYTE_MASK_MOVE = re.compile(
    rb"(?:\xc5|\xc4[\x01\x21\x41\x61\x81\xa1\xc1\xe1])[\x79\x7d\xf9\xfd]\xd7[\xc0-\xff]", re.DOTALL
)
_BYTE_MASK_FEATURE = "avx512vl"
# What only some kernels call, in libraries of their own, by a function that tells: the library, and what it exports.
_LIBRARIES: dict[str, tuple[Callable[[], str], Sequence[str]]] = {
    CHECK: (lambda: CHECK_IR, [CHECK]),
    RUN_BLOCKS: (lambda: DRIVER_IR, [RUN_BLOCKS]),
    RUN_CLUSTERS: (library_ir, EXPORTS),
    RUN_CHECKED_CLUSTERS: (checked_library_ir, CHECKED_EXPORTS),
}
_COROUTINE = "presplitcoroutine"
"""The attribute of functions that are coroutines."""
_KEPT = 32
"""Modules that stay loaded though nobody uses them: functions are often thrown away and made again."""
_LOCK = threading.RLock()


def opt_level_of(llvm_ir: str, is_checked: bool) -> int:
    """Return the level at which a kernel with its driver is compiled."""
    if is_checked:
        return CHECKED_OPT_LEVEL
    return WAITING_OPT_LEVEL if _COROUTINE in llvm_ir or f"@{RUN_CLUSTERS}(" in llvm_ir else OPT_LEVEL


def machine(opt_level: int = OPT_LEVEL, without: tuple[str, ...] = ()) -> llvm.TargetMachine:
    """Return the target machine that stands for this CPU, and makes code with so much effort, ``without`` features."""
    with _LOCK:
        return _make_machine(opt_level, (*_FLUSHING_FEATURES, _MASK_FEATURE, *without))


@cache
def _make_machine(opt_level: int, without: tuple[str, ...]) -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    wanted = {name: there and name not in without for name, there in llvm.get_host_cpu_features().items()}
    # Those left out come last: a feature that follows would set those that it needs again.
    chosen = [
        f"{sign}{name}" for sign, taken in (("+", True), ("-", False)) for name in wanted if wanted[name] == taken
    ]
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=",".join(chosen), opt=opt_level, jit=True
    )


def link(llvm_ir: str, symbols: Sequence[str], opt_level: int = OPT_LEVEL) -> tuple[dict[str, int], object]:
    """Return the addresses of symbols of a module and the object that keeps its code loaded.

    Modules equal to one that is still loaded, or was one of the last that were linked, are not linked again. Raises
    CompilerError for LLVM IR that LLVM refuses, or that calls what nobody defines.
    """
    with _LOCK:
        return _make_linker().link(llvm_ir, symbols, opt_level)


def link_glue(llvm_ir: str, symbols: Sequence[str], imports: Mapping[str, int]) -> tuple[dict[str, int], object]:
    """As `link`, for a module that no kernel calls, and that is not worth LLVM's time; ``imports`` are its callees."""
    with _LOCK:
        return _make_linker().link_object(_object_code(llvm_ir, opt_level=0), symbols, imports)


class _Linker:
    """The process's JIT linker, the libraries that kernels may call, and the modules that are loaded, by their text.

    A module is unloaded when nobody keeps its library any more; the last few are kept here.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._linked: WeakValueDictionary[str, llvm.ResourceTracker] = WeakValueDictionary()
        self._last: deque[llvm.ResourceTracker] = deque(maxlen=_KEPT)
        self._jit = llvm.create_lljit_compiler(machine())
        self._libraries: dict[str, object] = {}

    def _add_library(self, name: str, llvm_ir: Callable[[], str], functions: Sequence[str]) -> None:
        if name not in self._libraries:
            builder = llvm.JITLibraryBuilder().add_object_img(_object_code(llvm_ir()))
            for function in functions:
                builder.export_symbol(function)
            self._libraries[name] = builder.link(self._jit, name)

    def link(self, llvm_ir: str, symbols: Sequence[str], opt_level: int) -> tuple[dict[str, int], object]:
        library = self._linked.get(llvm_ir)
        if library is None:
            # LLVM calls these where it has no instructions for the types, whatever the kernel's text says.
            if any(name in llvm_ir for name in HELPED_TYPES):
                self._add_library("xgpu_helpers", lambda: HELPER_IR, HELPER_NAMES)
            for function, (text, exports) in _LIBRARIES.items():
                if f"@{function}(" in llvm_ir:
                    self._add_library(function, text, exports)
            library = self._linked[llvm_ir] = self._add(_object_code(llvm_ir, opt_level), symbols, {})
        self._last.append(library)
        return _addresses(library, symbols), library

    def link_object(
        self, object_code: bytes, symbols: Sequence[str], imports: Mapping[str, int]
    ) -> tuple[dict[str, int], object]:
        library = self._add(object_code, symbols, imports)
        return _addresses(library, symbols), library

    def _add(self, object_code: bytes, symbols: Sequence[str], imports: Mapping[str, int]) -> llvm.ResourceTracker:
        builder = llvm.JITLibraryBuilder().add_object_img(object_code)
        for symbol in symbols:
            builder.export_symbol(symbol)
        for symbol, address in imports.items():
            builder.import_symbol(symbol, address)
        for name in self._libraries:
            builder.add_jit_library(name)
        builder.add_current_process()
        try:
            return builder.link(self._jit, f"xgpu_kernel_{next(self._numbers)}")
        except RuntimeError as error:
            what = f"the host cannot link '{symbols[0]}', which calls an unknown function: {error}"
            raise CompilerError(what) from error


def _addresses(library: llvm.ResourceTracker, symbols: Sequence[str]) -> dict[str, int]:
    return {symbol: library[symbol] for symbol in symbols}


_make_linker = cache(_Linker)


def _object_code(llvm_ir: str, opt_level: int = OPT_LEVEL) -> bytes:
    code = _emitted(llvm_ir, machine(opt_level), opt_level)
    if _BYTE_MASK_MOVE.search(code) and llvm.get_host_cpu_features().get(_BYTE_MASK_FEATURE):
        code = _emitted(llvm_ir, machine(opt_level, without=(_BYTE_MASK_FEATURE,)), opt_level)
    return code


def _emitted(llvm_ir: str, machine: llvm.TargetMachine, opt_level: int) -> bytes:
    module = parse_llvm_ir(llvm_ir)
    optimize(module, machine, opt_level, vectorize=True)
    # Each part of a coroutine has all of its blocks.
    if opt_level == CHECKED_OPT_LEVEL and _COROUTINE in llvm_ir:
        drop_unreached(module, machine)
    return bytes(machine.emit_object(module))
