"""Programs of loops drawn at random, and what they compute, statement by statement as docs/loops.md says.

Values are s32, which wrap, so that every result is exact; buffers may have other integers.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xgpu.loop_language.syntax import Assign, Binary, Element, Expr, Function, If, Let, Loop, Name, New, NumberLiteral

type Arrays = dict[str, np.ndarray[Any, Any]]

_SIZES = (4, 8, 24, 33, 64)


def draw(seed: int) -> str:
    """Return the text of a program: blocks with buffers, which phases of threads fill from each other."""
    generator = random.Random(seed)
    size, blocks, steps = generator.choice(_SIZES), generator.choice((1, 3)), generator.choice((1, 2, 5))
    lines = [f"fn drawn(A: s32[{blocks}, {size}], out B: s32[{blocks}, {size}], out C: s32[{blocks}]) {{"]
    lines += [f"par {blocks} b {{", f"new u: s32[2, {size}]", f"new v: s32[{size}]", "new s: s32", "s = 1"]
    lines += [f"new h: s32[{size}]"]
    lines += [
        f"par {size} i {{",
        "u[0, i] = A[b, i]",
        "u[1, i] = s32(i)",
        "h[i] = 5",
        f"v[{_place(generator, size)}] = A[b, i] * 3",
        "}",
    ]
    body = [line for _ in range(generator.randrange(1, 5)) for line in _phase(generator, size)]
    looped = generator.random() < 0.6
    lines += [f"seq {steps} k {{", *body, "}"] if looped else ["let k = 0", *body]
    lines += [f"par {size} i {{ B[b, i] = u[0, i] + u[1, {_place(generator, size)}] - v[i] * s + h[i] }}"]
    lines += ["C[b] = 0", f"seq {size} n {{ C[b] += v[n] }}", "C[b] += s", "}", "}"]
    return "\n".join(lines)


def _place(generator: random.Random, size: int) -> str:
    """Return an index that is another one for each iteration ``i``."""
    shift = generator.randrange(size)
    return generator.choice(
        ["i", f"{size - 1} - i", f"(i + {shift}) % {size}", f"({2 * size - 1} - i + {shift}) % {size}"]
    )


def _phase(generator: random.Random, size: int) -> list[str]:
    place, other = _place(generator, size), _place(generator, size)
    match generator.randrange(10):
        case 0:
            return [f"par {size} i {{ u[(k + 1) % 2, {place}] = u[k % 2, {other}] + 1 }}"]
        case 1:
            return [f"par {size} i {{ v[{place}] += u[{generator.randrange(2)}, {other}] }}"]
        case 2:
            half = size // 2
            return [f"par {half} i {{ v[i] += v[i + {half}] }}"]
        case 3:
            condition = f"i + k >= {generator.randrange(size)} and i % 3 == {generator.randrange(3)}"
            return [f"par {size} i {{ if {condition} {{ u[0, i] = v[{place}] }} else {{ u[0, i] += k }} }}"]
        case 4:
            return [f"s += v[{generator.randrange(size)}]"]
        case 5:
            return _sums(generator, size)
        case 6:
            return [
                f"par {size} i {{ new r: s32[3]",
                f"par 3 q {{ r[q] = v[(i + q) % {size}] }}",
                f"u[1, {place}] = r[0] * r[1] - r[2] }}",
            ]
        case 7:
            # Threads may hold all of h, each its own elements.
            return [f"par {size} i {{ if i % 3 >= k {{ h[i] += u[k % 2, {place}] }} else {{ h[i] = v[{other}] }} }}"]
        case 8:
            return [
                f"par {size} i {{ u[1, {place}] = h[i] * 2",
                f"h[i] = h[i] * (s32(i) - {generator.randrange(size)}) }}",
            ]
        case _:
            return [
                f"par {size} i {{ new r: s32",
                "r = 0",
                f"seq 3 q {{ r += v[(i + q) % {size}] }}",
                f"u[1, {place}] = r }}",
            ]


def _sums(generator: random.Random, size: int) -> list[str]:
    """Return a phase of sums along u and v, of which threads may take boxes."""
    sums = f"w{generator.randrange(1 << 30)}"
    rows = generator.choice([rows for rows in (2, 4) if size % rows == 0] or [1])
    box = [generator.choice([each for each in (1, 2, 4) if extent % each == 0]) for extent in (rows, size // rows)]
    pragmas = [f" #together({each})" if generator.random() < 0.7 else "" for each in box]
    term = generator.choice(["v[q] * u[0, i * {n} + q % {n}]", "v[(i + q) % {m}]", "u[1, q] * A[b, j]"])
    term = term.format(n=size // rows, m=size)
    condition = generator.choice(["", "if q >= i { ", "if i < 1 and j >= 2 { ", "if q % 2 == 0 { "])
    end = " }" if condition else ""
    return [
        f"new {sums}: s32[{rows}, {size // rows}]",
        f"par {rows} i{pragmas[0]} {{ par {size // rows} j{pragmas[1]} {{",
        f"{sums}[i, j] = s32(i) - 3",
        f"seq {generator.choice((2, min(9, size), size))} q {{ {condition}{sums}[i, j] += {term}{end} }}",
        "} }",
        f"par {rows} i {{ par {size // rows} j {{ u[0, i * {size // rows} + j] = {sums}[i, j] }} }}",
    ]


_DTYPES = {"s32": np.int32, "s16": np.int16, "u8": np.uint8, "s64": np.int64}
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "%": lambda a, b: a % b,
    "/": lambda a, b: a // b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "and": lambda a, b: a and b,
}


def interpret(function: Function, inputs: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Return what a program makes of its inputs."""
    given = iter(inputs)
    arrays: Arrays = {}
    for parameter in function.parameters:
        start = next(given).copy() if parameter.access != "out" else np.zeros(_sizes(parameter.shape), np.int32)
        arrays[parameter.name] = start
    _run(function.body, {}, arrays)
    return [arrays[parameter.name] for parameter in function.parameters if parameter.access != "in"]


def _sizes(shape: Sequence[Expr]) -> list[int]:
    return [int(size.value) for size in shape if isinstance(size, NumberLiteral)]


def _run(statements: Sequence[Any], names: dict[str, int], arrays: Arrays) -> None:
    names, arrays = dict(names), dict(arrays)
    for statement in statements:
        match statement:
            case Loop(extent=NumberLiteral(value=extent)):
                for number in range(int(extent)):
                    _run(statement.body, {**names, statement.variable: number}, arrays)
            case If():
                _run(
                    statement.then if _value(statement.condition, names, arrays) else statement.otherwise, names, arrays
                )
            case New():
                arrays[statement.name] = np.zeros(_sizes(statement.shape), _DTYPES[statement.dtype])
            case Let():
                names[statement.name] = _value(statement.value, names, arrays)
            case Assign(target=target):
                buffer = target.buffer if isinstance(target, Element) else target.name
                at = tuple(_value(i, names, arrays) for i in target.indices) if isinstance(target, Element) else ()
                value = _value(statement.value, names, arrays)
                value += int(arrays[buffer][at]) if statement.operator == "+=" else 0
                arrays[buffer][at] = np.int64(value).astype(arrays[buffer].dtype)


def _value(expr: Expr, names: Mapping[str, int], arrays: Arrays) -> int:
    match expr:
        case NumberLiteral(value=value):
            return int(value)
        case Name(name=name):
            return names[name] if name in names else int(arrays[name][()])
        case Element():
            return int(arrays[expr.buffer][tuple(_value(index, names, arrays) for index in expr.indices)])
        case Binary():
            left, right = (_value(side, names, arrays) for side in (expr.left, expr.right))
            found = _OPERATORS[expr.operator](left, right)
            return int(np.int64(found).astype(np.int32)) if not isinstance(found, bool) else found
    return _value(expr.arguments[0], names, arrays)  # type: ignore[union-attr]
