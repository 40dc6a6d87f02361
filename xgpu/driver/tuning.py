"""Chooses what computes the matrix products of a program by measuring it, once: XLA's library, or a kernel.

The products of a program that kernels can compute are programs of their own, each with what follows it
(`xgpu.fusion.product_programs`). Such a program is compiled in several ways: with the product left to the library and a
kernel for the rest, and as kernels of several schedules. The fastest is kept on disk, by the text of that program, the
GPU, and all that compiles it: what was measured once is known from then on, in every process. What is chosen goes into
the compilation of the whole program as an option of the pass mark-products.
"""

import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from xgpu import ir
from xgpu.device import Device
from xgpu.driver.cache import cache_of, key_of
from xgpu.driver.compiler import plan_program
from xgpu.driver.kernel import Times, timed
from xgpu.driver.parallel import compile_each
from xgpu.driver.product_ways import Runnable, Way, specs_of, ways_of
from xgpu.errors import SourceLocation, ToolError, XgpuError
from xgpu.fusion.fallback import PRODUCT
from xgpu.fusion.product_choices import NOTHING, OPEN, ProductChoice, ProductChoices
from xgpu.fusion.product_programs import count_candidates, product_programs
from xgpu.hlo.source_location import source_of
from xgpu.options import Options
from xgpu.passes.framework.base import main_of
from xgpu.records import dataclass
from xgpu.runtime import measuring
from xgpu.runtime.measuring import Gpu, Outcome
from xgpu.structure import walk

_LIBRARY = ProductChoice()
_ANY = ""
"""The GPU of what a machine without one finds: what was measured last on a GPU of the same target."""
_MANY_KERNELS = 2
"""Kernels of products take about half a second each to compile, the first process about as long to start."""
_measuring = threading.Lock()
"""Held while programs are measured, with the lock of the cache: two at a time would slow each other down."""


@dataclass(frozen=True)
class Winner:
    """The measured choice for a product: the schedule of the fastest kernel, None if the library is faster.

    ``library`` and ``kernel`` are the microseconds of the library and of the fastest kernel, None where there is none.
    ``dropped`` says which ways to compute it failed, and why.
    """

    schedule: Mapping[str, int] | None
    library: float | None
    kernel: float | None
    dropped: Sequence[str]

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self | None:
        """Return the winner whose fields are ``found``; None if they are not of their types."""
        schedule, dropped = found.get("schedule"), found.get("dropped", ())
        library, kernel = found.get("library"), found.get("kernel")
        is_schedule = schedule is None or (
            isinstance(schedule, dict) and all(type(value) in (int, bool) for value in schedule.values())
        )
        are_times = all(each is None or type(each) is float for each in (library, kernel))
        are_texts = isinstance(dropped, list) and all(type(each) is str for each in dropped)
        return cls(schedule, library, kernel, dropped) if is_schedule and are_times and are_texts else None

    @property
    def choice(self) -> ProductChoice:
        """The choice of kernel or library."""
        return ProductChoice(self.schedule, self.library, self.kernel)


_known: dict[str, Winner] = {}
"""The measurements of this process: products are measured once even where nothing is kept on disk."""


def tuned_choices(module: ir.Module, target: Device, options: Options, times: Times) -> ProductChoices:
    """Return what computes each product of a program of level ``stablehlo``; `NOTHING` if that is not to be measured.

    Raises `ToolError` if something is to be measured and JAX has no GPU for that.
    """
    if not (options.autotune and walk(module.operation, PRODUCT)):
        return NOTHING
    with timed(times, "tune"):
        return _chosen(module, target, options)


def _chosen(module: ir.Module, target: Device, options: Options) -> ProductChoices:
    # A person's schedules are of the whole program's fusions.
    plain = replace(options, autotune=False, schedules={})
    levels = plan_program(module, target, plain, choices=OPEN)
    choices = [_LIBRARY] * count_candidates(levels["prepared"])
    programs = dict(product_programs(levels["prepared"], levels["fusions"]))
    if programs:
        winners = _winners({str(program): program for program in programs.values()}, target, plain)
        for number, program in programs.items():
            choices[number] = winners[str(program)].choice
    return ProductChoices.of(choices)


def _winners(programs: Mapping[str, ir.Module], target: Device, options: Options) -> dict[str, Winner]:
    """Return the winner of each product, by the text of its program; those not known are measured."""
    gpu, reason = _gpu_for(target)
    kind = _ANY if gpu is None else gpu.name
    found = _known_winners(programs, kind, target, options)
    if not (missing := _without(programs, found)):
        return found
    if gpu is None:
        raise ToolError(
            f"autotune=True: this product, of {len(missing)} that were never measured, cannot be measured now:"
            f" {reason}",
            _place(next(iter(missing.values()))),
        )
    with _measuring, cache_of(Winner).alone():
        # While this one waited, another thread or process may have measured the same.
        found |= _known_winners(missing, kind, target, options)
        missing = _without(programs, found)
        # Each is kept at once: what a process that is stopped has measured, the next one knows.
        for text, winner in zip(missing, _measured([*missing.values()], gpu, target, options), strict=True):
            found[text] = winner
            for each in (kind, _ANY):
                _keep(_key(text, each, target, options), winner)
    return found


def _without(programs: Mapping[str, ir.Module], found: Mapping[str, Winner]) -> dict[str, ir.Module]:
    return {text: program for text, program in programs.items() if text not in found}


def _gpu_for(target: Device) -> tuple[Gpu | None, str]:
    """Return the GPU to measure on, or why there is none."""
    try:
        return measuring.gpu_for(target), ""
    except ToolError as error:
        return None, error.message


def _place(program: ir.Module) -> SourceLocation | None:
    """Return where in the user's source the product of a program is, one of those that are equal."""
    product, *_ = walk(program.operation, PRODUCT)
    return source_of(product)


def _key(text: str, gpu: str, target: Device, options: Options) -> str:
    return key_of("product", text, gpu, target.name, repr(replace(options, products="library")))


def _known_winners(texts: Iterable[str], gpu: str, target: Device, options: Options) -> dict[str, Winner]:
    keys = {text: _key(text, gpu, target, options) for text in texts}
    winners = {text: _known.get(key) or cache_of(Winner).get(key) for text, key in keys.items()}
    return {text: winner for text, winner in winners.items() if winner is not None}


def _keep(key: str, winner: Winner) -> None:
    _known[key] = winner
    # Where nothing could be measured, such as for want of memory, another process may be luckier.
    if winner.library is not None:
        cache_of(Winner).put(key, winner)


def _measured(programs: Sequence[ir.Module], gpu: Gpu, target: Device, options: Options) -> Iterator[Winner]:
    """Yield the winner of each product; all ways to compute them are compiled before the first is measured."""
    ways = [list(ways_of(program, target, options)) for program in programs]
    kernels = [
        kernel for each in ways for way in each if isinstance(way.program, Runnable) for kernel in way.program.kernels
    ]
    failed: dict[Any, XgpuError] = dict(compile_each(kernels, "ptx", _MANY_KERNELS))
    compiled = [[_compiled(way, failed) for way in each] for each in ways]
    for program, each in zip(programs, compiled, strict=True):
        yield _winner(program, each, gpu)


def _compiled(way: Way, failed: Mapping[Any, XgpuError]) -> Way:
    """Return a way to compute a product whose kernels have their PTX, or with the error of one."""
    if isinstance(way.program, XgpuError):
        return way
    try:
        for kernel in way.program.kernels:
            if kernel in failed:
                raise failed[kernel]
            kernel.ptx  # noqa: B018  # It is made when it is first asked for.
    except XgpuError as error:
        return replace(way, program=error)
    return way


def _winner(module: ir.Module, ways: Sequence[Way], gpu: Gpu) -> Winner:
    """Measure the ways to compute a product and return the fastest, of equal ones the first, which is the library."""
    library, *kernels = ways
    outcomes: dict[Way, Outcome] = {way: way.program.message for way in ways if isinstance(way.program, XgpuError)}
    usable = {way: way.program for way in ways if isinstance(way.program, Runnable)}
    if library in usable:
        arguments = specs_of("arg", main_of(module).type.inputs)
        outcomes |= zip(usable, gpu.measure(arguments, [*usable.values()]), strict=True)
    if isinstance(failed := outcomes[library], str):
        # There is nothing to compare kernels with: what is said of them follows from this.
        outcomes = {library: failed}
    times = {way: outcome * 1e6 for way, outcome in outcomes.items() if not isinstance(outcome, str)}
    dropped = [f"{way}: {outcome}" for way, outcome in outcomes.items() if isinstance(outcome, str)]
    where = f" ({place})" if (place := _place(module)) else ""
    for each in dropped:
        warnings.warn(f"xgpu does not use a way to compute a product{where}: {each}", stacklevel=2)
    best = min(times, key=lambda way: times[way], default=library)
    kernel = min((times[way] for way in kernels if way in times), default=None)
    return Winner(best.schedule, times.get(library), kernel, dropped)
