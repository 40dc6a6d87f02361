"""An ``llvm``-level module lowered for the host, as machine code in this process.

The contract of the host lowering: every pointer is in address space 0, and the kernel is
``llvm.func @k(buffers..., i32 tid_x, tid_y, tid_z, bid_x, bid_y, bid_z)`` with the attributes ``xgpu.kernel``,
``xgpu.block`` and ``xgpu.grid``. Threads wait for each other by calling ``void @xgpu_host_barrier()``, ``i32
@xgpu_host_shuffle_xor(i32 value, i32 distance)`` and ``i32 @xgpu_host_shuffle_idx(i32 value, i32 lane)``; globals that
are not constant are tiles in shared memory, one of no size has the ``xgpu.shared_bytes`` of the kernel.

To the kernel are added a driver, which runs the threads of the blocks ``first`` to ``last - 1``, numbered with x
fastest, and ``void @k__blocks(ptr buffers, i64 first, i64 last, ptr context)``, which calls the driver in the default
floating-point mode: XLA's threads on the CPU flush subnormals to zero. `context` describes a context.
"""

import ctypes
import math
from collections.abc import Sequence
from dataclasses import field

from xgpu import ir
from xgpu.dialects.attributes import CLUSTER, int_array_of, scratch_of
from xgpu.errors import CompilerError, InvalidInput
from xgpu.records import dataclass
from xgpu.target.host.block_driver import Dim3, DriverLaunch, entry_name, entry_point, make_name
from xgpu.target.host.context import ALIGNMENT, FRAME_ALIGNMENT, round_up
from xgpu.target.host.coroutine import COROUTINE_INSTRUCTIONS
from xgpu.target.host.kernel import make_ready
from xgpu.target.host.kernel_source import BufferParameter, HostSource
from xgpu.target.host.linker import link, machine, opt_level_of
from xgpu.target.llvm.export import export_llvm_ir

INDEX_ARGUMENTS = 6


@dataclass(frozen=True)
class HostCode(HostSource):
    """A kernel compiled for this process. ``address`` is its entry point's and is valid while this object lives.

    ``context_bytes`` is the size of the context that each call of it needs, 0 if none.
    """

    address: int
    context_bytes: int
    _library: object = field(repr=False, compare=False)


def host_source(
    module: ir.Module,
    name: str | None = None,
    grid: Sequence[int] | None = None,
    block: Sequence[int] | None = None,
    sanitize: bool = False,
) -> HostSource:
    """Return the kernel of a host-lowered ``llvm``-level module as LLVM IR with its driver.

    ``name`` picks one of several kernels; ``grid`` and ``block`` stand in for absent attributes; ``sanitize`` adds the
    checks of `access_checks`. Raises CompilerError for a module that breaks the contract above or uses what the host
    cannot run.
    """
    kernel = _find_kernel(module, name)
    symbol_name = _string(kernel, "sym_name")
    parameters, in_order = _buffer_parameters(kernel, symbol_name), scratch_of(kernel) > 0
    shape = _dimensions(kernel, "xgpu.grid", grid), _dimensions(kernel, "xgpu.block", block)
    buffers = [(parameter.size, parameter.is_readonly) for parameter in parameters]
    ready = make_ready(module, _launch(kernel, len(parameters), *shape), buffers, sanitize)
    triple = machine().triple
    kernel_ir = export_llvm_ir(ready.module, triple, str(machine().target_data), COROUTINE_INSTRUCTIONS)
    llvm_ir = kernel_ir + ready.driver + entry_point(ready.launch, triple)
    return HostSource(
        symbol_name,
        *shape,
        parameters,
        llvm_ir,
        triple,
        ready.shared_end,
        ready.frames,
        ready.launch.cluster,
        ready.is_coroutine,
        in_order,
        ready.waits,
        ready.checks,
    )


def load_source(source: HostSource) -> HostCode:
    """Compile a kernel for this CPU; equal kernels are compiled once.

    Raises CompilerError if it calls what the host does not have, InvalidInput if it was made for other machines.
    """
    if source.triple != machine().triple:
        raise InvalidInput(f"kernel '{source.name}' is for {source.triple}, and this machine is {machine().triple}")
    make = make_name(source.name)
    entry = entry_name(source.name)
    opt_level = opt_level_of(source.llvm_ir, source.checks is not None)
    addresses, library = link(source.llvm_ir, [entry, make] if source.is_coroutine else [entry], opt_level)
    frame = _frame_bytes(addresses[make], len(source.parameters)) if source.is_coroutine else 0
    blocks = math.prod(source.cluster)
    context_bytes = source.frames + math.prod(source.block) * frame
    if blocks > 1:
        context_bytes = blocks * round_up(context_bytes, ALIGNMENT)
    return HostCode(**vars(source), address=addresses[entry], context_bytes=context_bytes, _library=library)


def compile_host(
    module: ir.Module,
    name: str | None = None,
    grid: Sequence[int] | None = None,
    block: Sequence[int] | None = None,
    sanitize: bool = False,
) -> HostCode:
    """Compile the kernel of a host-lowered ``llvm``-level module for this CPU; see `host_source`."""
    return load_source(host_source(module, name, grid, block, sanitize))


_MAKE_TYPE = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, *[ctypes.c_int32] * 3, ctypes.c_void_p, ctypes.c_void_p)


def _frame_bytes(make: int, buffers: int) -> int:
    """Return how many bytes of a context a thread takes, by asking the function at the address ``make``."""
    return round_up(int(_MAKE_TYPE(make)((ctypes.c_void_p * buffers)(), 0, 0, 0, None, None)), FRAME_ALIGNMENT)


def _launch(kernel: ir.Operation, buffers: int, grid: Dim3, block: Dim3) -> DriverLaunch:
    cluster = kernel.attributes.get(CLUSTER)
    x, y, z = (1, 1, 1) if cluster is None else int_array_of(cluster)
    return DriverLaunch(_string(kernel, "sym_name"), buffers, grid, block, cluster=(x, y, z))


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
