"""Runs a compiled program's kernels on this machine's processor."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from xgpu.dtypes import dtype_of_numpy
from xgpu.frontend.signature import ArgumentSpec
from xgpu.runtime.host_executor import HostKernel
from xgpu.runtime.packing import packed, packed_empty, unpacked
from xgpu.runtime.program import CompiledKernel, CompiledProgram

type Array = np.ndarray[Any, Any]

_ALIGNMENT = 128
"""Alignment in bytes of a kernel's own memory, as of every buffer on a GPU."""


class HostLaunch:
    """A kernel of a program, compiled for the host; ``outputs`` are the arrays that it writes.

    ``sanitize`` makes it check what it does, ``count`` count it.
    """

    def __init__(
        self, kernel: CompiledKernel, outputs: Sequence[ArgumentSpec], sanitize: bool = False, count: bool = False
    ):
        module = kernel.host_module(sanitize, count)
        self._executed = np.zeros(1, np.int64) if count else None
        self._kernel = HostKernel(module, kernel.name, kernel.grid, kernel.block, sanitize)
        self._outputs = tuple(zip(outputs, kernel.aliases, strict=True))
        self._scratch_words, self._workspace_bytes = kernel.scratch_words, kernel.workspace_bytes

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run on arrays in their memory layout, and return the outputs in theirs."""
        # An update in place is one of a copy: the operand may be an argument, or used again later.
        outputs = [inputs[source].copy() if source >= 0 else _empty(spec) for spec, source in self._outputs]
        # The kernel knows the board as an input too, but uses it as an output alone.
        board = [np.zeros(self._scratch_words, np.int64)] if self._scratch_words else []
        count = [] if self._executed is None else [self._executed]
        own = [_aligned(self._workspace_bytes)] if self._workspace_bytes else []
        self._kernel.launch([*inputs, *board, *outputs, *board, *own, *count])
        return outputs

    def take_count(self) -> int:
        """Return how many operations the kernel has executed since the last time; it is one that counts."""
        assert self._executed is not None
        executed = int(self._executed[0])
        self._executed[0] = 0
        return executed

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """Run on NumPy arrays, one per input, and return one per output."""
        written = self.run([buffer(array) for array in arrays])
        return [_array(buffer, spec) for buffer, (spec, _) in zip(written, self._outputs, strict=True)]


def _aligned(size: int) -> Array:
    """Return memory that begins where a GPU's buffers may."""
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size]


class HostLaunches:
    """Kernels that were compiled for the host, each once; ``sanitize`` and ``count`` are those of `HostLaunch`."""

    def __init__(self, sanitize: bool = False, count: bool = False):
        self._compiled: dict[CompiledKernel, HostLaunch] = {}
        self._sanitize = sanitize
        self._count = count

    def get(self, kernel: CompiledKernel, outputs: Sequence[ArgumentSpec]) -> HostLaunch:
        """Return ``kernel`` compiled for the host; ``outputs`` are the arrays that it writes."""
        if kernel not in self._compiled:
            self._compiled[kernel] = HostLaunch(kernel, outputs, self._sanitize, self._count)
        return self._compiled[kernel]


class HostProgram:
    """The kernels of a program, compiled for the host; calling it takes and returns NumPy arrays.

    ``sanitize`` makes the kernels check what they do, ``count`` count it. ``constants`` are values that the program has
    before it runs, by their numbers.
    """

    def __init__(
        self,
        program: CompiledProgram,
        sanitize: bool = False,
        count: bool = False,
        constants: Mapping[int, Array] | None = None,
    ):
        self._constants = {number: buffer(array) for number, array in (constants or {}).items()}
        self._results = tuple(zip(program.result_values, program.results, strict=True))
        compiled = HostLaunches(sanitize, count)
        self._launches = [
            (compiled.get(each.kernel, [program.values[i] for i in each.outputs]), each.inputs, each.outputs)
            for each in program.launches
        ]

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """Run on ``arrays``, one per argument of the program, of its shape and type."""
        buffers = self._constants | {number: buffer(array) for number, array in enumerate(arrays)}
        for _ in self._run(buffers):
            pass
        return [
            np.empty(spec.shape, spec.dtype.numpy) if number is None else _array(buffers[number], spec)
            for number, spec in self._results
        ]

    def count(self, arrays: Sequence[Array]) -> list[int]:
        """Run on ``arrays``, and return how many operations each launch executed; the kernels are ones that count."""
        buffers = self._constants | {number: buffer(array) for number, array in enumerate(arrays)}
        return [launch.take_count() for launch in self._run(buffers)]

    def _run(self, buffers: dict[int, Array]) -> Iterator[HostLaunch]:
        """Run the launches one after the other, and yield each when it has run; what it writes is in ``buffers``."""
        for launch, inputs, outputs in self._launches:
            buffers.update(zip(outputs, launch.run([buffers[number] for number in inputs]), strict=True))
            yield launch


def buffer(array: Array) -> Array:
    """Return an array as a kernel reads it."""
    dtype = dtype_of_numpy(array.dtype)
    return packed(array, dtype) if dtype.is_packed else array


def _empty(spec: ArgumentSpec) -> Array:
    """Return memory for an array as a kernel writes it."""
    if spec.dtype.is_packed:
        return packed_empty(spec.shape, spec.dtype)
    return np.empty(spec.shape, spec.dtype.numpy)


def _array(buffer: Array, spec: ArgumentSpec) -> Array:
    """Return the array that a kernel wrote."""
    return unpacked(buffer, spec.shape, spec.dtype) if spec.dtype.is_packed else buffer
