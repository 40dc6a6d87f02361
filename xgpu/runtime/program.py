"""Protocols of a compiled program and its kernels, as the runtime uses them."""

from typing import Any, Protocol

from xgpu import ir
from xgpu.device import Device
from xgpu.frontend.signature import ArgumentSpec


class CompiledKernel(Protocol):
    """A kernel that can be launched on a GPU, from its PTX, or on the host, from its module.

    ``grid`` and ``block`` are its launch, as (x, y, z); ``shared_bytes`` is its dynamic shared memory. ``aliases`` has
    an entry for each output: the position among the inputs of what it updates in place, or -1. If it has
    ``scratch_words``, a launch gives it so many of 64 bits, all zero, as one more input, whose memory is that of one
    more output; if it has ``workspace_bytes``, its last output is so many of anything.
    """

    name: str
    device: Device

    @property
    def ptx(self) -> str:
        """PTX text with the kernel as its entry."""

    @property
    def machine_code(self) -> bytes | None:
        """The same for the kernel's device alone; None where it cannot be made."""

    @property
    def grid(self) -> tuple[int, ...]:
        """Blocks of the launch."""

    @property
    def block(self) -> tuple[int, ...]:
        """Threads of a block."""

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of the launch."""

    @property
    def aliases(self) -> tuple[int, ...]:
        """The input that each output updates in place, by number."""

    @property
    def scratch_words(self) -> int:
        """Words for messages of its blocks."""

    @property
    def workspace_bytes(self) -> int:
        """Bytes of memory of its own."""

    def host_module(self, label: bool = False, count: bool = False) -> ir.Module:
        """Return the kernel in the LLVM dialect, lowered for this machine's processor.

        ``label`` puts the text of operations at level ``lowered`` into their locations, for messages. ``count`` adds a
        last array, an i64, to which the kernel adds how many of them it executes.
        """


class CompiledProgram(Protocol):
    """A program of kernels, launched one after the other; compared by identity.

    Its values are numbered: the arguments, then what the launches write. A launch has its ``kernel``, which others may
    share, and the numbers of its ``inputs`` and ``outputs``. ``result_values`` are the numbers of its
    results, None for one without elements. ``main`` is None if kernels make all of the program, else a module whose
    ``@main`` calls them by name and is run by XLA.
    """

    main: ir.Module | None

    kernels: tuple[Any, ...]
    launches: tuple[Any, ...]
    values: tuple[ArgumentSpec, ...]
    result_values: tuple[int | None, ...]

    @property
    def results(self) -> tuple[ArgumentSpec, ...]:
        """Shape and type of each result."""

    @property
    def on_cpu(self) -> "CompiledProgram":
        """The same program for the processor: this one, unless it calls code that only a GPU has."""
