"""Functions of CHLO, JAX's client dialect, that stay operations of their own, and what is like them."""

from xgpu.hlo.operations import OPERATIONS

BESSEL_I0E = "xgpu.bessel_i0e"
"""The function that CHLO lacks: an operation of our own from the start, and a custom call in what JAX lowers."""
KEPT_FUNCTIONS = (*(name for name in OPERATIONS if name.startswith("chlo.")), BESSEL_I0E)
"""Functions that stay one operation on real numbers, as `expand-math` does better than their expansions here.

In f32, cosh and sinh are within 3 units in the last place instead of 24, acos and asin 1.1 instead of 2.2 (in bf16 0.5
instead of 1.4, as one rounding is enough), erf_inv and erfc 5 instead of 65. digamma, lgamma and the Bessel functions
are a fifth to a tenth as many instructions. docs/accuracy.md has all of them.
"""
TOP_K = "chlo.top_k"
"""The largest elements of rows, for which XLA has kernels of its own that look at a row once: a sort does not."""
