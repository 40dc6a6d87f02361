"""Compares how fast kernels that memory does not bound compute functions, under ``xgpu.jit`` and ``jax.jit``.

Each element is the sum of many values of a function, at arguments apart from each other. First calls run beside each
other, each measurement alone.
"""

import argparse
import json
import math
import multiprocessing
import os
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn
from jax.scipy import special, stats

import xgpu
from xgpu.dtypes import dtype_named
from xgpu.tools import kernel_timing

TYPES = ("f32", "bf16", "f16", "f64")
"""The types that functions can be measured in."""
_ELEMENTS = 1 << 25
_DRAWN = 1 << 20
"""Elements that are drawn, and repeated."""
_VALUES = 16
"""Values of the function that an element is the sum of."""
_WIDE = ("f32", "f64")
"""The types that the normal distribution is defined for in JAX."""
_UNIT = (-1.0, 1.0)
_POSITIVE = (0.1, 9.0)
_AROUND = (-9.0, 9.0)


@dataclass(frozen=True)
class Case:
    """A function of numbers of some types, each of which is drawn from a range."""

    function: Callable[..., Any]
    ranges: tuple[tuple[float, float], ...] = (_AROUND,)
    types: tuple[str, ...] = TYPES

    def total(self, *arrays: Any) -> Any:
        """Return the sum of the function's values at arguments a little larger each time."""
        steps = [(high - low) / (4 * _VALUES) for low, high in self.ranges]
        values = [
            self.function(*(a + a.dtype.type(k * s) for a, s in zip(arrays, steps, strict=True)))
            for k in range(_VALUES)
        ]
        return sum(values[1:], values[0])

    def draw(self, dtype: Any) -> list[Any]:
        """Return arguments, below the last quarter of the ranges."""
        drawn = np.random.default_rng(0)
        ends = [(low, high - (high - low) / 4) for low, high in self.ranges]
        some = [jnp.asarray(drawn.uniform(*each, min(_ELEMENTS, _DRAWN)), dtype) for each in ends]
        return [jnp.tile(each, _ELEMENTS // len(each)) for each in some]


def _black_scholes(price: Any, strike: Any, years: Any) -> Any:
    spread = 0.3 * jnp.sqrt(years)
    first = (jnp.log(price / strike) + (0.02 + 0.045) * years) / spread
    return price * stats.norm.cdf(first) - strike * jnp.exp(-0.02 * years) * stats.norm.cdf(first - spread)


def _arc_distance(a: Any, b: Any, c: Any, d: Any) -> Any:
    half = jnp.sin((a - b) / 2) ** 2 + jnp.cos(a) * jnp.cos(b) * jnp.sin((c - d) / 2) ** 2
    return 2 * jnp.arctan2(jnp.sqrt(half), jnp.sqrt(1 - half))


def _quaternion(a: Any, b: Any, c: Any) -> Any:
    length = jnp.sqrt(a * a + b * b + c * c)
    half = 0.5 * length
    return jnp.cos(half) + (a + b + c) * jnp.sin(half) / length


_HLO = {
    "acos": Case(lax.acos, (_UNIT,)),
    "acosh": Case(lax.acosh, ((1.0, 9.0),)),
    "asin": Case(lax.asin, (_UNIT,)),
    "asinh": Case(lax.asinh),
    "atan": Case(lax.atan),
    "atan2": Case(lax.atan2, (_AROUND, _AROUND)),
    "atanh": Case(lax.atanh, (_UNIT,)),
    "bessel_i0e": Case(lax.bessel_i0e),
    "bessel_i1e": Case(lax.bessel_i1e),
    "cbrt": Case(lax.cbrt),
    "cos": Case(lax.cos),
    "cosh": Case(lax.cosh),
    "digamma": Case(lax.digamma, (_POSITIVE,)),
    "div": Case(lax.div, (_AROUND, _AROUND)),
    "erf": Case(lax.erf, ((-3.0, 3.0),)),
    "erf_inv": Case(lax.erf_inv, (_UNIT,)),
    "erfc": Case(lax.erfc, ((-3.0, 3.0),)),
    "exp": Case(lax.exp),
    "exp2": Case(lax.exp2),
    "expm1": Case(lax.expm1),
    "lgamma": Case(lax.lgamma, (_POSITIVE,)),
    "log": Case(lax.log, (_POSITIVE,)),
    "log1p": Case(lax.log1p, (_POSITIVE,)),
    "logistic": Case(lax.logistic),
    "pow": Case(lax.pow, (_POSITIVE, (-3.0, 3.0))),
    "rem": Case(lax.rem, (_AROUND, (1.0, 9.0))),
    "rsqrt": Case(lax.rsqrt, (_POSITIVE,)),
    "sin": Case(lax.sin),
    "sinh": Case(lax.sinh),
    "sqrt": Case(lax.sqrt, (_POSITIVE,)),
    "tan": Case(lax.tan),
    "tanh": Case(lax.tanh, ((-3.0, 3.0),)),
}
_COMPOSED = {
    "reciprocal": Case(lambda x: 1 / x, (_POSITIVE,)),
    "third": Case(lambda x: x / x.dtype.type(3)),
    "floor_divide": Case(jnp.floor_divide, (_AROUND, (1.0, 9.0))),
    "remainder": Case(jnp.remainder, (_AROUND, (1.0, 9.0))),
    "fmod_2pi": Case(lambda x: jnp.remainder(x, x.dtype.type(2 * math.pi))),
    "hypot": Case(jnp.hypot, (_AROUND, _AROUND)),
    "logaddexp": Case(jnp.logaddexp, (_AROUND, _AROUND)),
    "log2": Case(jnp.log2, (_POSITIVE,)),
    "log10": Case(jnp.log10, (_POSITIVE,)),
    "sinc": Case(jnp.sinc),
    "softplus": Case(nn.softplus),
    "silu": Case(nn.silu),
    "gelu": Case(nn.gelu, ((-3.0, 3.0),)),
    "gelu_exact": Case(partial(nn.gelu, approximate=False), ((-3.0, 3.0),)),
    "mish": Case(nn.mish),
    "elu": Case(nn.elu),
    "selu": Case(nn.selu),
    "log_sigmoid": Case(nn.log_sigmoid),
    "soft_sign": Case(nn.soft_sign),
    "logit": Case(special.logit, ((0.01, 0.99),)),
    "entr": Case(special.entr, (_POSITIVE,)),
    "ndtr": Case(special.ndtr, ((-3.0, 3.0),), _WIDE),
    "ndtri": Case(special.ndtri, ((0.01, 0.99),), _WIDE),
    "log_ndtr": Case(special.log_ndtr, ((-3.0, 3.0),), _WIDE),
    "xlogy": Case(special.xlogy, (_POSITIVE, _POSITIVE)),
    "i0": Case(special.i0),
    "black_scholes": Case(_black_scholes, (_POSITIVE, _POSITIVE, _POSITIVE), _WIDE),
    "arc_distance": Case(_arc_distance, ((-1.5, 1.5),) * 4),
    "quaternion": Case(_quaternion, (_AROUND,) * 3),
}
CASES = _HLO | _COMPOSED
"""Functions by name: those that HLO has, and some that libraries compose of them."""


@dataclass(frozen=True)
class Rate:
    """Values per second, in thousand millions, of a function in a type."""

    name: str
    type: str
    ours: float = math.nan
    theirs: float = math.nan
    failure: str = ""

    @property
    def ratio(self) -> float:
        """The speedup of xgpu.jit."""
        return self.ours / self.theirs

    def line(self) -> str:
        """Return a line of the table."""
        head = f"{self.name:16}{self.type:>6}"
        return (
            f"{head}  {self.failure}"
            if self.failure
            else f"{head}{self.ours:10.1f}{self.theirs:10.1f}{self.ratio:8.2f}"
        )


def measure(name: str, type_: str, alone: Any) -> Rate:
    """Measure a function in a type, with nothing beside it once it is compiled."""
    case = CASES[name]

    def total(*arrays: Any) -> Any:
        return case.total(*arrays)

    total.__name__ = f"{name}_{type_}"
    try:
        arguments = case.draw(dtype_named(type_).numpy)
        ours, theirs = xgpu.jit(total), jax.jit(total)
        kernel_timing.wait([ours(*arguments), theirs(*arguments)])
        with alone:
            speeds = kernel_timing.compare(ours, theirs, arguments, 3)
    except Exception as error:
        return Rate(name, type_, failure=f"{type(error).__name__}: {error}".splitlines()[0][:150])
    values = _ELEMENTS * _VALUES / 1e9
    return Rate(name, type_, values / speeds.ours, values / speeds.theirs)


_ALONE: list[Any] = []
"""The lock of measurements, in a process of the pool."""


def _begin(lock: Any) -> None:
    """Keep the lock in a process that begins."""
    _ALONE.append(lock)


def _measure(case: tuple[str, str]) -> Rate:
    return measure(*case, _ALONE[0])


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, the slowest first; returns 1 if a function failed."""
    parser = argparse.ArgumentParser("elementwise", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("words", nargs="*", help="measure only functions with one of these names")
    parser.add_argument("--types", default=",".join(TYPES), help="types, by commas; all if left out")
    parser.add_argument("--jobs", type=int, default=8, help="processes at one time; 8 if left out")
    parser.add_argument("--out", type=Path, help="where the figures go, as lines of JSON")
    arguments = parser.parse_args(argv)
    names = [name for name in CASES if not arguments.words or name in arguments.words]
    cases = [(name, type_) for type_ in arguments.types.split(",") for name in names if type_ in CASES[name].types]
    # For the processes of the pool.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ["JAX_ENABLE_X64"] = "true"
    context = multiprocessing.get_context("spawn")
    with context.Pool(arguments.jobs, _begin, (context.Lock(),)) as pool:
        rates = []
        for rate in pool.imap_unordered(_measure, sorted(cases, key=lambda each: zlib.crc32(str(each).encode()))):
            rates.append(rate)
            print(rate.line(), file=sys.stderr, flush=True)
    if arguments.out:
        arguments.out.write_text("".join(json.dumps(asdict(rate)) + "\n" for rate in rates))
    _print(rates)
    return 1 if any(rate.failure for rate in rates) else 0


def _print(rates: Sequence[Rate]) -> None:
    """Print all rates, the slowest first, those that failed last, and the geometric mean of the ratios of each type."""
    print(f"{'10^9 values/s':16}{'type':>6}{'ours':>10}{'XLA':>10}{'ratio':>8}")
    good = sorted((rate for rate in rates if not rate.failure), key=lambda rate: rate.ratio)
    for rate in [*good, *(rate for rate in rates if rate.failure)]:
        print(rate.line())
    for type_ in TYPES:
        ratios = [rate.ratio for rate in good if rate.type == type_]
        if ratios:
            mean, slow = math.exp(sum(map(math.log, ratios)) / len(ratios)), sum(ratio < 0.95 for ratio in ratios)
            print(f"{type_}: geometric mean {mean:.2f}, {slow} of {len(ratios)} below 0.95")


if __name__ == "__main__":
    sys.exit(main())
