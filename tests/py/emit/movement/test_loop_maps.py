"""The loop emitter's map writes each element of an output exactly once, told from the map alone."""

import math
from dataclasses import replace

import pytest

from xgpu import ir
from xgpu.device import device
from xgpu.emit.base import Fusion
from xgpu.emit.families.loop import ElementwiseFusion, LoopEmitter, LoopSchedule
from xgpu.options import Options

SHAPES = [
    (),
    (1,),
    (31,),
    (32,),
    (33,),
    (127,),
    (128,),
    (129,),
    (1023, 1025),
    (7, 1, 13),
    (1024, 1024),
    (1000003,),
    (2, 3, 1, 2, 3, 1, 2, 3),
    (70001, 65537),
]


def emitter(shape: tuple[int, ...], element: str, options: Options) -> LoopEmitter:
    sizes = "x".join([*map(str, shape), element])
    tensor = f"tensor<{sizes}>"
    module = ir.Module.parse(f"func.func @main(%x: {tensor}) -> {tensor} {{ return %x : {tensor} }}")
    block = module.body.operations[0].operation.regions[0].blocks[0]
    facts = ElementwiseFusion(Fusion("fusion_0", block, device("sm_90a"), options))
    return LoopEmitter(facts, LoopSchedule.of(facts))


@pytest.mark.parametrize("element", ["i8", "bf16", "f32", "f64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_element_is_written_once(shape: tuple[int, ...], element: str) -> None:
    with ir.make_context():
        loop = emitter(shape, element, Options())
        assert loop.thread_to_output(0).is_bijection(shape) is True


@pytest.mark.parametrize("threads", [32, 96, 1024])
@pytest.mark.parametrize("run", [1, 2, 4])
def test_for_every_launch(threads: int, run: int) -> None:
    options = Options(threads_per_block=threads, max_elements_per_thread=run)
    with ir.make_context():
        loop = emitter((1021, 1019), "f32", options)
        assert loop.thread_to_output(0).is_bijection((1021, 1019)) is True
        launch = loop.launch_dimensions()
        assert launch.block == (threads, 1, 1)
        # No block is without work.
        assert (launch.grid[0] - 1) * threads * run < 1021 * 1019 <= launch.grid[0] * threads * run


@pytest.mark.parametrize(
    ("element", "run"),
    [("i2", 16), ("i4", 16), ("i1", 16), ("i8", 16), ("f16", 8), ("bf16", 8), ("f32", 4), ("i64", 2), ("f64", 2)],
)
def test_a_run_is_one_vector_store(element: str, run: int) -> None:
    with ir.make_context():
        assert emitter((1024, 1024), element, Options()).schedule.vector == run


def with_columns(shape: tuple[int, ...], element: str, vectors: int) -> LoopEmitter:
    """Return the emitter of a fusion that also reads vectors of f32, one number for each column."""
    sizes = "x".join([*map(str, shape), element])
    columns = "".join(f", %c{number}: tensor<{shape[-1]}xf32>" for number in range(vectors))
    text = f"func.func @main(%x: tensor<{sizes}>{columns}) -> tensor<{sizes}> {{ return %x : tensor<{sizes}> }}"
    module = ir.Module.parse(text)
    block = module.body.operations[0].operation.regions[0].blocks[0]
    facts = ElementwiseFusion(Fusion("fusion_0", block, device("sm_90a"), Options()))
    return LoopEmitter(facts, LoopSchedule.of(facts))


@pytest.mark.parametrize("element", ["i8", "bf16", "f32"])
@pytest.mark.parametrize(
    "shape", [(4096, 1024), (2048, 272), (16, 130, 272), (2, 683, 272), (2, 1, 3, 1000, 64)], ids=str
)
def test_rows_with_the_same_columns(shape: tuple[int, ...], element: str) -> None:
    with ir.make_context():
        loop = with_columns(shape, element, 6)
        map_ = loop.thread_to_output(0)
        assert loop.schedule.rows == map_.symbols[0].size == 2
        assert map_.is_bijection(shape) is True
        (threads, _, _), (blocks, _, _) = loop.launch_dimensions().block, loop.launch_dimensions().grid
        assert (
            (blocks - 1) * threads * loop.schedule.vector * 2
            < loop.elements
            <= blocks * threads * loop.schedule.vector * 2
        )
        # A thread's two rows are read in the same columns.
        first, second = (map_.evaluate((5, 1), (row, 0)) for row in range(2))
        assert first != second
        assert first[-1] == second[-1]


@pytest.mark.parametrize(
    ("shape", "element", "vectors"),
    [
        ((4095, 1024), "bf16", 6),
        ((3, 683, 264), "bf16", 6),
        ((4096, 1021), "bf16", 6),
        ((4096, 1024), "bf16", 2),
        ((4096, 1024), "f32", 4),
        ((1 << 20,), "f32", 6),
        ((64, 64), "f32", 6),
        ((), "i4", 0),
    ],
    ids=str,
)
def test_one_row_a_thread(shape: tuple[int, ...], element: str, vectors: int) -> None:
    """An odd number of rows, rows of no whole number of runs, few columns read, no rows, few elements."""
    with ir.make_context():
        loop = with_columns(shape, element, vectors)
        assert loop.schedule.rows == 1
        assert loop.thread_to_output(0).is_bijection(shape) is True


def moved(shape: tuple[int, ...], order: tuple[int, ...], element: str, threads: int | None = None) -> LoopEmitter:
    """Return the emitter of a fusion that moves the dimensions of an array, for a GPU of so many threads."""
    given = "x".join([*map(str, shape), element])
    result = "x".join([*(str(shape[each]) for each in order), element])
    text = f"""func.func @main(%x: tensor<{given}>) -> tensor<{result}> {{
      %0 = stablehlo.transpose %x, dims = {list(order)} : (tensor<{given}>) -> tensor<{result}>
      return %0 : tensor<{result}> }}"""
    module = ir.Module.parse(text)
    block = module.body.operations[0].operation.regions[0].blocks[0]
    gpu = device("sm_90a")
    if threads is not None:
        gpu = replace(gpu, sm_count=1, max_threads_per_sm=threads)
    facts = ElementwiseFusion(Fusion("fusion_0", block, gpu, Options()))
    return LoopEmitter(facts, LoopSchedule.of(facts))


@pytest.mark.parametrize(
    ("shape", "order", "element", "vector", "rows", "row"),
    [
        ((1 << 20, 3), (1, 0), "f32", 4, 3, 1 << 20),
        ((1000003, 5), (1, 0), "bf16", 1, 5, 1000003),
        ((16, 224, 224, 3), (0, 3, 1, 2), "i8", 16, 3, 224 * 224),
        ((64, 100, 7, 50, 2), (0, 4, 1, 2, 3), "f32", 4, 2, 100 * 7 * 50),
        ((1 << 19, 6), (1, 0), "f64", 1, 6, 1 << 19),
    ],
    ids=str,
)
def test_interleaved_rows_are_taken_together(
    shape: tuple[int, ...], order: tuple[int, ...], element: str, vector: int, rows: int, row: int
) -> None:
    with ir.make_context():
        loop = moved(shape, order, element)
        assert (loop.schedule.vector, loop.schedule.rows, loop.schedule.row) == (vector, rows, row)
        assert loop.thread_to_output(0).is_bijection(loop.shape) is True


@pytest.mark.parametrize(
    ("shape", "order"),
    [((3, 1 << 20), (1, 0)), ((1000, 3), (1, 0)), ((1 << 18, 17), (1, 0)), ((100, 1 << 14, 4), (1, 0, 2))],
    ids=str,
)
def test_rows_are_taken_one_by_one(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    """Columns become interleaved, few elements, more rows than a thread takes, and rows that stay whole."""
    with ir.make_context():
        assert moved(shape, order, "f32").schedule.rows == 1


def test_fewer_elements_than_a_warp_takes() -> None:
    """On a device of few threads, rows may be shorter than what is looked at."""
    with ir.make_context():
        loop = moved((88, 3), (1, 0), "i8", threads=64)
        assert loop.thread_to_output(0).is_bijection((3, 88)) is True


def test_small_results_use_all_threads() -> None:
    with ir.make_context():
        assert emitter((1000,), "f32", Options()).schedule.vector == 1


@pytest.mark.parametrize(("element", "per_byte"), [("i4", 2), ("i2", 4), ("f4E2M1FN", 2)])
@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (999,), (601, 503)], ids=str)
def test_one_thread_writes_all_elements_of_a_byte(
    shape: tuple[int, ...], limit: int | None, element: str, per_byte: int
) -> None:
    with ir.make_context():
        run = emitter(shape, element, Options(max_elements_per_thread=limit)).schedule.vector
        # Threads compute consecutive runs, the first from element 0 on.
        assert run % per_byte == 0


def test_a_map_with_a_hole_is_no_bijection() -> None:
    with ir.make_context():
        loop = emitter((1023, 1025), "f32", Options())
        whole = loop.thread_to_output(0)
        assert whole.is_bijection((1023, 1026)) is False
        assert math.prod((1023, 1025)) == loop.elements
