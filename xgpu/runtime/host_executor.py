"""Runs kernels on the host's cores: the blocks of a launch are spread over a thread pool."""

import ctypes
import itertools
import math
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any

import numpy as np

from xgpu import ir
from xgpu.errors import InvalidInput, KernelFault
from xgpu.runtime.host_faults import CheckTables, divergence
from xgpu.target.host.block_driver import Dim3
from xgpu.target.host.context import ALIGNMENT, SHARED, UNWRITTEN_BYTE, Header
from xgpu.target.host.kernel_source import PIECES_PER_WORKER, BufferParameter
from xgpu.target.host.machine_code import HostCode, compile_host

type Array = np.ndarray[Any, Any]


class HostKernel:
    """One kernel, compiled for the host, that is launched on NumPy arrays.

    ``source`` is an ``llvm``-level module lowered for the host, or its text. ``name`` picks one of several kernels;
    ``grid`` and ``block`` (x, y, z) stand in for the attributes ``xgpu.grid`` and ``xgpu.block`` where absent.
    ``sanitize`` makes it check every access and run its blocks one after the other. Raises InvalidInput for text that
    does not parse and CompilerError for a kernel that the host cannot run.
    """

    def __init__(
        self,
        source: ir.Module | str,
        name: str | None = None,
        grid: Sequence[int] | None = None,
        block: Sequence[int] | None = None,
        sanitize: bool = False,
    ):
        self._code = (
            _compile_text(source, name, grid, block, sanitize)
            if isinstance(source, str)
            else compile_host(source, name, grid, block, sanitize)
        )
        self._driver = _DRIVER_TYPE(self._code.address)

    @property
    def name(self) -> str:
        """The kernel function's name."""
        return self._code.name

    @property
    def grid(self) -> Dim3:
        """Blocks in x, y and z."""
        return self._code.grid

    @property
    def block(self) -> Dim3:
        """Threads of a block in x, y and z."""
        return self._code.block

    @property
    def llvm_ir(self) -> str:
        """The LLVM IR that was compiled, before optimisation, with the driver."""
        return self._code.llvm_ir

    def launch(self, buffers: Sequence[Array]) -> None:
        """Run the whole grid on one array per buffer parameter, and return when it is done.

        Arrays are taken as they lie in memory: they must be C-contiguous, those that the kernel writes writable,
        and as large as the kernel says. pred is one byte an element. An array that is not aligned as the kernel
        expects is copied, and copied back if it is written. Raises InvalidInput naming the buffer at fault, and
        KernelFault if the threads of a block do not meet at a barrier or shuffle, or if a check fails.
        """
        parameters = self._code.parameters
        if len(buffers) != len(parameters):
            raise InvalidInput(f"kernel '{self.name}' takes {len(parameters)} buffers, {len(buffers)} were given")
        for position, (buffer, parameter) in enumerate(zip(buffers, parameters, strict=True)):
            _check_buffer(buffer, parameter, f"buffer {position} of kernel '{self.name}'")
        aligned = [_aligned(buffer, each.alignment) for buffer, each in zip(buffers, parameters, strict=True)]
        if self._code.checks is None:
            self._run_blocks(aligned)
        else:
            self._run_checked(aligned)
        for buffer, array, parameter in zip(buffers, aligned, parameters, strict=True):
            if array is not buffer and not parameter.is_readonly:
                np.copyto(buffer, array)

    def _run_blocks(self, buffers: Sequence[Array]) -> None:
        """Run the clusters, in pieces on several cores if there are enough; none runs any more when this returns."""
        blocks, workers = self._code.clusters, _core_count()
        if workers <= 1 or not self._code.is_split:
            self._run_piece(buffers, 0, blocks)
            return
        pieces = min(blocks, workers * PIECES_PER_WORKER)
        bounds = [blocks * piece // pieces for piece in range(pieces + 1)]
        started: list[Future[None]] = []
        try:
            for first, last in itertools.pairwise(bounds):
                started.append(_pool().submit(self._run_piece, buffers, first, last))
            for piece in started:
                piece.result()
        finally:
            # A fault in one piece, or Ctrl-C, ends the launch, and the caller may use the arrays again.
            for piece in started:
                piece.cancel()
            wait(started)

    def _run_piece(self, buffers: Sequence[Array], first: int, last: int) -> None:
        """Run some blocks. The arrays are arguments so that they outlive the piece, whatever becomes of the launch."""
        context = self._make_context()
        self._driver(_pointers(buffers), first, last, context.ctypes.data)
        if context.size and (fault := divergence(self._code, _header(context))):
            raise KernelFault(self.name, (fault,))

    def _run_checked(self, buffers: Sequence[Array]) -> None:
        """Run the blocks in this thread, as the checks need, and raise what they found."""
        context = self._make_context()
        tables = CheckTables(self._code, buffers, context.ctypes.data)
        header = _header(context)
        header.checks = tables.address
        self._driver(_pointers(buffers), 0, self._code.clusters, context.ctypes.data)
        diverged = divergence(self._code, header)
        faults = (*tables.faults(), *([diverged] if diverged else []))
        if faults:
            raise KernelFault(self.name, faults)

    def _make_context(self) -> Array:
        """Return the memory of one call of the driver; the initial content of shared memory is one that shows."""
        context = aligned_empty([self._code.context_bytes], np.uint8, ALIGNMENT)
        context[:SHARED] = 0
        context[SHARED : self._code.shared_end] = UNWRITTEN_BYTE
        return context


_DRIVER_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


def _pointers(buffers: Sequence[Array]) -> ctypes.c_void_p:
    addresses = (ctypes.c_void_p * len(buffers))(*(array.ctypes.data for array in buffers))
    return ctypes.cast(addresses, ctypes.c_void_p)


def _header(context: Array) -> Header:
    return Header.from_address(context.ctypes.data)


def aligned_empty(shape: Sequence[int], dtype: Any, alignment: int = 128) -> Array:
    """Return a new C-contiguous array whose data starts at a multiple of ``alignment`` bytes."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + alignment, np.uint8)
    start = -memory.ctypes.data % alignment
    array: Array = memory[start : start + size].view(dtype).reshape(shape)
    return array


def _compile_text(
    text: str, name: str | None, grid: Sequence[int] | None, block: Sequence[int] | None, sanitize: bool
) -> HostCode:
    with ir.make_context():
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError as error:
            raise InvalidInput(f"the kernel's text does not parse: {error}") from error
        return compile_host(module, name, grid, block, sanitize)


def _check_buffer(buffer: Array, parameter: BufferParameter, what: str) -> None:
    if not isinstance(buffer, np.ndarray):
        raise InvalidInput(f"{what}: expected a NumPy array, got {type(buffer).__name__}")
    if not buffer.flags.c_contiguous:
        raise InvalidInput(f"{what}: expected a C-contiguous array, got strides {buffer.strides} of {buffer.shape}")
    if not parameter.is_readonly and not buffer.flags.writeable:
        raise InvalidInput(f"{what} is an output, but the array is read-only")
    if buffer.nbytes < parameter.size:
        raise InvalidInput(f"{what} needs {parameter.size} bytes, the array has {buffer.nbytes}")


def _aligned(buffer: Array, alignment: int) -> Array:
    """Return the array itself if its data is aligned, else an aligned copy."""
    if buffer.ctypes.data % alignment == 0:
        return buffer
    copy = aligned_empty(buffer.shape, buffer.dtype, alignment)
    np.copyto(copy, buffer)
    return copy


@cache
def _core_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_core_count(), thread_name_prefix="xgpu-host")
