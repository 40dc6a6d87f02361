"""An ``llvm``-level module lowered for the host, as machine code in this process.

The contract of the host lowering: every pointer is in address space 0, and the kernel is
``llvm.func @k(buffers..., i32 tid_x, tid_y, tid_z, bid_x, bid_y, bid_z)`` with the attributes ``xgpu.kernel``,
``xgpu.block`` and ``xgpu.grid``. Threads wait for each other by calling ``void @xgpu_host_barrier()``, ``i32
@xgpu_host_shuffle_xor(i32 value, i32 distance)`` and ``i32 @xgpu_host_shuffle_idx(i32 value, i32 lane)``; globals that
are not constant are tiles in shared memory, one of no size has the ``xgpu.shared_bytes`` of the kernel.

To the kernel are added a driver, which runs the threads of the blocks ``first`` to ``last - 1``, numbered with x
fastest, and ``void @k__blocks(ptr buffers, i64 first, i64 last, ptr context)``, which calls the driver in the default
floating-point mode: XLA runs callbacks on the CPU with subnormals flushed to zero. `host_context` describes a context.
"""

import ctypes
import itertools
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import llvmlite.binding as llvm

from xgpu import ir
from xgpu.errors import CompilerError, InvalidInput
from xgpu.target.host_checks import CHECK, CHECK_IR
from xgpu.target.host_context import FRAME_ALIGNMENT, round_up
from xgpu.target.host_coroutine import COROUTINE_INSTRUCTIONS
from xgpu.target.host_driver import DRIVER_IR, RUN_BLOCKS, Dim3, Launch, entry_name, entry_point, make_name
from xgpu.target.host_helpers import HELPER_IR, HELPER_NAMES
from xgpu.target.host_kernel import make_ready
from xgpu.target.host_labels import Place
from xgpu.target.host_sanitizer import Checks
from xgpu.target.llvm_ir import export_llvm_ir
from xgpu.target.llvm_module import optimize, parse_llvm_ir

OPT_LEVEL = 3
INDEX_ARGUMENTS = 6
# These CPU features convert to bf16 with subnormals flushed to zero, which is not what the program says.
_FLUSHING_FEATURES = ("avx512bf16", "avxneconvert", "avx10.2", "avx10.2-256", "avx10.2-512")


@dataclass(frozen=True)
class BufferParameter:
    """What a kernel says of one buffer: bytes of alignment, least size in bytes (0: unknown), whether it writes."""

    alignment: int
    size: int
    is_readonly: bool


@dataclass(frozen=True)
class HostCode:
    """A kernel compiled for this process. ``address`` is its entry point's and is valid while this object lives.

    ``context_bytes`` is the size of the context that each call of it needs, 0 if none; the shared memory in it ends at
    ``shared_end``. ``waits`` names the places where threads wait for each other, in the order of their numbers from 1;
    ``checks`` is None unless sanitized.
    """

    name: str
    grid: Dim3
    block: Dim3
    parameters: tuple[BufferParameter, ...]
    llvm_ir: str
    address: int
    context_bytes: int
    shared_end: int
    waits: tuple[tuple[str, Place], ...] = field(repr=False)
    checks: Checks | None = field(repr=False)
    _library: object = field(repr=False, compare=False)


def compile_host(
    module: ir.Module,
    name: str | None = None,
    grid: Sequence[int] | None = None,
    block: Sequence[int] | None = None,
    sanitize: bool = False,
) -> HostCode:
    """Compile the kernel of a host-lowered ``llvm``-level module for this CPU; equal kernels are compiled once.

    ``name`` picks one of several kernels; ``grid`` and ``block`` stand in for absent attributes; ``sanitize`` adds the
    checks of `host_checks`. Raises CompilerError for a module that breaks the contract above or uses what the host
    cannot run.
    """
    kernel = _find_kernel(module, name)
    symbol_name = _string(kernel, "sym_name")
    parameters = _buffer_parameters(kernel, symbol_name)
    shape = _dimensions(kernel, "xgpu.grid", grid), _dimensions(kernel, "xgpu.block", block)
    buffers = [(parameter.size, parameter.is_readonly) for parameter in parameters]
    ready = make_ready(module, Launch(symbol_name, len(parameters), *shape), buffers, sanitize)
    machine = _machine()
    kernel_ir = export_llvm_ir(ready.module, machine.triple, str(machine.target_data), COROUTINE_INSTRUCTIONS)
    llvm_ir = kernel_ir + ready.driver + entry_point(ready.launch, machine.triple)
    functions = [entry_name(symbol_name), *([make_name(symbol_name)] if ready.is_coroutine else [])]
    (address, *make), library = _linker().link(llvm_ir, functions)
    context_bytes = ready.frames + (math.prod(shape[1]) * _frame_bytes(make[0], len(parameters)) if make else 0)
    contract = symbol_name, *shape, parameters
    code = llvm_ir, address, context_bytes
    return HostCode(*contract, *code, ready.frames, ready.waits, ready.checks, library)


_MAKE_TYPE = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, *[ctypes.c_int32] * 3, ctypes.c_void_p, ctypes.c_void_p)


def _frame_bytes(make: int, buffers: int) -> int:
    """Return how many bytes of a context a thread takes, by asking the function at the address ``make``."""
    return round_up(int(_MAKE_TYPE(make)((ctypes.c_void_p * buffers)(), 0, 0, 0, None, None)), FRAME_ALIGNMENT)


def _find_kernel(module: ir.Module, name: str | None) -> ir.Operation:
    kernels = [
        op.operation
        for op in module.body.operations
        if op.operation.name == "llvm.func" and "xgpu.kernel" in op.operation.attributes
    ]
    if name is not None:
        kernels = [kernel for kernel in kernels if _string(kernel, "sym_name") == name]
    if len(kernels) != 1:
        wanted = "llvm.func with xgpu.kernel" if name is None else f"kernel '{name}'"
        raise CompilerError(f"expected one {wanted}, found {len(kernels)}")
    return kernels[0]


def _string(op: ir.Operation, name: str) -> str:
    value: str = op.attributes[name].value  # type: ignore[attr-defined]
    return value


def _dimensions(kernel: ir.Operation, attribute: str, given: Sequence[int] | None) -> Dim3:
    """Return a kernel's grid or block: its attribute, which ``given`` must equal or may stand in for."""
    stated = kernel.attributes.get(attribute)
    numbers = list(stated) if stated is not None else None  # type: ignore[call-overload]
    if given is not None and numbers is not None and list(given) != numbers:
        raise InvalidInput(f"{attribute} of the kernel is {numbers}, but {list(given)} was given")
    chosen = numbers if numbers is not None else given
    if chosen is None or len(chosen) != 3:
        raise CompilerError(f"kernel '{_string(kernel, 'sym_name')}' has no {attribute} of three numbers: {stated}")
    x, y, z = (int(number) for number in chosen)
    if min(x, y, z) < 0 or (attribute == "xgpu.block" and min(x, y, z) < 1):
        raise CompilerError(f"{attribute} = [{x}, {y}, {z}] of kernel '{_string(kernel, 'sym_name')}' is not possible")
    return x, y, z


def _buffer_parameters(kernel: ir.Operation, name: str) -> tuple[BufferParameter, ...]:
    """Check the signature against the contract and return what it says of each buffer."""
    type_ = kernel.attributes["function_type"].value  # type: ignore[attr-defined]
    inputs = list(type_.inputs)
    buffers, indices = inputs[:-INDEX_ARGUMENTS], inputs[-INDEX_ARGUMENTS:]
    has_contract = len(indices) == INDEX_ARGUMENTS and all(str(each) == "i32" for each in indices)
    if not has_contract or any(str(each) != "!llvm.ptr" for each in buffers):
        raise CompilerError(
            f"kernel '{name}' is not lowered for the host: expected pointers and six i32 indices, found {type_}"
        )
    listed = kernel.attributes.get("arg_attrs")
    described = list(listed)[: len(buffers)] if listed is not None else []  # type: ignore[call-overload]
    return tuple(_buffer_parameter(each) for each in described) or (BufferParameter(1, 0, False),) * len(buffers)


def _buffer_parameter(attributes: ir.DictAttr) -> BufferParameter:
    def number(name: str, default: int) -> int:
        return int(attributes[name].value) if name in attributes else default  # type: ignore[attr-defined]

    return BufferParameter(
        number("llvm.align", 1), number("llvm.dereferenceable", 0), is_readonly="llvm.readonly" in attributes
    )


@cache
def _machine() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    for name in _FLUSHING_FEATURES:
        if name in features:
            features[name] = False
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=OPT_LEVEL, jit=True
    )


# What only some kernels call, each in a library of its own.
_LIBRARIES = {CHECK: CHECK_IR, RUN_BLOCKS: DRIVER_IR}


class _Linker:
    """The process's JIT linker, the libraries that kernels may call, and every kernel linked so far by its text."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._linked: dict[str, tuple[list[int], object]] = {}
        self._jit = llvm.create_lljit_compiler(_machine())
        self._libraries: dict[str, object] = {}
        self._add_library("xgpu_helpers", HELPER_IR, HELPER_NAMES)

    def _add_library(self, name: str, llvm_ir: str, functions: Sequence[str]) -> None:
        if name not in self._libraries:
            builder = llvm.JITLibraryBuilder().add_object_img(_object_code(llvm_ir))
            for function in functions:
                builder.export_symbol(function)
            self._libraries[name] = builder.link(self._jit, name)

    def link(self, llvm_ir: str, functions: Sequence[str]) -> tuple[list[int], object]:
        """Return the addresses of functions of a module and the object that keeps its code loaded."""
        with self._lock:
            found = self._linked.get(llvm_ir)
            if found is None:
                for function, library_ir in _LIBRARIES.items():
                    if f"@{function}(" in llvm_ir:
                        self._add_library(function, library_ir, [function])
                found = self._linked[llvm_ir] = self._link(llvm_ir, functions)
            return found

    def _link(self, llvm_ir: str, functions: Sequence[str]) -> tuple[list[int], object]:
        builder = llvm.JITLibraryBuilder().add_object_img(_object_code(llvm_ir))
        for function in functions:
            builder.export_symbol(function)
        for name in self._libraries:
            builder.add_jit_library(name)
        builder.add_current_process()
        try:
            library = builder.link(self._jit, f"xgpu_kernel_{next(self._numbers)}")
        except RuntimeError as error:
            what = f"the host cannot link '{functions[0]}', which calls an unknown function: {error}"
            raise CompilerError(what) from error
        return [library[function] for function in functions], library


_linker = cache(_Linker)


def _object_code(llvm_ir: str) -> bytes:
    module = parse_llvm_ir(llvm_ir)
    optimize(module, _machine(), OPT_LEVEL, vectorize=True)
    return bytes(_machine().emit_object(module))
