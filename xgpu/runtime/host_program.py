"""Runs a compiled program's kernels on this machine's processor."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xgpu.dtypes import dtype_of_numpy
from xgpu.frontend.signature import ArgumentSpec
from xgpu.runtime.host_executor import HostKernel
from xgpu.runtime.packing import packed, packed_empty, unpacked
from xgpu.runtime.program import CompiledKernel


class HostProgram:
    """The kernels of a program, compiled for the host; calling it takes and returns NumPy arrays."""

    def __init__(self, kernels: Sequence[CompiledKernel], results: Sequence[ArgumentSpec]):
        self._results = tuple(results)
        self._kernels = [
            (HostKernel(kernel.host_module(), kernel.name, kernel.grid, kernel.block), kernel.inputs, kernel.outputs)
            for kernel in kernels
        ]

    def __call__(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """Run on ``arrays``, one per argument of the program, of its shape and type."""
        buffers = [_buffer(array) for array in arrays]
        outputs = [
            packed_empty(spec.shape, spec.dtype) if spec.dtype.is_packed else np.empty(spec.shape, spec.dtype.numpy)
            for spec in self._results
        ]
        for kernel, inputs, results in self._kernels:
            kernel.launch([*(buffers[i] for i in inputs), *(outputs[i] for i in results)])
        return [
            unpacked(output, spec.shape, spec.dtype) if spec.dtype.is_packed else output
            for output, spec in zip(outputs, self._results, strict=True)
        ]


def _buffer(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array as a kernel reads it."""
    dtype = dtype_of_numpy(array.dtype)
    return packed(array, dtype) if dtype.is_packed else array
