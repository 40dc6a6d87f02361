"""Mutations of texts: what a truncated file, a typing error or a hostile user makes of a program."""

import random
import re
from collections.abc import Callable, Sequence

from xgpu.emit.family_table import FAMILIES
from xgpu.levels.pipeline import MLIR_LEVELS

Mutation = Callable[[random.Random, str, Sequence[str]], str]
"""Changes a text; the last argument is the corpus, to take parts of other texts from."""

_TOKEN = re.compile(r'"[^"\n]*"|[%@#!^]?[\w.$-]+|\s+|.', re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.%])-?\d+(?:\.\d+(?:[eE][+-]?\d+)?)?")
_SHAPE = re.compile(r"(?<=tensor<)(?:\d+x)*")
_TYPE = re.compile(r"\b(?:f16|bf16|f32|f64|i1|i8|ui8|i16|i32|ui32|i64|index)\b")
_EXTENT = re.compile(r"(?<=[<x])\d+(?=x)|(?<![\w.%])\d+(?![\w.])")
_OPERATION = re.compile(r"(?<![\w#!.])[a-z]+\.[a-z]\w+")
_ATTRIBUTE = re.compile(r"\b\w+ = [^,{}<>\n]+(?:<[^<>\n]*>)?,?|<\{[^{}\n]*\}>")
_NAME = re.compile(r"[%@]\w+")
_VALUE = re.compile(r"(?<= = )[^,{}\n%=()]+(?=[,}])")
"""An attribute's value, where it is the last or another follows."""
_WITHOUT_VALUE = re.compile(r"\b(?:xgpu|llvm|nvvm|mhlo|jax)\.[a-z_]+\b(?! =)(?=[,} ])")
_LEVEL = re.compile(r"(?<=xgpu\.level = )\"[a-z]+\"")
_EMITTER = re.compile(r"(?<=xgpu\.emitter = )\"[a-z_]+\"")
_SCHEDULE = re.compile(r"(?<=#xgpu\.schedule<)[^<>]*")
_NUMBER_OF_SCHEDULE = re.compile(r"\w+ = \w+")
_RESULT_TYPE = re.compile(r"(?<=\)) (?=: \(?(?:tensor|vector))|(?<=[\w)\]]) (?=: \(?tensor)")
_SYMBOL = re.compile(r"@[\w$]+")

_NUMBERS = (
    *("0", "-1", "1", "2", "7", "31", "32", "64", "1000", "65536", "2147483647", "-2147483648", "4294967296"),
    *("9223372036854775807", "-9223372036854775808", "18446744073709551615", "1" + "0" * 30, "1e400", "0x7FC00000"),
)
_TYPES = (
    *("f16", "bf16", "f32", "f64", "f8E4M3FN", "f4E2M1FN", "tf32", "f80", "i1", "i2", "i4", "i7", "i8", "ui8", "si8"),
    *("i32", "ui32", "i64", "i128", "i1000", "index", "complex<f32>", "none", "vector<4xf32>", "!llvm.ptr", "!a.b"),
    *("tensor<f32>", "tuple<f32>", "!quant.uniform<i8:f32, 2.0>", "!stablehlo.token", "memref<4xf32>", "()"),
)
_SHAPES = (
    *("", "0x", "1x", "?x", "*x", "-1x", "2x3x5x", "1x" * 70, "2x" * 40, "4294967296x", "65536x65536x65536x"),
    *("9223372036854775807x", "99999999999999999999x", "1000000007x"),
)
_VALUES = (
    *(
        "unit",
        "true",
        "42",
        "-1 : i32",
        "0 : i64",
        "1.5 : f32",
        '"nsw"',
        '""',
        '"none"',
        "[]",
        "[1, 2]",
        "{}",
        "{a = 1}",
    ),
    *("@nowhere", "@a::@b", "i1", "f32", "tensor<4xf32>", "(f32) -> f32", "affine_map<(d0) -> (d0)>", "array<i64>"),
    *(
        "array<i32: -1, 1, 1>",
        "array<i64: 1, 1, 1>",
        "array<i64: 2147483648, 1, 1>",
        "array<si8: 1>",
        "array<i1: true>",
    ),
    *("dense<1> : tensor<4xi32>", "dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>", 'loc("x")', "[loc(unknown)]"),
    *("#gpu.address_space<workgroup>", "#llvm.linkage<internal>", "#xgpu.map<(d0) -> (d0), d0 in [0, 7]>", "#xgpu.foo"),
    *("distinct[0]<unit>", "dense_resource<k> : tensor<4xf32>", "strided<[1]>", "#stablehlo<precision HIGH>"),
)
_LEVELS = tuple(f'"{level}"' for level in (*MLIR_LEVELS, "ptx", "nowhere"))
_LOOP_PROGRAM = re.compile(r"^\s*(?:size|fn) \w", re.MULTILINE)
_LOOP = re.compile(r"\b(?:par|seq|static)\b")
_LOOP_TYPE = re.compile(r"(?<=: )(?:f32|bf16|s32|u8|s8)\b")
_LOOP_TYPES = ("f16", "bf16", "f32", "f64", "s4", "u4", "s8", "u8", "s32", "u64", "pred", "c64", "f8e4m3fn", "f4e2m1fn")
_LOOP_OPERATOR = re.compile(r"(?<= )(?:[-+*/%<>=]|//|<=|>=|==|<<|>>|\+=|\*=|max=|min=|and)(?= )")
_LOOP_OPERATORS = (
    *("+", "-", "*", "/", "//", "%", "<", ">", "=", "<=", ">=", "==", "!=", "<<", ">>", "+=", "*=", "max=", "^="),
    *("and", "or", "&", "|", "^"),
)
_LOOP_NAME = re.compile(r"\b[a-zA-Z]\w{0,5}\b(?!\()")
_LOOP_NAMES = (
    "i",
    "j",
    "k",
    "t",
    "b",
    "N",
    "T",
    "K",
    "tile",
    "sums",
    "0",
    "1",
    "i * j",
    "i // 2 % 3",
    "x[0]",
    "s32(i)",
)
_LOOP_PLACE = re.compile(r"(?<=[a-z|]) (?={)|(?<=\])(?=\n)|(?<=\d)(?=\n)")
_LOOP_PRAGMAS = (
    *(
        " #grid ",
        " #block ",
        " #thread ",
        " #threads(32) ",
        " #threads(1024) ",
        " #vector(2) ",
        " #vector(3) ",
        " #vector(8) ",
    ),
    *(" #register", " #shared", " #scratch", " #pad(3)", " #atomic"),
)
_SYMBOLS = ('@"a b"', '@"%s"', '@"a.b"', '@"1"', '@"\\C3\\A9"', "@main", "@f$")
_HERO = re.compile(r"(?<=[ {,])xgpu\.hero,? ?")
_ALIASES = re.compile(r"xgpu\.aliases = array<i64[^<>]*>")
_MARKS = (
    "xgpu.hero",
    "xgpu.hero",
    "xgpu.hero",
    "xgpu.commutative",
    "xgpu.ordered",
    "xgpu.recurrence",
    *(f'xgpu.product = "{each}"' for each in ("wgmma", "mma")),
)
_SCHEDULE_NAMES = tuple({name: None for family in FAMILIES.values() for name in family.schedule.names()})
_SCHEDULE_NUMBERS = (*_NUMBERS, *("1", "2", "3", "4", "8", "16", "32", "128", "256", "512", "1024", "true", "false"))
_CHARACTERS = "\0\t\n \"'%#@(){}[]<>:;,=-+*/\\0123456789abxyzé\u2028\U0001f600"


def mutate(random_: random.Random, text: str, corpus: Sequence[str]) -> str:
    """Return the text with one to four mutations: of its characters, or more often such that it still parses.

    Where the text is a plan, half of them are of what the planner tells the emitters.
    """
    tables = [_SYNTAX, *[_MEANING] * 2, *([_PLAN] * 3 if _EMITTER.search(text) else [])]
    if _LOOP_PROGRAM.search(text):
        tables = [_SYNTAX, *[_LOOPS] * 3]
    table = random_.choice(tables)
    for _ in range(random_.choice((1, 1, 1, 2, 2, 4))):
        (mutation,) = random_.choices(list(table), list(table.values()))
        text = mutation(random_, text, corpus)
    return text


def _change_character(random_: random.Random, text: str, corpus: Sequence[str]) -> str:
    position = random_.randrange(len(text) + 1)
    end = min(len(text), position + random_.choice((0, 1, 1)))
    return text[:position] + random_.choice((*_CHARACTERS, "")) + text[end:]


def _change_token(random_: random.Random, text: str, corpus: Sequence[str]) -> str:
    """Delete, double, swap or replace a token, or take one from another text."""
    tokens = _TOKEN.findall(text)
    if not tokens:
        return text
    i, j = random_.randrange(len(tokens)), random_.randrange(len(tokens))
    kind = random_.randrange(5)
    if kind == 0:
        tokens[i] = ""
    elif kind == 1:
        tokens[i] *= 2
    elif kind == 2:
        tokens[i], tokens[j] = tokens[j], tokens[i]
    elif kind == 3:
        tokens[i] = tokens[j]
    else:
        tokens[i] = random_.choice(_TOKEN.findall(random_.choice(corpus)) or [""])
    return "".join(tokens)


def _change_line(random_: random.Random, text: str, corpus: Sequence[str]) -> str:
    """Delete, double or swap a line, or take one from another text."""
    lines = text.split("\n")
    i, j = random_.randrange(len(lines)), random_.randrange(len(lines))
    kind = random_.randrange(4)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(j, lines[i])
    elif kind == 2:
        lines[i], lines[j] = lines[j], lines[i]
    else:
        lines.insert(i, random_.choice(random_.choice(corpus).split("\n")))
    return "\n".join(lines)


def _substitute(pattern: re.Pattern[str], replacements: Sequence[str], all_equal: float) -> Mutation:
    """Return a mutation that replaces a match, or with the probability ``all_equal`` every match equal to it."""

    def mutation(random_: random.Random, text: str, corpus: Sequence[str]) -> str:
        found = list(pattern.finditer(text))
        if not found:
            return text
        match, new = random_.choice(found), random_.choice(replacements)
        if random_.random() >= all_equal:
            return text[: match.start()] + new + text[match.end() :]
        return pattern.sub(lambda other: new if other.group() == match.group() else other.group(), text)

    return mutation


def _change_operation(random_: random.Random, text: str, corpus: Sequence[str]) -> str:
    """Replace an operation's name by another of its dialect, from any text."""
    found = list(_OPERATION.finditer(text))
    if not found:
        return text
    match = random_.choice(found)
    others = [name for other in (text, random_.choice(corpus)) for name in _OPERATION.findall(other)]
    same_dialect = [name for name in others if name.split(".")[0] == match.group().split(".")[0]]
    return text[: match.start()] + random_.choice(same_dialect) + text[match.end() :]


def _drop_attribute(random_: random.Random, text: str, corpus: Sequence[str]) -> str:
    """Remove an attribute with its value."""
    found = list(_ATTRIBUTE.finditer(text))
    if not found:
        return text
    match = random_.choice(found)
    return text[: match.start()] + text[match.end() :]


def _change_name(random_: random.Random, text: str, corpus: Sequence[str]) -> str:
    """Replace a value's or a symbol's name by another's."""
    found = list(_NAME.finditer(text))
    if not found:
        return text
    match = random_.choice(found)
    return text[: match.start()] + random_.choice(found).group() + text[match.end() :]


def _change_hero(random_: random.Random, text: str, corpus: Sequence[str]) -> str:
    """Make an operation a hero, or one no hero any more."""
    heroes, others = list(_HERO.finditer(text)), list(_RESULT_TYPE.finditer(text))
    if heroes and random_.random() < 0.5:
        match = random_.choice(heroes)
        return text[: match.start()] + text[match.end() :]
    if not others:
        return text
    match = random_.choice(others)
    return f"{text[: match.start()]} {{{random_.choice(_MARKS)}}} {text[match.end() :]}"


def _change_schedule(random_: random.Random, text: str, corpus: Sequence[str]) -> str:
    """Change a number of a schedule, or give a fusion a schedule with one number."""
    found = list(_SCHEDULE.finditer(text))
    name, value = random_.choice(_SCHEDULE_NAMES), random_.choice(_SCHEDULE_NUMBERS)
    if not found:
        return _EMITTER.sub(lambda match: f"{match.group()}, xgpu.schedule = #xgpu.schedule<{name} = {value}>", text, 1)
    match = random_.choice(found)
    numbers = _NUMBER_OF_SCHEDULE.findall(match.group())
    if numbers and random_.random() < 0.8:
        name = random_.choice(numbers).partition(" = ")[0]
    kept = [each for each in numbers if not each.startswith(f"{name} =") and random_.random() < 0.9]
    return text[: match.start()] + ", ".join([*kept, f"{name} = {value}"]) + text[match.end() :]


def _change_aliases(random_: random.Random, text: str, corpus: Sequence[str]) -> str:
    """Give a fusion other arrays to update in place."""
    numbers = ", ".join(str(random_.choice((-1, -1, 0, 0, 1, 2, 9))) for _ in range(random_.choice((0, 1, 1, 1, 2, 3))))
    aliases = f"xgpu.aliases = array<i64{': ' * bool(numbers)}{numbers}>"
    if _ALIASES.search(text) and random_.random() < 0.8:
        return _ALIASES.sub(aliases, text, 1)
    return text.replace("xgpu.emitter", f"{aliases}, xgpu.emitter", 1)


def _truncate(random_: random.Random, text: str, corpus: Sequence[str]) -> str:
    return text[: random_.randrange(len(text) + 1)]


def _delete(random_: random.Random, text: str, corpus: Sequence[str]) -> str:
    start = random_.randrange(len(text) + 1)
    return text[:start] + text[start + random_.randint(1, 60) :]


def _nest(random_: random.Random, text: str, corpus: Sequence[str]) -> str:
    """Repeat an opening bracket, or what a level of nesting opens with, very often."""
    opening, closing = random_.choice(
        (("(", ")"), ("{", "}"), ("[", "]"), ("tensor<", ">"), ("tuple<", ">"), ("({", "})"), ("[[", "]]"), ("-", ""))
    )
    depth = random_.choice((3, 50, 900, 5000, 100_000))
    position = random_.randrange(len(text) + 1)
    end = min(len(text), position + random_.choice((0, 1, 20)))
    inner = text[position:end]
    closed = closing * depth if random_.random() < 0.5 else ""
    return text[:position] + opening * depth + inner + closed + text[end:]


def _repeat(random_: random.Random, text: str, corpus: Sequence[str]) -> str:
    """Repeat a part of the text up to some thousand times."""
    start = random_.randrange(len(text) + 1)
    part = text[start : start + random_.randint(1, 40)]
    return text[:start] + part * random_.choice((2, 10, 2000)) + text[start:]


_SYNTAX: dict[Mutation, float] = {
    _change_character: 2,
    _change_token: 4,
    _change_line: 2,
    _substitute(_NUMBER, _NUMBERS, 0.3): 1,
    _substitute(_SHAPE, _SHAPES, 0.3): 1,
    _truncate: 0.5,
    _delete: 1,
    _nest: 0.7,
    _repeat: 0.5,
}

_MEANING: dict[Mutation, float] = {
    _substitute(_NUMBER, _NUMBERS, 0.2): 5,
    _substitute(_EXTENT, _NUMBERS, 0.9): 3,
    _substitute(_SHAPE, _SHAPES, 0.8): 2,
    _substitute(_TYPE, _TYPES, 0.8): 3,
    _change_name: 3,
    _change_operation: 4,
    _change_line: 1,
    _drop_attribute: 2,
    _substitute(_VALUE, _VALUES, 0.1): 4,
    _substitute(_WITHOUT_VALUE, [f"xgpu.kernel = {value}" for value in _VALUES], 0.1): 1,
    _substitute(_LEVEL, _LEVELS, 0): 0.3,
    _substitute(_SYMBOL, _SYMBOLS, 0.8): 0.7,
}

_PLAN: dict[Mutation, float] = {
    _substitute(_EMITTER, [f'"{name}"' for name in FAMILIES], 0): 4,
    _change_schedule: 4,
    _change_hero: 3,
    _change_aliases: 2,
}
"""Mutations of plans, whose text still parses."""

_LOOPS: dict[Mutation, float] = {
    _substitute(_NUMBER, (*_NUMBERS, "3", "8", "16", "33", "256"), 0.3): 4,
    _substitute(_LOOP, ("par", "seq", "static"), 0.1): 3,
    _substitute(_LOOP_TYPE, _LOOP_TYPES, 0.7): 2,
    _substitute(_LOOP_OPERATOR, _LOOP_OPERATORS, 0.1): 4,
    _substitute(_LOOP_NAME, _LOOP_NAMES, 0.1): 5,
    _substitute(_LOOP_PLACE, _LOOP_PRAGMAS, 0): 3,
    _change_line: 3,
}
"""Mutations of programs of the loop language."""
