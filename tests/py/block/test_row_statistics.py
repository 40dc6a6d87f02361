"""Numbers of rows of products: reduced, carried, put into rows again and stored by the threads that have the rows."""

from typing import Any

import numpy as np
import pytest

import xgpu
from xgpu.runtime.compare import compare
from xgpu.tools.fuzzing.blocks.text import BlockText, DrawnTile

_STARTS = {
    ("add", "f32"): "0.0",
    ("multiply", "f32"): "1.0",
    ("maximum", "f32"): "0xFF800000",
    ("minimum", "f32"): "0x7F800000",
    ("maximum", "i32"): "-2147483648",
    ("add", "i32"): "5",
    ("maximum", "bf16"): "0xFF80",
    ("add", "bf16"): "0.0",
}


def rows_text(
    shape: tuple[int, int, int], threads: int, name: str, element: str = "f32", multiplied: str = "bf16", m: int = 100
) -> str:
    """Steps that carry a number of each row of a product, then rows with these numbers in them; both are stored."""
    (rows, columns, terms), steps = shape, 3
    given = [((m, steps * terms), multiplied), ((steps * terms, columns), multiplied)]
    kernel = BlockText(given, [((m,), element), ((m, columns), element)], (-(-m // rows),), threads)
    (i,) = kernel.at
    start = _STARTS[name, element]

    def product(step: Any) -> DrawnTile:
        x, w = kernel.tile(0, (i, step), (rows, terms)), kernel.tile(1, (step, None), (terms, columns))
        made = kernel.dot(x, w, element="i32" if multiplied == "i8" else "f32")
        return made if made.element == element else kernel.convert(made, element)

    with kernel.steps(steps, [kernel.constant(start, (rows,), element)]) as each:
        found = kernel.reduce(name, product(each.number), kernel.constant(start, (), element), [1])
        each.yielded = [kernel.map(name, each.carried[0], found)]
    numbers = each.results[0]
    with kernel.steps(1, [kernel.constant(start, (rows, columns), element)]) as last:
        last.yielded = [kernel.map("subtract", product(last.number), kernel.broadcast(numbers, (rows, columns), (0,)))]
    kernel.insert(numbers, 0, (i,))
    kernel.insert(last.results[0], 1, (i, None))
    return kernel.text()


def agrees(text: str, arguments: list[Any]) -> None:
    """Compare the kernel, run with every access checked, with XLA."""
    program = xgpu.compile(text)
    results, wanted = program.run(*arguments, sanitize=True), program.reference(*arguments)
    for result, expected in zip(results, wanted, strict=True):
        comparison = compare(result, expected)
        assert comparison.agrees, str(comparison)


def quarters(text: str, most: int = 4) -> list[Any]:
    """Arguments whose products and sums are exact in any order."""
    values = np.random.default_rng(3)
    return [
        (values.integers(-most, most + 1, each.shape) / (1 if each.dtype == np.int8 else 4)).astype(each.dtype)
        for each in xgpu.compile(text).random_inputs(1)
    ]


@pytest.mark.parametrize("name", ["add", "maximum", "minimum", "multiply"])
@pytest.mark.parametrize(
    ("shape", "threads"),
    [
        ((64, 48, 32), 128),  # a warp group
        ((128, 8, 16), 256),  # two, one below the other
        ((64, 64, 32), 256),  # two, side by side: rows are shared
        ((32, 24, 16), 64),  # warps
        ((16, 40, 16), 32),
        ((16, 20, 16), 32),  # columns that threads have twice
        ((40, 16, 16), 96),  # rows that threads have twice
    ],
)
def test_statistics(name: str, shape: tuple[int, int, int], threads: int) -> None:
    text = rows_text(shape, threads, name)
    agrees(text, quarters(text, 2 if name == "multiply" else 4))


@pytest.mark.parametrize("multiplied", ["f32", "i8", "f16"])
def test_types(multiplied: str) -> None:
    element = "i32" if multiplied == "i8" else "f32"
    for name in ("add", "maximum"):
        text = rows_text((32, 24, 16), 64, name, element, multiplied)
        agrees(text, quarters(text))


def test_rounded_rows() -> None:
    """Largest ones of 16 bits, and sums that are rounded each time, of terms that leave nothing to round."""
    for name in ("maximum", "add"):
        text = rows_text((64, 16, 16), 128, name, "bf16")
        agrees(text, quarters(text, 1))


@pytest.mark.parametrize("name", ["add", "maximum", "minimum"])
def test_numbers_that_are_not_finite(name: str) -> None:
    text = rows_text((64, 32, 16), 128, name)
    x, w = quarters(text)
    x[::7, 0], x[3::11, 5], x[5::13, 20], x[6::13] = np.nan, np.inf, -np.inf, -0.0
    with np.errstate(invalid="ignore"):
        agrees(text, [x, w])


def test_a_row_that_something_else_reads_is_in_shared_memory_too() -> None:
    """Numbers of rows become those of columns of another tile: a copy, and a barrier before it is read."""
    rows = 64
    kernel = BlockText([((rows, 32), "bf16"), ((32, rows), "bf16")], [((rows, rows), "f32")], (1,), 128)
    x, w = kernel.tile(0, (None, None), (rows, 32)), kernel.tile(1, (None, None), (32, rows))
    product = kernel.dot(x, w)
    largest = kernel.reduce("maximum", product, kernel.constant("0xFF800000", (), "f32"), [1])
    down, across = (kernel.broadcast(largest, (rows, rows), (each,)) for each in (0, 1))
    kernel.insert(kernel.map("subtract", kernel.map("add", product, down), across), 0, (None, None))
    agrees(kernel.text(), quarters(kernel.text()))
