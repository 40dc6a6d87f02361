"""The StableHLO operations that the fuzzer uses: the types of their results, and the text of their attributes.

An operation's parameters are a mapping. ``infer`` fits them to the operands' shapes first (a slice ends where its
operand does), which is what lets a failing graph be shrunk by giving its arguments smaller shapes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from xgpu.dtypes import DType, dtype_named, dtype_of_numpy

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


def name_of(op: str) -> str:
    """Return an operation's name with its dialect."""
    return f"{'chlo' if op in CHLO else 'stablehlo'}.{op}"


JOINT = {"argmax": 2, "gauss": 2, "least": 3}
"""Combiners of several arrays by what is in all of them, and of how many."""


def arrays_of(combiners: Sequence[str]) -> int:
    """Return how many arrays are combined."""
    return JOINT[combiners[0]] if combiners[0] in JOINT else len(combiners)


CHLO = frozenset(
    """acos acosh asin asinh atan atanh bessel_i1e cosh digamma erf erf_inv erfc lgamma sinh top_k""".split()
)
"""The operations of JAX's own dialect."""


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


def _reduce_window(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    inputs = operands[: arrays_of(params["combiners"])]
    operand = inputs[0]
    _need(all(each.shape == operand.shape for each in inputs), "inputs differ in shape")
    keys = ("window", "strides", "base_dilations", "window_dilations", "low", "high")
    shape = []
    for size, window, stride, between, apart, low, high in zip(
        operand.shape, *(params[key] for key in keys), strict=True
    ):
        padded = low + high + (1 + (size - 1) * between if size else 0)
        _need(padded >= 0, "negative size")
        spanned = 1 + (window - 1) * apart
        shape.append((padded - spanned) // stride + 1 if padded >= spanned else 0)
    return [TensorType(each.dtype, tuple(shape)) for each in inputs]


def _scatter(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    count = len(params["combiners"])
    operand, indices, updates = operands[0], operands[count], operands[count + 1]
    _need(all(each.shape == operand.shape for each in operands[:count]), "operands differ in shape")
    _need(all(each.shape == updates.shape for each in operands[count + 1 :]), "updates differ in shape")
    vector_dim = params["vector_dim"]
    components = indices.shape[vector_dim] if vector_dim < len(indices.shape) else 1
    _need(components == len(params["start_map"]), "wrong size of the index vector")
    batching = dict(zip(params["batching"], params["indices_batching"], strict=True))
    _need(all(operand.shape[i] == indices.shape[j] for i, j in batching.items()), "batching sizes differ")
    dropped = (*params["inserted"], *batching)
    window = [size for i, size in enumerate(operand.shape) if i not in dropped]
    _need(len(updates.shape) == len(window) + len(indices.shape) - (vector_dim < len(indices.shape)), "wrong rank")
    offsets = [size for i, size in enumerate(updates.shape) if i in params["offsets"]]
    _need(all(map(int.__le__, offsets, window)), "an update is larger than the operand")
    batch = [size for i, size in enumerate(updates.shape) if i not in params["offsets"]]
    _need(batch == [size for i, size in enumerate(indices.shape) if i != vector_dim], "other numbers of updates")
    return list(operands[:count])


def _dot_general(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    left, right = operands
    batch, contracted = params["batch"], params["contracted"]
    for i, j in (*zip(*batch, strict=True), *zip(*contracted, strict=True)):
        _need(left.shape[i] == right.shape[j], "contracted sizes differ")
    shape = [left.shape[i] for i in batch[0]]
    for type_, side in ((left, 0), (right, 1)):
        shape += [size for i, size in enumerate(type_.shape) if i not in (*batch[side], *contracted[side])]
    return [TensorType(params["dtype"], tuple(shape))]


def _select_and_scatter(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    ones = (1,) * len(operands[0].shape)
    plain = {**params, "combiners": ("select",), "base_dilations": ones, "window_dilations": ones}
    (windows,) = _reduce_window(plain, operands)
    _need(windows == operands[1], "not as many sources as windows")
    return [operands[0]]


def _random_bits(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    return [operands[0], TensorType(params["dtype"], params["shape"])]


def _branches(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    _need(operands[2] == operands[3], "the arrays are of different types")
    return [operands[2]] * 2


def _bitcast(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    """Bits of a wider type are those of a new last dimension of a narrower one."""
    (operand,), dtype = operands, params["dtype"]
    shape, bits = operand.shape, operand.dtype.bits
    if bits > dtype.bits:
        shape = (*shape, bits // dtype.bits)
    elif bits < dtype.bits:
        _need(bool(shape) and shape[-1] == dtype.bits // bits, "the last dimension is not a number's bits")
        shape = shape[:-1]
    return [TensorType(dtype, shape)]


def _convolution(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    left, right = operands
    ours, theirs, made = params["left"], params["right"], params["made"]
    groups, batches = params["groups"], params["batches"]
    features, outputs = right.shape[theirs.index("i")], right.shape[theirs.index("o")]
    _need(left.shape[ours.index("f")] == features * groups, "other numbers of features")
    _need(outputs % (groups * batches) == 0 and left.shape[ours.index("b")] % batches == 0, "groups do not divide")
    sizes = {"b": left.shape[ours.index("b")] // batches, "f": outputs}
    for i in range(len(ours) - 2):
        whole, window = left.shape[ours.index(str(i))], right.shape[theirs.index(str(i))]
        padded = params["low"][i] + params["high"][i] + (1 + (whole - 1) * params["apart"][i] if whole else 0)
        spanned = 1 + (window - 1) * params["dilations"][i]
        _need(window > 0 and padded >= 0, "negative size")
        sizes[str(i)] = (padded - spanned) // params["strides"][i] + 1 if padded >= spanned else 0
    return [TensorType(params["dtype"], tuple(sizes[each] for each in made))]


def _all(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    return list(operands)


def _top_k(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    (operand,) = operands
    _need(bool(operand.shape), "no rows")
    params["k"] = min(params["k"], operand.shape[-1])
    shape = (*operand.shape[:-1], params["k"])
    return [TensorType(operand.dtype, shape), TensorType(dtype_named("s32"), shape)]


def _whiles(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    count, *states = operands
    _need(all(each == states[0] for each in states), "states of different types")
    rows = states[0].shape[0] if states[0].shape else 0
    _need(rows > 1 or not {"roll", "update"} & {name for name, *_ in params["steps"]}, "no rows")
    return [count, *states]


def _sort(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    _need(all(operand.shape == operands[0].shape for operand in operands), "operands differ in shape")
    return list(operands)


def _solution(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    matrix, divisors, right = operands
    rows = right.shape[-2 if params["flags"]["left_side"] == "true" else -1]
    _need(matrix.shape == divisors.shape == (*right.shape[:-2], rows, rows), "not as many equations as unknowns")
    return [right]


def _factor(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    _need(operands[0].shape[-1] == operands[0].shape[-2], "the matrix is not square")
    return [operands[0]]


def _scan(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    state, rows = operands
    _need(rows.shape[1:] == state.shape, "a row is not of the state's shape")
    return [TensorType(dtype_named("s64"), ()), state, rows]


_RULES: Mapping[str, Rule] = {
    "argument": _given,
    "bitcast_convert": _bitcast,
    "branches": _branches,
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "constant": _given,
    "convolution": _convolution,
    "dot_general": _dot_general,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "factor": _factor,
    "gather": _gather,
    "iota": _given,
    "optimization_barrier": _all,
    "pad": _pad,
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "reshape": _reshape,
    "reverse": _same,
    "rng_bit_generator": _random_bits,
    "scan": _scan,
    "scatter": _scatter,
    "select_and_scatter": _select_and_scatter,
    "slice": _slice,
    "solution": _solution,
    "sort": _sort,
    "top_k": _top_k,
    "transpose": _transpose,
    "whiles": _whiles,
}


def attributes_of(op: str, params: Params) -> str:
    """Return the text of an operation's attributes, other than a constant's value."""
    if op in _LONG_ATTRIBUTES:
        return _LONG_ATTRIBUTES[op](params)
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


def _lists(lists: Mapping[str, Sequence[int]], vector_dim: int) -> str:
    numbers = [f"{name} = {list(value)}" for name, value in lists.items() if value]
    return ", ".join([*numbers, f"index_vector_dim = {vector_dim}"])


def _gather_attributes(params: Params) -> str:
    lists = {
        "offset_dims": params["offsets"],
        "collapsed_slice_dims": params["collapsed"],
        "operand_batching_dims": params["batching"],
        "start_indices_batching_dims": params["indices_batching"],
        "start_index_map": params["start_map"],
    }
    numbers, sizes = _lists(lists, params["vector_dim"]), _array(params["sizes"])
    sorted_ = "true" if params.get("sorted") else "false"
    return f"dimension_numbers = #stablehlo.gather<{numbers}>, indices_are_sorted = {sorted_}, slice_sizes = {sizes}"


def _scatter_attributes(params: Params) -> str:
    lists = {
        "update_window_dims": params["offsets"],
        "inserted_window_dims": params["inserted"],
        "input_batching_dims": params["batching"],
        "scatter_indices_batching_dims": params["indices_batching"],
        "scatter_dims_to_operand_dims": params["start_map"],
    }
    unique, sorted_ = ("true" if params.get(each) else "false" for each in ("unique", "sorted"))
    return (
        f"scatter_dimension_numbers = #stablehlo.scatter<{_lists(lists, params['vector_dim'])}>, "
        f"indices_are_sorted = {sorted_}, unique_indices = {unique}"
    )


def _window_attributes(params: Params) -> str:
    names = ("window", "strides", "base_dilations", "window_dilations")
    keys = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    parts = [f"{key} = {_array(params[name])}" for key, name in zip(keys, names, strict=True) if name in params]
    padding = [list(pair) for pair in zip(params["low"], params["high"], strict=True)]
    elements = str(padding) if padding else ""
    parts.append(f"padding = dense<{elements}> : tensor<{len(padding)}x2xi64>")
    return ", ".join(parts)


def _dot_attributes(params: Params) -> str:
    sides = [f"{side}_{kind}_dimensions" for kind in ("batching", "contracting") for side in ("lhs", "rhs")]
    lists = zip(sides, (*params["batch"], *params["contracted"]), strict=True)
    numbers = ", ".join(f"{name} = {list(value)}" for name, value in lists)
    return f"dot_dimension_numbers = #stablehlo.dot<{numbers}>"


def _convolution_attributes(params: Params) -> str:
    left, right, made = (f"[{', '.join(params[each])}]" for each in ("left", "right", "made"))
    keys = {"window_strides": "strides", "lhs_dilation": "apart", "rhs_dilation": "dilations"}
    parts = [f"{key} = {_array(params[name])}" for key, name in keys.items()]
    padding = [list(pair) for pair in zip(params["low"], params["high"], strict=True)]
    reversal = ", ".join(str(each).lower() for each in params["reversal"])
    parts += [
        f"batch_group_count = {params['batches']} : i64",
        f"feature_group_count = {params['groups']} : i64",
        f"dimension_numbers = #stablehlo.conv<{left}x{right}->{made}>",
        f"padding = dense<{padding or ''}> : tensor<{len(padding)}x2xi64>",
        f"window_reversal = array<i1{': ' if reversal else ''}{reversal}>",
    ]
    return ", ".join(parts)


def _map_attributes(params: Params) -> str:
    return f"dimensions = {_array(range(params['rank']))}"


def _top_attributes(params: Params) -> str:
    return f"k = {params['k']} : i64"


def _sort_attributes(params: Params) -> str:
    return f"dimension = {params['dimension']} : i64, is_stable = {str(params.get('stable', True)).lower()}"


def _random_attributes(params: Params) -> str:
    return f"rng_algorithm = #stablehlo<rng_algorithm {params['algorithm']}>"


_LONG_ATTRIBUTES = {
    "convolution": _convolution_attributes,
    "dot_general": _dot_attributes,
    "gather": _gather_attributes,
    "map": _map_attributes,
    "reduce_window": _window_attributes,
    "rng_bit_generator": _random_attributes,
    "scatter": _scatter_attributes,
    "select_and_scatter": _window_attributes,
    "sort": _sort_attributes,
    "top_k": _top_attributes,
}


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
    if dtype_of_numpy(array.dtype).is_integer:
        return str(int(value))
    if np.iscomplexobj(array):
        return f"({_element(array.real)}, {_element(array.imag)})"
    wide = float(value)
    if np.isfinite(wide):
        return f"{wide:.17e}"
    bits = int(array.view(f"u{array.itemsize}"))
    return f"0x{bits:0{2 * array.itemsize}X}"
