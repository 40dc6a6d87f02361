"""Programs of one operation, for tests of the operand maps."""

import os
from math import prod

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from xgpu.dtypes import dtype_of_numpy
from xgpu.frontend.mlir_text import parse_module

few = settings(max_examples=1500 if os.environ.get("XGPU_HYPOTHESIS") == "thorough" else 40, deadline=None)

# Empty dimensions are rare, because one of them leaves nothing to compare.
sizes = st.sampled_from([0, *3 * [1, 2, 3, 4, 5]])
shapes = st.lists(sizes, min_size=0, max_size=3).map(tuple)


def type_of(shape, dtype=np.int32):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{dtype_of_numpy(dtype).mlir}>"


def build(op, argument_types, result_type, operand_types=None):
    """A module whose @main applies one operation, written with %0, %1... as operands, to its arguments."""
    arguments = ", ".join(f"%{i}: {argument}" for i, argument in enumerate(argument_types))
    body = f"%r = {op} : ({', '.join(operand_types or argument_types)}) -> {result_type}"
    text = f"module @t {{ func.func @main({arguments}) -> {result_type} {{\n{body}\nreturn %r : {result_type} }} }}"
    module = parse_module(text, "t.mlir")
    return module, module.body.operations[0].regions[0].blocks[0].operations[0].operation


def tagged(shape, start=0):
    """An array whose elements all differ, and differ from those of arrays with another start."""
    return np.arange(start, start + prod(shape), dtype=np.int32).reshape(shape)


def array(values):
    return f"array<i64{': ' if len(values) else ''}{', '.join(map(str, values))}>"
