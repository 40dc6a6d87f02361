"""Matrix products, and PTX instructions, in the loop language on a GPU: right or not, and times beside XLA's.

Cases named ``loops`` are the same product without tensor cores (``#no_mma``). Instructions are only compared.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp

from xgpu.loop_language.build import build
from xgpu.loop_language.parser import parse
from xgpu.tools.timing.queued import Case, measure

_PRODUCT = """fn product(A: bf16[{size}, {size}], B: bf16[{size}, {size}],{bias} out C: bf16[{size}, {size}]) {{
  par {size} / {bm} bm {{ par {size} / {bn} bn {{
    new sum: f32[{bm}, {bn}]
    par {bm} i {{ par {bn} j {{ sum[i, j] = 0.0 }} }}
    seq {size} / {bk} k{stages} {{
      new a: bf16[{bm}, {bk}]
      new b: bf16[{bk}, {bn}]
      par {bm} i {{ par {bk} c {{ a[i, c] = A[bm * {bm} + i, k * {bk} + c] }} }}
      par {bk} c {{ par {bn} j {{ b[c, j] = B[k * {bk} + c, bn * {bn} + j] }} }}
      par {bm} i {mma} {{ par {bn} j {{ seq {bk} c {{ sum[i, j] += f32(a[i, c]) * f32(b[c, j]) }} }} }}
    }}
    par {bm} i {{ par {bn} j {{ C[bm * {bm} + i, bn * {bn} + j] = {result} }} }}
  }} }}
}}"""

_PLAIN = """fn product(A: f32[{size}, {size}], B: f32[{size}, {size}], out C: f32[{size}, {size}]) {{
  par {size} i {{ par {size} j {{
    C[i, j] = 0.0
    seq {size} k {{ C[i, j] += A[i, k] * B[k, j] }}
  }} }}
}}"""

_TILED = """fn product(A: f32[{size}, {size}], B: f32[{size}, {size}], out C: f32[{size}, {size}]) {{
  par {size} / 64 bm {{ par {size} / 64 bn {{
    new sum: f32[64, 64]
    par 64 i {{ par 64 j {{ sum[i, j] = 0.0 }} }}
    seq {size} / 16 k{stages} {{
      new a: f32[64, 16]
      new b: f32[16, 64]
      par 64 i {{ par 16 c {{ a[i, c] = A[bm * 64 + i, k * 16 + c] }} }}
      par 16 c {{ par 64 j {{ b[c, j] = B[k * 16 + c, bn * 64 + j] }} }}
      par 64 i {{ par 64 j {{ seq 16 c {{ sum[i, j] += a[i, c] * b[c, j] }} }} }}
    }}
    par 64 i {{ par 64 j {{ C[bm * 64 + i, bn * 64 + j] = sum[i, j] }} }}
  }} }}
}}"""

_IN_SHARED = _TILED.replace("new sum: f32[64, 64]", "new sum: f32[64, 64] #shared")

_WARP_SUM = """fn sums(A: f32[4096, 32], out B: f32[4096]) { par 4096 w { fully par 32 l {
  new sum: f32
  sum = A[w, l]
  static 5 k {
    let before = sum
    asm("shfl.sync.bfly.b32 $0, $1, $2, 31, 0xffffffff;", before, u32(16 >> k)) -> other: f32
    sum += other
  }
  if l == 0 { B[w] = sum }
} } }"""

_WARP_PRODUCT = """fn f(A: bf16[64, 16, 16], B: bf16[64, 16, 8], out D: f32[64, 16, 8]) { par 64 w { fully par 32 l {
  let r = l / 4
  let c = l % 4 * 2
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
      " {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};",
    pair(A[w, r, c], A[w, r, c + 1]), pair(A[w, r + 8, c], A[w, r + 8, c + 1]),
    pair(A[w, r, c + 8], A[w, r, c + 9]), pair(A[w, r + 8, c + 8], A[w, r + 8, c + 9]),
    pair(B[w, c, r], B[w, c + 1, r]), pair(B[w, c + 8, r], B[w, c + 9, r]),
    f32(0), f32(0), f32(0), f32(0)) -> (d0: f32, d1: f32, d2: f32, d3: f32)
  D[w, r, c] = d0
  D[w, r, c + 1] = d1
  D[w, r + 8, c] = d2
  D[w, r + 8, c + 1] = d3
} } }"""

_OTHER_INSTRUCTIONS = """fn f(A: f32[100, 8], out B: f32[100, 8]) { par 100 w { fully par 8 l #align(32) {
  asm("{ .reg .f32 t; add.f32 t, $1, $1; ex2.approx.ftz.f32 $0, t; }", A[w, l]) -> x: f32
  asm("mov.b64 {$0, $1}, $2;", f64(x)) -> (low: u32, high: u32)
  asm("mov.b64 $0, {$1, $2};", low, high) -> d: f64
  B[w, l] = f32(d)
} } }"""


def _program(text: str) -> str:
    return str(build(parse(text)).module)


def product(size: int, bm: int, bn: int, bk: int, stages: int = 0, mma: str = "#mma", relu: bool = False) -> Case:
    """Return a product of matrices of ``size`` rows and columns, in tiles; without ``stages`` these are chosen."""
    text = _PRODUCT.format(
        size=size,
        bm=bm,
        bn=bn,
        bk=bk,
        mma=mma,
        bias=f" bias: f32[{size}]," if relu else "",
        stages=f" #stages({stages})" if stages else "",
        result=f"bf16(max(sum[i, j] + bias[bn * {bn} + j], 0.0))" if relu else "bf16(sum[i, j])",
    )

    def reference(a: Any, b: Any, *bias: Any) -> Any:
        y = jnp.dot(a, b, preferred_element_type=jnp.float32)
        return (jnp.maximum(y + bias[0], 0) if relu else y).astype(jnp.bfloat16)

    kind = "loops" if mma == "#no_mma" else "product + relu" if relu else "product"
    name = f"{kind} {size}^3, {bm} x {bn} x {bk}, stages {stages or 'any'}"
    # Both round sums of f32, taken in different orders, to bf16.
    return Case(name, _program(text), reference, 0.01, 2 * size**3 / 1e12)


def exact_product(name: str, text: str, size: int) -> Case:
    """Return a product of f32 by loops, without tensor cores, whose sums are rounded as f32."""

    def reference(a: Any, b: Any) -> Any:
        return jnp.dot(a, b, precision="highest")

    # The same sums in another order.
    return Case(f"f32: {name} {size}^3", _program(text), reference, 1e-4, 2 * size**3 / 1e12)


def _instructions(name: str, text: str, reference: Callable[..., Any]) -> Case:
    # Sums of f32 in another order, or an exponential of two roundings.
    return Case(f"asm: {name}", _program(text), reference, 1e-5, scaled=False)


def cases() -> list[Case]:
    """Return all cases."""
    return [
        _instructions("sum of a warp by shuffles", _WARP_SUM, lambda a: a.sum(axis=1)),
        _instructions(
            "mma.sync of fragments",
            _WARP_PRODUCT,
            lambda a, b: jnp.einsum("wmk,wkn->wmn", a, b, preferred_element_type=jnp.float32),
        ),
        _instructions("ex2.approx, and f64 in halves", _OTHER_INSTRUCTIONS, lambda a: jnp.exp2(2 * a)),
        product(4096, 128, 256, 64, 3),
        product(4096, 128, 256, 64),
        product(4096, 256, 128, 64, 4),
        product(4096, 128, 128, 64, 6),
        product(4096, 64, 256, 64, 4),
        product(4096, 128, 256, 64, 3, relu=True),
        product(4096, 128, 256, 64, 2),
        product(4096, 128, 256, 32, 4),
        product(4096, 128, 128, 32, 4),
        product(1024, 64, 64, 32, mma="#no_mma"),
        *(exact_product("plain", _PLAIN.format(size=size), size) for size in (256, 512, 1024, 2048)),
        exact_product("tiled", _TILED.format(size=2048, stages=""), 2048),
        exact_product("tiled, sums in shared memory", _IN_SHARED.format(size=2048, stages=""), 2048),
        exact_product("tiled, two stages", _TILED.format(size=2048, stages=" #stages(2)"), 2048),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the cases whose names the words given choose, or all; returns 1 without a GPU or if one is wrong."""
    return measure("loop_products", __doc__, cases(), argv)


if __name__ == "__main__":
    sys.exit(main())
