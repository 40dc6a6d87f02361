"""Attention with ``folded`` on and off, beside torch and cuDNN, on a GPU: times, and how exact results are.

``--what`` measures gradients, decoding or the shapes of published figures instead.

``folded`` leaves the factor of logits to the exponential. Errors are those of some rows, in roundings of weights and
results to bf16, of which about 1 is usual. Logits that are large, and keys that numbers hide before or after the
factor, are compared in small programs at the end.
"""

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import xgpu
from xgpu.tools import kernel_timing
from xgpu.tools.timing.attention_passes import PASSES, run
from xgpu.tools.timing.attention_schedules import Given, compiled_ways, print_machine_code, print_times
from xgpu.tools.timing.queued import chosen, compile_all, executable, has_gpu, parse, parser_of, problem, struct
from xgpu.tools.timing.side_by_side import started

FORMS = {"folded": True, "off": False}
"""The forms of our kernel, as their schedules have them."""

_CALLS = 20
"""Calls of torch in one measurement, as of the others."""

_ROUNDING = 2.0**-8
"""The relative error of a number rounded to bf16, twice: as a weight, and as a result."""


@dataclass(frozen=True)
class Case:
    """Attention of all rows of some heads to as many keys.

    Queries are multiplied by ``size``: with 4096 the logits of all rows are so large that they are taken relative to
    the largest before the factor.
    """

    name: str
    batch: int
    rows: int
    heads: int
    width: int
    causal: bool = False
    size: float = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of each operand."""
        return (self.batch, self.rows, self.heads, self.width)

    @property
    def specs(self) -> tuple[jax.ShapeDtypeStruct, ...]:
        """The operands."""
        return (struct(self.shape, jnp.bfloat16),) * 3

    @property
    def tflop(self) -> float:
        """The operations that have to be computed, in units of 10^12 operations."""
        return 4 * self.batch * self.heads * self.rows**2 * self.width / (2 if self.causal else 1) / 1e12

    def function(self, q: Any, k: Any, v: Any) -> Any:
        """Compute attention as programs have it."""
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
        if self.causal:
            s = jnp.where(jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool)), s, -jnp.inf)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, axis=-1).astype(q.dtype), v)

    def draw(self) -> list[Any]:
        """Return operands."""
        keys = jax.random.split(jax.random.key(0), 3)
        q, k, v = (jax.random.normal(key, self.shape, jnp.float32).astype(jnp.bfloat16) for key in keys)
        return [(q * self.size).astype(q.dtype), k, v]

    def error(self, found: Any, operands: Sequence[Any]) -> float:
        """Return the largest error of some rows of one head, in roundings."""
        b, h, rows = self.batch - 1, self.heads // 2, np.unique(np.linspace(0, self.rows - 1, 97).astype(int))
        q, k, v = (np.asarray(each[b, :, h], np.float64) for each in operands)
        s = q[rows] @ k.T * self.width**-0.5
        if self.causal:
            s = np.where(rows[:, None] >= np.arange(self.rows), s, -np.inf)
        return _in_roundings(np.asarray(found[b, :, h], np.float64)[rows], _weights(s), v)


def _weights(logits: Any) -> Any:
    p = np.exp(logits - logits.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)


def _in_roundings(found: Any, weights: Any, v: Any) -> float:
    return float(np.max(np.abs(found - weights @ v) / (_ROUNDING * (weights @ np.abs(v)))))


def _both(batch: int, rows: int, heads: int, width: int) -> list[Case]:
    name = f"{batch} x {rows}, {heads} heads of {width}"
    plain = Case(name, batch, rows, heads, width)
    return [plain, replace(plain, name=f"{name}, causal", causal=True)]


def cases() -> list[Case]:
    """Return all cases that are timed."""
    return [
        *_both(8, 2048, 32, 128),
        *_both(4, 4096, 16, 128),
        *_both(8, 2048, 32, 64),
        *_both(4, 2048, 16, 256),
        *_both(1, 16384, 16, 128),
        Case("8 x 2048, 32 heads of 128, logits of 1e4", 8, 2048, 32, 128, size=4096),
    ]


@dataclass(frozen=True)
class Hidden:
    """Attention with keys that a number hides, ``before`` the factor of logits is applied or after it."""

    fill: float
    before: bool

    @property
    def name(self) -> str:
        """The case's name."""
        return f"hidden by {self.fill:.3g} {'before' if self.before else 'after'} the factor"

    @property
    def specs(self) -> tuple[jax.ShapeDtypeStruct, ...]:
        """Queries, keys and values, and which keys are seen."""
        shapes = ((2, each, 2, 64) for each in (256, 2048, 2048))
        operands = (struct(shape, jnp.bfloat16) for shape in shapes)
        return (*operands, struct((2, 2048), jnp.bool_))

    def function(self, q: Any, k: Any, v: Any, seen: Any) -> Any:
        """Compute attention."""
        x = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32)
        x = self.logits(jnp, x, seen)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(x, axis=-1).astype(q.dtype), v)

    def logits(self, library: Any, products: Any, seen: Any) -> Any:
        """Hide what is not seen, and apply the factor of a width of 64; by JAX or by NumPy."""
        mask = seen[:, None, None]
        if self.before:
            return library.where(mask, products, self.fill) * 0.125
        return library.where(mask, products * 0.125, self.fill)

    def draw(self, what: str) -> list[Any]:
        """Return operands of one kind of `KINDS`."""
        generator = np.random.default_rng(0)
        (b, rows, heads, width), keys = self.specs[0].shape, self.specs[1].shape[1]
        q = generator.integers(-8, 9, (b, rows, heads, width)) / 4
        k = generator.integers(-8, 9, (b, keys, heads, width)) / 4
        v = generator.standard_normal(k.shape)
        seen = np.ones((b, keys), bool)
        seen[0, : keys // 2] = False
        if what == "equal, 1e6":
            q, k = np.zeros_like(q), np.zeros_like(k)
            q[..., 0] = k[..., 0] = 1024
        if what == "large later":
            q[..., 0], k[..., 0] = np.where(np.arange(rows) % 2, 512, -512)[:, None], 0
            k[:, keys // 2 :, :, 0] = 64
        if what == "none seen":
            seen[...] = False
        return [*(jnp.asarray(each, jnp.bfloat16) for each in (q, k, v)), jnp.asarray(seen)]

    def error(self, found: Any, operands: Sequence[Any]) -> float:
        """Return the largest error, in roundings."""
        q, k, v = (np.asarray(each, np.float64).transpose(0, 2, 1, 3) for each in operands[:3])
        logits = self.logits(np, q @ k.swapaxes(2, 3), np.asarray(operands[3]))
        return _in_roundings(np.asarray(found, np.float64).transpose(0, 2, 1, 3), _weights(logits), v)


KINDS = ("usual", "equal, 1e6", "large later", "none seen")
"""Kinds of logits: small, all equal and large, large in keys of later steps alone, and all hidden."""


def masks() -> list[Hidden]:
    """Return the programs with hidden keys, which are compared only."""
    largest = float(np.finfo(np.float32).max)
    return [Hidden(-1e30, True), Hidden(-0.7 * largest, False), Hidden(-largest, True), Hidden(-1e9, True)]


def with_form(case: Case | Hidden, form: str) -> xgpu.Compiled:
    """Return attention compiled for the GPU with ``folded`` fixed; raises ValueError where no kernel computes it."""
    specs = case.specs
    names = [each.name for each in xgpu.compile(case.function, *specs).kernels if each.emitter == "attention"]
    if not names:
        raise ValueError("no kernel of the emitter 'attention' computes it")
    options = xgpu.Options(schedules={name: {"folded": FORMS[form]} for name in names})
    return xgpu.compile(case.function, *specs, options=options)


def _ours(case: Case | Hidden, form: str) -> Any:
    return executable(with_form(case, form), case.specs)


def _cudnn(case: Case) -> Any:
    function = partial(jax.nn.dot_product_attention, is_causal=case.causal, implementation="cudnn")
    return executable(function, case.specs)


def _torch_measure(case: Case) -> Callable[[], float] | None:
    """Return a function that returns the seconds of a call of torch, None where there is no torch for the GPU."""
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    shape, options = case.shape, {"device": "cuda", "dtype": torch.bfloat16}
    q, k, v = (torch.randn(shape, **options).transpose(1, 2) for _ in range(3))
    call = partial(torch.nn.functional.scaled_dot_product_attention, q * case.size, k, v, is_causal=case.causal)

    def measure() -> float:
        call()
        torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(_CALLS):
            call()
        end.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(end)) / 1e3 / _CALLS

    return measure


def _line(case: Case, functions: Mapping[str, Any], rounds: int) -> str:
    operands = case.draw()
    errors = {who: case.error(each(*operands), operands) for who, each in functions.items()}
    measures: dict[str, Callable[[], float]]
    measures = {who: partial(kernel_timing.seconds_per_call, each, operands) for who, each in functions.items()}
    if (of_torch := _torch_measure(case)) is not None:
        measures["torch"] = of_torch
    times: dict[str, list[float]] = {who: [] for who in measures}
    for number in range(rounds + 1):
        for who, measure in measures.items():
            seconds = measure()
            if number:  # The first round warms up.
                times[who].append(seconds)
    us = {who: statistics.median(each) * 1e6 for who, each in times.items()}
    cells = "".join(f"{us.get(who, float('nan')):9.0f}" for who in (*FORMS, "torch", "cudnn"))
    ratio, rate = us.get("cudnn", float("nan")) / us["folded"], case.tflop / us["folded"] * 1e6
    wrong = " ".join(f"{who} {each:.2f}" for who, each in errors.items())
    return f"{case.name:44}{cells}{ratio:9.3f}{rate:9.0f}{min(times['folded']) * 1e6:9.0f}   {wrong}"


_HEAD = "".join(f"{each:>9}" for each in (*FORMS, "torch", "cuDNN", "x cuDNN", "TFLOP/s", "least"))


def _print_times(wanted: Mapping[str, Case], ours: Mapping[str, Any], rounds: int) -> int:
    others = compile_all({f"{name}, cudnn": partial(_cudnn, case) for name, case in wanted.items()}, threads=1)
    print(f"{'us, medians':44}{_HEAD}   errors", flush=True)
    failures = 0
    for name, case in wanted.items():
        made = {**ours, **others}
        functions = {who: made[f"{name}, {who}"] for who in (*FORMS, "cudnn") if f"{name}, {who}" in made}
        try:
            print(_line(case, functions, rounds), flush=True)
        except Exception as error:
            failures += 1
            print(f"{name}: FAILED: {problem(error)}", flush=True)
    return failures


def _print_errors(wanted: Mapping[str, Hidden], ours: Mapping[str, Any]) -> int:
    print(f"errors with hidden keys, {' and '.join(FORMS)}:", flush=True)
    failures = 0
    for name, case in wanted.items():
        for what in KINDS:
            try:
                operands = case.draw(what)
                errors = [case.error(ours[f"{name}, {form}"](*operands), operands) for form in FORMS]
                print(f"  {name}, {what}: {' '.join(f'{each:.2f}' for each in errors)}", flush=True)
            except Exception as error:
                failures += 1
                print(f"  {name}, {what}: FAILED: {problem(error)}", flush=True)
    return failures


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = parser_of("attention", __doc__)
    parser.add_argument(
        "--schedule",
        action="append",
        type=Given.parse,
        default=[],
        metavar="[WORD:]NAME=NUMBER,...",
        help="measure kernels with these numbers of a schedule, beside the one that is chosen and cuDNN, instead of "
        "the forms above; for cases whose name contains the word; may be repeated",
    )
    parser.add_argument(
        "--what",
        choices=("forward", *PASSES),
        default="forward",
        help="gradients beside cuDNN's and torch's, decoding (one query), or the shapes at which FlashAttention-3 has "
        "published figures; by the times of kernels. The forms above if left out",
    )
    parser.add_argument("--compile-only", action="store_true", help="only say what ptxas makes of such kernels")
    usual = parser.get_default("rounds")
    parser.set_defaults(rounds=None)
    arguments = parse(parser, argv)
    if arguments.rounds is None:
        arguments.rounds = usual if arguments.what == "forward" else 1
    return arguments


def _measure_schedules(timed: Mapping[str, Case], arguments: argparse.Namespace) -> int:
    """Measure, or only compile, the kernels with the schedules given; returns how many failed."""
    start = time.perf_counter()
    ways = compiled_ways(list(timed.values()), arguments.schedule)
    print(f"compiled {len(ways)} kernels in {time.perf_counter() - start:.0f} s", flush=True)
    if arguments.compile_only:
        return print_machine_code(ways)
    return print_times(ways, {name: partial(_cudnn, case) for name, case in timed.items()}, arguments.rounds)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the cases whose names the words given choose, or all; returns 1 without a GPU or if one fails."""
    arguments = _arguments(argv)
    if arguments.what != "forward":
        return run(arguments.what, arguments.words, arguments.rounds) if started("attention") else 1
    timed = {each.name: each for each in cases() if chosen(each.name, arguments.words)}
    hidden = {each.name: each for each in masks() if chosen(each.name, arguments.words)}
    if not timed and not hidden:
        print(f"attention: error: no case has a name with one of: {', '.join(arguments.words)}", file=sys.stderr)
        return 1
    if not arguments.compile_only and not has_gpu("attention"):
        return 1
    if arguments.schedule or arguments.compile_only:
        return 1 if _measure_schedules(timed, arguments) else 0
    start = time.perf_counter()
    every: dict[str, Case | Hidden] = {**timed, **hidden}
    makers = {f"{name}, {form}": partial(_ours, case, form) for name, case in every.items() for form in FORMS}
    ours = compile_all(makers)
    print(f"compiled {len(ours)} kernels in {time.perf_counter() - start:.0f} s", flush=True)
    failures = len(makers) - len(ours)
    failures += _print_times(timed, ours, arguments.rounds) if timed else 0
    failures += _print_errors(hidden, ours) if hidden else 0
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
