"""Whether a combination of elements is still associative where elements are equal, by trying it.

A maximum is; its derivative is not: of equal elements JAX takes the mean, and of three the mean of a mean and the
third. What a program's own order gives is then no other order's result.
"""

from collections.abc import Callable, Sequence

import numpy as np

from xgpu import ir
from xgpu.dtypes import DType
from xgpu.hlo.scan_op import ELEMENTWISE, combine_elements
from xgpu.hlo.stablehlo_builder import Value, convert, tensor
from xgpu.structure import dtype_of, element_of

_TRIALS = 64
"""Triples of distinct elements, and of equal neighbours among them, that are tried."""
_FAR = 1 / 16
"""Relative difference above which results are others: more than rounding to bf16 makes in a few operations."""
_KNOWN = frozenset(name for name in ELEMENTWISE if name.startswith("stablehlo.")) | {
    "stablehlo.constant",
    "stablehlo.return",
}
"""The operations that StableHLO's interpreter computes."""


def is_broken_by_ties(elements: Sequence[ir.Type], emit: Callable[[list[Value]], Sequence[Value]]) -> bool:
    """Whether a combination, associative for distinct elements, is not where elements next to each other are equal.

    ``emit`` emits it, given scalars of these types of what comes before and then of an element. One that compares no
    floats for equality is not tried, nor one of complex numbers. One that is not even associative for distinct elements
    is taken to be so for those that its program has.
    """
    scalars = [tensor([], element) for element in elements]
    function = ir.func.FuncOp("combine", ir.FunctionType.get([*scalars, *scalars], []), ip=False)
    block = function.add_entry_block()
    with ir.InsertionPoint(block):
        ir.Operation.create("stablehlo.return", operands=list(emit(list(block.arguments))))
    operations = [op.operation for op in block.operations]
    is_real = all(dtype_of(argument).kind != "complex" for argument in block.arguments)
    if not is_real or not any(map(_tells_ties, operations)) or not _KNOWN.issuperset(op.name for op in operations):
        return False
    far = _differences(block, len(elements)) > _FAR
    return not far[:_TRIALS].any() and bool(far[_TRIALS:].any())


def _tells_ties(op: ir.Operation) -> bool:
    is_comparison = op.name == "stablehlo.compare" and dtype_of(op.operands[0]).is_float
    return is_comparison and any(f" {name}>" in str(op.attributes["comparison_direction"]) for name in ("EQ", "NE"))


def _differences(block: ir.Block, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return how far the two ways to combine three elements are apart, relative to what they give, at most."""
    wide = ir.F64Type.get()
    given = tensor([2 * _TRIALS], wide)
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function = ir.func.FuncOp("main", ir.FunctionType.get([given] * (3 * count), [given] * (2 * count)))
    with ir.InsertionPoint(function.add_entry_block()):
        own = [element_of(argument) for argument in block.arguments][:count] * 3
        values = [convert(value, element) for value, element in zip(function.arguments, own, strict=True)]
        first, second, third = (values[count * i : count * (i + 1)] for i in range(3))
        left = combine_elements(block, [*combine_elements(block, [*first, *second]), *third])
        right = combine_elements(block, [*first, *combine_elements(block, [*second, *third])])
        ir.func.ReturnOp([convert(value, wide) for value in (*left, *right)])
    dtypes = [dtype_of(value) for value in values[:count]]
    arguments = [ir.DenseElementsAttr.get(each, type=given) for each in _triples(dtypes)]
    results = [np.array(each) for each in ir.stablehlo.eval_module(module, arguments)]
    found = np.zeros(2 * _TRIALS)
    for one, other in zip(results[:count], results[count:], strict=True):
        with np.errstate(invalid="ignore"):
            apart = np.abs(one - other) / np.maximum(1, np.maximum(np.abs(one), np.abs(other)))
        found = np.maximum(found, np.nan_to_num(apart))
    return found


def _triples(dtypes: Sequence[DType]) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Return the first elements of arrays, the second ones and the third ones, ties in the latter half."""
    generator = np.random.default_rng(0)
    values = np.stack([_distinct(dtype, generator) for dtype in dtypes], axis=1)
    ties = generator.random((2, len(dtypes), 2 * _TRIALS)) < 0.5
    ties[..., :_TRIALS] = False
    for i in (1, 2):
        values[i] = np.where(ties[i - 1], values[i - 1], values[i])
    return list(values.reshape(3 * len(dtypes), -1))


def _distinct(dtype: DType, generator: np.random.Generator) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return three elements of each trial, which are distinct numbers."""
    if dtype.kind == "bool":
        return generator.integers(0, 2, (3, 2 * _TRIALS)).astype(np.float64)
    if dtype.is_float:
        return generator.uniform(-2, 2, (3, 2 * _TRIALS))
    numbers = np.tile(np.arange(100.0), (2 * _TRIALS, 1))
    return np.ascontiguousarray(generator.permuted(numbers, axis=1)[:, :3].T)
