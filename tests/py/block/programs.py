"""Kernels as a person might write them on tiles, as text of level ``tiles``: products with what is around them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xgpu.tools.fuzzing.blocks.text import BlockText, DrawnTile, Number

_LOWEST = "0xFF800000"


@dataclass(frozen=True)
class Linear:
    """A product of matrices with a bias, by tiles: their sizes, and how operands lie."""

    sizes: tuple[int, int, int]
    tile: tuple[int, int, int]
    element: str = "bf16"
    total: str = "f32"
    result: str = "f32"
    threads: int = 128
    precision: str = "DEFAULT"
    left_turned: bool = False
    right_turned: bool = False
    given_of_steps: str = ""
    given_of_tiles: str = ""

    def text(self) -> str:
        """Return the kernel."""
        (m, n, k), (rows, columns, terms) = self.sizes, self.tile
        left = (k, m) if self.left_turned else (m, k)
        right = (n, k) if self.right_turned else (k, n)
        inputs = [(left, self.element), (right, self.element), ((n,), self.total)]
        grid = (-(-m // rows), -(-n // columns))
        kernel = BlockText(inputs, [((m, n), self.result)], grid, self.threads)
        i, j = kernel.at
        zero = kernel.constant("0" if self.total.startswith("i") else "0.0", (rows, columns), self.total)
        with kernel.steps(-(-k // terms), [zero], self.given_of_steps) as steps:
            s, given = steps.number, self.given_of_tiles
            x = _turned(kernel, 0, (i, s), (rows, terms), self.left_turned, given)
            w = _turned(kernel, 1, (s, j), (terms, columns), self.right_turned, given)
            contracted = ((0 if self.left_turned else 1,), (1 if self.right_turned else 0,))
            product = kernel.dot(x, w, contracted, element=self.total, precision=self.precision)
            steps.yielded = [kernel.map("add", steps.carried[0], product)]
        bias = kernel.broadcast(kernel.tile(2, (j,), (columns,)), (rows, columns), (1,))
        total = kernel.map("add", steps.results[0], bias)
        if not self.total.startswith("i"):
            total = kernel.map("tanh", total)
        kernel.insert(kernel.convert(total, self.result) if self.result != self.total else total, 0, (i, j))
        return kernel.text()


def _turned(
    kernel: BlockText, array: int, at: Sequence[Number], shape: tuple[int, int], turned: bool, given: str
) -> DrawnTile:
    step = -1 if turned else 1
    return kernel.tile(array, at[::step], shape[::step], given=given)


def normalised_linear() -> str:
    """Return a product whose rows are divided by their root mean square, which the same steps add up."""
    (m, n, k), (rows, columns, terms) = (50, 40, 70), (32, 32, 16)
    kernel = BlockText([((m, k), "bf16"), ((k, n), "bf16")], [((m, n), "f32")], (-(-m // rows), -(-n // columns)))
    i, j = kernel.at
    inits = [kernel.constant("0.0", (rows, columns), "f32"), kernel.constant("0.0", (rows,), "f32")]
    zero = kernel.constant("0.0", (), "f32")
    with kernel.steps(-(-k // terms), inits) as steps:
        x = kernel.tile(0, (i, steps.number), (rows, terms))
        w = kernel.tile(1, (steps.number, j), (terms, columns))
        wide = kernel.convert(x, "f32")
        squares = kernel.reduce("add", kernel.map("multiply", wide, wide), zero, [1])
        product, sums = steps.carried
        steps.yielded = [kernel.map("add", product, kernel.dot(x, w)), kernel.map("add", sums, squares)]
    product, sums = steps.results
    share, least = (kernel.constant(text, (rows,), "f32") for text in (f"{1 / k:.8f}", "1.0e-5"))
    scale = kernel.map("rsqrt", kernel.map("add", kernel.map("multiply", sums, share), least))
    kernel.insert(kernel.map("multiply", product, kernel.broadcast(scale, (rows, columns), (0,))), 0, (i, j))
    return kernel.text()


def softmax_of_product() -> str:
    """Return the softmax of a product's rows, each of which a block has as a whole."""
    (m, n, k), (rows, terms) = (40, 48, 40), (16, 16)
    kernel = BlockText([((m, k), "bf16"), ((k, n), "bf16")], [((m, n), "f32")], (-(-m // rows),))
    (i,) = kernel.at
    with kernel.steps(-(-k // terms), [kernel.constant("0.0", (rows, n), "f32")]) as steps:
        x = kernel.tile(0, (i, steps.number), (rows, terms))
        w = kernel.tile(1, (steps.number, None), (terms, n))
        steps.yielded = [kernel.map("add", steps.carried[0], kernel.dot(x, w))]
    largest = kernel.reduce("maximum", steps.results[0], kernel.constant(_LOWEST, (), "f32"), [1])
    below = kernel.map("subtract", steps.results[0], kernel.broadcast(largest, (rows, n), (0,)))
    weights = kernel.map("exponential", below)
    total = kernel.reduce("add", weights, kernel.constant("0.0", (), "f32"), [1])
    kernel.insert(kernel.map("divide", weights, kernel.broadcast(total, (rows, n), (0,))), 0, (i, None))
    return kernel.text()


def attention() -> str:
    """Return attention with an online softmax: two products in a step, and what it carries of each row."""
    (heads, queries, keys, width), (rows, terms) = (2, 40, 48, 32), (32, 16)
    given = [((heads, size, width), "bf16") for size in (queries, keys, keys)]
    kernel = BlockText(given, [((heads, queries, width), "bf16")], (heads, -(-queries // rows)))
    h, i = kernel.at
    q = kernel.tile(0, (h, i, None), (1, rows, width), dropped=(0,))
    inits = [kernel.constant("0.0", (rows, width), "f32"), kernel.constant("-1.0e30", (rows,), "f32")]
    inits.append(kernel.constant("0.0", (rows,), "f32"))
    lowest, zero = kernel.constant(_LOWEST, (), "f32"), kernel.constant("0.0", (), "f32")
    with kernel.steps(keys // terms, inits) as steps:
        k, v = (kernel.tile(n, (h, steps.number, None), (1, terms, width), dropped=(0,)) for n in (1, 2))
        product, largest, sums = steps.carried
        logits = kernel.dot(q, k, contracted=((1,), (1,)))
        logits = kernel.map("multiply", logits, kernel.constant("0.17", (rows, terms), "f32"))
        now = kernel.map("maximum", largest, kernel.reduce("maximum", logits, lowest, [1]))
        below = kernel.map("subtract", logits, kernel.broadcast(now, (rows, terms), (0,)))
        weights = kernel.map("exponential", below)
        kept = kernel.map("exponential", kernel.map("subtract", largest, now))
        added = kernel.dot(kernel.convert(weights, "bf16"), v)
        product = kernel.map("multiply", product, kernel.broadcast(kept, (rows, width), (0,)))
        sums = kernel.map("add", kernel.map("multiply", sums, kept), kernel.reduce("add", weights, zero, [1]))
        steps.yielded = [kernel.map("add", product, added), now, sums]
    product, _, sums = steps.results
    result = kernel.map("divide", product, kernel.broadcast(sums, (rows, width), (0,)))
    kernel.insert(kernel.convert(result, "bf16"), 0, (h, i, None), dropped=(0,))
    return kernel.text()


def without_steps() -> str:
    """Return a function of elements and a sum of rows, of tiles that fit nothing."""
    kernel = BlockText([((33, 21), "f32"), ((21,), "f32")], [((33, 21), "f32"), ((33,), "f32")], (3,), 64)
    (i,) = kernel.at
    x, row = kernel.tile(0, (i, None), (12, 21)), kernel.tile(1, (None,), (21,))
    total = kernel.map("add", x, kernel.broadcast(row, (12, 21), (1,)))
    kernel.insert(kernel.map("sine", total), 0, (i, None))
    kernel.insert(kernel.reduce("add", total, kernel.constant("1.5", (), "f32"), [1]), 1, (i,))
    return kernel.text()


def moved() -> str:
    """Return integers that are transposed, put side by side, padded, and taken apart."""
    kernel = BlockText([((40, 24), "i32")] * 2, [((48, 40), "i32"), ((24, 5), "i32")], (2,), 64)
    (i,) = kernel.at
    x, y = (kernel.transpose(kernel.tile(n, (i, None), (20, 24)), (1, 0)) for n in range(2))
    kernel.insert(kernel.op("concatenate", [x, y], (48, 20), "i32", "dimension = 0 : i64"), 0, (None, i))
    largest = kernel.reduce("maximum", x, kernel.constant("-5", (), "i32"), [1])
    sizes = "edge_padding_low = array<i64: 4>, edge_padding_high = array<i64: 2>, interior_padding = array<i64: 0>"
    padded = kernel.op("pad", [largest, kernel.constant("7", (), "i32")], (30,), "i32", sizes)
    bounds = "start_indices = array<i64: 3>, limit_indices = array<i64: 27>, strides = array<i64: 2>"
    column = kernel.op("reshape", [kernel.op("slice", [padded], (12,), "i32", bounds)], (12, 1), "i32")
    kernel.insert(kernel.op("concatenate", [column] * 5, (12, 5), "i32", "dimension = 1 : i64"), 1, (i, None))
    return kernel.text()


def products_of_a_batch() -> str:
    """Return products of several matrices, and the smallest of each column."""
    kernel = BlockText(
        [((4, 20, 24), "bf16"), ((4, 24, 18), "bf16")], [((4, 20, 18), "f32"), ((4, 18), "f32")], (2,), 64
    )
    (i,) = kernel.at
    x, w = kernel.tile(0, (i, None, None), (2, 20, 24)), kernel.tile(1, (i, None, None), (2, 24, 18))
    product = kernel.dot(x, w, ((2,), (1,)), ((0,), (0,)))
    kernel.insert(product, 0, (i, None, None))
    kernel.insert(kernel.reduce("minimum", product, kernel.constant("0.0", (), "f32"), [1]), 1, (i, None))
    return kernel.text()


def by_a_vector() -> str:
    """Return the product of a matrix and a vector, of f32 as it is."""
    kernel = BlockText([((40, 24), "f32"), ((24,), "f32")], [((40,), "f32")], (2,), 64)
    (i,) = kernel.at
    x, y = kernel.tile(0, (i, None), (20, 24)), kernel.tile(1, (None,), (24,))
    kernel.insert(kernel.dot(x, y, precision="HIGHEST"), 0, (i,))
    return kernel.text()


def conditions() -> str:
    """Return what booleans choose, which are kept and reduced themselves."""
    kernel = BlockText([((30, 20), "f32")], [((30, 20), "f32"), ((30,), "i1")], (2,), 64)
    (i,) = kernel.at
    x = kernel.tile(0, (i, None), (15, 20))
    direction = "comparison_direction = #stablehlo<comparison_direction GT>"
    holds = kernel.op("compare", [x, kernel.constant("0.5", (15, 20), "f32")], (15, 20), "i1", direction)
    turned = kernel.op("reverse", [holds], (15, 20), "i1", "dimensions = array<i64: 1>")
    chosen = kernel.op("select", [turned, x, kernel.constant("-1.0", (15, 20), "f32")], (15, 20), "f32")
    kernel.insert(chosen, 0, (i, None))
    kernel.insert(kernel.reduce("or", holds, kernel.constant("false", (), "i1"), [1]), 1, (i,))
    return kernel.text()


_SWIZZLED = ", xgpu.layout = array<i64: 64, 1>, xgpu.swizzle = array<i64: 3, 3, 6>"

PROGRAMS: dict[str, Callable[[], str]] = {
    "product": Linear((64, 64, 96), (32, 32, 32)).text,
    "product of ragged sizes": Linear((70, 45, 57), (32, 32, 32)).text,
    "product of one tile": Linear((15, 15, 15), (16, 16, 16)).text,
    "product of odd tiles": Linear((35, 37, 39), (15, 13, 11)).text,
    "product of turned operands": Linear(
        (70, 50, 64), (32, 32, 32), "f16", result="bf16", threads=64, left_turned=True
    ).text,
    "product of turned odd tiles": Linear(
        (30, 31, 33), (10, 12, 24), threads=64, left_turned=True, right_turned=True
    ).text,
    "product of columns": Linear((40, 50, 60), (32, 16, 16), right_turned=True).text,
    "product by tf32": Linear((40, 40, 40), (32, 32, 16), "f32").text,
    "product of f32": Linear((40, 40, 40), (32, 32, 16), "f32", precision="HIGHEST").text,
    "product of f64": Linear((33, 20, 17), (16, 16, 8), "f64", "f64", "f64", 64).text,
    "product of integers": Linear((33, 20, 17), (16, 16, 8), "i32", "i32", "i32", 64).text,
    "product of bytes": Linear((33, 20, 40), (16, 16, 8), "i8", "i32", "i32", 64).text,
    "four stages": Linear((64, 64, 100), (32, 32, 32), given_of_steps=", xgpu.stages = 4 : i64").text,
    "more stages than steps": Linear((32, 32, 40), (32, 32, 32), given_of_steps=", xgpu.stages = 4 : i64").text,
    "plain copies ahead": Linear(
        (64, 64, 200),
        (32, 32, 32),
        given_of_steps=", xgpu.stages = 3 : i64",
        given_of_tiles=', xgpu.copy = "plain"',
    ).text,
    "swizzled": Linear((128, 128, 192), (64, 64, 64), given_of_tiles=_SWIZZLED).text,
    "normalised linear": normalised_linear,
    "softmax of a product": softmax_of_product,
    "attention": attention,
    "without steps": without_steps,
    "moved": moved,
    "products of a batch": products_of_a_batch,
    "by a vector": by_a_vector,
    "conditions": conditions,
}
"""The kernels, by name."""
