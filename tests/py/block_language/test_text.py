"""What a block program becomes at level ``tiles``, and what is printed of its plan."""

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from tests.py.block_language.programs import CASES, attention, blurred, linear_silu, normalized_linear
from xgpu import block
from xgpu.block_language.batching import batched
from xgpu.dialects.verify import problems
from xgpu.errors import InvalidInput
from xgpu.interface.block_calls import source_of_program
from xgpu.interface.tile_explanation import explain_tiles

BF16 = jnp.bfloat16


def types(*shapes: tuple[int, ...], dtype: Any = BF16) -> list[Any]:
    return [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]  # type: ignore[no-untyped-call]


def text_of(kernel: block.Kernel, *given: Any) -> str:
    return str(source_of_program(kernel.program(*given)).module)


def maps(text: str, name: str) -> list[str]:
    """The maps of all operations of a name, without the ranges of variables."""
    found = re.findall(rf'"xgpu.{name}"\(.*?\) \{{map = #xgpu.map<(.*?)>[,}}]', text)
    return [re.sub(r", [ds][0-9]+ in \[0, [0-9]+\]", "", each) for each in found]


def test_of_a_product() -> None:
    text = text_of(linear_silu, *types((45, 64), (64, 50)))
    assert maps(text, "tile") == [
        "(d0, d1, d2)[s0, s1] -> (d0 * 32 + s0, d2 * 32 + s1), d0 * 32 + s0 in [0, 44]",
        "(d0, d1, d2)[s0, s1] -> (d2 * 32 + s0, d1 * 32 + s1), d1 * 32 + s1 in [0, 49]",
    ]
    assert maps(text, "insert_tile") == [
        "(d0, d1)[s0, s1] -> (d0 * 32 + s0, d1 * 32 + s1), d0 * 32 + s0 in [0, 44], d1 * 32 + s1 in [0, 49]"
    ]
    assert "grid = array<i64: 2, 2>" in text
    assert "count = 2 : i64" in text
    assert 'xgpu.emitter = "block"' in text
    assert "xgpu.schedule = #xgpu.schedule<threads = 128>" in text
    assert re.search(r"stablehlo.dot_general %\d+, %\d+, contracting_dims = \[1\] x \[0\]", text)


def test_of_several_carried_tiles_and_tiles_from_outside() -> None:
    text = text_of(attention, *types(*[(1, 2, 32, 16)] * 3))
    assert re.search(r"%\d+:3 = \"xgpu.steps\"\(%cst\w*, %cst\w*, %cst\w*\)", text)
    assert maps(text, "tile")[0] == "(d0, d1)[s0, s1] -> (0, d0, d1 * 16 + s0, s1)"
    assert maps(text, "index_tile") == [
        "(d0, d1, d2)[s0, s1] -> (d2 * 16 + s1)",
        "(d0, d1, d2)[s0, s1] -> (d1 * 16 + s0)",
    ]


def test_of_tiles_at_offsets() -> None:
    text = text_of(blurred, *types((48,), dtype=jnp.float32))
    assert maps(text, "tile") == [
        "(d0)[s0] -> (d0 * 16 + s0 - 1), d0 * 16 + s0 - 1 in [0, 47]",
        "(d0)[s0] -> (d0 * 16 + s0)",
        "(d0)[s0] -> (d0 * 16 + s0 + 1), d0 * 16 + s0 + 1 in [0, 47]",
    ]


def test_of_a_dimension_that_a_tile_does_not_have() -> None:
    @block.kernel
    def kernel(x: Any) -> Any:
        (i,) = block.grid(4)
        return block.output((8, 4, 3), BF16).store(
            x.tile((8, None, 3), (0, i % 2 + i // 2 * 2, 0)), (0, i, 0), shape=(8, None, 3)
        )

    text = text_of(kernel, *types((8, 4, 3)))
    assert maps(text, "tile") == ["(d0)[s0, s1] -> (s0, d0, s1)"]
    assert maps(text, "insert_tile") == ["(d0)[s0, s1] -> (s0, d0, s1)"]


def test_of_decisions() -> None:
    @block.kernel(threads=64, stages=3, copy="async")
    def kernel(x: Any, w: Any) -> Any:
        i, j = block.grid(1, 1)

        def term(step: Any) -> Any:
            left = x.tile((32, 32), (i, step), layout=(40, 1))
            right = w.tile((32, 32), (step, j), copy="plain", swizzle=(2, 3, 3))
            return block.plan(block.dot(left, right), warps=(2, 1))

        return block.store(block.accumulate(2, term, place=("fragments",)), (32, 32), (i, j))

    text = text_of(kernel, *types((32, 64), (64, 32)))
    assert "xgpu.schedule<threads = 64>" in text
    assert 'xgpu.copy = "async", xgpu.layout = array<i64: 40, 1>' in text
    assert 'xgpu.copy = "plain", xgpu.swizzle = array<i64: 2, 3, 3>' in text
    assert "{xgpu.warps = array<i64: 2, 1>}" in text
    assert 'count = 2 : i64, xgpu.place = ["fragments"], xgpu.stages = 3 : i64' in text


def test_passes_keep_decisions() -> None:
    @block.kernel(threads=64, stages=3, copy="async")
    def kernel(x: Any, w: Any) -> Any:
        i, j = block.grid(1, 1)
        total = block.accumulate(
            4, lambda step: block.dot(x.tile((32, 16), (i, step), layout=(24, 1)), w.tile((16, 32), (step, j)))
        )
        return block.store(total, (32, 32), (i, j))

    generator = np.random.default_rng(0)
    x, w = (generator.integers(-4, 4, shape).astype(BF16) for shape in ((32, 64), (64, 32)))
    compiled = xgpu.compile(kernel, x, w)
    plan = explain_tiles(compiled)
    assert re.search(r"x +bf16\[32,16\] +shared +24, 1 .*async", plan)
    assert "stages 3" in plan
    (found,) = compiled.run(x, w, sanitize=True)
    np.testing.assert_array_equal(found, x.astype(np.float32) @ w.astype(np.float32))
    np.testing.assert_array_equal(found, kernel.reference(x, w))


@pytest.mark.parametrize("name", CASES)
def test_is_verified(name: str) -> None:
    case = CASES[name]
    program = case.kernel.program(*case.arguments)
    axes = [0] + [None] * (len(program.inputs) - 1)
    for each in (program, batched(program, 3, axes)):
        module = source_of_program(each).module
        with module.context:
            assert module.operation.verify()
            assert problems(module) == []


def test_locations_are_lines_of_the_function() -> None:
    module = source_of_program(normalized_linear.program(*types((16, 32)), *types((32,), (32, 32)))).module
    text = module.operation.get_asm(enable_debug_info=True)
    assert "programs.py" in text
    from xgpu.hlo.source_location import source_of
    from xgpu.structure import nested

    with module.context:
        for op in nested(module.body.operations[0].operation.regions[0].blocks[0].operations[0].operation):
            if op.name.startswith("stablehlo.") and op.name not in ("stablehlo.constant", "stablehlo.return"):
                place = source_of(op)
                assert place is not None
                assert Path(place.file).name == "programs.py", str(op)


def test_restarts_from_its_text() -> None:
    x, w = CASES["linear_silu"].arguments
    compiled = xgpu.compile(linear_silu, x, w)
    again = xgpu.compile(compiled.ir("tiles"))
    assert again.ir("lowered") == compiled.ir("lowered")
    assert [str(each) for each in compiled.arguments] == ["x: bf16[45,70]", "w: bf16[70,50]"]


def test_the_plan_is_explained() -> None:
    plan = explain_tiles(xgpu.compile(linear_silu, *types((45, 64), (64, 50))))
    assert plan.startswith("kernel linear_silu: emitter block, grid 2 x 2, 128 threads (threads = 128)")
    for expected in (
        r"tile +type +product +place +strides .*source",
        r"x +bf16\[32,32\] +shared ",
        r"product +f32\[32,32\] +mma +fragments .*programs.py:\d+",
        r"steps \(.*programs.py:\d+\): 2, stages \d+, barriers a step [12]",
        r"shared memory: \d+ bytes of 232448\n +bytes +tile +from +to +over time\n +steps :\d+ +steps :\d+ +-+\n",
        r"\n +0 to \d+ +x, 2 buffers +steps :\d+ +steps :\d+ +#+\.*\n +\d+ to \d+ +w, 2 buffers",
        r"memory: 16,660 bytes of arrays, .* blocks read 32,768 bytes of tiles",
        r"products: 524,288 operations",
        r"at least \d+\.\d+ us on sm_90a; 4 blocks, 1 for each multiprocessor",
        r"expected \d+\.\d+ us, a rough estimate; limits by themselves: memory \d+%, products \d+% of it",
    ):
        assert re.search(expected, plan), expected


def test_tiles_that_share_memory_are_explained() -> None:
    """At each place one after the other: no two are in use in one span."""
    kernel = xgpu.compile(attention, *types(*[(1, 2, 50, 32)] * 3))
    rows = re.findall(r"\n +(\d+) to (\d+) +(.+?)  +(\S+ :\d+) +(\S+ :\d+) +([#.]+)", explain_tiles(kernel))
    assert len(rows) > 8
    shared = 0
    for number, (begin, end, *_, used) in enumerate(rows):
        for first, last, *_, other in rows[:number]:
            if int(first) <= int(end) and int(begin) <= int(last):
                shared += 1
                assert not any(a == b == "#" for a, b in zip(used, other, strict=True))
    assert shared
    carried = [row for row in rows if row[2].startswith("carried")]
    assert all(row[3].startswith("steps :") for row in carried)


def test_what_needs_no_memory_has_no_map() -> None:
    @block.kernel
    def copied(x: Any) -> Any:
        (i,) = block.grid(2)
        return block.store(x.tile((4, 8), (i, 0)) * 2, x.shape, (i, 0))

    plan = explain_tiles(xgpu.compile(copied, jax.ShapeDtypeStruct((8, 8), np.float32)))
    assert "shared memory: 0 bytes of 232448\n" in plan
    assert "over time" not in plan


def product(emitter: str, **keywords: Any) -> block.Kernel:
    def silu_of_transposed(x: Any, w: Any) -> Any:
        (m, k), (n, _) = x.shape, w.shape
        i, j = block.grid(block.cdiv(m, 64), block.cdiv(n, 64))
        total = block.accumulate(
            block.cdiv(k, 64), lambda step: block.dot(x.tile((64, 64), (i, step)), w.tile((64, 64), (j, step)).T)
        )
        return block.store(jax.nn.silu(total).astype(x.dtype), (m, n), (i, j))

    kernel: block.Kernel = block.kernel(silu_of_transposed, emitter=emitter, **keywords)
    return kernel


def test_by_the_emitter_of_products() -> None:
    generator = np.random.default_rng(1)
    x, w = (generator.standard_normal(shape).astype(BF16) for shape in ((2, 100, 96), (80, 96)))
    kernel = product("product", schedule={"blocks": 3}, stages=3)
    text = text_of(kernel, x[0], w)
    assert 'xgpu.emitter = "product"' in text
    assert "tile_m = 64, tile_n = 64, tile_k = 64, stages = 3, groups = 1, blocks = 3" in text
    assert maps(text, "tile")[1] == (
        "(d0, d1, d2, d3)[s0, s1] -> (d2 * 64 + s1, d3 * 64 + s0), d2 * 64 + s1 in [0, 79], d3 * 64 + s0 in [0, 95]"
    )
    found = jax.vmap(kernel, (0, None))(x, w)
    expected = jax.nn.silu(jnp.matmul(x, w.T, preferred_element_type=jnp.float32)).astype(BF16)
    np.testing.assert_allclose(
        np.asarray(found, np.float64), np.asarray(expected, np.float64), atol=0.01, rtol=2 * 2.0**-8
    )


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (product("product", schedule={"tile": 64}), "schedule of 'product': unknown number 'tile'; it has tile_m"),
        (product("product", stages=20), "schedule of 'product': stages = 20: expected a number from 2 to 16"),
        (product("product", schedule={"groups": 2}), "groups = 2: expected each to have a multiple of 64 rows"),
    ],
)
def test_of_a_schedule_that_does_not_fit(kernel: block.Kernel, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        xgpu.compile(kernel, *types((64, 64), (64, 64)))


def test_of_a_program_that_is_no_product() -> None:
    @block.kernel(emitter="product")
    def copied(x: Any) -> Any:
        (i,) = block.grid(2)
        return block.store(x.tile((64, 64), (i, 0)), x.shape, (i, 0))

    with pytest.raises(InvalidInput, match=r"copied has not the form of emitter 'product': .*expected one xgpu\.steps"):
        xgpu.compile(copied, *types((128, 64)))
