"""One kernel at all its levels, each made from the one before when it is first asked for.

A process that compiles kernels for another one imports this, and neither the planner nor the emitters.
"""

import base64
import contextlib
import io
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property

from xgpu import ir
from xgpu.device import Device
from xgpu.dialects import attributes
from xgpu.driver.cache import CachedCode, CachedKernel, cache_of, kernel_cache, key_of
from xgpu.errors import CompilerError, InvalidInput, ToolError, Unsupported
from xgpu.hlo.source_location import source_of
from xgpu.levels import pipeline
from xgpu.levels.level_graph import Edge
from xgpu.options import Options
from xgpu.passes.count_operations import CountOperations
from xgpu.passes.framework import manager
from xgpu.passes.framework.remarks import Remark
from xgpu.records import dataclass
from xgpu.structure import copy_module
from xgpu.target.host.labels import label_operations
from xgpu.target.llvm.export import export_llvm_ir
from xgpu.target.nvptx import cubin
from xgpu.target.nvptx.ptx import compile_to_ptx
from xgpu.target_machine import HOST

_MOST_SECONDS = 20.0
"""Time after which a kernel has no machine code: a process that waits for longer is taken to be stopped."""

Times = list[tuple[str, float]]
"""Stage or pass and its seconds, in running order."""


@contextlib.contextmanager
def timed(times: Times, name: str) -> Iterator[None]:
    """Add the time that the body takes to ``times``."""
    start = time.perf_counter()
    yield
    times.append((name, time.perf_counter() - start))


@dataclass(frozen=True)
class Built:
    """A kernel as another process compiled it: its level ``lowered`` as bytecode, PTX and machine code if asked for."""

    lowered: bytes
    compiled: CachedKernel | None
    machine_code: bytes | None
    times: Times


@dataclass(eq=False)
class ProgramKernel:
    """One kernel at all its levels. Later levels are made when they are first asked for."""

    name: str
    device: Device
    options: Options
    times: Times = field(repr=False)
    modules: dict[str, ir.Module] = field(repr=False)
    built: Built | None = field(default=None, repr=False)

    @cached_property
    def _entry(self) -> ir.Operation:
        (*_, module) = self.modules.values()
        # What threads need, memory of their own say, is known once there are threads.
        return _entry_of(self.module("emitted") if "tiles" in self.modules else module)

    @property
    def source(self) -> ir.Module | None:
        """The kernel as its emitter wrote it, at level ``tiles`` or ``emitted``; None if it is of a later level."""
        return self.modules.get("tiles", self.modules.get("emitted"))

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
        return self.compiled.shared_bytes

    @property
    def aliases(self) -> tuple[int, ...]:
        """For each output, which of the inputs it is an update in place of, counted from 0; -1 for none."""
        if attributes.ALIASES not in self._entry.attributes:
            parameters = len(self._entry.regions[0].blocks[0].arguments)
            aliases = (-1,) * (parameters - attributes.int_of(self._entry.attributes[attributes.INPUTS]))
        else:
            aliases = attributes.int_array_of(self._entry.attributes[attributes.ALIASES])
        hidden = (self.scratch_words > 0) + (self.workspace_bytes > 0)
        return aliases[: len(aliases) - hidden]

    @property
    def scratch_words(self) -> int:
        """Words for messages of its blocks, which a launch gives it besides its inputs and outputs; 0 for none."""
        return attributes.scratch_of(self._entry)

    @property
    def workspace_bytes(self) -> int:
        """Bytes of memory of its own, which a launch gives it besides its outputs; 0 for none."""
        return attributes.workspace_of(self._entry)

    @property
    def is_known(self) -> bool:
        """Whether nothing is left to find out about the kernel: it was compiled before, or comes from a later level."""
        return "llvm" in self.modules or (self._key is not None and kernel_cache().get(self._key) is not None)

    def check(self) -> None:
        """Run the passes that every target shares, so that what they refuse is known before the kernel is used."""
        if not self.is_known:
            self.module("lowered")

    def bytecode(self, level: str) -> bytes:
        """Return the kernel's module at an MLIR level for another process."""
        stream = io.BytesIO()
        self.module(level).operation.write_bytecode(stream)
        return stream.getvalue()

    def accept(self, built: Built) -> None:
        """Take over what another process made of the kernel."""
        self.built = built
        self.times += built.times
        if built.compiled is not None:
            self.compiled = built.compiled
            self._keep(built.compiled)
        if built.machine_code is not None:
            self.machine_code = built.machine_code

    def module(self, level: str) -> ir.Module:
        """Return the kernel's module at an MLIR level, running the passes that lead to it if need be."""
        if level not in self.modules and level == "lowered" and self.built is not None:
            context = next(iter(self.modules.values())).context
            self.modules[level] = ir.Module.parse(self.built.lowered, context)
        path = pipeline.GRAPH.path(self.modules, level)
        if path is None:
            given = next(iter(self.modules))
            raise InvalidInput(
                f"kernel {self.name} was given at level '{given}', from which level '{level}' cannot be made"
            )
        for edge in path:
            self.modules[edge.target] = self._advance(edge)
        return self.modules[level]

    def remarks(self) -> tuple[Remark, ...]:
        """Return what the passes up to ``optimized`` did not do, and why, once each; runs them for that.

        A kernel that was given at a later level than ``emitted`` has none.
        """
        if self.source is None:
            return ()
        copy, found = copy_module(self.module("emitted")), list[Remark]()
        with copy.context, ir.Location.unknown():
            manager.run(copy, pipeline.optimize(self.device), manager.Instrumentation(remark=found.append))
        return tuple(dict.fromkeys(found))

    def _advance(self, edge: Edge) -> ir.Module:
        module = self.modules[edge.source]
        with module.context, ir.Location.unknown():
            steps = pipeline.steps(edge.passes, self.device, self.options)
        advanced = advance(module, steps, self.times)
        if edge.target == "lowered":
            self._check_limits(advanced)
        return advanced

    def _check_limits(self, lowered: ir.Module) -> None:
        needed, together = _shared_bytes_of(lowered), _cluster_blocks_of(lowered)
        most = self.device.shared_bytes_optin
        if needed > most:
            raise Unsupported(
                f"kernel {self.name} needs {needed} bytes of shared memory for a block, {self.device.name} has {most}",
                source_of(_entry_of(lowered)),
            )
        if together > self.device.max_cluster_blocks:
            has = f"{self.device.name} has at most {self.device.max_cluster_blocks}"
            raise Unsupported(
                f"kernel {self.name} needs clusters of {together} blocks, {has}", source_of(_entry_of(lowered))
            )

    def host_module(self, label: bool = False, count: bool = False) -> ir.Module:
        """Return the kernel in the LLVM dialect for this machine's processor, from the same ``lowered`` level.

        ``label`` puts the text of operations at that level into their locations, for messages; the module with them is
        kept, and is given without ``label``, too. With ``count``, which has no labels, the kernel has one more array,
        an i64, to which it adds how many of them it executes; see `count-operations`.
        """
        if not count and (label or "_labelled" in vars(self)):
            return self._labelled
        return self._for_host(self.module("lowered"), count)

    @cached_property
    def _labelled(self) -> ir.Module:
        """The kernel for this machine's processor, with labels; what it computes is the same without."""
        lowered = copy_module(self.module("lowered"))
        label_operations(lowered)
        return self._for_host(lowered)

    def _for_host(self, lowered: ir.Module, count: bool = False) -> ir.Module:
        with lowered.context, ir.Location.unknown():
            steps = [*([CountOperations()] if count else []), *pipeline.to_llvm(HOST, self.device)]
        return advance(lowered, steps, self.times)

    @cached_property
    def llvmir(self) -> str:
        """LLVM IR text, before LLVM's own passes."""
        module = self.module("llvm")
        with timed(self.times, "export LLVM IR"), module.context, ir.Location.unknown():
            return export_llvm_ir(module)

    @cached_property
    def _key(self) -> str | None:
        """The kernel's key in the cache: equal kernels have one, whatever they are called.

        None if it was edited, or nothing is kept: the key is made of the kernel's text, which takes long to print.
        """
        if self.source is None or kernel_cache().folder is None:
            return None
        text = _with_name(str(self.source), self.name, _ANY_NAME)
        return key_of(text, self.device.name, repr(self.options))

    @cached_property
    def compiled(self) -> CachedKernel:
        """PTX for the kernel's device, and the dynamic shared memory of a launch."""
        found = kernel_cache().get(self._key) if self._key is not None else None
        if found is not None:
            return replace(found, ptx=_with_name(found.ptx, _ANY_NAME, self.name))
        text = self.llvmir
        with timed(self.times, "LLVM to PTX"):
            ptx = compile_to_ptx(text, self.device.name, self.options.opt_level)
        made = CachedKernel(ptx, _shared_bytes_of(self.module("llvm")))
        self._keep(made)
        return made

    def _keep(self, made: CachedKernel) -> None:
        if self._key is not None:
            kernel_cache().put(self._key, replace(made, ptx=_with_name(made.ptx, self.name, _ANY_NAME)))

    @property
    def ptx(self) -> str:
        """PTX text for the kernel's device."""
        return self.compiled.ptx

    @cached_property
    def assembled(self) -> cubin.AssembledKernel:
        """The machine code and what ptxas said of it; raises `ToolError` without ptxas."""
        text = self.ptx
        with timed(self.times, "ptxas"):
            return cubin.assemble(text, self.device.name)

    @cached_property
    def machine_code(self) -> bytes | None:
        """The machine code, from the cache or ptxas; None where there is no ptxas that takes the PTX."""
        kept = cache_of(CachedCode)
        if (ptxas := cubin.ptxas_identity()) is None:
            return None
        key = key_of(ptxas, self.ptx, self.device.name) if kept.folder is not None else None
        if key is not None and (found := kept.get(key)) is not None:
            return base64.b64decode(found.code)
        try:
            code = cubin.assemble(self.ptx, self.device.name, _MOST_SECONDS).cubin
        except (ToolError, OSError):
            return None
        if key is not None:
            kept.put(key, CachedCode(base64.b64encode(code).decode()))
        return code

    def text(self, level: str) -> str:
        """Return the kernel at ``level`` as text; a cubin is given as hexadecimal.

        At a level that only kernels of some emitters have, another kernel is as its emitter wrote it.
        """
        described = pipeline.GRAPH.level(level)
        if not described.is_mlir:
            return TEXTS[level](self)
        is_passed = described.is_of_some and level not in self.modules and self.source is not None
        return str(self.source if is_passed else self.module(level))


TEXTS: dict[str, Callable[[ProgramKernel], str]] = {
    "llvmir": lambda kernel: kernel.llvmir,
    "ptx": lambda kernel: kernel.ptx,
    "cubin": lambda kernel: kernel.assembled.cubin.hex(),
    "sass": lambda kernel: cubin.disassemble(kernel.assembled.cubin),
}
"""The text of a kernel at the levels that are not MLIR, each made from the one before."""


_ANY_NAME = "xgpu_kernel"
"""The name of every kernel in the cache: no fusion has it."""


def _with_name(text: str, old: str, new: str) -> str:
    """Return the text of a kernel called ``old`` with the name ``new``, which the names of its parts start with."""
    return re.sub(rf"(?<![A-Za-z0-9_]){re.escape(old)}(?![0-9])", new, text)


def _shared_bytes_of(module: ir.Module) -> int:
    given = _entry_of(module).attributes
    return attributes.int_of(given[attributes.SHARED_BYTES]) if attributes.SHARED_BYTES in given else 0


def _cluster_blocks_of(module: ir.Module) -> int:
    given = _entry_of(module).attributes
    return math.prod(attributes.int_array_of(given[attributes.CLUSTER])) if attributes.CLUSTER in given else 1


def _entry_of(module: ir.Module) -> ir.Operation:
    return next(op.operation for op in module.body.operations if attributes.KERNEL in op.operation.attributes)


def advance(module: ir.Module, steps: Sequence[manager.Step], times: Times) -> ir.Module:
    """Return what ``steps`` make of ``module``, which stays as it is, and add their times to ``times``.

    Verification after each pass takes a fifth of a compilation, so only the last one's result is verified. If anything
    is wrong, all run again, verified one by one: it may have begun in a pass before the one that failed.
    """
    advanced = copy_module(module)
    try:
        manager.run(advanced, steps, manager.Instrumentation(verify="last", times=times))
    except CompilerError:
        manager.run(copy_module(module), steps)
        raise
    return advanced
