"""Checks one graph: compiles it with xgpu, runs it, and compares with what XLA makes of the same text."""

import random
import re
import traceback
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xgpu.device import HOST, device
from xgpu.errors import XgpuError
from xgpu.frontend import load_source
from xgpu.interface.api import Compiled, default_device
from xgpu.options import CONTROL_FLOW, PRODUCTS, Options
from xgpu.runtime.compare import compare
from xgpu.tools.fuzzing.generate import generate
from xgpu.tools.fuzzing.graph import Graph
from xgpu.tools.fuzzing.loops import as_step, last_argument, looped_text, may_repeat
from xgpu.tools.fuzzing.oracle import after_steps, expected

_LOOPED = 0.3
_IDLE = 0.1
_OTHER_OPTIONS = 0.4
_TARGETS = ("sm_80", "sm_90a", "sm_90a", "sm_100a", "sm_120", HOST.name)
"""The targets that graphs are compiled for where they are not run on a GPU: of a CPU, threads run in turn."""


@dataclass(frozen=True)
class Variant:
    """A way to compile a graph. On a device of few threads, small programs are compiled as if they were large.

    ``looped`` makes the graph, if it has a value of an argument's type, a step of a loop that is taken once, or three
    times if it may be, or not at all if it is ``idle``. The rest are options of the compiler.
    """

    target: str = "sm_90a"
    device_threads: int | None = None
    threads_per_block: int = 128
    max_elements_per_thread: int | None = None
    looped: bool = False
    idle: bool = False
    products: str = PRODUCTS[0]
    control_flow: str = CONTROL_FLOW[0]
    deterministic: bool = False
    opt_level: int = 3

    @staticmethod
    def of_seed(seed: int) -> "Variant":
        """Return a variant for a graph's seed: two in five as `xgpu.compile` has it for its target."""
        generator = random.Random(f"variant {seed}")
        looped = generator.random() < _LOOPED
        is_usual = generator.random() < 0.4
        idle = random.Random(f"idle {seed}").random() < _IDLE
        target = random.Random(f"target {seed}").choice(_TARGETS)
        usual = Variant(target, looped=looped, idle=idle)
        if random.Random(f"options {seed}").random() < _OTHER_OPTIONS:
            usual = _with_options(usual, random.Random(f"their values {seed}"))
        if is_usual:
            return usual
        return replace(
            usual,
            device_threads=generator.choice((64, 64, 2048)),
            threads_per_block=generator.choice((32, 128, 128, 256)),
            max_elements_per_thread=generator.choice((None, None, 2, 4, 8)),
        )


def _with_options(variant: Variant, generator: random.Random) -> Variant:
    """Return a variant with other options of what becomes a kernel: half of them as where there is no library."""
    is_alone = generator.random() < 0.5
    return replace(
        variant,
        products="all" if is_alone else generator.choice(PRODUCTS),
        control_flow="launches" if is_alone else generator.choice(CONTROL_FLOW),
        deterministic=generator.random() < 0.4,
        opt_level=generator.choice((0, 1, 3, 3, 3)),
    )


@dataclass(frozen=True)
class Failure:
    """A failure: ``kind`` is the same for all graphs with one cause, as far as one can tell."""

    kind: str
    message: str


def failure_of_seed(seed: int, on: str) -> Failure | None:
    """Generate and check the graph of a seed."""
    try:
        graph = generate(seed)
    except Exception as error:
        # A fault of the fuzzer itself is a finding like any other.
        return Failure(f"generator: {type(error).__name__}", traceback.format_exc())
    return failure_of(graph, Variant.of_seed(seed), on)


def failure_of(graph: Graph, variant: Variant, on: str) -> Failure | None:
    """Return what is wrong with a graph's results, or None."""
    try:
        return _check(graph, variant, on)
    except XgpuError as error:
        return Failure(f"{type(error).__name__} {_shape_of(str(error))}", str(error))
    except Exception as error:
        # Whatever it is, it is a finding, and the cases after it are still to be checked.
        return Failure(f"{type(error).__name__} {_shape_of(str(error))}", traceback.format_exc())


def _shape_of(message: str) -> str:
    """Return the first words of a message without what differs between graphs."""
    first = message.strip().split("\n")[0]
    return re.sub(r"[\d%<>\[\]x]+", "#", re.sub(r"<text>[:\d]*|[?!]?tensor<[^>]*>+", "", first))[:60]


def _check(graph: Graph, variant: Variant, on: str) -> Failure | None:
    chosen = default_device() if on == "gpu" else device(variant.target)
    if variant.device_threads is not None:
        chosen = replace(chosen, sm_count=1, max_threads_per_sm=variant.device_threads)
    options = Options(
        variant.threads_per_block,
        variant.max_elements_per_thread,
        opt_level=variant.opt_level,
        deterministic=variant.deterministic,
        products=variant.products,
        control_flow=variant.control_flow,
    )
    step = as_step(graph) if variant.looped else None
    graph = step or graph
    inputs = [graph.elements(value) for value in graph.arguments]
    text = looped_text(step) if step else graph.text()
    if step:
        steps = 0 if variant.idle else 3 if may_repeat(step) else 1
        inputs.append(last_argument(steps))
    compiled = Compiled.from_source(load_source(text), chosen, options, [])
    if on == "ptx":
        if compiled.kernels:
            compiled.ir("ptx")
        return None
    sanitize = on == "sanitized"
    if sanitize and compiled.main is not None and compiled.constants is None:
        return None  # Parts of it are left to XLA.
    actual = compiled.run(*inputs, on="host" if sanitize else on, sanitize=sanitize)
    references = after_steps(graph, steps) if step else expected(graph)
    for number, (value, result, reference) in enumerate(zip(graph.outputs, actual, references, strict=True)):
        comparison = compare(np.asarray(result), np.asarray(reference))
        exact = graph.values[value].facts.exact
        if not comparison.agrees or (exact and comparison.absolute_error):
            what = "exact " if exact else ""
            return Failure("mismatch", f"{what}output {number} (%{value}): {comparison}{_example(result, reference)}")
    return None


def _example(result: np.ndarray[Any, Any], reference: np.ndarray[Any, Any]) -> str:
    """Return the first elements that differ."""
    differs = ~((result == reference) | ((result != result) & (reference != reference)))
    places = np.argwhere(differs)[:3]
    pairs = ", ".join(f"{place.tolist()}: {result[tuple(place)]} for {reference[tuple(place)]}" for place in places)
    return f"; {np.count_nonzero(differs)} differ: {pairs}"
