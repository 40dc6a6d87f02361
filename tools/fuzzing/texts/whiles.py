"""The text of loops that carry several arrays of one type, of which each step makes some from others."""

from collections.abc import Mapping, Sequence
from typing import Any

from xgpu.tools.fuzzing.ops import TensorType

_LOOP = """\
%N_zero = stablehlo.constant dense<0> : tensor<i32>
  %N_one = stablehlo.constant dense<1> : tensor<i32>
  %N:HOWMANY = "stablehlo.while"(%N_zero, GIVEN) ({
  ^bb0(%N_count: tensor<i32>, UNUSED):
    %N_more = stablehlo.compare LT, %N_count, END : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %N_more : tensor<i1>
  }, {
  ^bb0(%N_count: tensor<i32>, TAKEN):
    BODY
    %N_next = stablehlo.add %N_count, %N_one : tensor<i32>
    stablehlo.return %N_next, MADE : tensor<i32>, TYPES
  }) : (tensor<i32>, TYPES) -> (tensor<i32>, TYPES)"""


def whiles_text(number: int, operands: Sequence[str], types: Sequence[TensorType], params: Mapping[str, Any]) -> str:
    """Return the lines of a loop of the states after the first operand, which says how many steps it takes.

    ``params``: ``steps`` has for each state what its next value is, as the name of what makes it and the states that
    this takes.
    """
    end, *states = operands
    local, type_ = f"%v{number}", types[1]
    body, made = list[str](), list[str]()
    for position, (name, *numbers) in enumerate(params["steps"]):
        taken = [f"{local}_s{each}" for each in numbers]
        lines, result = _step(name, taken, f"{local}_m{position}", local, type_)
        body += lines
        made.append(result)
    text = _LOOP
    for word, replacement in {
        "HOWMANY": str(len(states) + 1),
        "GIVEN": ", ".join(states),
        "UNUSED": ", ".join(f"{local}_u{i}: {type_}" for i in range(len(states))),
        "TAKEN": ", ".join(f"{local}_s{i}: {type_}" for i in range(len(states))),
        "END": end,
        "BODY": "\n    ".join(body),
        "MADE": ", ".join(made),
        "TYPES": ", ".join([str(type_)] * len(states)),
        "%N_": f"{local}_",
        "%N": f"%{number}",
    }.items():
        text = text.replace(word, replacement)
    return text


def _step(name: str, taken: Sequence[str], made: str, local: str, type_: TensorType) -> tuple[list[str], str]:
    """Return the lines that make a state's next value from those that it takes, and its name."""
    if name == "keep":
        return [], taken[0]
    if name == "reverse":
        dims = ", ".join(map(str, range(len(type_.shape))))
        return [f"{made} = stablehlo.reverse {taken[0]}, dims = [{dims}] : {type_}"], made
    if name == "update":
        return _updated(taken, made, local, type_), made
    if name == "roll":
        return _rolled(taken[0], made, type_), made
    if name == "choice":
        lines = [
            f"{made}_odd = stablehlo.and {local}_count, {local}_one : tensor<i32>",
            f'{made} = "stablehlo.case"({made}_odd) ({{',
            f"  stablehlo.return {taken[0]} : {type_}",
            "}, {",
            f"  stablehlo.return {taken[1]} : {type_}",
            f"}}) : (tensor<i32>) -> {type_}",
        ]
        return lines, made
    return [f"{made} = stablehlo.{name} {', '.join(taken)} : {type_}"], made


def _updated(taken: Sequence[str], made: str, local: str, type_: TensorType) -> list[str]:
    """The first array with the row of another in the place that the count tells, read a place before."""
    row = TensorType(type_.dtype, (1, *type_.shape[1:]))
    at = ["tensor<i32>"] * len(type_.shape)
    rest = [f"{local}_zero"] * (len(type_.shape) - 1)
    read, write = (", ".join([place, *rest]) for place in (f"{made}_before", f"{local}_count"))
    sizes = ", ".join(map(str, row.shape))
    return [
        f"{made}_before = stablehlo.subtract {local}_count, {local}_one : tensor<i32>",
        f"{made}_row = stablehlo.dynamic_slice {taken[1]}, {read}, sizes = [{sizes}] : "
        f"({type_}, {', '.join(at)}) -> {row}",
        f"{made} = stablehlo.dynamic_update_slice {taken[0]}, {made}_row, {write} : "
        f"({type_}, {row}, {', '.join(at)}) -> {type_}",
    ]


def _rolled(taken: str, made: str, type_: TensorType) -> list[str]:
    """The array whose first row is its last one."""
    size, rest = type_.shape[0], type_.shape[1:]
    lines, parts = [], []
    for start, end in ((1, size), (0, 1)):
        part = TensorType(type_.dtype, (end - start, *rest))
        bounds = ", ".join([f"{start}:{end}", *(f"0:{each}" for each in rest)])
        lines.append(f"{made}_{start} = stablehlo.slice {taken} [{bounds}] : ({type_}) -> {part}")
        parts.append(str(part))
    joined = f"stablehlo.concatenate {made}_1, {made}_0, dim = 0"
    return [*lines, f"{made} = {joined} : ({', '.join(parts)}) -> {type_}"]
