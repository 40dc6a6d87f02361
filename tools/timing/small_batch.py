"""Programs of Mirage's table for 1 to 16 tokens: ``xgpu.jit`` beside ``jax.jit`` and ``torch.compile``, on a GPU.

Gated MLP (sizes of Llama-2-7B), RMSNorm + linear, a linear layer with an adapter of low rank, attention of one query to
4,096 keys that heads share in groups (Llama-3-8B), and the same without groups, of normalised queries and keys. All of
bf16. The last column of each line is our speed over that of the best of the others.
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

BATCHES = (1, 4, 8, 16)
MODES = {"torch": "default", "torch, tuned": "max-autotune-no-cudagraphs"}
"""The modes of ``torch.compile``, by the names of columns."""
XLA = "XLA"
_WIDTH, _INNER, _RANK = 4096, 11008, 16
_HEADS, _KEY_HEADS, _KEYS, _HEAD = 32, 8, 4096, 128
_EPSILON = 1e-5


def gated_mlp(x: Any, gate: Any, up: Any, down: Any) -> Any:
    """Compute two products with a gate, and the product after them."""
    return (jax.nn.silu(x @ gate) * (x @ up)) @ down


def rms_norm(x: Any, scale: Any) -> Any:
    """Divide rows by their root mean squares."""
    wide = x.astype(jnp.float32)
    return (wide * lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + _EPSILON) * scale).astype(x.dtype)


def norm_linear(x: Any, scale: Any, w: Any) -> Any:
    """Compute a product of normalised rows."""
    return rms_norm(x, scale) @ w


def adapters(x: Any, w: Any, a: Any, b: Any) -> Any:
    """Compute a product and one of low rank beside it."""
    return x @ w + (x @ a) @ b


def decode(q: Any, k: Any, v: Any) -> Any:
    """Compute attention of a query of each head, to keys that heads may share."""
    return jax.nn.dot_product_attention(q, k, v, implementation="xla")


def norm_decode(q: Any, k: Any, v: Any, of_q: Any, of_k: Any) -> Any:
    """Compute attention of normalised queries to normalised keys."""
    return decode(rms_norm(q, of_q), rms_norm(k, of_k), v)


def _case(kind: str, rows: int, modes: Sequence[str]) -> Case:
    """Return one program for some rows."""
    width, inner = _WIDTH, _INNER
    sizes: dict[str, Any] = {"rows": rows, "width": width, "inner": width}
    attention = {"rows": rows, "heads": _HEADS, "keys": _KEYS, "width": _HEAD}
    q = (rows, 1, _HEADS, _HEAD)
    of_group, of_head = ((rows, _KEYS, heads, _HEAD) for heads in (_KEY_HEADS, _HEADS))
    wide, square, flat = (rows, width), (width, width), (width,)
    low = ((width, _RANK), (_RANK, width))
    programs: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], dict[str, Any]]] = {
        "gated MLP": (
            gated_mlp,
            (wide, (width, inner), (width, inner), (inner, width)),
            sizes | {"program": "gated_mlp", "inner": inner},
        ),
        "RMSNorm + linear": (norm_linear, (wide, flat, square), sizes | {"program": "norm_linear"}),
        "low-rank adapter": (adapters, (wide, square, *low), sizes | {"program": "adapters", "rank": _RANK}),
        "grouped-query attention": (
            decode,
            (q, of_group, of_group),
            attention | {"program": "decode", "key_heads": _KEY_HEADS, "norm": False},
        ),
        "QK-norm attention": (
            norm_decode,
            (q, of_head, of_head, (_HEAD,), (_HEAD,)),
            attention | {"program": "decode", "key_heads": _HEADS, "norm": True},
        ),
    }
    function, shapes, given = programs[kind]
    specs = tuple(struct(shape, jnp.bfloat16) for shape in shapes)
    return Case(
        f"{kind}, {rows}",
        function,
        specs,
        {XLA: function},
        # Attention's numbers have no scale, and the others are rounded to bf16 up to three times.
        tolerance=0.03,
        scaled="attention" not in kind,
        torch={who: given | {"mode": MODES[who]} for who in modes},
    )


KINDS = ("gated MLP", "RMSNorm + linear", "low-rank adapter", "grouped-query attention", "QK-norm attention")
"""The programs."""


def cases(modes: Sequence[str] = ("torch",), products: str = "auto") -> list[Case]:
    """Return all cases, beside torch in some modes, with the option `products` of xgpu."""
    options = xgpu.Options(products=products)
    return [replace(_case(kind, rows, modes), options=options) for kind in KINDS for rows in BATCHES]


def _tell(whos: Sequence[str], row: Row) -> None:
    cells = "".join(cell(row.us.get(who, math.nan), 13) for who in (OURS, XLA, *whos))
    print(f"{row.name:32}{cells}{cell(row.ratio(XLA, *whos), 8, 2)}  {row.remarks}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the cases whose names the words given choose, or all; returns 1 without a GPU or if one is wrong."""
    parser = parser_of("small_batch", __doc__)
    parser.add_argument(
        "--tuned", action="store_true", help="torch.compile measures what it chooses from, too: minutes"
    )
    parser.add_argument("--products", default="auto", choices=("auto", "kernels", "all"), help="auto")
    parser.add_argument("--seconds", type=float, default=100.0, help="begin no case after this time; 100")
    parser.set_defaults(rounds=1)
    arguments = parse(parser, argv)
    whos = list(MODES) if arguments.tuned else ["torch"]
    wanted = select("small_batch", cases(whos, arguments.products), arguments.words)
    if not wanted or not started("small_batch"):
        return 1
    limits = Limits(arguments.seconds * 0.55, arguments.seconds)
    print(f"{'us':32}{''.join(f'{each:>13}' for each in (OURS, XLA, *whos))}{'x best':>8}", flush=True)
    rows = measure(wanted, arguments.rounds, partial(_tell, whos), limits)
    for kind in [each for each in KINDS if any(row.name.startswith(each) for row in rows)]:
        ratios = [row.ratio(XLA, *whos) for row in rows if row.name.startswith(kind)]
        print(f"{kind:32}{cell(geometric_mean(ratios), 8, 2)}")
    every = [row.ratio(XLA, *whos) for row in rows]
    print(f"geometric mean of {sum(each > 0 for each in every)}, beside the best of the others: ", end="")
    print(cell(geometric_mean(every), 1, 3))
    return 0 if all(row.is_right and OURS in row.us for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
