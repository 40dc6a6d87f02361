"""Programs of one operation, what they mean, and what the operand maps say that they read.

What a program means is said by StableHLO's own interpreter, which takes microseconds; for one program in fifty, XLA
must say the same.
"""

import random
import zlib
from collections.abc import Sequence
from functools import cache, reduce
from math import prod

import numpy as np

from tests.py.indexing.indexing_strategies import holds
from xgpu import ir
from xgpu.dtypes import dtype_of_numpy
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.runtime.reference import Reference

ONE_IN = 50
"""Which part of the programs XLA compiles too."""


def type_of(shape, dtype=np.int32):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{dtype_of_numpy(dtype).mlir}>"


def tagged(shape, start=0):
    """An array whose elements all differ, and differ from those of arrays with another start."""
    return np.arange(start, start + prod(shape), dtype=np.int32).reshape(shape)


def array(values):
    return f"array<i64{': ' if len(values) else ''}{', '.join(map(str, values))}>"


def random_shape(rng: random.Random, least=0, most=3):
    """A shape of such a rank; empty dimensions are rare, because one of them leaves nothing to compare."""
    return tuple(rng.choice([1, 2, 3, 4, 5, *[1, 2, 3, 4, 5] * 2, 0]) for _ in range(rng.randint(least, most)))


@cache
def _context():
    return ir.make_context()


def build(op, argument_types, result_type, operand_types=None):
    """A module whose @main applies one operation, written with %0, %1... as operands, to its arguments."""
    arguments = ", ".join(f"%{i}: {argument}" for i, argument in enumerate(argument_types))
    body = f"%r = {op} : ({', '.join(operand_types or argument_types)}) -> {result_type}"
    return parse(f"func.func @main({arguments}) -> {result_type} {{\n{body}\nreturn %r : {result_type} }}")


def parse(function):
    """The module of one function, and the function's first operation; all in one context, which is slow to make."""
    parsed = ir.Operation.parse(function, source_name="t.mlir", context=_context())
    module = ir.Module.create(parsed.location)
    module.operation.attributes["sym_name"] = ir.StringAttr.get("t", _context())
    module.body.append(parsed)
    return module, module.body.operations[0].regions[0].blocks[0].operations[0].operation


def interpreted(op_text, operands: Sequence[np.ndarray], shape):
    """The result that StableHLO's interpreter gives.

    It takes unsigned indices for signed ones, so they are given in a type that is wide enough, but for those that are
    out of bounds anyway.
    """
    most = np.uint64(2**63 - 1)
    signed = [np.minimum(x.astype(np.uint64), most).astype(np.int64) if x.dtype.kind == "u" else x for x in operands]
    types = [type_of(x.shape, x.dtype) for x in signed]
    module, _ = build(op_text, types, type_of(shape, operands[0].dtype))
    with module.context, ir.Location.unknown():
        attributes = [
            ir.DenseElementsAttr.get(np.ascontiguousarray(x), type=ir.Type.parse(text))
            for x, text in zip(signed, types, strict=True)
        ]
        (result,) = ir.stablehlo.eval_module(module, attributes)
    return np.array(result)


def check(op_text, operands, shape, read, expected=None, xla=True):
    """Compare what ``read(op, operands, shape)`` makes of the operand maps with what the operation means.

    That is ``expected``, or what the interpreter says. Without ``xla``, XLA is not asked.
    """
    operands = [np.asarray(operand) for operand in operands]
    types = [type_of(operand.shape, operand.dtype) for operand in operands]
    module, op = build(op_text, types, type_of(shape, operands[0].dtype))
    expected = interpreted(op_text, operands, shape) if expected is None else expected
    assert expected.shape == tuple(shape)
    if xla and zlib.crc32(str(module).encode()) % ONE_IN == 0:
        np.testing.assert_array_equal(Reference(module)(operands)[0], expected, str(module))
    np.testing.assert_array_equal(read(op, operands, shape), expected, str(module))


def element_at(operand, point, inside, shape):
    """The elements of an array at the indices ``point``, which must be in bounds where ``inside`` is true."""
    assert len(point) == operand.ndim
    point = [np.broadcast_to(index, shape) for index in point]
    in_bounds = [(index >= 0) & (index < size) for index, size in zip(point, operand.shape, strict=True)]
    assert reduce(np.logical_and, in_bounds, np.array(True))[inside].all() if point else True
    values = np.zeros(shape, operand.dtype)
    values[inside] = operand[tuple(index[inside] for index in point)]
    return values


def elements_read(op, operands, shape):
    """The result by the maps, for an operation that takes each element from one place."""
    indices = np.indices(shape)
    values, feeding = [], set()
    for access in accesses(op):
        runtime = []
        for source in access.runtime:
            feeding.add(source.access)
            runtime.append(_clamped(values[source.access][1], source.clamp))
        variables = [*indices, *runtime]
        inside = np.broadcast_to(holds(access.map, variables, ()), shape)
        point = [expr.evaluate(variables) for expr in access.map.results]
        values.append((inside, element_at(operands[access.operand], point, inside, shape)))
    data = [value for number, value in enumerate(values) if number not in feeding]
    if access_kind(op) != "piecewise":
        assert len(data) == 1
    assert reduce(np.logical_or, [inside for inside, _ in data]).all()
    return np.select([inside for inside, _ in data], [value for _, value in data])


def _clamped(index, interval):
    """An index of any integer type, as the nearest number of an interval."""
    info = np.iinfo(index.dtype)
    low, high = max(interval.lower, info.min), min(interval.upper, info.max)
    return np.clip(index, low, high).astype(np.int64)
