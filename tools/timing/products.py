"""Matrix products on a GPU beside XLA: batches, types, integers, odd sizes, epilogues and prologues, and chains.

A word such as ``odd`` selects a group. XLA's are the best of what it measures: cuBLAS, cuBLASLt and kernels of its own.
What follows a product, or is computed before it, costs what the product with it takes more than the plain one.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import xgpu
from xgpu.tools.timing.queued import parse, parser_of, struct
from xgpu.tools.timing.side_by_side import OURS, Case, Limits, Row, cell, geometric_mean, measure, select, started

XLA = "XLA"
GROUPS = ("batches", "types", "integers", "odd", "epilogues", "chains")
_BF16, _F32 = jnp.bfloat16, jnp.float32
_ROWS = ((1,), (1,))
_LAYOUTS = {"mk-kn": ((1,), (0,)), "km-kn": ((0,), (0,)), "mk-nk": _ROWS, "km-nk": ((0,), (1,))}
_KEPT = 0.9
"""The part that dropout keeps, about what random masks of `side_by_side` have."""

type _Array = tuple[tuple[int, ...], Any]


def _case(name: str, function: Callable[..., Any], *arrays: _Array, **more: Any) -> Case:
    return Case(name, function, tuple(struct(*each) for each in arrays), {XLA: function}, **more)


def _dot(x: Any, y: Any, contract: Any = ((1,), (0,)), result: Any = _BF16) -> Any:
    return lax.dot_general(x, y, (contract, ((), ())), preferred_element_type=result)


def _batches() -> list[Case]:
    sizes = [(512, 128, 128, 128), (64, 512, 64, 512)]
    return [
        _case(f"batches: {b} of {m} x {n} x {k}", jnp.matmul, ((b, m, k), _BF16), ((b, k, n), _BF16))
        for b, m, n, k in sizes
    ]


def _types() -> list[Case]:
    size = 8192
    kinds = {"s8": (jnp.int8, jnp.int32), "f8": (jnp.float8_e4m3fn, _BF16), "f32, as tf32": (_F32, _F32)}
    # Of f8 libraries add up some sums of fewer bits; of whole numbers all are exact.
    tolerances = {"s8": 0.0, "f8": 0.05}
    return [
        _case(
            f"types: {size}^3 {name}",
            partial(_dot, contract=_ROWS, result=result),
            *[((size, size), dtype)] * 2,
            scaled=name not in tolerances,
            tolerance=tolerances.get(name, 0.01),
        )
        for name, (dtype, result) in kinds.items()
    ]


def _integers() -> list[Case]:
    """Return products for which XLA has no library, by both layouts of the right operand."""
    m, k, n = 2048, 3001, 2048
    return [
        _case(
            f"integers: {m} x {k} x {n} {name} {layout}",
            partial(_dot, contract=_LAYOUTS[layout], result=dtype),
            ((m, k), dtype),
            ((k, n) if layout == "mk-kn" else (n, k), dtype),
            scaled=False,
            tolerance=0.0,
        )
        for name, dtype in (("u8", jnp.uint8), ("s16", jnp.int16), ("s32", jnp.int32))
        for layout in ("mk-kn", "mk-nk")
    ]


def _odd() -> list[Case]:
    cases = [
        _case(f"odd: {m} x {n} x {k}", jnp.matmul, ((m, k), _BF16), ((k, n), _BF16))
        for m, n, k in ((4095, 4097, 4093), (405, 435, 63))
    ]
    m, n, k = 4096, 4097, 4093
    for name, contract in _LAYOUTS.items():
        x, y = ((m, k) if contract[0] == (1,) else (k, m)), ((k, n) if contract[1] == (0,) else (n, k))
        cases.append(_case(f"odd: {m} x {n} x {k} {name}", partial(_dot, contract=contract), (x, _BF16), (y, _BF16)))
    return cases


_SQUARE: _Array = ((4096, 4096), _BF16)
_FLAT: _Array = ((4096,), _BF16)
_FLOAT8: _Array = ((8192, 8192), jnp.float8_e4m3fn)
_PLAIN, _PLAIN_F8 = "epilogues: none", "epilogues: none, f8"


def _epilogues() -> list[Case]:
    def f8(x: Any, y: Any, *scale: Any) -> Any:
        sums = _dot(x, y, _ROWS, _F32)
        return (sums * scale[0] * scale[1] if scale else sums).astype(_BF16)

    few: dict[str, tuple[Callable[..., Any], tuple[_Array, ...]]] = {
        "bias": (lambda x, w, b: x @ w + b, (_FLAT,)),
        "gelu": (lambda x, w: jax.nn.gelu(x @ w), ()),
        "silu": (lambda x, w: jax.nn.silu(x @ w), ()),
        "bias, gelu": (lambda x, w, b: jax.nn.gelu(x @ w + b), (_FLAT,)),
        "residual": (lambda x, w, y: x @ w + y, (_SQUARE,)),
        "cast to f32": (lambda x, w: _dot(x, w, result=_F32), ()),
        "dropout by a mask": (
            lambda x, w, keep: jnp.where(keep, (x @ w) / _KEPT, 0).astype(_BF16),
            ((_SQUARE[0], jnp.bool_),),
        ),
        "factors of rows": (lambda x, w, r: (_dot(x, w, result=_F32) * r[:, None]).astype(_BF16), ((_FLAT[0], _F32),)),
    }
    cases = [_case(_PLAIN, jnp.matmul, _SQUARE, _SQUARE)]
    cases += [_case(f"epilogues: {name}", each, _SQUARE, _SQUARE, *more) for name, (each, more) in few.items()]

    def dequantised(x: Any, w: Any, scale: Any) -> Any:
        return x @ (w.astype(_BF16) * scale)

    bytes_: _Array = (_SQUARE[0], jnp.int8)
    scale: _Array = ((), _F32)
    inexact = {"scaled": False, "tolerance": 0.05}
    return [
        *cases,
        _case("epilogues: weights of int8, scaled", dequantised, _SQUARE, bytes_, _FLAT),
        _case(_PLAIN_F8, f8, _FLOAT8, _FLOAT8, **inexact),
        _case("epilogues: f8, scaled", f8, _FLOAT8, _FLOAT8, scale, scale, **inexact),
    ]


def _chains() -> list[Case]:
    tokens, width, inner, rank = 4096, 4096, 11008, 16
    x, wide, deep = (((m, n), _BF16) for m, n in ((tokens, width), (width, inner), (inner, width)))

    def gated(x: Any, gate: Any, up: Any) -> Any:
        return jax.nn.silu(x @ gate) * (x @ up)

    return [
        _case("chains: bias, gelu", lambda x, w, b: jax.nn.gelu(x @ w + b), x, wide, ((inner,), _BF16)),
        _case(
            "chains: low-rank adapter",
            lambda x, w, a, b: x @ w + (x @ a) @ b,
            *(x, _SQUARE, ((width, rank), _BF16), ((rank, width), _BF16)),
        ),
        _case("chains: gated unit", gated, x, wide, wide),
        _case("chains: gated MLP", lambda x, gate, up, down: gated(x, gate, up) @ down, x, wide, wide, deep),
    ]


def cases(products: str = "kernels") -> list[Case]:
    """Return all cases, with the option `products` of xgpu."""
    every = [*_batches(), *_types(), *_integers(), *_odd(), *_epilogues(), *_chains()]
    return [replace(case, options=xgpu.Options(products=products)) for case in every]


def _base(row: Row) -> str:
    """Return the name of the product without what is before or after it."""
    return _PLAIN_F8 if "f8" in row.name else _PLAIN


def _tell(row: Row) -> None:
    cells = "".join(cell(row.us.get(who, math.nan), 10) for who in (OURS, XLA))
    bits = "" if row.same_bits else "  other bits in each run"
    print(f"{row.name:44}{cells}{cell(row.ratio(XLA), 8, 3)}  {row.remarks}{bits}", flush=True)


def _print_overheads(rows: Sequence[Row]) -> None:
    """Print what epilogues and prologues cost, of the time of the plain product."""
    known = {row.name: row for row in rows}
    if not any(base in known for base in (_PLAIN, _PLAIN_F8)):
        return
    print(f"{'over the plain product, %':44}{OURS:>10}{XLA:>10}")
    for row in rows:
        plain = known.get(_base(row))
        if plain is None or plain is row or not row.name.startswith("epilogues"):
            continue
        nan = math.nan
        over = (100 * (row.us.get(who, nan) / plain.us.get(who, nan) - 1) for who in (OURS, XLA))
        print(f"{row.name:44}" + "".join(cell(each, 10) for each in over))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the cases whose names the words given choose, or all; returns 1 without a GPU or if one is wrong."""
    parser = parser_of("products", __doc__)
    parser.add_argument("--products", default="kernels", choices=("auto", "kernels", "all"), help="kernels")
    parser.add_argument("--seconds", type=float, default=100.0, help="begin no case after this time; 100")
    parser.set_defaults(rounds=1)
    arguments = parse(parser, argv)
    wanted = select("products", cases(arguments.products), arguments.words)
    if not wanted or not started("products"):
        return 1
    limits = Limits(arguments.seconds * 0.7, arguments.seconds)
    print(f"{'us':44}{OURS:>10}{XLA:>10}{'ratio':>8}", flush=True)
    rows = measure(wanted, arguments.rounds, _tell, limits)
    _print_overheads(rows)
    for group in GROUPS:
        if ratios := [row.ratio(XLA) for row in rows if row.name.startswith(group)]:
            print(f"{group}: geometric mean beside XLA {cell(geometric_mean(ratios), 1, 3)}")
    return 0 if all(row.is_right and OURS in row.us for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
