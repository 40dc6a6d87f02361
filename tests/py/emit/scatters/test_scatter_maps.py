"""The maps of the emitters of updates in place: every element of the updates once, whatever the sizes and the run."""

from math import prod

import numpy as np
import pytest

import xgpu
from tests.py.emit.emitters import emitter_of
from xgpu.emit.base import Emitter
from xgpu.emit.families.scatter import ScatterEmitter
from xgpu.emit.families.scatter_shared import SharedScatterEmitter
from xgpu.emit.families.scatter_sorted import SortedScatterEmitter


def scatter(shape: str, updates: str, windows: int, *, body: str = "add", flags: str = "", dtype: str = "f32") -> str:
    """A program of one scatter to the rows of an operand; of elements if the updates have one dimension."""
    element = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
    numbers = f"update_window_dims = [1], {element}" if "x" in updates else element
    operand, update = f"tensor<{shape}x{dtype}>", f"tensor<{updates}x{dtype}>"
    types = f"{operand}, tensor<{windows}x1xi32>, {update}"
    return f"""
      func.func @main(%x: {operand}, %i: tensor<{windows}x1xi32>, %y: {update}) -> {operand} {{
        %0 = "stablehlo.scatter"(%x, %i, %y) <{{{flags}scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}> ({{
        ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):
          %1 = stablehlo.{body} %a, %b : tensor<{dtype}>
          stablehlo.return %1 : tensor<{dtype}>
        }}) : ({types}) -> {operand}
        return %0 : {operand}
      }}"""


def assert_each_once(emitter: Emitter, shape: tuple[int, ...]) -> None:
    """Every element of the updates is made by one thread at one step."""
    map_ = emitter.thread_to_output(0)
    ranges = [*map_.dims, *map_.symbols]
    points = np.ix_(*(np.arange(each.lower, each.upper + 1) for each in ranges))
    dims, symbols = list(points[: len(map_.dims)]), list(points[len(map_.dims) :])
    inside = np.ones([each.size for each in ranges], bool)
    for expr, interval in map_.constraints:
        value = expr.evaluate(dims, symbols)
        inside &= (value >= interval.lower) & (value <= interval.upper)
    indices = [np.broadcast_to(result.evaluate(dims, symbols), inside.shape)[inside] for result in map_.results]
    linear = np.ravel_multi_index(indices, shape) if shape else np.zeros(inside.sum(), np.int64)
    assert np.array_equal(np.sort(linear), np.arange(prod(shape)))


SIZES = (1, 31, 32, 33, 127, 1023, 1025)


@pytest.mark.parametrize("windows", SIZES)
@pytest.mark.parametrize("columns", [None, 1, 7, 32, 33])
def test_each_update_is_made_once(windows: int, columns: int | None) -> None:
    row = "" if columns is None else f"x{columns}"
    compiled = xgpu.compile(scatter(f"100{row}", f"{windows}{row}", windows))
    emitter = emitter_of(compiled)
    assert isinstance(emitter, ScatterEmitter)
    assert_each_once(emitter, (windows,) if columns is None else (windows, columns))


@pytest.mark.parametrize(
    ("dtype", "columns", "body", "flags", "run"),
    [
        # What one atomic operation adds; what a vector access holds where there is none; else one.
        ("f32", 96, "add", "", 4),
        ("bf16", 96, "add", "", 8),
        ("f16", 100, "add", "", 4),
        ("f32", 97, "add", "", 1),
        ("f64", 96, "add", "", 1),
        ("f32", 96, "maximum", "", 1),
        ("i32", 96, "add", "", 1),
        ("f32", 96, "maximum", "unique_indices = true, ", 4),
        ("i8", 96, "add", "unique_indices = true, ", 16),
        ("i4", 96, "add", "unique_indices = true, ", 1),
        # Two elements with an index each.
        ("f32", None, "add", "", 2),
        ("f64", None, "add", "", 2),
    ],
)
def test_run(dtype: str, columns: int | None, body: str, flags: str, run: int) -> None:
    windows = 300_001 if columns is None else 4001
    row = "" if columns is None else f"x{columns}"
    places = 100_000 if columns is None else 100
    text = scatter(f"{places}{row}", f"{windows}{row}", windows, body=body, flags=flags, dtype=dtype)
    emitter = emitter_of(xgpu.compile(text))
    assert emitter.NAME == "scatter"
    assert isinstance(emitter, ScatterEmitter)
    assert emitter.schedule.vector == run
    assert_each_once(emitter, (windows,) if columns is None else (windows, columns))


@pytest.mark.parametrize(
    ("windows", "columns"), [(524_288, None), (600_001, None), (16_384, 32), (20_011, 33), (9001, 64)]
)
def test_each_sorted_update_is_made_once(windows: int, columns: int | None) -> None:
    row = "" if columns is None else f"x{columns}"
    text = scatter(f"1000{row}", f"{windows}{row}", windows, flags="indices_are_sorted = true, ")
    emitter = emitter_of(xgpu.compile(text))
    assert isinstance(emitter, SortedScatterEmitter)
    assert_each_once(emitter, (windows,) if columns is None else (windows, columns))


@pytest.mark.parametrize(
    ("places", "windows", "columns"), [(1, 32_768, None), (50, 40_001, None), (256, 65_536, None), (7, 3001, 11)]
)
def test_each_update_in_shared_memory_is_made_once(places: int, windows: int, columns: int | None) -> None:
    row = "" if columns is None else f"x{columns}"
    emitter = emitter_of(xgpu.compile(scatter(f"{places}{row}", f"{windows}{row}", windows)))
    assert isinstance(emitter, SharedScatterEmitter)
    assert_each_once(emitter, (windows,) if columns is None else (windows, columns))


@pytest.mark.parametrize("places", [1, 50, 512, 513, 1024])
def test_each_block_has_all_places(places: int) -> None:
    emitter = emitter_of(xgpu.compile(scatter(str(places), "300001", 300_001)))
    assert isinstance(emitter, SharedScatterEmitter)
    for block in (0, emitter.schedule.blocks - 1):
        own = emitter.own_elements()
        thread, step = np.ix_(*(np.arange(each.size) for each in (own.dims[0], own.symbols[0])))
        element, place = (np.asarray(each.evaluate([thread, block], [step])) for each in own.results)
        inside = np.ravel(element[element < places])
        assert np.array_equal(np.sort(inside), np.arange(places))
        assert np.array_equal(inside, np.ravel(place[element < places]))


@pytest.mark.parametrize(
    ("places", "windows", "body", "flags", "dtype"),
    [
        (50, 32_767, "add", "", "f32"),  # few updates
        (4096, 65_536, "add", "", "f32"),  # few of each place
        (8192, 4_194_304, "add", "", "f32"),  # no room
        (50, 40_000, "add", "", "bf16"),  # of words only
        (50, 40_000, "add", "unique_indices = true, ", "f32"),
        (50, 600_000, "add", "indices_are_sorted = true, ", "f32"),
        (50, 40_000, "subtract", "", "f32"),  # no function in any order
    ],
)
def test_what_blocks_do_not_combine_first(places: int, windows: int, body: str, flags: str, dtype: str) -> None:
    text = scatter(str(places), str(windows), windows, body=body, flags=flags, dtype=dtype)
    assert "scatter_shared" not in {kernel.emitter for kernel in xgpu.compile(text).kernels}


def test_sorted_updates_with_many_rows_take_several_steps() -> None:
    text = scatter("1000x512", "262144x512", 262_144, flags="indices_are_sorted = true, ")
    emitter = emitter_of(xgpu.compile(text))
    assert isinstance(emitter, SortedScatterEmitter)
    assert emitter.steps == 2
    threads = emitter.launch_dimensions().grid[0] * emitter.launch_dimensions().block[0]
    assert threads * emitter.length * 8 * emitter.steps == 262_144 * 512


@pytest.mark.parametrize("columns", [1, 7, 200])
def test_ordered_updates_of_a_column_are_of_one_thread(columns: int) -> None:
    text = scatter(f"9x{columns}", f"5x{columns}", 5, body="multiply")
    emitter = emitter_of(xgpu.compile(text, options=xgpu.Options(deterministic=True)))
    assert emitter.NAME == "scatter_ordered"
    assert_each_once(emitter, (5, columns))
    map_ = emitter.thread_to_output(0)
    assert len(map_.symbols) == 1
    assert str(map_.results[0]) == "s0"


@pytest.mark.parametrize(
    ("dtype", "whole", "part", "run"),
    [
        ("f32", "100", "33", 1),
        ("f32", "3x4000x128", "1x3000x128", 4),
        ("f32", "3x4000x127", "1x3000x127", 1),
        ("f32", "3000x1030", "300x1026", 1),
        # Whole bytes of whole rows.
        ("i4", "99x6", "33x6", 2),
        ("i4", "99x6", "33x4", 1),
        ("i4", "3x4000x128", "1x3000x128", 16),
    ],
)
def test_each_element_of_a_slice_is_written_once(dtype: str, whole: str, part: str, run: int) -> None:
    rank = whole.count("x") + 1
    starts = "".join(f", %i{n}: tensor<i32>" for n in range(rank))
    names = ", ".join(f"%i{n}" for n in range(rank))
    types = f"tensor<{whole}x{dtype}>, tensor<{part}x{dtype}>{', tensor<i32>' * rank}"
    compiled = xgpu.compile(f"""
      func.func @main(%x: tensor<{whole}x{dtype}>, %y: tensor<{part}x{dtype}>{starts}) -> tensor<{whole}x{dtype}> {{
        %0 = stablehlo.dynamic_update_slice %x, %y, {names} : ({types}) -> tensor<{whole}x{dtype}>
        return %0 : tensor<{whole}x{dtype}>
      }}""")
    emitter = emitter_of(compiled)
    assert emitter.NAME == "update_slice"
    assert emitter.thread_to_output(0).symbols[0].size == run
    assert_each_once(emitter, tuple(map(int, part.split("x"))))
