"""The text of operations' regions: what reductions combine by, and sorts and selections compare by."""

from collections.abc import Iterable, Sequence

import numpy as np

from xgpu.dtypes import DType
from xgpu.tools.fuzzing.ops import JOINT, Params, TensorType, arrays_of, dense


def region_of(op: str, params: Params, operands: Sequence[TensorType]) -> str:
    """Return the text of an operation's region, or "".

    Of reductions: each input combined by itself, or all together. Of sorts: keys compared.
    """
    if op == "map":
        return _mapped_region(params["names"], f"tensor<{operands[0].dtype.mlir}>")
    if op == "sort":
        return _sort_region(params, operands)
    if op == "select_and_scatter":
        return _selecting_regions(params["direction"], f"tensor<{operands[0].dtype.mlir}>")
    if "combiners" not in params:
        return ""
    scalars = [f"tensor<{operand.dtype.mlir}>" for operand in operands[: arrays_of(params["combiners"])]]
    left, right = [f"%l{i}" for i in range(len(scalars))], [f"%r{i}" for i in range(len(scalars))]
    if params["combiners"][0] in JOINT:
        body = {"argmax": _argmax_body, "gauss": _gauss_body, "least": _least_body}[params["combiners"][0]]
        lines, results = body(*scalars), [f"%o{i}" for i in range(len(scalars))]
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
    """The first array compared; the next of the keys, where those before it are equal.

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

    keys = [(left, right, key), *((f"%l{i}", f"%r{i}", arguments[2 * i][1]) for i in range(1, params["keys"]))]
    for i, pair in enumerate(keys):
        lines.append(compare(f"%o{i}", params["direction"], *pair))
    result = f"%o{len(keys) - 1}"
    for i in reversed(range(len(keys) - 1)):
        lines.append(compare(f"%equal{i}", "EQ", *keys[i]))
        lines.append(f"%tie{i} = stablehlo.and %equal{i}, {result} : tensor<i1>")
        lines.append(f"%all{i} = stablehlo.or %o{i}, %tie{i} : tensor<i1>")
        result = f"%all{i}"
    return _region(arguments, [*lines, f'"stablehlo.return"({result}) : (tensor<i1>) -> ()'])


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


def _gauss_body(real: str, imaginary: str) -> list[str]:
    """The product of two complex numbers of whole parts."""
    products = [("%rr", "%l0", "%r0"), ("%ii", "%l1", "%r1"), ("%ri", "%l0", "%r1"), ("%ir", "%l1", "%r0")]
    lines = [f"{made} = stablehlo.multiply {a}, {b} : {real}" for made, a, b in products]
    return [*lines, f"%o0 = stablehlo.subtract %rr, %ii : {real}", f"%o1 = stablehlo.add %ri, %ir : {imaginary}"]


def _least_body(*types: str) -> list[str]:
    """The triple that comes first in the order of words."""
    of, logic = types[0], "tensor<i1>"
    lines = []
    for i in range(3):
        for name, direction in (("less", "LT"), ("same", "EQ")):
            lines.append(f"%{name}{i} = stablehlo.compare {direction}, %l{i}, %r{i} : ({of}, {of}) -> {logic}")
    lines += [
        f"%tie1 = stablehlo.and %same1, %less2 : {logic}",
        f"%next1 = stablehlo.or %less1, %tie1 : {logic}",
        f"%tie0 = stablehlo.and %same0, %next1 : {logic}",
        f"%take = stablehlo.or %less0, %tie0 : {logic}",
    ]
    return [*lines, *(f"%o{i} = stablehlo.select %take, %l{i}, %r{i} : {logic}, {of}" for i in range(3))]


def _mapped_region(names: Sequence[str], scalar: str) -> str:
    """The first operation of both, then each other one of its result and the second."""
    lines, last = [], "%a"
    for i, name in enumerate(names):
        lines.append(f"%o{i} = stablehlo.{name} {last}, %b : {scalar}")
        last = f"%o{i}"
    return _region([("%a", scalar), ("%b", scalar)], [*lines, f"stablehlo.return {last} : {scalar}"])
