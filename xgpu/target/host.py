"""An ``llvm``-level module lowered for the host, as machine code in this process.

The contract of the host lowering: every pointer is in address space 0, and the kernel is
``llvm.func @k(buffers..., i32 tid_x, tid_y, tid_z, bid_x, bid_y, bid_z)`` with the attributes ``xgpu.kernel``,
``xgpu.block`` and ``xgpu.grid``. To it are added a driver, which runs the threads of the blocks ``first`` to
``last - 1``, numbered with x fastest, and ``void @k__blocks(ptr buffers, i64 first, i64 last)``, which calls the driver
in the default floating-point mode: XLA runs callbacks on the CPU with subnormals flushed to zero.
"""

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import llvmlite.binding as llvm

from xgpu import ir
from xgpu.errors import CompilerError, InvalidInput
from xgpu.target.host_helpers import HELPER_IR, HELPER_NAMES
from xgpu.target.llvm_ir import export_llvm_ir
from xgpu.target.llvm_module import optimize, parse_llvm_ir
from xgpu.target.llvm_types import symbol

OPT_LEVEL = 3
INDEX_ARGUMENTS = 6
# Threads of a block must meet at these: calling them one after the other would not do.
_BARRIERS = {"nvvm.barrier", "nvvm.bar.warp.sync", "nvvm.shfl.sync", "nvvm.vote.sync", "nvvm.redux.sync"}
# These CPU features convert to bf16 with subnormals flushed to zero, which is not what the program says.
_FLUSHING_FEATURES = ("avx512bf16", "avxneconvert", "avx10.2", "avx10.2-256", "avx10.2-512")
_HELPER_LIBRARY = "xgpu_helpers"

# Per architecture: LLVM IR that saves the floating-point mode and sets the default one, that restores it, declarations.
_FLOAT_MODES = {
    "x86_64": (
        """  %saved = alloca i32
  %default = alloca i32
  store i32 8064, ptr %default
  call void @llvm.x86.sse.stmxcsr(ptr %saved)
  call void @llvm.x86.sse.ldmxcsr(ptr %default)""",
        "  call void @llvm.x86.sse.ldmxcsr(ptr %saved)",
        "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)",
    ),
    "aarch64": (
        "  %saved = call i64 @llvm.aarch64.get.fpcr()\n  call void @llvm.aarch64.set.fpcr(i64 0)",
        "  call void @llvm.aarch64.set.fpcr(i64 %saved)",
        "declare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)",
    ),
}

type Dim3 = tuple[int, int, int]
# From the kernel's name, its number of buffers, grid and block to the LLVM IR of its driver.
type Driver = Callable[[str, int, Dim3, Dim3], str]


@dataclass(frozen=True)
class BufferParameter:
    """What a kernel says of one buffer: bytes of alignment, least size in bytes (0: unknown), whether it writes."""

    alignment: int
    size: int
    is_readonly: bool


@dataclass(frozen=True)
class HostCode:
    """A kernel compiled for this process. ``address`` is its entry point's and is valid while this object lives."""

    name: str
    grid: Dim3
    block: Dim3
    parameters: tuple[BufferParameter, ...]
    llvm_ir: str
    address: int
    _library: object = field(repr=False, compare=False)


def compile_host(
    module: ir.Module, name: str | None = None, grid: Sequence[int] | None = None, block: Sequence[int] | None = None
) -> HostCode:
    """Compile the kernel of a host-lowered ``llvm``-level module for this CPU; equal kernels are compiled once.

    ``name`` picks one of several kernels; ``grid`` and ``block`` stand in for absent attributes. Raises
    CompilerError for a module that breaks the contract above or uses what the host cannot run.
    """
    kernel = _find_kernel(module, name)
    symbol_name = _string(kernel, "sym_name")
    parameters = _buffer_parameters(kernel, symbol_name)
    launch = _dimensions(kernel, "xgpu.grid", grid), _dimensions(kernel, "xgpu.block", block)
    driver = choose_driver(module, symbol_name)(symbol_name, len(parameters), *launch)
    machine = _machine()
    kernel_ir = export_llvm_ir(module, machine.triple, str(machine.target_data))
    llvm_ir = kernel_ir + driver + entry_point(symbol_name, machine.triple)
    address, library = _linker().link(llvm_ir, _entry_name(symbol_name))
    return HostCode(symbol_name, *launch, parameters, llvm_ir, address, library)


def has_barrier(module: ir.Module) -> bool:
    """Whether any function of the module makes the threads of a block or warp wait for each other."""
    found = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        found = found or op.name in _BARRIERS
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def choose_driver(module: ir.Module, kernel: str) -> Driver:
    """Return the function that writes the driver which this kernel needs.

    Threads that never wait for each other are run one after the other. Raises CompilerError for a kernel whose
    threads wait (they need to be coroutines that a driver resumes in turn) or share memory that they write.
    """
    if has_barrier(module):
        raise CompilerError(f"kernel '{kernel}' has a barrier or shuffle: the host runs only kernels without any")
    for op in module.body.operations:
        if op.operation.name == "llvm.mlir.global" and "constant" not in op.operation.attributes:
            shared = _string(op.operation, "sym_name")
            raise CompilerError(f"kernel '{kernel}' writes the global '{shared}': the host has no shared memory")
    return loop_driver


def loop_driver(name: str, buffers: int, grid: Dim3, block: Dim3) -> str:
    """Return LLVM IR of a driver that calls the kernel once per thread, x fastest, in one loop nest per block."""
    load = "  %slot{0} = getelementptr inbounds ptr, ptr %buffers, i64 {0}\n  %buffer{0} = load ptr, ptr %slot{0}"
    slots = "\n".join(load.format(i) for i in range(buffers))
    pointers = "".join(f"ptr %buffer{i}, " for i in range(buffers))
    return f"""
define internal void {symbol(_driver_name(name))}(ptr noalias readonly %buffers, i64 %first, i64 %last) noinline {{
entry:
{slots}
  %any = icmp slt i64 %first, %last
  br i1 %any, label %block, label %done
block:
  %b = phi i64 [ %first, %entry ], [ %b.next, %block.end ]
  %bx.wide = urem i64 %b, {grid[0]}
  %rows = udiv i64 %b, {grid[0]}
  %by.wide = urem i64 %rows, {grid[1]}
  %bz.wide = udiv i64 %rows, {grid[1]}
  %bx = trunc i64 %bx.wide to i32
  %by = trunc i64 %by.wide to i32
  %bz = trunc i64 %bz.wide to i32
  br label %z
z:
  %tz = phi i32 [ 0, %block ], [ %tz.next, %z.end ]
  br label %y
y:
  %ty = phi i32 [ 0, %z ], [ %ty.next, %y.end ]
  br label %x
x:
  %tx = phi i32 [ 0, %y ], [ %tx.next, %x ]
  call void {symbol(name)}({pointers}i32 %tx, i32 %ty, i32 %tz, i32 %bx, i32 %by, i32 %bz)
  %tx.next = add nuw nsw i32 %tx, 1
  %x.more = icmp ult i32 %tx.next, {block[0]}
  br i1 %x.more, label %x, label %y.end
y.end:
  %ty.next = add nuw nsw i32 %ty, 1
  %y.more = icmp ult i32 %ty.next, {block[1]}
  br i1 %y.more, label %y, label %z.end
z.end:
  %tz.next = add nuw nsw i32 %tz, 1
  %z.more = icmp ult i32 %tz.next, {block[2]}
  br i1 %z.more, label %z, label %block.end
block.end:
  %b.next = add nuw nsw i64 %b, 1
  %more = icmp slt i64 %b.next, %last
  br i1 %more, label %block, label %done
done:
  ret void
}}
"""


def entry_point(name: str, triple: str) -> str:
    """Return LLVM IR of the function that calls a kernel's driver in the default floating-point mode.

    The driver is not inlined into it, so no floating-point operation can be moved out from between the mode changes.
    Architectures that ``_FLOAT_MODES`` lacks keep the caller's mode.
    """
    architecture = {"arm64": "aarch64", "amd64": "x86_64"}.get(triple.split("-")[0], triple.split("-")[0])
    enter, leave, declarations = _FLOAT_MODES.get(architecture, ("", "", ""))
    return f"""
define void {symbol(_entry_name(name))}(ptr %buffers, i64 %first, i64 %last) {{
{enter}
  call void {symbol(_driver_name(name))}(ptr %buffers, i64 %first, i64 %last)
{leave}
  ret void
}}

{declarations}
"""


def _driver_name(kernel: str) -> str:
    return f"{kernel}__driver"


def _entry_name(kernel: str) -> str:
    return f"{kernel}__blocks"


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


class _Linker:
    """The process's JIT linker, the helper library that it starts with, and every kernel linked so far by its text."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._linked: dict[str, tuple[int, object]] = {}
        self._jit = llvm.create_lljit_compiler(_machine())
        helpers = llvm.JITLibraryBuilder().add_object_img(_object_code(HELPER_IR))
        for name in HELPER_NAMES:
            helpers.export_symbol(name)
        self._helpers = helpers.link(self._jit, _HELPER_LIBRARY)

    def link(self, llvm_ir: str, entry: str) -> tuple[int, object]:
        """Return the address of the function ``entry`` and the object that keeps its code loaded."""
        with self._lock:
            found = self._linked.get(llvm_ir)
            if found is None:
                found = self._linked[llvm_ir] = self._link(llvm_ir, entry)
            return found

    def _link(self, llvm_ir: str, entry: str) -> tuple[int, object]:
        builder = llvm.JITLibraryBuilder().add_object_img(_object_code(llvm_ir)).export_symbol(entry)
        builder.add_jit_library(_HELPER_LIBRARY).add_current_process()
        try:
            library = builder.link(self._jit, f"xgpu_kernel_{next(self._numbers)}")
        except RuntimeError as error:
            raise CompilerError(f"the host cannot link '{entry}', which calls an unknown function: {error}") from error
        return library[entry], library


_linker = cache(_Linker)


def _object_code(llvm_ir: str) -> bytes:
    module = parse_llvm_ir(llvm_ir)
    optimize(module, _machine(), OPT_LEVEL, vectorize=True)
    return bytes(_machine().emit_object(module))
