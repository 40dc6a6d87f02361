"""The StableHLO operations that the fuzzer uses: the types of their results, and the text of their attributes.

An operation's parameters are a mapping. ``infer`` fits them to the operands' shapes first (a slice ends where its
operand does), which is what lets a failing graph be shrunk by giving its arguments smaller shapes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from xgpu.dtypes import DType

Params = dict[str, Any]
Shape = tuple[int, ...]


class Invalid(Exception):
    """The operands' types do not fit the operation."""


@dataclass(frozen=True)
class TensorType:
    """Element type and shape."""

    dtype: DType
    shape: Shape

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def __str__(self) -> str:
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.dtype.mlir}>"


Rule = Callable[[Params, Sequence[TensorType]], list[TensorType]]
"""Fits the parameters in place and returns the results' types; raises `Invalid`."""


def infer(op: str, params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    """Fit ``params`` to the operands in place and return the results' types. Raises `Invalid` if they do not fit."""
    return _RULES.get(op, _elementwise)(params, operands)


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise Invalid(message)


def _elementwise(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    shape = operands[params.get("main", 0)].shape
    scalars = params.get("scalars", ())
    for i, operand in enumerate(operands):
        _need(operand.shape == (() if i in scalars else shape), "operands differ in shape")
    return [TensorType(params.get("dtype", operands[-1].dtype), shape)]


def _given(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    shape = params["shape"]
    if "iota_dimension" in params:
        _need(params["iota_dimension"] < len(shape), "no such dimension")
    return [TensorType(params["dtype"], shape)]


def _broadcast(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    shape = params["shape"]
    for size, target in zip(operands[0].shape, params["dims"], strict=True):
        _need(size in (1, shape[target]), "sizes do not broadcast")
    return [TensorType(operands[0].dtype, shape)]


def _reshape(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    _need(prod(params["shape"]) == operands[0].size, "numbers of elements differ")
    return [TensorType(operands[0].dtype, params["shape"])]


def _transpose(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    (operand,) = operands
    return [TensorType(operand.dtype, tuple(operand.shape[i] for i in params["dims"]))]


def _slice(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    (operand,) = operands
    params["limits"] = tuple(map(min, params["limits"], operand.shape))
    params["starts"] = tuple(map(min, params["starts"], params["limits"]))
    extents = zip(params["starts"], params["limits"], params["strides"], strict=True)
    return [TensorType(operand.dtype, tuple(-(-(limit - start) // stride) for start, limit, stride in extents))]


def _same(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    return [operands[0]]


def _pad(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    shape = []
    for size, low, high, interior in zip(
        operands[0].shape, params["low"], params["high"], params["interior"], strict=True
    ):
        shape.append(size + max(size - 1, 0) * interior + low + high)
    _need(all(size >= 0 for size in shape), "negative size")
    return [TensorType(operands[0].dtype, tuple(shape))]


def _concatenate(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    axis, shape = params["dimension"], list(operands[0].shape)
    for operand in operands:
        others = [size for i, size in enumerate(operand.shape) if i != axis]
        _need(others == shape[:axis] + shape[axis + 1 :], "operands differ in shape")
    shape[axis] = sum(operand.shape[axis] for operand in operands)
    return [TensorType(operands[0].dtype, tuple(shape))]


def _dynamic_slice(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    params["sizes"] = tuple(map(min, params["sizes"], operands[0].shape))
    return [TensorType(operands[0].dtype, params["sizes"])]


def _dynamic_update_slice(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    fits = all(part <= whole for part, whole in zip(operands[1].shape, operands[0].shape, strict=True))
    _need(fits, "the update is larger than the operand")
    return [operands[0]]


def _gather(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    operand, indices = operands
    params["sizes"] = tuple(map(min, params["sizes"], operand.shape))
    vector_dim, batching = params["vector_dim"], dict(zip(params["batching"], params["indices_batching"], strict=True))
    components = indices.shape[vector_dim] if vector_dim < len(indices.shape) else 1
    _need(components == len(params["start_map"]), "wrong size of the index vector")
    dropped = (*params["collapsed"], *batching)
    _need(all(params["sizes"][i] == 1 for i in dropped), "a collapsed slice size is not 1")
    _need(all(operand.shape[i] == indices.shape[j] for i, j in batching.items()), "batching sizes differ")
    offsets = iter(size for i, size in enumerate(params["sizes"]) if i not in dropped)
    batch = iter(size for i, size in enumerate(indices.shape) if i != vector_dim)
    rank = len(operand.shape) - len(dropped) + len(indices.shape) - (vector_dim < len(indices.shape))
    return [TensorType(operand.dtype, tuple(next(offsets if i in params["offsets"] else batch) for i in range(rank)))]


def _reduce(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    count = len(operands) // 2
    inputs = operands[:count]
    _need(all(operand.shape == inputs[0].shape for operand in inputs), "inputs differ in shape")
    shape = tuple(size for i, size in enumerate(inputs[0].shape) if i not in params["dims"])
    return [TensorType(operand.dtype, shape) for operand in inputs]


_RULES: Mapping[str, Rule] = {
    "argument": _given,
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "constant": _given,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "iota": _given,
    "pad": _pad,
    "reduce": _reduce,
    "reshape": _reshape,
    "reverse": _same,
    "slice": _slice,
    "transpose": _transpose,
}


def attributes_of(op: str, params: Params) -> str:
    """Return the text of an operation's attributes, other than a constant's value."""
    if op == "gather":
        return _gather_attributes(params)
    arrays = {
        "broadcast_in_dim": {"broadcast_dimensions": "dims"},
        "dynamic_slice": {"slice_sizes": "sizes"},
        "pad": {"edge_padding_low": "low", "edge_padding_high": "high", "interior_padding": "interior"},
        "reduce": {"dimensions": "dims"},
        "reverse": {"dimensions": "dims"},
        "slice": {"start_indices": "starts", "limit_indices": "limits", "strides": "strides"},
        "transpose": {"permutation": "dims"},
    }.get(op, {})
    parts = [f"{name} = {_array(params[key])}" for name, key in arrays.items()]
    parts += [f"{name} = {params[name]} : i64" for name in ("dimension", "iota_dimension") if name in params]
    parts += [f"{name} = {text}" for name, text in params.get("attributes", {}).items()]
    return ", ".join(parts)


def _array(numbers: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, numbers))}>" if numbers else "array<i64>"


def _gather_attributes(params: Params) -> str:
    lists = {
        "offset_dims": params["offsets"],
        "collapsed_slice_dims": params["collapsed"],
        "operand_batching_dims": params["batching"],
        "start_indices_batching_dims": params["indices_batching"],
        "start_index_map": params["start_map"],
    }
    numbers = ", ".join(f"{name} = {list(value)}" for name, value in lists.items() if value)
    numbers = ", ".join([*([numbers] if numbers else []), f"index_vector_dim = {params['vector_dim']}"])
    sizes = _array(params["sizes"])
    return f"dimension_numbers = #stablehlo.gather<{numbers}>, indices_are_sorted = false, slice_sizes = {sizes}"


def region_of(params: Params, operands: Sequence[TensorType]) -> str:
    """Return the text of a reduction's region: each input combined by itself, or an argmax of the first two."""
    scalars = [f"tensor<{operand.dtype.mlir}>" for operand in operands[: len(operands) // 2]]
    left, right = [f"%l{i}" for i in range(len(scalars))], [f"%r{i}" for i in range(len(scalars))]
    arguments = ", ".join(f"{name}: {t}" for name, t in zip(left + right, scalars * 2, strict=True))
    if params["combiners"] == ("argmax",):
        lines, results = _argmax_body(*scalars), ["%o0", "%o1"]
    else:
        lines, results = [], [f"%o{i}" for i in range(len(scalars))]
        for result, name, a, b, t in zip(results, params["combiners"], left, right, scalars, strict=True):
            first, second = (b, a) if params.get("swapped") else (a, b)
            lines.append(f'{result} = "stablehlo.{name}"({first}, {second}) : ({t}, {t}) -> {t}')
    lines.append(f'"stablehlo.return"({", ".join(results)}) : ({", ".join(scalars)}) -> ()')
    return "{\n  ^bb0(" + arguments + "):\n" + "".join(f"    {line}\n" for line in lines) + "  }"


def _argmax_body(value: str, index: str) -> list[str]:
    """The larger value and its index; of equal values the lower index, so that the order does not matter."""

    def compare(name: str, a: str, b: str, direction: str, of: str) -> str:
        attribute = f"{{comparison_direction = #stablehlo<comparison_direction {direction}>}}"
        return f'{name} = "stablehlo.compare"({a}, {b}) {attribute} : ({of}, {of}) -> tensor<i1>'

    def select(name: str, a: str, b: str, of: str) -> str:
        return f'{name} = "stablehlo.select"(%take, {a}, {b}) : (tensor<i1>, {of}, {of}) -> {of}'

    logic = " : (tensor<i1>, tensor<i1>) -> tensor<i1>"
    return [
        compare("%greater", "%l0", "%r0", "GT", value),
        compare("%equal", "%l0", "%r0", "EQ", value),
        compare("%lower", "%l1", "%r1", "LT", index),
        f'%tie = "stablehlo.and"(%equal, %lower){logic}',
        f'%take = "stablehlo.or"(%greater, %tie){logic}',
        select("%o0", "%l0", "%r0", value),
        select("%o1", "%l1", "%r1", index),
    ]


def dense(array: np.ndarray[Any, Any], splat: bool) -> str:
    """Return the elements of a constant as text: one for all of them if ``splat``."""
    if splat and array.size:
        return f"dense<{_element(array.reshape(-1)[0])}>"
    return f"dense<{_nested(array)}>" if array.size else "dense<>"


def _nested(array: np.ndarray[Any, Any]) -> str:
    return _element(array[()]) if array.ndim == 0 else f"[{', '.join(map(_nested, array))}]"


def _element(value: Any) -> str:
    """A decimal with all the digits of the type, or the bits of what has no decimal."""
    array = np.asarray(value)
    if array.dtype == np.bool_:
        return "true" if value else "false"
    if array.dtype.kind in "iu":
        return str(int(value))
    wide = float(value)
    if np.isfinite(wide):
        return f"{wide:.17e}"
    bits = int(array.view(f"u{array.itemsize}"))
    return f"0x{bits:0{2 * array.itemsize}X}"
