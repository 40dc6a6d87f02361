"""Block programs: ``from xgpu import block``. Kernels as JAX code on tiles, see docs/block_programs.md.

>>> from xgpu import block
>>> @block.kernel
... def scaled(x):
...     (i,) = block.grid(block.cdiv(x.shape[0], 128))
...     return block.store(x.tile(128, (i,)) * 2, x.shape, (i,))
"""

from xgpu.block_language.numbers import Number
from xgpu.block_language.tracing import (
    Array,
    Output,
    accumulate,
    cdiv,
    dot,
    grid,
    index,
    output,
    plan,
    steps,
    store,
)
from xgpu.interface.block_kernel import Kernel, kernel

__all__ = [
    "Array",
    "Kernel",
    "Number",
    "Output",
    "accumulate",
    "cdiv",
    "dot",
    "grid",
    "index",
    "kernel",
    "output",
    "plan",
    "steps",
    "store",
]
