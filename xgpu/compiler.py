"""From a normalised program to kernels at every level: the stages run in order, each level kept as it was."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from xgpu import ir, pipeline
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.emit.base import Fusion
from xgpu.emit.select import emit_kernel
from xgpu.errors import InvalidInput
from xgpu.frontend.source_location import source_of
from xgpu.options import Options
from xgpu.passes import manager
from xgpu.passes.base import function_name, functions
from xgpu.target import cubin
from xgpu.target.llvm_ir import export_llvm_ir
from xgpu.target.ptx import compile_to_ptx

Times = list[tuple[str, float]]
"""Stage or pass and its seconds, in running order."""


@contextmanager
def timed(times: Times, name: str) -> Iterator[None]:
    """Add the time that the body takes to ``times``."""
    start = time.perf_counter()
    yield
    times.append((name, time.perf_counter() - start))


@dataclass
class Kernel:
    """One kernel at all its levels. Later levels are made when they are first asked for.

    ``inputs`` and ``outputs`` are the numbers of the program's arguments and results that the kernel reads and writes.
    """

    name: str
    device: Device
    options: Options
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    times: Times = field(repr=False)
    modules: dict[str, ir.Module] = field(repr=False)

    @cached_property
    def _entry(self) -> ir.Operation:
        (*_, module) = self.modules.values()
        return next(op.operation for op in module.body.operations if attributes.KERNEL in op.operation.attributes)

    @property
    def emitter(self) -> str:
        """Name of the emitter that wrote the kernel."""
        return ir.StringAttr(self._entry.attributes[attributes.EMITTER]).value

    @property
    def grid(self) -> tuple[int, ...]:
        """Blocks of the launch, as (x, y, z)."""
        return attributes.int_array_of(self._entry.attributes[attributes.GRID])

    @property
    def block(self) -> tuple[int, ...]:
        """Threads of a block, as (x, y, z)."""
        return attributes.int_array_of(self._entry.attributes[attributes.BLOCK])

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory that a launch asks for, in bytes."""
        return 0

    def check(self) -> None:
        """Run the passes that every target shares, so that what they refuse is known before the kernel is used."""
        if "llvm" not in self.modules:
            self.module("lowered")

    def module(self, level: str) -> ir.Module:
        """Return the kernel's module at an MLIR level, running the passes that lead to it if need be."""
        if level not in self.modules:
            levels = pipeline.MLIR_LEVELS
            available = [name for name in levels[: levels.index(level)] if name in self.modules]
            if not available:
                raise InvalidInput(f"kernel {self.name} was given at a later level than '{level}'")
            for name in levels[levels.index(available[-1]) + 1 : levels.index(level) + 1]:
                self.modules[name] = self._advance(self.modules[available[-1]], name)
                available.append(name)
        return self.modules[level]

    def _advance(self, module: ir.Module, level: str) -> ir.Module:
        with module.context, ir.Location.unknown():
            if level == "optimized":
                steps = pipeline.optimize()
            elif level == "lowered":
                steps = pipeline.lower()
            else:
                steps = pipeline.to_llvm("nvvm", self.device.native_bf16, self.device.native_f8)
        return self._run(module, steps)

    def _run(self, module: ir.Module, steps: Sequence[manager.Step]) -> ir.Module:
        copy = _clone(module)
        instrumentation = manager.Instrumentation()
        manager.run(copy, steps, instrumentation)
        self.times += instrumentation.times
        return copy

    def host_module(self) -> ir.Module:
        """Return the kernel in the LLVM dialect for this machine's processor, from the same ``lowered`` level."""
        lowered = self.module("lowered")
        with lowered.context, ir.Location.unknown():
            steps = pipeline.to_llvm("host", native_bf16=False, native_f8=False)
        return self._run(lowered, steps)

    @cached_property
    def llvmir(self) -> str:
        """LLVM IR text, before LLVM's own passes."""
        module = self.module("llvm")
        with timed(self.times, "export LLVM IR"), module.context, ir.Location.unknown():
            return export_llvm_ir(module)

    @cached_property
    def ptx(self) -> str:
        """PTX text for the kernel's device."""
        text = self.llvmir
        with timed(self.times, "LLVM to PTX"):
            return compile_to_ptx(text, self.device.name, self.options.opt_level)

    @cached_property
    def assembled(self) -> cubin.AssembledKernel:
        """The machine code and what ptxas said of it; raises `ToolError` without ptxas."""
        text = self.ptx
        with timed(self.times, "ptxas"):
            return cubin.assemble(text, self.device.name)

    def text(self, level: str) -> str:
        """Return the kernel at ``level`` as text; a cubin is given as hexadecimal."""
        texts: dict[str, Callable[[], str]] = {
            "llvmir": lambda: self.llvmir,
            "ptx": lambda: self.ptx,
            "cubin": lambda: self.assembled.cubin.hex(),
            "sass": lambda: cubin.disassemble(self.assembled.cubin),
        }
        return texts[level]() if level in texts else str(self.module(level))


def _clone(module: ir.Module) -> ir.Module:
    with module.context:
        copy = ir.Module.create(module.operation.location)
        for name, value in module.operation.attributes.items():
            copy.operation.attributes[name] = value
        for op in module.body.operations:
            copy.body.append(op.operation.clone())
    return copy


def emit_program(planned: ir.Module, device: Device, options: Options, times: Times) -> list[Kernel]:
    """Return the kernels that ``@main`` of a module of level ``fusions`` calls, at level ``emitted``."""
    named = {function_name(f): f for f in functions(planned)}
    if "main" not in named:
        raise InvalidInput("a module of level 'fusions' has a function @main that calls the fusions")
    main = named["main"].operation.regions[0].blocks[0]
    arguments = {argument: number for number, argument in enumerate(main.arguments)}
    operations = [op.operation for op in main.operations]
    results = list(operations[-1].operands)
    kernels = []
    for op in operations[:-1]:
        if op.name != "func.call":
            continue
        name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        function = named[name].operation
        if attributes.EMITTER not in function.attributes:
            raise InvalidInput(f"the fusion @{name} lacks the attribute {attributes.EMITTER}", source_of(function))
        emitter = ir.StringAttr(function.attributes[attributes.EMITTER]).value
        with timed(times, "emit"):
            module = emit_kernel(Fusion(name, function.regions[0].blocks[0], device, options), emitter)
        if any(operand not in arguments for operand in op.operands):
            raise InvalidInput(f"the call of @{name} takes a value that is no argument of @main", source_of(op))
        if any(value not in results for value in op.results):
            raise InvalidInput(f"the call of @{name} has a result that @main does not return", source_of(op))
        inputs = tuple(arguments[operand] for operand in op.operands)
        outputs = tuple(results.index(value) for value in op.results)
        kernels.append(Kernel(name, device, options, inputs, outputs, times, {"emitted": module}))
    return kernels
