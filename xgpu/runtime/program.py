"""What the runtime needs to know of a compiled program and its kernels."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from xgpu import ir
from xgpu.frontend.signature import ArgumentSpec


class CompiledKernel(Protocol):
    """A kernel that can be launched on a GPU, from its PTX, or on the host, from its module.

    ``inputs`` and ``outputs`` are the numbers of the program's arguments and results that it reads and writes;
    ``grid`` and ``block`` are its launch, as (x, y, z); ``shared_bytes`` is its dynamic shared memory.
    """

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def ptx(self) -> str:
        """PTX text with the kernel as its entry."""

    @property
    def grid(self) -> tuple[int, ...]:
        """Blocks of the launch."""

    @property
    def block(self) -> tuple[int, ...]:
        """Threads of a block."""

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of the launch."""

    def host_module(self) -> ir.Module:
        """Return the kernel in the LLVM dialect, lowered for this machine's processor."""


class CompiledProgram(Protocol):
    """A program of kernels, one after the other; compared by identity."""

    kernels: tuple[Any, ...]

    @property
    def results(self) -> tuple[ArgumentSpec, ...]:
        """Shape and type of each result."""

    def run_on_host(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """Run on NumPy arrays with the host executor."""
