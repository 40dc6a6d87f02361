"""Boxes of iterations that a thread goes through together: results of one by one, and fewer accesses."""

import itertools

import numpy as np
import pytest

import xgpu
from xgpu.errors import InvalidInput
from xgpu.indexing.affine import dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.nests.maps.box_scores import score_of_boxes
from xgpu.nests.maps.boxes import Box, in_boxes, steps_of
from xgpu.nests.maps.mapping import choose_boxes, family
from xgpu.nests.maps.scores import Space, Touch

from .te import compiled

_PRODUCT = """fn f(A: f32[{m}, {k}], B: f32[{k}, {n}], out C: f32[{m}, {n}]) {{
  par {m} i{rows} {{ par {n} j{columns} {{
    C[i, j] = 0.0
    seq {k} k {{ {body} }}
  }} }}
}}"""


def product(m: int, n: int, k: int, rows: int = 0, columns: int = 0, body: str = "C[i, j] += A[i, k] * B[k, j]") -> str:
    """Return the text of a product, with boxes of ``rows`` and ``columns`` if these are given."""
    asked = [f" #together({each})" if each else "" for each in (rows, columns)]
    return _PRODUCT.format(m=m, n=n, k=k, rows=asked[0], columns=asked[1], body=body)


_BODIES = [
    "C[i, j] += A[i, k] * B[k, j]",
    # Conditions that hold for all iterations of a box, and some that tell them apart.
    "if k >= 3 { C[i, j] += A[i, k] * B[k, j] }",
    "if k >= i and j < 7 { C[i, j] += A[i, k] * B[k, j] } else { C[i, j] += 2.0 }",
    # Registers, indexed by a loop that is written out.
    "let x = A[i, k]\n new r: f32[2]\n seq 2 s { r[s] = x * B[k, j] }\n C[i, j] += r[1] - r[0] * x",
    # An index that a value decides.
    "C[i, j] += A[i, u32(k)] * B[u32(i) % 7, j]",
]


@pytest.mark.parametrize("body", _BODIES)
@pytest.mark.parametrize("box", [(1, 8), (4, 1), (2, 4)])
def test_results_are_those_of_one_by_one(box: tuple[int, int], body: str) -> None:
    program, plain = (compiled(product(24, 40, 30, *each, body)) for each in (box, (1, 1)))
    inputs = program.random_inputs()
    (expected,) = plain.run(*inputs)
    for sanitize in (False, True):
        np.testing.assert_array_equal(program.run(*inputs, sanitize=sanitize)[0], expected)


@pytest.mark.parametrize(
    ("condition", "rows", "columns"),
    [("k <= i", 1, 4), ("k <= j", 16, 1), ("k < 700", 4, 4), ("k <= i and k <= j", 1, 1)],
)
def test_boxes_lie_along_loops_that_conditions_do_not_tell_apart(condition: str, rows: int, columns: int) -> None:
    text = product(2048, 2048, 1024, body=f"if {condition} {{ C[i, j] += A[i, k] * B[k, j] }}")
    text = text.replace("seq 1024 k", "seq 1024 k #tile(0)")
    found = [line for line in compiled(text).ir("mapped").splitlines() if '"grid"' in line and "extent" in line]
    sizes = [int(line.split("together = ")[1].split()[0]) if "together" in line else 1 for line in found]
    assert sizes == [columns, rows]


@pytest.mark.parametrize("condition", ["k <= i", "k <= j", "k + 3 > i", "k < 20"])
def test_triangular_products(condition: str) -> None:
    body = f"if {condition} {{ C[i, j] += A[i, k] * B[k, j] }}"
    asked = [compiled(product(32, 48, 40, *box, body)) for box in ((1, 16), (16, 1), (1, 1))]
    inputs = asked[0].random_inputs(0)
    boxed, other, plain = (program.run(*inputs, sanitize=True)[0] for program in asked)
    np.testing.assert_array_equal(boxed, plain)
    np.testing.assert_array_equal(other, plain)


def test_threads_of_a_block_take_boxes_too() -> None:
    text = """fn f(A: f32[64, 64], B: f32[64, 64], out C: f32[64, 64]) { par 4 b {
      new a: f32[16, 64]
      new sum: f32[16, 64]
      par 16 i { par 64 k { a[i, k] = A[b * 16 + i, k] } }
      par 16 i { par 64 j { sum[i, j] = 0.0
        seq 64 k { sum[i, j] += a[i, k] * B[k, j] } } }
      par 16 i { par 64 j { C[b * 16 + i, j] = sum[i, j] } }
    } }"""
    program = compiled(text)
    assert "together = " in program.ir("mapped")
    inputs = [np.rint(4 * each) for each in program.random_inputs()]
    for sanitize in (False, True):
        np.testing.assert_array_equal(program.run(*inputs, sanitize=sanitize)[0], inputs[0] @ inputs[1])


def test_large_products_have_boxes_and_read_less() -> None:
    program = compiled(product(1024, 1024, 64))
    (kernel,) = program.kernels
    threads = kernel.grid[0] * kernel.block[0]
    box = 1024 * 1024 // threads
    assert box > 1
    loads = program.ir("ptx").count("ld.global")
    alone = compiled(product(1024, 1024, 64, 1, 1)).ir("ptx").count("ld.global")
    assert loads < alone * box


@pytest.mark.parametrize("text", ["program", "mapped"])
def test_what_was_chosen_can_be_written_and_read(text: str) -> None:
    program = compiled(product(64, 64, 30, 2, 4))
    again = xgpu.compile(program.ir("loops" if text == "program" else "mapped"))
    assert again.ir("ptx") == program.ir("ptx")
    assert "#together(2)" in program.ir("te")


def test_every_box_has_each_iteration_once() -> None:
    space = Space((4, 12), 32, True)
    for map_ in family(space, (1,)):
        whole = in_boxes(map_, (2, 4))
        assert whole.coverage((8, 48)).is_exact
        steps = steps_of(whole, 2)
        assert len(steps.points) == 8
        assert len(steps.map.results) == 2 + 4


def test_the_box_and_map_are_the_best_of_all() -> None:
    space, boxes = Space((32, 64), 32, True), list(itertools.product((1, 2, 4), (1, 2, 4)))
    touches = [Touch(dim(0) * 80, 32, 80), Touch(dim(1), 32, 80), Touch(dim(0) * 64 + dim(1), 32)]
    choice = choose_boxes(space, touches, boxes)
    scores = [
        score_of_boxes(map_, outer, touches, Box(sides))
        for sides in boxes
        for outer in [Space(Box(sides).outer(space.extents), 32, True)]
        for map_ in family(outer, (1,))
    ]
    assert choice.complete
    assert choice.score.key == min(score.key for score in scores)
    assert choice.box == (4, 4)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("together = 2", "together = 4", "expected its last range variables to be ['[0, 3]', '[0, 3]']"),
        ("s0 + ", "(s0 + s1) mod 2 + ", "expected the range variable of its box alone in the index of 'i'"),
        (", s1 in [0, 3]", ", s1 in [0, 3], s0 + d0 in [0, 600]", "expected whole boxes"),
    ],
)
def test_maps_of_text_are_checked(old: str, new: str, message: str) -> None:
    text = compiled(product(64, 64, 30, 2, 4)).ir("mapped")
    line = next(line for line in text.splitlines() if "together = 2" in line)
    assert old in line
    with pytest.raises(InvalidInput) as raised:
        xgpu.compile(text.replace(line, line.replace(old, new)))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("loops", "message"),
    [
        ("par 64 i #together(5) { par 32 j { B[i, j] = 1.0 } }", "'#together(5)': expected a divisor of 64"),
        ("par 64 i #together(2) { fully par 32 j { B[i, j] = 1.0 } }", "has a thread of its own"),
        ("par 64 i #together(2) { par 32 j #vector(2) { B[i, j] = 1.0 } }", "'#vector' says which iterations"),
        ("par 64 i #together(2) { new s: f32\n s = 1.0\n par 32 j { B[i, j] = s } }", "there is a par loop inside of"),
        ("par 64 i #together(65) { par 32 j { B[i, j] = 1.0 } }", "expected 1 to 64, got 65"),
    ],
)
def test_boxes_that_there_are_not(loops: str, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        compiled(f"fn f(out B: f32[64, 32]) {{ {loops} }}")
    assert message in str(raised.value)


def test_a_map_without_boxes_has_the_steps_that_it_has() -> None:
    map_ = IndexingMap.parse("(d0)[s0] -> (d0 + s0 * 32), d0 in [0, 31], s0 in [0, 3]")
    assert steps_of(map_, 0).map == map_


@pytest.mark.parametrize(("dtype", "extent", "count"), [("s32", 64, 8), ("s32", 12, 4), ("s32", 63, 1), ("s8", 64, 32)])
def test_iterations_that_read_a_sector_are_written_one_after_the_other(dtype: str, extent: int, count: int) -> None:
    program = compiled(f"""fn f(A: {dtype}[1000, {extent}], out B: {dtype}[1000]) {{ par 1000 i {{
      new sum: {dtype}
      sum = 0
      seq {extent} k {{ sum += A[i, k] }}
      B[i] = sum
    }} }}""")
    assert program.ir("emitted").count("tensor.extract ") == count
    (values,) = program.random_inputs()
    np.testing.assert_array_equal(program.run(values, sanitize=True)[0], values.sum(axis=1, dtype=values.dtype))


def test_long_iterations_are_not_written_out() -> None:
    terms = " + ".join(f"A[i, k] * {n}" for n in range(16))
    program = compiled(
        f"fn f(A: s32[100, 64], out B: s32[100]) {{ par 100 i {{ B[i] = 0\n seq 64 k {{ B[i] += {terms} }} }} }}"
    )
    (loop,) = [line for line in program.ir("emitted").splitlines() if "s0 in [0, 63]" in line and "()[s0]" in line]
    assert "(s0)" in loop
