"""Ranges of integers hold all elements, and what `simplify-integers` makes of a program returns the same."""

import random
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.py.effort import by_level, seed_of_commit
from tests.py.planned import TARGET, planned
from xgpu import ir
from xgpu.analysis.constants.arrays import attribute_of
from xgpu.analysis.constants.ranges import IntegerRanges
from xgpu.options import Options
from xgpu.passes.prepare.constants.simplify_integers import SimplifyIntegers

PROGRAMS = by_level(30, 200, 5000)
SIZE = 9
ENDS = {
    "i1": (0, 1),
    **{f"i{bits}": (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) for bits in (8, 32)},
    **{f"ui{bits}": (0, (1 << bits) - 1) for bits in (8, 32)},
}
TYPES = tuple(ENDS)
NUMPY = {"i1": np.bool_, "i8": np.int8, "i32": np.int32, "ui8": np.uint8, "ui32": np.uint32}


class Drawn:
    """A random program of arithmetic on integers, as text, and its arguments: an array of each type.

    The arguments have numbers of every size, the types' ends among them.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.values: dict[str, list[str]] = {name: [f"%{name}"] for name in TYPES}
        self.lines: list[str] = []
        for _ in range(24):
            self._add()
        self.arguments = [np.array([self._number(name) for _ in range(SIZE)]).astype(NUMPY[name]) for name in TYPES]

    @property
    def text(self) -> str:
        """The program, which returns every value that it computes."""
        parameters = ", ".join(f"%{name}: {_array(name)}" for name in TYPES)
        returned = [(value, name) for name in TYPES for value in self.values[name]]
        types = ", ".join(_array(name) for _, name in returned)
        values = ", ".join(value for value, _ in returned)
        body = "\n".join(self.lines)
        return f"func.func @main({parameters}) -> ({types}) {{\n{body}\nreturn {values} : {types}\n}}"

    def _number(self, name: str) -> int:
        low, high = ENDS[name]
        near = self.random.choice((low, high, 0, 0, 1, 7, 16))
        return max(low, min(high, near + self.random.randint(-3, 3)))

    def _any(self, name: str) -> str:
        return self.random.choice(self.values[name][-5:])

    def _made(self, name: str, text: str) -> str:
        value = f"%v{len(self.lines)}"
        self.lines.append(f"{value} = {text}")
        self.values[name].append(value)
        return value

    def _constant(self, name: str, number: int) -> str:
        text = ("false", "true")[number] if name == "i1" else str(number)
        return self._made(name, f"stablehlo.constant dense<{text}> : {_array(name)}")

    def _binary(self, name: str, op: str, a: str, b: str) -> str:
        return self._made(name, f"stablehlo.{op} {a}, {b} : {_array(name)}")

    def _compare(self, name: str, direction: str, a: str, b: str) -> str:
        kind = "SIGNED" if name in ("i8", "i32") else "UNSIGNED"
        types = f"({_array(name)}, {_array(name)}) -> {_array('i1')}"
        return self._made("i1", f"stablehlo.compare {direction}, {a}, {b}, {kind} : {types}")

    def _select(self, name: str, which: str, a: str, b: str) -> str:
        return self._made(name, f"stablehlo.select {which}, {a}, {b} : {_array('i1')}, {_array(name)}")

    def _add(self) -> None:
        name = self.random.choice(TYPES)
        {
            0: self._add_constant,
            1: self._add_iota,
            2: self._add_binary,
            3: self._add_binary,
            4: self._add_comparison,
            5: self._add_choice,
            6: self._add_conversion,
            7: self._add_remainder,
            8: self._add_quotient,
            9: self._add_unary,
            10: self._add_clamp,
        }[self.random.randrange(11)](name)

    def _add_constant(self, name: str) -> None:
        self._constant(name, self._number(name))

    def _add_iota(self, name: str) -> None:
        if name != "i1":
            self._made(name, f"stablehlo.iota dim = 0 : {_array(name)}")

    def _add_binary(self, name: str) -> None:
        bits = ("and", "or", "xor", "maximum", "minimum")
        shifts = ("shift_left", "shift_right_logical", "shift_right_arithmetic")
        op = self.random.choice(bits if name == "i1" else (*bits, *shifts, "add", "subtract", "multiply"))
        other = self._any(name)
        if op in shifts:
            other = self._constant(name, self.random.randrange(8))
        self._binary(name, op, self._any(name), other)

    def _add_comparison(self, name: str) -> None:
        direction = self.random.choice(("EQ", "NE", "LT", "LE", "GT", "GE"))
        self._compare(name, direction, self._any(name), self._any(name))

    def _add_choice(self, name: str) -> None:
        self._select(name, self._any("i1"), self._any(name), self._any(name))

    def _add_conversion(self, name: str) -> None:
        other = self.random.choice(TYPES)
        self._made(other, f"stablehlo.convert {self._any(name)} : ({_array(name)}) -> {_array(other)}")

    def _divisor(self, name: str) -> int:
        return self.random.choice((1, 2, 3, 7, 16, 64))

    def _other(self, usual: str, *others: str) -> str:
        """Return what `jax.numpy` writes, mostly: programs that only look like it mean something else."""
        return self.random.choice((usual, usual, usual, *others))

    def _add_remainder(self, name: str) -> None:
        """Add ``x % c`` as `jax.numpy` writes it, or something like it."""
        if name == "i1":
            return
        x, size = self._any(name), self._constant(name, self._divisor(name))
        zero = self._constant(name, int(self._other("0", "1")))
        rest = self._binary(name, "remainder", x, size)
        negative = self._compare(name, self._other("LT", "LE", "NE"), rest, zero)
        other = self._compare("i1", "NE", negative, self._compare(name, "LT", size, zero))
        condition = self._binary("i1", "and", other, self._compare(name, self._other("NE", "EQ", "GE"), rest, zero))
        self._select(name, condition, self._binary(name, "add", rest, size), rest)

    def _add_quotient(self, name: str) -> None:
        """Add ``x // c`` as `jax.numpy` writes it, or something like it."""
        if name not in ("i8", "i32"):
            return
        x, size = self._any(name), self._constant(name, self._divisor(name))
        zero, one = self._constant(name, 0), self._constant(name, int(self._other("1", "2")))
        number = self._constant(name, int(self._other("0", "3", "-3")))
        found = self._binary(name, "divide", x, size)
        signs = [self._made(name, f"stablehlo.sign {each} : {_array(name)}") for each in (x, size)]
        rest = self._binary(name, "remainder", x, size)
        uneven = self._compare(name, self._other("NE", "EQ", "LT"), rest, number)
        below = self._compare(name, self._other("LT", "LE"), x, zero)
        negative = self.random.choice((self._compare(name, self._other("NE", "EQ"), *signs), below))
        condition = self._binary("i1", "and", negative, uneven)
        self._select(name, condition, self._binary(name, "subtract", found, one), found)

    def _add_unary(self, name: str) -> None:
        names = {"i1": ("not",), "i8": ("abs", "negate", "sign", "popcnt"), "i32": ("abs", "negate", "sign")}
        op = self.random.choice(names.get(name, ("popcnt", "count_leading_zeros")))
        self._made(name, f"stablehlo.{op} {self._any(name)} : {_array(name)}")

    def _add_clamp(self, name: str) -> None:
        if name != "i1":
            low, high = sorted((self._number(name), self._number(name)))
            ends = self._constant(name, low), self._constant(name, high)
            self._made(name, f"stablehlo.clamp {ends[0]}, {self._any(name)}, {ends[1]} : {_array(name)}")


def _array(name: str) -> str:
    return f"tensor<{SIZE}x{name}>"


@pytest.fixture(scope="module", autouse=True)
def _context() -> Iterator[None]:
    with ir.make_context(), ir.Location.unknown():
        yield


def _results(module: ir.Module, arguments: list[np.ndarray]) -> list[np.ndarray]:
    types = [ir.Type.parse(_array(name)) for name in TYPES]
    attributes = [attribute_of(array, type_) for array, type_ in zip(arguments, types, strict=True)]
    return [np.array(each) for each in ir.stablehlo.eval_module(module, attributes)]


@pytest.mark.parametrize("part", range(4))
def test_all_elements_are_in_the_range(part: int) -> None:
    decided = 0
    for number in range(PROGRAMS // 4):
        drawn = Drawn(seed_of_commit() * 4 + part + number * 1_000_003)
        module = ir.Module.parse(drawn.text)
        block = module.body.operations[0].operation.regions[0].blocks[0]
        returned = list(block.operations[len(block.operations) - 1].operation.operands)
        ranges = IntegerRanges()
        for value, result in zip(returned, _results(module, drawn.arguments), strict=True):
            found = ranges.range_of(value)
            assert found is not None
            decided += found.is_point
            assert found.lower <= int(result.min()), (str(value), drawn.text)
            assert int(result.max()) <= found.upper, (str(value), drawn.text)
    assert decided


@pytest.mark.parametrize("part", range(4))
def test_simplified_programs_return_the_same(part: int) -> None:
    changed = 0
    for number in range(PROGRAMS // 4):
        drawn = Drawn(seed_of_commit() * 4 + part + number * 1_000_003)
        module = ir.Module.parse(drawn.text)
        expected = _results(module, drawn.arguments)
        before = str(module)
        SimplifyIntegers().apply(module)
        changed += str(module) != before
        for got, wanted in zip(_results(module, drawn.arguments), expected, strict=True):
            np.testing.assert_array_equal(got, wanted, drawn.text)
    assert changed


def _prepared(function: object, *arguments: str) -> str:
    return planned(function, list(arguments), TARGET, Options()).ir("prepared")


def test_indices_that_are_known_are_not_compared() -> None:
    """Of iota, of a search for an extreme, of a sort, of a remainder, and of a loop's counter."""
    assert "compare" not in _prepared(lambda x: x[jnp.arange(100) * 3], "f32[1000]")
    assert "select" not in _prepared(lambda x: jnp.take(x, jnp.arange(100) % 10), "f32[1000]")
    counted = _prepared(lambda x: jax.lax.fori_loop(0, 9, lambda i, y: y.at[i + 1].add(jnp.sin(y[i])), x), "f32[1000]")
    assert "select" not in counted
    found = _prepared(lambda x: x[jnp.argmax(x)], "f32[1000]")
    assert "select" not in found.rpartition("stablehlo.return")[2]
    sorted_ = _prepared(lambda x, y: y[jnp.argsort(x)], "f32[1000]", "f32[1000]")
    assert "select" not in sorted_.rpartition("stablehlo.return")[2]


@pytest.mark.parametrize(
    ("start", "step", "goes_on", "is_known"),
    [
        (0, 1, lambda i: i < 90, True),
        (0, 2, lambda i: i <= 90, True),
        (0, 1, lambda i: i < 90, True),
        (90, -1, lambda i: i >= 0, True),
        (90, -3, lambda i: i > -1, True),
        (90, -1, lambda i: i >= -1, False),
        (90, -1, lambda i: i < 91, False),
        (0, 1, lambda i: i != 90, False),
        (0, 1, lambda i: i <= 2**31 - 1, False),
        (90, -1, lambda i: i >= -(2**31), False),
    ],
)
def test_counters_go_up_to_a_bound_or_down(
    start: int, step: int, goes_on: Callable[[jax.Array], jax.Array], is_known: bool
) -> None:
    """An index that is known not to be negative is not compared with zero; one that may wrap around is."""

    def gathered(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        def body(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            i, y = state
            return i + step, y + jnp.sin(x[i])

        return jax.lax.while_loop(lambda state: goes_on(state[0]), body, (jnp.int32(start), jnp.zeros(100)))

    text = _prepared(gathered, "f32[100,100]")
    assert ("stablehlo.select" not in text) == is_known


def test_quotients_by_powers_of_two_are_shifts() -> None:
    text = _prepared(lambda x: (x % 256, x // 16), "s32[1000]")
    assert text.count("stablehlo.and") == 1
    assert text.count("stablehlo.shift_right_arithmetic") == 1
    assert "stablehlo.remainder" not in text
    assert "stablehlo.divide" not in text
