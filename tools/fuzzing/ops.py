"""The StableHLO operations that the fuzzer uses: the types of their results, and the text of their attributes.

An operation's parameters are a mapping. ``infer`` fits them to the operands' shapes first (a slice ends where its
operand does), which is what lets a failing graph be shrunk by giving its arguments smaller shapes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    inputs = operands[: len(params["combiners"])]
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


def _sort(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    _need(all(operand.shape == operands[0].shape for operand in operands), "operands differ in shape")
    return list(operands)


def _scan(params: Params, operands: Sequence[TensorType]) -> list[TensorType]:
    state, rows = operands
    _need(rows.shape[1:] == state.shape, "a row is not of the state's shape")
    return [TensorType(dtype_named("s64"), ()), state, rows]


_RULES: Mapping[str, Rule] = {
    "argument": _given,
    "branches": _branches,
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "constant": _given,
    "dot_general": _dot_general,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "iota": _given,
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
    "sort": _sort,
    "transpose": _transpose,
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
    return f"dimension_numbers = #stablehlo.gather<{numbers}>, indices_are_sorted = false, slice_sizes = {sizes}"


def _scatter_attributes(params: Params) -> str:
    lists = {
        "update_window_dims": params["offsets"],
        "inserted_window_dims": params["inserted"],
        "input_batching_dims": params["batching"],
        "scatter_indices_batching_dims": params["indices_batching"],
        "scatter_dims_to_operand_dims": params["start_map"],
    }
    unique = "true" if params["unique"] else "false"
    return (
        f"scatter_dimension_numbers = #stablehlo.scatter<{_lists(lists, params['vector_dim'])}>, "
        f"indices_are_sorted = false, unique_indices = {unique}"
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


def _sort_attributes(params: Params) -> str:
    return f"dimension = {params['dimension']} : i64, is_stable = true"


def _random_attributes(params: Params) -> str:
    return f"rng_algorithm = #stablehlo<rng_algorithm {params['algorithm']}>"


_LONG_ATTRIBUTES = {
    "dot_general": _dot_attributes,
    "gather": _gather_attributes,
    "reduce_window": _window_attributes,
    "rng_bit_generator": _random_attributes,
    "scatter": _scatter_attributes,
    "select_and_scatter": _window_attributes,
    "sort": _sort_attributes,
}


def region_of(op: str, params: Params, operands: Sequence[TensorType]) -> str:
    """Return the text of an operation's region, or "".

    Of reductions: each input combined by itself, or an argmax of the first two. Of sorts: keys compared.
    """
    if op == "sort":
        return _sort_region(params, operands)
    if op == "select_and_scatter":
        return _selecting_regions(params["direction"], f"tensor<{operands[0].dtype.mlir}>")
    if "combiners" not in params:
        return ""
    scalars = [f"tensor<{operand.dtype.mlir}>" for operand in operands[: len(params["combiners"])]]
    if params["combiners"] == ("argmax",):
        scalars = [f"tensor<{operand.dtype.mlir}>" for operand in operands[:2]]
    left, right = [f"%l{i}" for i in range(len(scalars))], [f"%r{i}" for i in range(len(scalars))]
    if params["combiners"] == ("argmax",):
        lines, results = _argmax_body(*scalars), ["%o0", "%o1"]
    else:
        lines = []
        results = [b if name == "second" else f"%o{b[2:]}" for name, b in zip(params["combiners"], right, strict=True)]
        for result, name, a, b, t in zip(results, params["combiners"], left, right, scalars, strict=True):
            if name == "second":
                continue
            first, second = (b, a) if params.get("swapped") else (a, b)
            lines.append(f'{result} = "stablehlo.{name}"({first}, {second}) : ({t}, {t}) -> {t}')
    lines.append(f'"stablehlo.return"({", ".join(results)}) : ({", ".join(scalars)}) -> ()')
    return _region(zip(left + right, scalars * 2, strict=True), lines)


def _region(arguments: Iterable[tuple[str, str]], lines: Sequence[str]) -> str:
    names = ", ".join(f"{name}: {type_}" for name, type_ in arguments)
    return f" ({{\n  ^bb0({names}):\n" + "".join(f"    {line}\n" for line in lines) + "  })"


def _sort_region(params: Params, operands: Sequence[TensorType]) -> str:
    """The first array compared; the second one too, where the first ones are equal and there are two keys.

    NumPy's order, as JAX writes it, has zeros of either sign equal, and NaN last.
    """
    arguments = [(f"%{side}{i}", f"tensor<{each.dtype.mlir}>") for i, each in enumerate(operands) for side in "lr"]
    (left, key), (right, _) = arguments[:2]
    lines, total = [], "" if params["order"] == "plain" else ", compare_type = #stablehlo<comparison_type TOTALORDER>"
    if params["order"] == "numpy":
        lines = [*_canonical(left, key, operands[0].dtype), *_canonical(right, key, operands[0].dtype)]
        left, right = f"{left}_key", f"{right}_key"

    def compare(name: str, direction: str, *pair: str) -> str:
        attributes = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
        *names, type_ = pair
        attributes += total if type_ == key and names[0] == left else ""
        return f'{name} = "stablehlo.compare"({", ".join(names)}) {{{attributes}}} : ({type_}, {type_}) -> tensor<i1>'

    lines.append(compare("%o", params["direction"], left, right, key))
    result = "%o"
    if params["keys"] == 2:
        (second, other), (third, _) = arguments[2:4]
        lines += [
            compare("%equal", "EQ", left, right, key),
            compare("%next", params["direction"], second, third, other),
        ]
        lines += [f"{a} = stablehlo.{op} {b}, {c} : tensor<i1>" for a, op, b, c in _LEXICOGRAPHIC]
        result = "%all"
    return _region(arguments, [*lines, f'"stablehlo.return"({result}) : (tensor<i1>) -> ()'])


_LEXICOGRAPHIC = (("%tie", "and", "%equal", "%next"), ("%all", "or", "%o", "%tie"))


def _canonical(name: str, type_: str, dtype: DType) -> list[str]:
    zero, nan = dense(np.zeros((), dtype.numpy), False), dense(np.array(np.nan, dtype.numpy), False)
    lines = []
    for kind, constant, other, direction in (("zero", zero, f"{name}_zero", "EQ"), ("nan", nan, name, "NE")):
        lines.append(f"{name}_{kind} = stablehlo.constant {constant} : {type_}")
        lines.append(
            f"{name}_is_{kind} = stablehlo.compare {direction}, {name}, {other} : ({type_}, {type_}) -> tensor<i1>"
        )
    for kind, old, new in (("zero", name, f"{name}_some"), ("nan", f"{name}_some", f"{name}_key")):
        lines.append(f"{new} = stablehlo.select {name}_is_{kind}, {name}_{kind}, {old} : tensor<i1>, {type_}")
    return lines


def _selecting_regions(direction: str, scalar: str) -> str:
    """The first region tells whether the first element stays selected, the second one adds."""
    attribute = f"{{comparison_direction = #stablehlo<comparison_direction {direction}>}}"
    select = [
        f'%o = "stablehlo.compare"(%a, %b) {attribute} : ({scalar}, {scalar}) -> tensor<i1>',
        '"stablehlo.return"(%o) : (tensor<i1>) -> ()',
    ]
    add = [
        f'%o = "stablehlo.add"(%a, %b) : ({scalar}, {scalar}) -> {scalar}',
        f'"stablehlo.return"(%o) : ({scalar}) -> ()',
    ]
    first, second = (_region([("%a", scalar), ("%b", scalar)], lines)[2:-1] for lines in (select, add))
    return f" ({first}, {second})"


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
    if dtype_of_numpy(array.dtype).is_integer:
        return str(int(value))
    if np.iscomplexobj(array):
        return f"({_element(array.real)}, {_element(array.imag)})"
    wide = float(value)
    if np.isfinite(wide):
        return f"{wide:.17e}"
    bits = int(array.view(f"u{array.itemsize}"))
    return f"0x{bits:0{2 * array.itemsize}X}"
