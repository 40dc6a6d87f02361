"""Steps whose tiles are copied ahead: every number of buffers and of steps, in each way; one wait less is a fault."""

import itertools
from collections import Counter

import numpy as np
import pytest

import xgpu
from tests.py.runtime.block.kernels import host_kernel, memory, placed
from tests.py.runtime.block.mutations import mutations
from xgpu.errors import KernelFault
from xgpu.tools.fuzzing.blocks.text import BlockText, DrawnTile

STAGES, STEPS, WAYS = range(1, 6), range(1, 8), ("plain", "async")
CASES = list(itertools.product(STAGES, STEPS, WAYS))
SIZE, COLUMNS, THREADS = 8, 16, 64


def kernel_of(stages: int, steps: int, way: str, cut: int = 0) -> str:
    """A kernel that adds up tiles and the same tiles upside down: threads read what others copy and compute."""
    written = BlockText([((steps * SIZE - cut, COLUMNS), "f32")], [((SIZE, COLUMNS), "f32")], (1,), THREADS)
    zero = written.constant("0.0", (SIZE, COLUMNS), "f32")
    with written.steps(steps, [zero], f", xgpu.stages = {stages} : i64") as loop:
        given = f', xgpu.copy = "{way}", xgpu.place = "shared"'
        tile = written.tile(0, (loop.number, None), (SIZE, COLUMNS), (), given)
        loop.yielded.append(written.map("add", loop.carried[0], written.map("add", tile, turned(written, tile))))
    written.insert(turned(written, loop.results[0]), 0, (written.at[0], None))
    return written.text()


def turned(written: BlockText, tile: DrawnTile) -> DrawnTile:
    return written.op("reverse", [tile], tile.shape, "f32", "dimensions = array<i64: 0>")


def draw(rows: int) -> np.ndarray:
    return np.random.default_rng(rows).integers(-100, 100, (rows, COLUMNS)).astype(np.float32)


def total(rows: np.ndarray) -> np.ndarray:
    padded = np.pad(rows, ((0, -len(rows) % SIZE), (0, 0))).reshape(-1, SIZE, COLUMNS)
    return (padded + padded[:, ::-1]).sum(0)[::-1]


@pytest.mark.parametrize(("stages", "steps", "way"), CASES)
def test_no_wait_is_missing(stages: int, steps: int, way: str) -> None:
    rows = draw(steps * SIZE - 3)
    program = xgpu.compile(kernel_of(stages, steps, way, cut=3))
    (found,) = program.run(rows, sanitize=True)
    np.testing.assert_array_equal(found, total(rows))


@pytest.mark.parametrize(("stages", "steps", "way"), CASES)
def test_each_wait_is_needed(stages: int, steps: int, way: str) -> None:
    """A wait for copies, or a meeting of threads before they read what others write, or write what others read."""
    text = xgpu.compile(kernel_of(stages, steps, way)).ir("lowered")
    lacking = {name: each for name, each in mutations(text) if name.startswith(("async_wait", "barrier"))}
    kinds = Counter(name.partition("-")[0] for name in lacking)
    assert kinds["barrier"] >= 2
    assert kinds["async_wait"] == (way == "async")
    if stages == 1 and steps > 1:
        # With one buffer threads meet at the end of each step, after the last one too, and again after all.
        del lacking[f"barrier-{kinds['barrier'] - 1}"]
    rows = draw(steps * SIZE)
    for name, each in lacking.items():
        with pytest.raises(KernelFault):
            host_kernel(each, sanitize=True).launch([placed(rows), memory((SIZE, COLUMNS), np.float32)])
            pytest.fail(f"nothing is found without {name}")
