"""Tiles of steps that TMA copies: numbers on the host, what the copies wait for, and what is refused."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from tests.py.block.programs import Linear
from tests.py.runtime.block.kernels import host_kernel, memory, placed
from tests.py.runtime.block.mutations import mutations
from xgpu import block
from xgpu.block_plan.memory.boxes import bulk_tile
from xgpu.block_plan.memory.strides import TilePanel
from xgpu.errors import CompilerError, InvalidInput, KernelFault
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.interface.block_calls import compiled_program
from xgpu.runtime.compare import compare
from xgpu.target.nvptx.cubin import assemble, find_ptxas
from xgpu.tools.fuzzing.blocks.text import BlockText, DrawnTile

BULK = ', xgpu.copy = "bulk"'
PROGRAMS = {
    "warp groups": Linear((100, 72, 328), (64, 64, 32), given_of_tiles=BULK),
    "panels": Linear((130, 136, 520), (128, 128, 64), given_of_tiles=BULK),
    "turned operands": Linear((128, 64, 264), (64, 64, 32), left_turned=True, right_turned=True, given_of_tiles=BULK),
    "warps": Linear((40, 40, 264), (32, 32, 32), given_of_tiles=BULK),
    "tf32": Linear((40, 40, 136), (32, 32, 16), "f32", given_of_tiles=BULK),
    "few steps": Linear((64, 64, 64), (64, 64, 32), given_of_tiles=BULK),
    "two buffers": Linear((64, 64, 264), (64, 64, 32), given_of_steps=", xgpu.stages = 2 : i64", given_of_tiles=BULK),
}


def drawn(program: Any) -> list[Any]:
    """Arguments of quarters: sums of their products are exact in any order."""
    return [np.round(np.asarray(each, np.float32) * 4).astype(each.dtype) / 4 for each in program.random_inputs(1)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers(name: str) -> None:
    """Rows and columns beyond the end of an array are zeros."""
    program = xgpu.compile(PROGRAMS[name].text())
    assert program.ir("emitted").count('"xgpu.tensor_load"') >= 4
    arguments = drawn(program)
    for result, wanted in zip(program.run(*arguments, sanitize=True), program.reference(*arguments), strict=True):
        comparison = compare(result, wanted)
        assert comparison.agrees, str(comparison)


def both_ways(stages: int, steps: int) -> str:
    """A kernel that adds up tiles that TMA copies, and others that threads copy, upside down."""
    kernel = BlockText([((steps * 8 - 3, 32), "f32"), ((steps * 8, 32), "f32")], [((8, 32), "f32")], (1,), 64)
    zero = kernel.constant("0.0", (8, 32), "f32")
    with kernel.steps(steps, [zero], f", xgpu.stages = {stages} : i64") as loop:
        tiles = [
            kernel.tile(number, (loop.number, None), (8, 32), (), f', xgpu.copy = "{way}", xgpu.place = "shared"')
            for number, way in enumerate(("bulk", "async"))
        ]
        loop.yielded.append(kernel.map("add", loop.carried[0], kernel.map("add", *(turned(kernel, t) for t in tiles))))
    kernel.insert(turned(kernel, loop.results[0]), 0, (kernel.at[0], None))
    return kernel.text()


def turned(kernel: BlockText, tile: DrawnTile) -> DrawnTile:
    return kernel.op("reverse", [tile], (8, 32), "f32", "dimensions = array<i64: 0>")


@pytest.mark.parametrize(("stages", "steps"), list(itertools.product((2, 3, 5), (1, 2, 4, 7))))
def test_circular_buffers(stages: int, steps: int) -> None:
    program = xgpu.compile(both_ways(stages, steps))
    arguments = drawn(program)
    (found,), (wanted,) = program.run(*arguments, sanitize=True), program.reference(*arguments)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "text",
    [Linear((64, 64, 264), (64, 64, 32), given_of_tiles=BULK).text(), both_ways(3, 5)],
    ids=["product", "both ways"],
)
def test_each_wait_is_needed(text: str) -> None:
    program = xgpu.compile(text)
    arguments = [placed(each) for each in program.random_inputs(1)]
    results = [memory(each.shape, np.asarray(each).dtype) for each in program.reference(*program.random_inputs(1))]
    maps = memory((program.ir("lowered").count('"xgpu.encode_tensor_map"') * 128,), np.int8)
    lacking = {
        name: each
        for name, each in mutations(program.ir("lowered"))
        if name.startswith(("mbarrier", "acquire", "fence", "barrier", "async_wait"))
    }
    assert {name.partition("-")[0] for name in lacking} >= {"mbarrier_init", "mbarrier_expect", "mbarrier_wait"}
    for name, each in lacking.items():
        with pytest.raises(KernelFault):
            host_kernel(each, sanitize=True).launch([*arguments, *results, maps])
            pytest.fail(f"nothing is found without {name}")


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
def test_ptxas_takes_them() -> None:
    for name, each in PROGRAMS.items():
        ptx = xgpu.compile(each.text(), target="sm_90a").ir("ptx")
        assembled = assemble(ptx, "sm_90a")
        assert "cp.async.bulk.tensor" in ptx
        assert assembled.remarks == () and assembled.spill_bytes == 0, name


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ({"layout": (72, 1)}, "expected rows one after the other, as boxes have them"),
        ({"layout": (64, 1), "swizzle": (2, 3, 6)}, "expected no swizzle, or one of rows of 128 bytes"),
        ({"stages": 1}, "expected a tile of steps with several buffers"),
        ({"copied": 72}, "its rows are not a multiple of 16 bytes apart"),
    ],
)
def test_what_tma_cannot_copy_is_refused(decisions: dict[str, Any], message: str) -> None:
    columns, stages = decisions.pop("copied", 0), decisions.pop("stages", None)

    @block.kernel
    def kernel(x: Any) -> Any:
        block.grid(1)
        total = block.accumulate(
            4, lambda s: jnp.sum(x.tile((16, 64), (s, 0), copy="bulk", **decisions), axis=1), stages=stages
        )
        return block.store(total, (16,), (0,))

    with pytest.raises(InvalidInput) as caught:
        kernel(jnp.ones((64, 60 + (not columns) * 4), jnp.bfloat16))
    assert f"attribute 'xgpu.copy': TMA cannot copy the tile: {message}" in str(caught.value)
    assert caught.value.location is not None


def test_other_gpus_have_no_such_copies() -> None:
    with pytest.raises(CompilerError, match="expected"):
        xgpu.compile(PROGRAMS["warps"].text(), target="sm_80").ir("ptx")


def test_boxes_lie_as_the_tile_does() -> None:
    bounds = "d0 in [0, 3], s0 in [0, 63], s1 in [0, 127]"
    map_ = IndexingMap.parse(f"(d0)[s0, s1] -> (d0 * 64 + s0, s1), {bounds}")
    swizzle, panel = (3, 3, 6), TilePanel(1, 64, 4096)
    found = bulk_tile(map_, (256, 128), 16, (64, 1), swizzle, panel)
    assert not isinstance(found, str)
    assert (found.view.panels, found.view.rows, found.panel_bytes, found.swizzle) == (2, 64, 8192, 128)
    assert isinstance(bulk_tile(map_, (256, 128), 16, (128, 1), swizzle, None), str)
    assert isinstance(bulk_tile(map_, (256, 128), 16, (1, 64), (), None), str)
    assert not isinstance(bulk_tile(map_, (256, 128), 16, (128, 1), (), None), str)


def test_a_batch_has_its_maps() -> None:
    @block.kernel(copy="bulk")
    def product(x: Any, w: Any) -> Any:
        i, j = block.grid(2, 1)
        total = block.accumulate(8, lambda s: block.dot(x.tile((64, 32), (i, s)), w.tile((32, 64), (s, j))))
        return block.store(total, (128, 64), (i, j))

    rng = np.random.default_rng(2)
    x, w = (rng.integers(-2, 3, shape).astype(jnp.bfloat16) for shape in ((3, 128, 256), (3, 256, 64)))
    found = jax.vmap(product)(x, w)
    np.testing.assert_array_equal(found, x.astype(np.float32) @ w.astype(np.float32))
    (kernel,) = compiled_program(product.program(x[0], w[0]), "cpu").kernels
    assert "xgpu.tensor_load" in str(kernel.module("emitted"))
