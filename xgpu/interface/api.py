"""The Python interface: `compile` a program for its arrays' shapes, or `jit` a function as with ``jax.jit``."""

import functools
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import jit as jax_jit

from xgpu import ir
from xgpu.device import Device, device
from xgpu.dialects import attributes
from xgpu.driver.collector import rare_collections
from xgpu.driver.compiler import Launch, Program, emit_program, plan_program
from xgpu.driver.kernel import ProgramKernel, Times, advance, timed
from xgpu.driver.parallel import compile_kernels, expect_kernels
from xgpu.driver.tuning import tuned_choices
from xgpu.dtypes import DType, dtype_of_numpy, format_spec
from xgpu.errors import InvalidInput, ToolError, Unsupported, checks_keywords
from xgpu.frontend.load import spec_of
from xgpu.frontend.signature import ArgumentSpec, Source, check_arguments
from xgpu.fusion.fallback import nothing_to_compile
from xgpu.hlo.shards import crosses_devices
from xgpu.hlo.source_location import unsupported
from xgpu.levels import pipeline
from xgpu.options import Options, checked_options
from xgpu.runtime.host_program import HostProgram
from xgpu.runtime.inputs import MOST_DIMENSIONS, random_inputs
from xgpu.runtime.jax_backend import call_program, gpu_device
from xgpu.runtime.reference import Reference

DEFAULT_TARGET = "sm_90a"
_Module = ir.Module  # `Compiled.ir` hides the name inside the class.


class Compiled:
    """A program compiled for one target and one shape and type per argument. Calling it runs it on JAX arrays.

    `compile` and `jit` make it. ``timings`` holds seconds by stage and pass in running order, and grows as later levels
    are asked for.
    """

    def __init__(
        self,
        source: Source,
        modules: Mapping[str, ir.Module],
        program: Program,
        times: Times,
        level: str | None = "ptx",
    ):
        self.source = source
        self.modules = modules
        self.kernels: tuple[ProgramKernel, ...] = program.kernels
        self.launches: tuple[Launch, ...] = program.launches
        self.values = program.values
        self.result_values = program.results
        self.main, self.constants = program.main, program.constants
        self.timings = times
        self._make_on_cpu: Callable[[], Compiled] | None = None
        if level is not None:
            compile_kernels(self.kernels, level)

    @classmethod
    @rare_collections()
    def from_source(
        cls, source: Source, target: Device, options: Options, times: Times, level: str | None = "ptx"
    ) -> "Compiled":
        """Compile a program of level ``stablehlo``. Many kernels are compiled to ``level``, see `compile_kernels`."""
        if level is not None:
            expect_kernels(source.module)
        choices = tuned_choices(source.module, target, options, times)
        modules = plan_program(source.module, target, options, times, choices)
        compiled = cls(source, modules, emit_program(modules["fusions"], target, options, times), times, level)
        if (on_cpu := source.on_cpu) is not None:
            compiled._make_on_cpu = lambda: cls.from_source(on_cpu(), target, options, times, None)
        return compiled

    @classmethod
    def from_tiles(
        cls, source: Source, target: Device, options: Options, times: Times, level: str | None = "ptx"
    ) -> "Compiled":
        """Compile a program that is one kernel of level ``tiles``."""
        from xgpu.driver.tile_programs import tile_program

        return cls(source, {}, tile_program(source, target, options, times), times, level)

    @property
    def planned(self) -> ir.Module | None:
        """The program at level ``fusions``; None if it was given at a later level."""
        return self.modules.get("fusions")

    @property
    def on_cpu(self) -> "Compiled":
        """The program that runs on the processor: this one, unless it calls code that only a GPU has."""
        return self._made_on_cpu or self

    @cached_property
    def _made_on_cpu(self) -> "Compiled | None":
        return None if self._make_on_cpu is None else self._make_on_cpu()

    @property
    def arguments(self) -> tuple[ArgumentSpec, ...]:
        """Name, type and shape of each argument; a tree of arguments is flattened."""
        return self.source.arguments

    @property
    def results(self) -> tuple[ArgumentSpec, ...]:
        """Name, type and shape of each result; a tree of results is flattened."""
        return self.source.results

    def ir(self, level: str) -> str:
        """Return the program's text at ``level``; kernels are separated by ``// -----`` lines.

        Raises `InvalidInput` for an unknown level, `Unsupported` if all of the program is left to XLA and the level is
        one of kernels, `ToolError` if a level needs a tool that is not installed.
        """
        of = pipeline.GRAPH.level(level).of
        if "mapped" in self.modules:
            from xgpu.loop_language.load import TEXT_LEVEL, print_loops

            if level == TEXT_LEVEL:
                return print_loops(next(iter(self.modules.values())))
        if level == "stablehlo":
            return str(self._program())
        if level in self.modules:
            return str(self.modules[level])
        if of == "program":
            raise self._is_past(level)
        if self.planned is not None and self.main is not None and not self.kernels:
            raise nothing_to_compile(self.planned)
        return "\n// -----\n".join(kernel.text(level) for kernel in self.kernels)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on arrays given as to the original function, on the device that JAX uses; returns what it returns."""
        leaves, tree = jax.tree.flatten((args, kwargs))
        if self.source.in_tree is not None and tree != self.source.in_tree:
            expected, got = (str(each).removeprefix("PyTreeDef(")[:-1] for each in (self.source.in_tree, tree))
            given = f"expected positional and keyword arguments of the structure {expected}, got {got}"
            raise InvalidInput(f"{self.source.name}: {given}")
        self._check_is_for_one_device()
        check_arguments(self.source, [self._spec_of(*each) for each in enumerate(leaves)])
        return self._unflatten(call_program(self, leaves))

    def _unflatten(self, results: Sequence[Any]) -> Any:
        if self.source.out_tree is not None:
            return jax.tree.unflatten(self.source.out_tree, list(results))
        return results[0] if len(results) == 1 else tuple(results)

    @checks_keywords("Compiled.run")
    def run(self, *arrays: Any, on: str = "host", sanitize: bool = False) -> list[np.ndarray[Any, Any]]:
        """Run on one array per argument, on ``"host"`` or ``"gpu"``, and return one array per result.

        ``sanitize``, on the host only, checks every access that a kernel makes: `KernelFault` names what went out of
        bounds, raced with another thread, read shared memory that nobody wrote, or did not reach a barrier.
        """
        values = self._checked(arrays)
        if sanitize and on != "host":
            raise InvalidInput(f"sanitize=True checks kernels on the host: expected on='host', got on='{on}'")
        if sanitize and self.main is not None and self.constants is None:
            raise InvalidInput("sanitize=True takes a program that is all kernels; parts of this one are left to XLA")
        if sanitize:
            return self._sanitized_program(values)
        if on == "host":
            return self.run_on_host(values)
        if on != "gpu":
            raise InvalidInput(f"expected on='host' or on='gpu', got on='{on}'")
        return self._run_on_device(values, gpu_device())

    def count(self, *arrays: Any) -> list[int]:
        """Run on one array per argument on the host, and return how many operations each launch executes.

        Counted are operations on elements and loads at level ``lowered``; a function such as the exponential is one.
        """
        values = self._checked(arrays)
        if self.main is not None and self.constants is None:
            raise InvalidInput("only a program that is all kernels can be counted; parts of this one are left to XLA")
        return HostProgram(self, count=True, constants=self.constants).count(values)

    def _check_ranks(self) -> None:
        for spec in (*self.arguments, *self.results):
            if len(spec.shape) > MOST_DIMENSIONS:
                given = f"{spec.name} has {len(spec.shape)}"
                raise Unsupported(
                    f"arrays of at most {MOST_DIMENSIONS} dimensions can be run, as NumPy has them: {given}"
                )

    def _check_is_for_one_device(self) -> None:
        if (call := crosses_devices(self.source.module)) is not None:
            raise unsupported(call, "a program that splits arrays over several devices can be compiled, but not run")

    def _checked(self, arrays: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
        self._check_ranks()
        self._check_is_for_one_device()
        # Of any strides and byte order, as NumPy has them; kernels, and XLA, take rows one after the other.
        check_arguments(self.source, [self._spec_of(*each) for each in enumerate(arrays)])
        given = [np.asarray(array) for array in arrays]
        return [np.asarray(array, array.dtype.newbyteorder("="), order="C") for array in given]

    def _spec_of(self, number: int, value: Any) -> tuple[DType, tuple[int, ...]]:
        """Return element type and shape of an argument; raises Unsupported for what is no array that XLA has."""
        try:
            array = value if hasattr(value, "dtype") else np.asarray(value)
            return dtype_of_numpy(array.dtype), tuple(array.shape)
        except (AttributeError, TypeError, ValueError, Unsupported) as error:
            reason = error.message if isinstance(error, Unsupported) else "it is no array"
            specs = self.arguments[number : number + 1]
            expected = "".join(f" ({each.name}) is {format_spec(each.dtype, each.shape)}, but" for each in specs)
            kind = f"{reprlib.repr(value)} of type {type(value).__name__}"
            raise Unsupported(f"argument {number}{expected} {kind} was given: {reason}") from None

    @cached_property
    def _host_program(self) -> HostProgram:
        return HostProgram(self)

    @cached_property
    def _sanitized_program(self) -> HostProgram:
        return HostProgram(self, sanitize=True, constants=self.constants or {})

    def run_on_host(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """Run on NumPy arrays of the arguments' shapes and types: kernels on the host executor, the rest by XLA."""
        if self.main is None:
            return self._host_program(arrays)
        return self._run_on_device(arrays, jax.devices("cpu")[0])

    def _run_on_device(self, arrays: Sequence[np.ndarray[Any, Any]], target: Any) -> list[np.ndarray[Any, Any]]:
        with jax.enable_x64(True):
            on_device = [jax.device_put(array, target) for array in arrays]
            try:
                results = jax_jit(lambda *tracers: call_program(self, tracers))(*on_device)
                return [np.asarray(result) for result in results]
            except jax.errors.JaxRuntimeError as error:
                if "\nKeyboardInterrupt" in str(error):
                    # Of a callback of ours; XLA knows errors of its own only.
                    raise KeyboardInterrupt from None
                # For example, text may call a library that only runs on a GPU.
                reason = str(error).partition("\n")[0]
                raise ToolError(f"XLA cannot run the program on {target.platform}: {reason}") from error

    def _program(self) -> _Module:
        if not self.has_program:
            raise self._is_past("stablehlo")
        return self.source.module

    def _is_past(self, level: str) -> InvalidInput:
        given = self.given_level
        leads = pipeline.GRAPH.leads(level, given)
        why = f"which comes after '{level}'" if leads else f"from which level '{level}' cannot be made"
        return InvalidInput(f"the program was given at level '{given}', {why}")

    @property
    def given_level(self) -> str:
        """The level that the program was given at."""
        given = self.source.module.operation.attributes
        return "stablehlo" if self.has_program else ir.StringAttr(given[attributes.LEVEL]).value

    @property
    def has_program(self) -> bool:
        """Whether the program was given at level ``stablehlo``, and not as text of a later one."""
        return attributes.LEVEL not in self.source.module.operation.attributes

    @property
    def has_reference(self) -> bool:
        """Whether XLA can run the program: of level ``stablehlo``, a plan, whose fusions are functions of it, or tiles.

        Of kernels at level ``tiles``, it is one that was given alone.
        """
        return self.has_program or self.planned is not None or self._is_of_tiles

    @property
    def _is_of_tiles(self) -> bool:
        return self.given_level == "tiles" and len(self.kernels) == 1

    @cached_property
    def _reference(self) -> Reference:
        if not self.has_reference:
            given = f"this one was given at level '{self.given_level}'"
            raise InvalidInput(
                f"XLA runs programs of levels up to 'fusions', and a kernel of level 'tiles', to compare with; {given}"
            )
        module = self.on_cpu.source.module
        if self._is_of_tiles:
            with module.context, ir.Location.unknown():
                module = advance(module, pipeline.steps(pipeline.EXPAND_TILES), self.timings)
        return Reference(module)

    def reference(self, *arrays: Any) -> list[np.ndarray[Any, Any]]:
        """Run on one array per argument with XLA on the CPU, and return one array per result."""
        values = self._checked(arrays)
        return self._reference(values)

    def random_inputs(self, seed: int = 0) -> list[np.ndarray[Any, Any]]:
        """Return random arrays for the arguments, the same for the same seed; see `runtime.inputs`."""
        self._check_ranks()
        extents = [size for spec in (*self.arguments, *self.results) for size in spec.shape]
        return random_inputs(self.arguments, extents, seed, self._index_limits())

    def _index_limits(self) -> dict[int, int]:
        """Return below what arguments of a program of loops have to be whose elements are indices."""
        if "mapped" not in self.modules:
            return {}
        from xgpu.nests.index_arrays import index_limits

        with self.modules["mapped"].context:
            return index_limits(self.modules["mapped"])


@checks_keywords("xgpu.compile")
def compile(
    source: Callable[..., Any] | str | Path,
    *args_or_specs: Any,
    target: str = DEFAULT_TARGET,
    options: Options | None = None,
) -> Compiled:
    """Compile a program for the GPU ``target``. Kernels of large programs are compiled on all cores.

    ``source`` is a JAX function, a program of loops (`xgpu.loops`), a block program (`xgpu.block`), a path
    (``file.py:function``, ``file.hlo``, ``file.mlir``, ``file.te``), or HLO or MLIR text. MLIR text may be of any level
    up to ``llvm``; compilation continues from there. A function's arguments are arrays, ``jax.ShapeDtypeStruct`` or
    specifications such as ``"f32[128,1024]"``. Text declares its own, except for the sizes of a program of loops.

    Raises `InvalidInput` for errors in the input, and `Unsupported` for what xgpu cannot compile.
    """
    return compile_to("ptx", source, args_or_specs, device(target), checked_options(options))


@rare_collections()
def compile_to(
    level: str | None,
    source: Callable[..., Any] | str | Path,
    args_or_specs: Sequence[Any],
    target: Device,
    options: Options,
) -> Compiled:
    """Compile a program as `compile` does, but its kernels to ``level`` only: ``lowered``, ``ptx`` or not yet."""
    # What `jit` has no use for, and what takes as long to import as a kernel does to compile.
    from xgpu.driver.nest_programs import emit_nests, map_program
    from xgpu.driver.restart import check_given, restart, text_of_later_level
    from xgpu.driver.tile_programs import LEVEL as TILES
    from xgpu.loop_language.load import load_program

    times: Times = []
    later = text_of_later_level(source)
    if later is not None:
        restarted = restart(*later, target, options, times)
        if args_or_specs:
            check_arguments(restarted[0], [spec_of(argument) for argument in args_or_specs])
        return Compiled(*restarted, times, level)
    with timed(times, "frontend"):
        program = load_program(source, args_or_specs)
        if isinstance(source, str | Path):
            check_given(program.module)
    given = program.module.operation.attributes.get(attributes.LEVEL)
    if given is not None and ir.StringAttr(given).value == TILES:
        return Compiled.from_tiles(program, target, options, times, level)
    if given is not None:
        modules = map_program(program.module, target, options, times)
        return Compiled(program, modules, emit_nests(modules["mapped"], target, options, times), times, level)
    return Compiled.from_source(program, target, options, times, level)


def options_on(platform: str, options: Options) -> Options:
    """Return the options with which a program is compiled that runs on a platform of JAX.

    Kernels for a CPU are planned as for the default target, but no padding makes a product faster there, and it has no
    tensor cores for attention or products.
    """
    if platform != "cpu":
        return options
    products = "library" if options.products == "auto" else options.products
    return replace(options, pad_products=False, fuse_attention=False, products=products)


@functools.cache
def default_device() -> Device:
    """Return the device that kernels are compiled for: JAX's GPU if it has one, else the default target."""
    if jax.default_backend() != "gpu":
        return device(DEFAULT_TARGET)
    capability = jax.devices("gpu")[0].compute_capability.replace(".", "")
    for name in (f"sm_{capability}a", f"sm_{capability}"):
        try:
            return device(name)
        except InvalidInput:
            continue
    raise InvalidInput(f"GPUs of compute capability {capability} are not supported")
