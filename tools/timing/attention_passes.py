"""Attention's gradients, its decoding, and the shapes of published figures: the tool `attention` with ``--what``.

Gradients are those of one call that returns the result as well; the backward pass is what such a call takes more than
attention alone. Ours are the same bits in each run, which is tried; cuDNN and torch are as they are if nothing is said.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from xgpu.tools import kernel_timing
from xgpu.tools.timing.queued import executable, problem, struct
from xgpu.tools.timing.side_by_side import OURS, PEAK, TORCH, Case, Row, cell, geometric_mean, measure, select

CUDNN, XLA = "cuDNN", "XLA"
_BACKWARD = 2.5
"""The products of a backward pass, of those of a forward pass."""
_TOKENS, _HIDDEN = 16384, 2048
"""Tokens of a batch and elements of a token, where figures are published."""


@dataclass(frozen=True)
class Shape:
    """Attention of bf16, of rows to keys, which heads may share; keys are as many as the rows unless it is said."""

    batch: int
    rows: int
    heads: int
    width: int
    causal: bool = False
    keys: int = 0
    key_heads: int = 0

    @property
    def name(self) -> str:
        """The name in tables."""
        if self.keys:
            return f"{self.batch}, {self.heads} ({self.key_heads}) heads, {self.keys} keys of {self.width}"
        name = f"{self.batch} x {self.rows}, {self.heads} heads of {self.width}"
        return f"{name}, causal" if self.causal else name

    @property
    def arrays(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of queries, and of keys and values."""
        keys = (self.batch, self.keys or self.rows, self.key_heads or self.heads, self.width)
        return (self.batch, self.rows, self.heads, self.width), keys

    @property
    def tflop(self) -> float:
        """The operations of a forward pass, in units of 10^12."""
        keys = self.keys or self.rows
        return 4 * self.batch * self.heads * self.rows * keys * self.width / (2 if self.causal else 1) / 1e12

    @property
    def key_bytes(self) -> int:
        """The bytes of keys and values."""
        return 2 * 2 * math.prod(self.arrays[1])

    def specs(self, gradients: bool) -> tuple[jax.ShapeDtypeStruct, ...]:
        """The operands, before them the result's gradient if there are ``gradients``."""
        q, k = (struct(shape, jnp.bfloat16) for shape in self.arrays)
        return (q, q, k, k) if gradients else (q, k, k)

    def case(self, gradients: bool, others: Sequence[str]) -> Case:
        """Return it as a case."""
        # Heads that share keys are written by JAX's own function.
        library = partial(jax.nn.dot_product_attention, is_causal=self.causal)
        ours: Callable[..., Any] = partial(library, implementation="xla")
        ours = ours if self.keys else partial(written, causal=self.causal)
        peers: dict[str, Callable[..., Any]] = {CUDNN: partial(library, implementation="cudnn"), XLA: ours}
        forms = {who: peers[who] for who in others}
        q, k = self.arrays
        given = {"program": "attention", "shape": q, "keys": k, "dtype": "bfloat16", "causal": self.causal}
        return Case(
            f"{self.name}, {'with gradients' if gradients else 'forward'}",
            with_gradients(ours) if gradients else ours,
            self.specs(gradients),
            {who: with_gradients(each) if gradients else each for who, each in forms.items()},
            tolerance=0.03,
            scaled=False,
            torch={TORCH: given | {"gradients": gradients}},
        )


_BESIDE_XLA = Shape(8, 2048, 32, 128, causal=True)
"""Attention that XLA computes too, which takes long to choose its kernels."""


def written(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Compute attention as programs have it."""
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    if causal:
        s = jnp.where(jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool)), s, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, axis=-1).astype(q.dtype), v)


def with_gradients(attention: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the result's gradient and the operands: the result, and the operands' gradients."""

    def both(g: Any, q: Any, k: Any, v: Any) -> Any:
        result, backward = jax.vjp(attention, q, k, v)
        return (result, *backward(g))

    return both


def _with_causal(*shapes: Shape) -> list[Shape]:
    return [each for shape in shapes for each in (shape, replace(shape, causal=True))]


def training() -> list[Shape]:
    """Return the shapes whose gradients are measured."""
    return _with_causal(
        Shape(8, 2048, 32, 128), Shape(4, 4096, 16, 128), Shape(8, 2048, 32, 64), Shape(4, 2048, 16, 256)
    )


def decoding() -> list[Shape]:
    """Return the shapes of one query of each head."""
    sizes = [
        (8, 32, 8, 4096, 128),
        (8, 32, 8, 32768, 128),
        (1, 32, 8, 8192, 128),
        (1, 32, 8, 131072, 128),
        (64, 32, 8, 4096, 128),
        (8, 32, 8, 4096, 256),
        (16, 16, 16, 8192, 64),
        (8, 32, 32, 4096, 128),
        (32, 8, 1, 16384, 128),
    ]
    return [Shape(b, 1, h, d, keys=keys, key_heads=shared) for b, h, shared, keys, d in sizes]


def _of_paper(keys: int, width: int, causal: bool) -> Shape:
    return Shape(_TOKENS // keys, keys, _HIDDEN // width, width, causal)


def published() -> dict[Shape, tuple[float, float]]:
    """Return what FlashAttention-3 is said to reach on an H100, forward and backward, in TFLOP/s; 0 if unknown."""
    causal = {1024: (364.0, 182.0), 2048: (560.0, 316.0), 4096: (667.0, 444.0), 8192: (685.0, 539.0)}
    figures = {_of_paper(keys, 128, True): each for keys, each in causal.items()}
    return figures | {
        _of_paper(16384, 64, False): (0, 474),
        _of_paper(16384, 128, False): (648, 561),
        _of_paper(16384, 256, False): (756, 0),
        _of_paper(16384, 256, True): (642, 0),
    }


def _measure_passes(tool: str, shapes: Sequence[Shape], words: Sequence[str], rounds: int) -> dict[str, Row] | None:
    """Return rows of attention, and with gradients, by the names of cases; None if there are none."""
    cases = [
        shape.case(gradients, (CUDNN, XLA) if shape == _BESIDE_XLA else (CUDNN,))
        for shape in shapes
        for gradients in (False, True)
    ]
    wanted = select(tool, cases, words)
    return {row.name: row for row in measure(wanted, rounds, _tell)} if wanted else None


def _tell(row: Row) -> None:
    times = " ".join(f"{who} {us:.1f}" for who, us in row.us.items())
    print(f"{row.name:62} {times}  {row.remarks}{'' if row.same_bits else '  other bits in each run'}", flush=True)


def _passes(rows: dict[str, Row], shape: Shape) -> tuple[Row, Row, Row]:
    """Return the rows of a shape: attention, with gradients, and the backward pass, which is what that takes more."""
    forward, both = (rows.get(f"{shape.name}, {each}", Row(shape.name)) for each in ("forward", "with gradients"))
    more = {who: us - forward.us[who] for who, us in both.us.items() if who in forward.us}
    return forward, both, Row(shape.name, {who: us for who, us in more.items() if us > 0})


def _gradients(words: Sequence[str], rounds: int) -> int:
    rows = _measure_passes("attention", training(), words, rounds)
    if rows is None:
        return 1
    print("us of attention with gradients, and of its backward pass; ours has the same bits in each run")
    whos = (OURS, TORCH, CUDNN)
    head = "".join(f"{each:>9}" for each in (*whos, "x cuDNN", "x best"))
    print(f"{'':36}{head}{'| backward':>12}{head[9:]}{'TFLOP/s':>9}{'of peak':>9}{'bits':>7}")
    ratios = []
    for shape in training():
        _, both, backward = _passes(rows, shape)
        if not both.us:
            continue
        line = f"{shape.name:36}"
        for row, width in ((both, 9), (backward, 12)):
            line += cell(row.us.get(OURS, math.nan), width)
            line += "".join(cell(row.us.get(who, math.nan), 9) for who in whos[1:])
            line += cell(row.ratio(CUDNN), 9, 2) + cell(row.ratio(CUDNN, TORCH), 9, 2)
        ratios.append(backward.ratio(CUDNN))
        line += _rates(_BACKWARD * shape.tflop, backward)
        print(f"{line}{'same' if both.same_bits else 'OTHER':>7}")
    print(f"geometric mean, backward beside cuDNN: {geometric_mean(ratios):.3f}")
    for row in (each for each in rows.values() if XLA in each.us):
        print(f"{row.name}: {row.us[XLA]:.0f} us by jax.jit, {cell(row.ratio(XLA), 1, 2)} times ours")
    return 0 if all(row.is_right and OURS in row.us for row in rows.values()) else 1


def _rates(tflop: float, row: Row) -> str:
    rate = tflop * 1e6 / row.us[OURS] if OURS in row.us else math.nan
    return cell(rate, 9, 0) + cell(100 * rate * 1e12 / PEAK, 8, 0) + "%"


def _published(words: Sequence[str], rounds: int) -> int:
    rows = _measure_passes("attention", list(published()), words, rounds)
    if rows is None:
        return 1
    print(f"TFLOP/s, beside what is published of FlashAttention-3 (FA3) on an H100; the peak is {PEAK / 1e12:.0f}")
    print(f"of them; bf16, {_TOKENS} tokens, heads x width = {_HIDDEN}; FA3's are of f16 where not causal, or of 256")
    print(f"{'':44}{'ours':>9}{'of peak':>9}{'cuDNN':>9}{'torch':>9}{'FA3':>9}{'x FA3':>9}{'x cuDNN':>9}")
    for shape, figures in published().items():
        forward, _, backward = _passes(rows, shape)
        for what, row, figure, work in (
            ("forward", forward, figures[0], shape.tflop),
            ("backward", backward, figures[1], _BACKWARD * shape.tflop),
        ):
            if not row.us:
                continue
            ours, *peers = (work * 1e6 / row.us[who] if who in row.us else math.nan for who in (OURS, CUDNN, TORCH))
            line = f"{f'{what} {shape.name}':44}{_rates(work, row)}" + "".join(cell(each, 9, 0) for each in peers)
            line += cell(figure or math.nan, 9, 0) + cell(ours / figure if figure else math.nan, 9, 2)
            print(line + cell(row.ratio(CUDNN), 9, 2))
    return 0 if all(row.is_right and OURS in row.us for row in rows.values()) else 1


def _decode(words: Sequence[str], rounds: int) -> int:
    wanted = select("attention", [each.case(False, (XLA, CUDNN)) for each in decoding()], words)
    if not wanted:
        return 1
    rows = {row.name: row for row in measure(wanted, rounds, _tell)}
    copied = _copy_rate()
    print(f"us of one query; GB/s are of keys and values; a copy has {cell(copied, 1, 0)} GB/s, read and written")
    whos = (OURS, XLA, TORCH, CUDNN)
    print(f"{'':44}{''.join(f'{each:>9}' for each in (*whos, 'x best', 'GB/s', 'of copy'))}")
    for shape in decoding():
        row = rows.get(f"{shape.name}, forward", Row(shape.name))
        if not row.us:
            continue
        rate = shape.key_bytes / row.us[OURS] / 1e3 if OURS in row.us else math.nan
        line = f"{shape.name:44}" + "".join(cell(row.us.get(who, math.nan), 9) for who in whos)
        print(line + cell(row.ratio(*whos[1:]), 9, 2) + cell(rate, 9, 0) + cell(rate / copied, 9, 2))
    return 0 if all(row.is_right and OURS in row.us for row in rows.values()) else 1


def _copy_rate() -> float:
    """Return the GB/s of a copy, read and written, of an array far larger than the cache; not a number if unknown."""
    size = 1 << 30
    try:
        x = jnp.zeros(size // 4, jnp.float32)
        copy = executable(lambda x: x + 1, [struct(x.shape, x.dtype)])
        kernel_timing.wait(copy(x))
        seconds = kernel_timing.kernel_seconds(copy, [x], 10) or [kernel_timing.seconds_per_call(copy, [x])]
        return 2 * size / min(seconds) / 1e9
    except Exception as error:
        print(f"copy: FAILED: {problem(error)}", flush=True)
        return math.nan


PASSES: dict[str, Callable[[Sequence[str], int], int]] = {
    "gradients": _gradients,
    "decode": _decode,
    "published": _published,
}
"""Measurements by the word of the command line: a function of words that choose cases, and of rounds."""


def run(what: str, words: Sequence[str], rounds: int) -> int:
    """Measure one of `PASSES`; returns 1 if results are wrong or missing."""
    start = time.perf_counter()
    failed = PASSES[what](words, rounds)
    print(f"{time.perf_counter() - start:.0f} s")
    return failed
