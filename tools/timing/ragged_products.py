"""Products of rows in groups (``lax.ragged_dot``) on a GPU beside XLA: times, and how exact results are.

XLA multiplies all rows by the matrices of all groups. The dense product is XLA's of as many rows by one matrix, which
is as much to multiply: what a kernel can reach where rows are many. Where they are few, what counts are the bytes of
the matrices whose groups have rows: the rates are of these alone. Errors are of the largest result, of some rows in
float64; those of a layer and of gradients are the differences from XLA's, of 99 of 100 rows, since either of experts
that are nearly equally probable may be the one a row goes to.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import xgpu
from xgpu.tools import kernel_timing
from xgpu.tools.timing.queued import chosen, compile_all, executable, has_gpu, parse, parser_of, problem, struct

type _Dot = Callable[[Any, Any], Any]

_TOP = 2
"""Experts that each row of a layer goes to."""
_LEAST_SECONDS = 2e-3
"""The seconds that the calls of one measurement take together, about."""
_MOST_CALLS = 20
_CHECKED, _COLUMNS = 48, 64
"""Rows and columns of a result that are compared with float64."""
_TOLERANCE = 0.02
"""Of the largest result: sums are rounded to bf16, those of a layer three times one after the other."""
_DRAWN = 4194301
"""Random numbers, a prime number of them, that are repeated for all arrays."""


def _gated(dot: _Dot, x: Any, gate: Any, up: Any) -> Any:
    return jax.nn.silu(dot(x, gate)) * dot(x, up)


def _unit(dot: _Dot, x: Any, gate: Any, up: Any, down: Any) -> Any:
    return dot(_gated(dot, x, gate, up), down)


def _gradients(dot: _Dot, x: Any, w: Any, given: Any) -> Any:
    return jax.vjp(dot, x, w)[1](given)


def _layer(x: Any, router: Any, *matrices: Any) -> Any:
    """A layer of experts, as people write it."""
    chances = jax.nn.softmax((x @ router).astype(jnp.float32))
    weights, experts = lax.top_k(chances, _TOP)
    flat = experts.reshape(-1)
    order = jnp.argsort(flat)
    sizes = jnp.bincount(flat, length=router.shape[1]).astype(jnp.int32)
    made = _unit(lambda rows, w: lax.ragged_dot(rows, w, sizes), x[order // _TOP], *matrices)
    scaled = made * weights.reshape(-1)[order, None].astype(made.dtype)
    return jnp.zeros(x.shape, made.dtype).at[order // _TOP].add(scaled)


_KINDS: Mapping[str, Callable[..., Any]] = {
    "product": lambda dot, x, w: dot(x, w),
    "gated": _gated,
    "gradients": _gradients,
    "layer": _unit,
}
"""The computation, given a function that multiplies rows by the matrices of their groups."""
_PRODUCTS = {"product": 1, "gated": 2, "gradients": 2, "layer": 3}


@dataclass(frozen=True)
class Case:
    """Products of ``rows`` rows of ``inner`` elements, in ``groups`` groups, by matrices of ``columns`` columns.

    Groups are ``even``, ``skewed``, the nth of which has 1 / n as many rows as the first, or ``drawn``: each row is of
    any. In a ``layer`` they are what the router says, and ``rows`` are those of its argument, each of two experts.
    """

    rows: int
    inner: int
    columns: int
    groups: int
    sizes: str
    kind: str = "product"

    @property
    def name(self) -> str:
        """The name of the case."""
        return f"{self.kind} {self.rows} x {self.inner} x {self.columns}, {self.groups} {self.sizes}"

    @property
    def _multiplied(self) -> int:
        return self.rows * (_TOP if self.kind == "layer" else 1)

    @property
    def tflop(self) -> float:
        """The operations that have to be computed, in units of 10^12 operations."""
        return 2 * _PRODUCTS[self.kind] * self._multiplied * self.inner * self.columns / 1e12

    def _shapes(self, rows: int, groups: int) -> list[tuple[int, ...]]:
        x, into, back = (rows, self.inner), (groups, self.inner, self.columns), (groups, self.columns, self.inner)
        return {
            "product": [x, into],
            "gated": [x, into, into],
            "gradients": [x, into, (rows, self.columns)],
            "layer": [x, into, into, back],
        }[self.kind]

    @property
    def specs(self) -> list[jax.ShapeDtypeStruct]:
        """The arguments, the sizes of groups first; of a layer the rows, the router and the matrices."""
        first, *others = (struct(shape, jnp.bfloat16) for shape in self._shapes(self.rows, self.groups))
        if self.kind == "layer":
            return [first, struct((self.inner, self.groups), jnp.bfloat16), *others]
        return [struct((self.groups,), jnp.int32), first, *others]

    @property
    def dense_specs(self) -> list[jax.ShapeDtypeStruct]:
        """The arguments with one group, without its size."""
        return [struct(shape, jnp.bfloat16) for shape in self._shapes(self._multiplied, 1)]

    @property
    def function(self) -> Callable[..., Any]:
        """The function of JAX."""
        if self.kind == "layer":
            return _layer

        def computed(sizes: Any, *arguments: Any) -> Any:
            return _KINDS[self.kind](lambda x, w: lax.ragged_dot(x, w, sizes), *arguments)

        return computed

    def dense(self, *arguments: Any) -> Any:
        """The same of all rows by the first matrices."""
        return _KINDS[self.kind](lambda x, w: x @ w[0], *arguments)

    def rows_of_groups(self) -> Any:
        """Return how many rows each group has."""
        generator = np.random.default_rng(1)
        if self.sizes == "drawn":
            found = np.bincount(generator.integers(0, self.groups, self.rows), minlength=self.groups)
        elif self.sizes == "skewed":
            parts = 1.0 / np.arange(1, self.groups + 1)
            found = np.floor(self.rows * parts / parts.sum()).astype(int)
            found[0] += self.rows - found.sum()
            generator.shuffle(found)
        else:
            found = np.full(self.groups, self.rows // self.groups)
        return found.astype(np.int32)

    def draw(self, specs: Sequence[jax.ShapeDtypeStruct]) -> list[Any]:
        """Return arguments: normal random numbers, such that products have numbers of the size of 1."""
        some = np.random.default_rng(0).standard_normal(_DRAWN, np.float32)

        def drawn(spec: jax.ShapeDtypeStruct) -> Any:
            if spec.dtype == jnp.int32:
                return self.rows_of_groups()
            scale = 1.0 if len(spec.shape) == 2 else spec.shape[1] ** -0.5
            return np.resize((some * np.float32(scale)).astype(spec.dtype), spec.shape)

        return [drawn(spec) for spec in specs]

    def moved(self, arguments: Sequence[Any]) -> int:
        """Return the bytes of the arguments, of matrices only of groups with rows, as far as that is known."""
        if self.kind == "layer":
            return sum(each.nbytes for each in arguments)
        filled = int(np.count_nonzero(arguments[0]))
        return sum(each.nbytes // self.groups * filled if each.ndim == 3 else each.nbytes for each in arguments)

    def error(self, found: Any, theirs: Any, arguments: Sequence[Any]) -> float:
        """Return the error of a result, relative to the largest, or its difference from that of XLA."""
        if self.kind not in ("product", "gated"):
            pairs = zip(jax.tree.leaves(found), jax.tree.leaves(theirs), strict=True)
            return max(_difference(*(np.asarray(each, np.float32) for each in pair)) for pair in pairs)
        sizes, x, *matrices = arguments
        ends = np.cumsum(sizes)
        both = {row for start, end in zip(ends - sizes, ends, strict=True) if end > start for row in (start, end - 1)}
        at = sorted(both)[:_CHECKED]
        groups = np.searchsorted(ends, at, side="right")
        parts = [
            _exact(x[row], [each[group, :, :_COLUMNS] for each in matrices])
            for row, group in zip(at, groups, strict=True)
        ]
        wanted = np.stack(parts)
        close = np.abs(np.asarray(found)[at, :_COLUMNS].astype(np.float64) - wanted)
        return float(close.max() / np.abs(wanted).max())


def _exact(row: Any, matrices: Sequence[Any]) -> Any:
    """Return the results of a row in float64."""
    first, *others = (row.astype(np.float64) @ each.astype(np.float64) for each in matrices)
    return first / (1 + np.exp(-first)) * others[0] if others else first


def _difference(found: Any, wanted: Any) -> float:
    rows = np.abs(found - wanted).reshape(-1, found.shape[-1]).max(axis=1)
    return float(np.quantile(rows, 0.99) / np.abs(wanted).max())


def cases() -> list[Case]:
    """Return all cases; those that XLA takes longest to compile come last."""
    return [
        Case(16, 4096, 1408, 64, "drawn"),
        Case(64, 4096, 1408, 64, "drawn"),
        Case(64, 4096, 1408, 64, "drawn", "gated"),
        Case(4096, 2048, 1024, 8, "even"),
        Case(4096, 2048, 1024, 8, "skewed"),
        Case(4096, 2048, 1024, 8, "drawn", "gradients"),
        Case(512, 4096, 14336, 8, "drawn"),
        Case(2048, 2048, 1408, 64, "routed", "layer"),
        Case(16384, 4096, 1408, 64, "even"),
        Case(16384, 4096, 1408, 64, "skewed"),
    ]


SECONDS = 35.0
"""After so many seconds no more of XLA's programs are compiled."""


@dataclass(frozen=True)
class _Within:
    """Compiles what is begun in time: XLA takes long for what it measures in many ways."""

    end: float

    def compile(self, function: Callable[..., Any], specs: Sequence[jax.ShapeDtypeStruct]) -> Any:
        """Return a function compiled by JAX, None if it is too late."""
        return executable(function, specs) if time.perf_counter() < self.end else None


def compile_ours(case: Case, schedule: Mapping[str, int]) -> tuple[xgpu.Compiled, Any]:
    """Return the program of a case, with numbers of its products' schedules, and it as a function of JAX."""
    program = xgpu.compile(case.function, *case.specs)
    if schedule:
        names = [each.name for each in program.kernels if each.emitter == "product"]
        options = xgpu.Options(schedules=dict.fromkeys(names, schedule))
        program = xgpu.compile(case.function, *case.specs, options=options)
    return program, executable(program, case.specs)


def _seconds(function: Callable[..., Any], arguments: Sequence[Any]) -> float:
    """Return the time of a call, of as many as a measurement has."""
    start = time.perf_counter()
    kernel_timing.wait(function(*arguments))
    calls = max(2, min(_MOST_CALLS, int(_LEAST_SECONDS / max(1e-6, time.perf_counter() - start))))
    start = time.perf_counter()
    kernel_timing.wait([function(*arguments) for _ in range(calls)])
    return (time.perf_counter() - start) / calls


def _line(case: Case, program: xgpu.Compiled, functions: Mapping[str, Any], rounds: int) -> tuple[str, bool]:
    """Return a line of the table, and whether results are right."""
    given, host = {}, case.draw(case.specs)
    given["ours"] = given["XLA"] = [jnp.asarray(each) for each in host]
    if "dense" in functions:
        given["dense"] = [jnp.asarray(each) for each in case.draw(case.dense_specs)]
    results = {who: each(*given[who]) for who, each in functions.items() if who != "dense"}
    errors = {who: case.error(each, results.get("XLA", each), host) for who, each in results.items()}
    del results
    times: dict[str, list[float]] = {who: [] for who in functions}
    for number in range(rounds + 1):
        for who, function in functions.items():
            seconds = _seconds(function, given[who])
            if number:  # The first round warms up.
                times[who].append(seconds)
    us = {who: statistics.median(each) * 1e6 for who, each in times.items()}
    ours, nan = us["ours"], float("nan")
    cells = f"{ours:10.1f}{us.get('XLA', nan):10.1f}{us.get('XLA', nan) / ours:8.2f}"
    cells += f"{us.get('dense', nan):10.1f}{us.get('dense', nan) / ours:8.2f}"
    cells += f"{case.tflop / ours * 1e6:9.0f}{case.moved(host) / ours / 1e6:8.2f}"
    kinds = [each.emitter for each in program.kernels]
    wrong = " ".join(f"{who} {each:.1e}" for who, each in errors.items())
    is_right = all(each <= _TOLERANCE for each in errors.values())
    products = kinds.count("product")
    return (
        f"{case.name:48}{cells}{'  ok   ' if is_right else '  WRONG'}{products:3} of {len(kinds):<3}{wrong}",
        is_right,
    )


_HEAD = "".join(f"{each:>10}{more:>8}" for each, more in (("XLA", "x ours"), ("dense", "x ours")))
_HEAD = f"{'us, medians':48}{'ours':>10}{_HEAD}{'TFLOP/s':>9}{'TB/s':>8}       kernels  errors"


def _print_times(wanted: Sequence[Case], made: Mapping[str, Mapping[str, Any]], rounds: int) -> int:
    print(_HEAD, flush=True)
    failures = 0
    for case in wanted:
        if case.name not in made["ours"]:
            failures += 1
            continue
        program, function = made["ours"][case.name]
        functions = {"ours": function}
        functions |= {who: each for who in ("XLA", "dense") if (each := made[who].get(case.name)) is not None}
        try:
            line, is_right = _line(case, program, functions, rounds)
        except Exception as error:
            line, is_right = f"{case.name}: FAILED: {problem(error)}", False
        failures += not is_right
        print(line, flush=True)
    return failures


def _compile(wanted: Sequence[Case], schedule: Mapping[str, int]) -> Mapping[str, Mapping[str, Any]]:
    """Return the executables of all cases: ours, dense ones, and XLA's of those that it takes in time.

    Cases that differ in the sizes of groups alone have the same. With a ``schedule`` there are ours alone.
    """
    start = time.perf_counter()
    within = _Within(start + SECONDS)
    same: dict[tuple[object, ...], list[Case]] = {}
    for case in wanted:
        same.setdefault((case.kind, *((each.shape, each.dtype) for each in case.specs)), []).append(case)
    ours = {g[0].name: partial(compile_ours, g[0], schedule) for g in same.values()}
    others = {("dense", g[0].name): (g[0].dense, g[0].dense_specs) for g in same.values()}
    others |= {("XLA", g[0].name): (g[0].function, g[0].specs) for g in same.values()}
    makers = {" ".join(name): partial(within.compile, *each) for name, each in others.items() if not schedule}
    with ThreadPoolExecutor(1) as aside:
        of_xla = aside.submit(compile_all, makers, threads=2)
        made = {f"ours {name}": each for name, each in compile_all(ours).items()}
        print(f"compiled {len(made)} programs in {time.perf_counter() - start:.0f} s", flush=True)
        made |= of_xla.result()
    print(f"and XLA's in {time.perf_counter() - start:.0f} s", flush=True)
    found: dict[str, dict[str, Any]] = {"ours": {}, "dense": {}, "XLA": {}}
    for who, each in found.items():
        for group in same.values():
            if (one := made.get(f"{who} {group[0].name}")) is not None:
                each |= dict.fromkeys((case.name for case in group), one)
    return found


def _add_schedule(parser: argparse.ArgumentParser) -> None:
    def numbers(text: str) -> list[tuple[str, int]]:
        return [(name, int(number)) for name, number in (each.split("=") for each in text.split(","))]

    described = "measure our kernels alone, with numbers such as tile_m=128,groups=2,tile_n=128"
    parser.add_argument("--schedule", type=numbers, help=described)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the cases whose names the words given choose, or all; returns 1 without a GPU or if one fails."""
    parser = parser_of("ragged_products", __doc__)
    _add_schedule(parser)
    arguments = parse(parser, argv)
    wanted = [each for each in cases() if chosen(each.name, arguments.words)]
    if not wanted:
        print(f"ragged_products: error: no case has a name with one of: {', '.join(arguments.words)}", file=sys.stderr)
        return 1
    if not has_gpu("ragged_products"):
        return 1
    schedule = dict(arguments.schedule or [])
    return 1 if _print_times(wanted, _compile(wanted, schedule), arguments.rounds) else 0


if __name__ == "__main__":
    sys.exit(main())
