"""Products that warp groups multiply: numbers on the host, the waits and fences that they need, and their PTX."""

import re
from collections import Counter
from functools import cache
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
from xgpu.errors import InvalidInput, KernelFault
from xgpu.interface.block_calls import compiled_program
from xgpu.interface.tile_explanation import explain_tiles, planned_module
from xgpu.runtime.compare import compare
from xgpu.target.nvptx.cubin import assemble, find_ptxas
from xgpu.tools.fuzzing.blocks.text import BlockText

PROGRAMS = {
    "rows along the contraction": Linear((100, 72, 150), (64, 64, 64), right_turned=True),
    "rows across it": Linear((100, 72, 150), (64, 64, 64), left_turned=True),
    "panels": Linear((130, 136, 200), (128, 128, 64)),
    "panels of rows along the contraction": Linear((70, 64, 200), (64, 64, 128), right_turned=True),
    "rows of 64 bytes": Linear((64, 40, 100), (64, 32, 32)),
    "rows of 32 bytes": Linear((64, 48, 50), (64, 48, 16), right_turned=True),
    "rows of 16 bytes": Linear((64, 56, 64), (64, 56, 32)),
    "groups one below the other": Linear((130, 64, 64), (128, 64, 32), threads=256),
    "groups side by side": Linear((64, 100, 64), (64, 96, 32), threads=256),
    "f16, several stages": Linear((64, 64, 200), (64, 64, 32), "f16", given_of_steps=", xgpu.stages = 4 : i64"),
    "a result of 16 bits": Linear((64, 64, 64), (64, 64, 32), total="bf16", result="bf16"),
    "plain copies": Linear(
        (64, 64, 200),
        (64, 64, 32),
        given_of_steps=", xgpu.stages = 3 : i64",
        given_of_tiles=', xgpu.copy = "plain"',
    ),
    "one stage": Linear((64, 64, 100), (64, 64, 32), given_of_steps=", xgpu.stages = 1 : i64"),
}


def drawn(program: Any) -> list[Any]:
    """Arguments of quarters: sums of their products are exact in any order."""
    return [np.round(np.asarray(each, np.float32) * 4).astype(each.dtype) / 4 for each in program.random_inputs(1)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers(name: str) -> None:
    program = xgpu.compile(PROGRAMS[name].text())
    assert "xgpu.warpgroup_mma" in program.ir("emitted")
    arguments = drawn(program)
    for result, wanted in zip(program.run(*arguments, sanitize=True), program.reference(*arguments), strict=True):
        comparison = compare(result, wanted)
        assert comparison.agrees, str(comparison)


def going_on(way: str, stages: int, prefetch: int, steps: int) -> str:
    """A product whose instructions of a step go on in the next one, with two buffers more than copies run ahead."""
    given = f", xgpu.stages = {stages} : i64, xgpu.prefetch = {prefetch} : i64"
    sizes = (64, 64, 32 * steps - 8)
    return Linear(sizes, (64, 64, 32), given_of_steps=given, given_of_tiles=f', xgpu.copy = "{way}"').text()


@pytest.mark.parametrize("way", ["plain", "async", "bulk"])
@pytest.mark.parametrize(("stages", "prefetch"), [(3, 1), (4, 2), (4, 1), (5, 3)])
@pytest.mark.parametrize("steps", [1, 2, 3, 6])
def test_products_go_on_in_the_next_step(way: str, stages: int, prefetch: int, steps: int) -> None:
    program = xgpu.compile(going_on(way, stages, prefetch, steps))
    assert "{pending = 1 : i64} : (vector<32xf32>)" in program.ir("emitted")
    arguments = drawn(program)
    for result, wanted in zip(program.run(*arguments, sanitize=True), program.reference(*arguments), strict=True):
        assert compare(result, wanted).agrees


def test_what_steps_compute_is_waited_for() -> None:
    """Nothing goes on that reads what the next step writes, or whose sum a step reads."""
    text = attention(64, 64, 128)
    array = jax.ShapeDtypeStruct((256, 64), jnp.bfloat16)
    (planned,) = compiled_program(text.program(array, array, array), "cpu").kernels
    assert "pending = 1" not in str(planned.module("emitted"))


def test_blocks_that_are_alone_have_all_buffers() -> None:
    """No second block of 256 threads runs beside one with 128 accumulators in each."""
    wide, narrow = (Linear((128, size, 640), (128, size, 64), threads=256) for size in (256, 128))
    for each, said in ((wide, "stages 4, 2 ahead"), (narrow, "stages 3, barriers")):
        assert said in explain_tiles(xgpu.compile(each.text()))


def chained() -> str:
    """A kernel of two products, the first of which, rounded, is multiplied again; and the sum of its rows."""
    arrays = [((128, 48), "bf16"), ((48, 32), "bf16"), ((32, 64), "bf16")]
    kernel = BlockText(arrays, [((128, 64), "f32"), ((128,), "f32")], (2,))
    (i,) = kernel.at
    x, w, v = (kernel.tile(0, (i, None), (64, 48)), *(kernel.tile(n, (None, None), arrays[n][0]) for n in (1, 2)))
    first = kernel.convert(kernel.map("tanh", kernel.dot(x, w)), "bf16")
    kernel.insert(kernel.dot(first, v), 0, (i, None))
    kernel.insert(kernel.reduce("add", kernel.convert(first, "f32"), kernel.constant("0.0", (), "f32"), [1]), 1, (i,))
    return kernel.text()


def test_a_left_operand_stays_in_registers() -> None:
    program = xgpu.compile(chained())
    text = program.ir("emitted")
    assert text.count('"xgpu.warpgroup_mma"') == 5
    assert text.count("(vector<32xf32>, vector<4xi32>, !llvm.ptr<3>, i1)") == 2
    arguments = drawn(program)
    for result, wanted in zip(program.run(*arguments, sanitize=True), program.reference(*arguments), strict=True):
        assert compare(result, wanted).agrees


HELD = {
    "matrices": ("bik,bk->bi", (64, 64, 16), (64, 16), None),
    "two dimensions of rows": ("bik,k->bi", (64, 64, 16), (16,), None),
    "no dimension of rows": ("ijk,k->ij", (64, 16, 16), (16,), (4, 1)),
}


@pytest.mark.parametrize("name", HELD)
def test_a_left_operand_that_is_held_in_another_form_goes_through_shared_memory(name: str) -> None:
    form, left, right, warps = HELD[name]

    @block.kernel
    def kernel(a: Any, y: Any, v: Any) -> Any:
        block.grid(1)
        tiles = [each.tile(each.shape, (0,) * len(each.shape)) for each in (a, y, v)]
        operands, way = tiles[:2], form
        if warps is not None:
            operands, way = operands[::-1], ",".join(form.partition("->")[0].split(",")[::-1]) + "->ij"
        held = jnp.einsum(way, *operands, preferred_element_type=jnp.float32)
        if warps is not None:
            held = block.plan(held, warps=warps)
        return block.store(block.dot(held.astype(jnp.bfloat16), tiles[2]), (left[0], 64), (0, 0))

    drawn = np.random.default_rng(7)
    shapes = left, right, (left[1], 64)
    a, y, v = (drawn.integers(-2, 3, shape).astype(jnp.bfloat16) for shape in shapes)
    wide = [each.astype(np.float32) for each in (a, y, v)]
    # Sums of so few small whole numbers are exact in bf16.
    held = np.einsum(form, *wide[:2]).astype(jnp.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(kernel(a, y, v), held @ wide[2])


@pytest.mark.parametrize("text", [Linear((64, 64, 96), (64, 64, 32)).text(), chained()], ids=["steps", "chained"])
def test_each_wait_and_fence_is_needed(text: str) -> None:
    program = xgpu.compile(text)
    arguments = [placed(each) for each in program.random_inputs(1)]
    results = [memory(each.shape, np.asarray(each).dtype) for each in program.reference(*program.random_inputs(1))]
    kinds: Counter[str] = Counter()
    for name, each in mutations(program.ir("lowered")):
        kind = name.partition("-")[0]
        kinds[kind] += 1
        if kind != "fence" and not kind.startswith("warpgroup"):
            continue
        with pytest.raises(KernelFault):
            host_kernel(each, sanitize=True).launch([*arguments, *results])
            pytest.fail(f"nothing is found without {name}")
    assert kinds["fence"] >= 1 and kinds["warpgroup_wait"] >= 1 and kinds["warpgroup_commit"] >= 1
    assert kinds["warpgroup_fence"] >= 1


@pytest.mark.parametrize("way", ["plain", "async", "bulk"])
def test_each_wait_is_needed_where_products_go_on(way: str) -> None:
    """Barriers, too: copies fill what others may still multiply."""
    program = xgpu.compile(going_on(way, 3, 1, 6))
    arguments = [placed(each) for each in program.random_inputs(1)]
    results = [memory(each.shape, np.asarray(each).dtype) for each in program.reference(*program.random_inputs(1))]
    lowered = program.ir("lowered")
    maps = [memory((256,), np.int8)] if way == "bulk" else []
    for name, each in mutations(lowered):
        if not name.startswith(("barrier", "fence", "warpgroup", "mbarrier")):
            continue
        with pytest.raises(KernelFault):
            host_kernel(each, sanitize=True).launch([*arguments, *results, *maps])
            pytest.fail(f"nothing is found without {name}")


@cache
def attention(rows: int, keys: int, threads: int) -> block.Kernel:
    @block.kernel(threads=threads)
    def kernel(q: Any, k: Any, v: Any) -> Any:
        (count, width), total = q.shape, k.shape[0]
        (i,) = block.grid(block.cdiv(count, rows))
        queries = q.tile((rows, width), (i, 0))

        def step(number: Any, carried: Any) -> Any:
            largest, sums, out = carried
            logits = block.dot(queries, k.tile((keys, width), (number, 0)).T)
            seen = block.index((rows, keys), lambda row, column: number * keys + column) < total
            logits = jnp.where(seen, logits, -1e30)
            new = jnp.maximum(largest, jnp.max(logits, axis=1))
            weights, old = jnp.exp(logits - new[:, None]), jnp.exp(largest - new)
            product = block.dot(weights.astype(v.dtype), v.tile((keys, width), (number, 0)))
            return new, sums * old + jnp.sum(weights, axis=1), out * old[:, None] + product

        start = jnp.full(rows, -1e30), jnp.zeros(rows), jnp.zeros((rows, width))
        _, sums, out = block.steps(block.cdiv(total, keys), step, start)
        return block.store(out / sums[:, None], q.shape, (i, 0))

    return kernel


def test_attention() -> None:
    """Keys are multiplied as they lie in memory, and weights from registers."""
    kernel = attention(64, 64, 128)
    arguments = [
        np.random.default_rng(number).standard_normal((size, 32)).astype(jnp.bfloat16)
        for number, size in enumerate((100, 130, 130))
    ]
    result, wanted = kernel(*arguments), kernel.reference(*arguments)
    np.testing.assert_allclose(result, wanted, rtol=1e-2, atol=1e-3)
    (planned,) = compiled_program(kernel.program(*arguments), "cpu").kernels
    text = str(planned_module(planned))
    assert text.count('xgpu.product = "wgmma"') == 2
    assert "stablehlo.transpose" not in text
    assert str(planned.module("emitted")).count("vector<4xi32>, !llvm.ptr<3>, i1") == 4


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ({"product": "wgmma", "warps": (2, 2)}, "expected another instruction: expected a multiple of 4 warps down"),
        ({"product": "hmma"}, "attribute 'xgpu.product': expected"),
    ],
)
def test_what_warp_groups_cannot_keep_is_refused(decisions: dict[str, Any], message: str) -> None:
    @block.kernel
    def kernel(x: Any, w: Any) -> Any:
        block.grid(1)
        return block.store(
            block.plan(block.dot(x.tile((64, 32), (0, 0)), w.tile((32, 64), (0, 0))), **decisions), (64, 64), (0, 0)
        )

    with pytest.raises(InvalidInput) as caught:
        kernel(jnp.ones((64, 32), jnp.bfloat16), jnp.ones((32, 64), jnp.bfloat16))
    assert message in str(caught.value)


def test_a_right_operand_has_whole_rows_of_a_swizzle() -> None:
    @block.kernel
    def kernel(x: Any, w: Any) -> Any:
        block.grid(1)
        right = w.tile((64, 24), (0, 0), layout=(32, 1), swizzle=(2, 3, 6))
        return block.store(block.plan(block.dot(x.tile((64, 64), (0, 0)), right), product="wgmma"), (64, 24), (0, 0))

    with pytest.raises(InvalidInput, match="expected whole rows in the 48 bytes that an instruction reads"):
        kernel(jnp.ones((64, 64), jnp.bfloat16), jnp.ones((64, 24), jnp.bfloat16))


def test_an_operand_that_is_computed_is_refused() -> None:
    @block.kernel
    def kernel(x: Any, w: Any) -> Any:
        block.grid(1)
        total = block.dot(x.tile((64, 64), (0, 0), place="computed"), w.tile((64, 64), (0, 0)))
        return block.store(block.plan(total, product="wgmma"), (64, 64), (0, 0))

    with pytest.raises(InvalidInput, match="the left operand as it lies: expected it in shared memory"):
        kernel(jnp.ones((64, 64), jnp.bfloat16), jnp.ones((64, 64), jnp.bfloat16))


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"layout": (72, 1)}, "warp groups cannot multiply the left operand as it lies"),
        ({"layout": (64, 1), "swizzle": (2, 3, 6)}, "cannot multiply the left operand as it lies"),
        ({"layout": (64, 1), "swizzle": (3, 2, 6)}, "expected no swizzle or one of rows of 32, 64 or 128 bytes"),
        ({"layout": (64, 1), "swizzle": (3, 3, 6)}, None),
        ({"layout": (8, 1), "panel": (1, 8, 512)}, None),
    ],
)
def test_layouts_that_are_given(layout: dict[str, Any], message: str | None) -> None:
    """They are kept where a descriptor can say them; without the instruction, warps multiply any."""

    def kernel(**of_product: Any) -> block.Kernel:
        @block.kernel
        def product(x: Any, w: Any) -> Any:
            block.grid(1)
            total = block.dot(x.tile((64, 64), (0, 0), **layout), w.tile((64, 32), (0, 0)))
            return block.store(block.plan(total, **of_product), (64, 32), (0, 0))

        return product

    drawn = np.random.default_rng(5)
    x, w = (drawn.integers(-3, 4, shape).astype(jnp.bfloat16) for shape in ((64, 64), (64, 32)))
    np.testing.assert_array_equal(kernel()(x, w), x.astype(np.float32) @ w.astype(np.float32))
    if message is None:
        np.testing.assert_array_equal(kernel(product="wgmma")(x, w), x.astype(np.float32) @ w.astype(np.float32))
        return
    with pytest.raises(InvalidInput, match=message):
        kernel(product="wgmma")(x, w)


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
def test_ptxas_does_not_serialise_them() -> None:
    """No accumulator is spilled, or used before it is waited for."""
    array = jax.ShapeDtypeStruct((256, 64), jnp.bfloat16)
    program = compiled_program(attention(64, 64, 128).program(array, array, array), "cuda")
    texts = {"attention": program.ir("ptx")} | {
        name: xgpu.compile(each.text(), target="sm_90a").ir("ptx") for name, each in PROGRAMS.items()
    }
    for name, ptx in texts.items():
        assembled = assemble(ptx, "sm_90a")
        assert "wgmma.mma_async" in ptx
        assert assembled.remarks == () and assembled.spill_bytes == 0, name


def test_other_gpus_multiply_by_warps() -> None:
    text = xgpu.compile(PROGRAMS["panels"].text(), target="sm_80").ir("emitted")
    assert "xgpu.mma" in text and "warpgroup" not in text


def ahead(rows: int, keys: int, width: int) -> block.Kernel:
    """Attention to whole tiles of keys, of which a step multiplies those of the next one before it has its weights."""

    @block.kernel
    def kernel(q: Any, k: Any, v: Any) -> Any:
        (i,) = block.grid(q.shape[0] // rows)
        queries = q.tile((rows, width), (i, 0))

        def step(number: Any, carried: Any) -> Any:
            logits, largest, sums, out = carried
            following = block.dot(queries, k.tile((keys, width), (number + 1, 0)).T)
            new = jnp.maximum(largest, jnp.max(logits, axis=1))
            weights, old = jnp.exp(logits - new[:, None]), jnp.exp(largest - new)
            product = block.dot(weights.astype(v.dtype), v.tile((keys, width), (number, 0)))
            return following, new, sums * old + jnp.sum(weights, axis=1), out * old[:, None] + product

        first = block.dot(queries, k.tile((keys, width), (0, 0)).T)
        start = first, jnp.full(rows, -1e30), jnp.zeros(rows), jnp.zeros((rows, width))
        _, _, sums, out = block.steps(k.shape[0] // keys, step, start)
        return block.store(out / sums[:, None], q.shape, (i, 0))

    return kernel


def test_products_are_waited_for_where_they_are_read() -> None:
    """Those of the next step while weights are computed, and multiplied: one wait for both, at the end of a step."""
    kernel = ahead(64, 32, 32)
    arguments = [
        np.random.default_rng(number).standard_normal((size, 32)).astype(jnp.bfloat16)
        for number, size in enumerate((128, 96, 96))
    ]
    program = xgpu.compile(kernel, *(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arguments))
    _, _, step = program.ir("emitted").partition("scf.for")
    order = re.findall(r"xgpu.warpgroup_(?:commit|wait)|math.exp", step)
    assert order[0] == "xgpu.warpgroup_commit"
    assert order[-2:] == ["xgpu.warpgroup_commit", "xgpu.warpgroup_wait"]
    assert set(order[1:-2]) == {"math.exp"}
    (result,) = program.run(*arguments, sanitize=True)
    comparison = compare(result, np.asarray(kernel.reference(*arguments)))
    assert comparison.agrees, str(comparison)


def test_each_wait_is_needed_where_products_are_under_way() -> None:
    """Fences and waits of a product that goes on beside another one; one group of both would be as good."""
    shape = jax.ShapeDtypeStruct((64, 32), jnp.bfloat16)
    program = xgpu.compile(ahead(64, 32, 32), shape, shape, shape)
    arguments = [placed(each) for each in program.random_inputs(1)]
    result = memory((64, 32), np.float32)
    found = [(name, each) for name, each in mutations(program.ir("lowered")) if "warpgroup" in name]
    found = [(name, each) for name, each in found if "commit" not in name]
    assert len(found) > 4
    for name, each in found:
        with pytest.raises(KernelFault):
            host_kernel(each, sanitize=True).launch([*arguments, result])
            pytest.fail(f"nothing is found without {name}")


def scaled(rows: int, turned: bool = False, **given: int) -> Any:
    """A product of rows that are scaled by a number for each column, with sums of their squares."""

    @block.kernel(threads=2 * rows)
    def kernel(x: Any, w: Any, scale: Any) -> Any:
        (m, k), (_, n) = x.shape, w.shape
        (i,) = block.grid(block.cdiv(m, rows))

        def step(number: Any, carried: Any) -> Any:
            tile = x.tile((rows, 32), (i, number)).astype(jnp.float32)
            left = (tile * scale.tile(32, (number,))).astype(x.dtype)
            made = block.dot(left, w.tile((32, n), (number, 0)))
            if turned:
                made = made + left.astype(jnp.float32).sum(0)[:, None].sum()
            return carried[0] + made, carried[1] + (tile * tile).sum(1)

        start = jnp.zeros((rows, n)), jnp.zeros(rows)
        total, squares = block.steps(block.cdiv(k, 32), step, start, **given)
        return block.store(total / (1 + squares)[:, None], (m, n), (i, 0))

    return kernel


@pytest.mark.parametrize("rows", [64, 128])
@pytest.mark.parametrize("turned", [False, True])
def test_a_left_operand_is_computed_where_it_is_multiplied(rows: int, turned: bool) -> None:
    """What it is computed from goes on in registers, too, and has a copy in shared memory for what adds up columns."""
    drawn = np.random.default_rng(1)
    shapes = ((100, 70), jnp.bfloat16), ((70, 48), jnp.bfloat16), ((70,), jnp.float32)
    arguments = [(drawn.integers(-4, 5, shape) / 4).astype(dtype) for shape, dtype in shapes]
    kernel = scaled(rows, turned)
    program = xgpu.compile(kernel, *(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arguments))
    emitted = program.ir("emitted")
    assert "(vector<24xf32>, vector<4xi32>, !llvm.ptr<3>, i1)" in emitted
    copies = [line for line in explain_tiles(program).splitlines() if "shared" in line and " convert " in line]
    assert len(copies) == int(turned)
    (result,) = program.run(*arguments, sanitize=True)
    comparison = compare(result, np.asarray(kernel.reference(*arguments)))
    assert comparison.agrees, str(comparison)


def test_registers_of_a_left_operand_stay_until_its_product_is_done() -> None:
    """Buffers are left for a product that goes on, but ptxas gives registers that a loop reads no more to others."""
    shapes = ((64, 256), jnp.bfloat16), ((256, 48), jnp.bfloat16), ((256,), jnp.float32)
    program = xgpu.compile(scaled(64, stages=4, prefetch=2), *(jax.ShapeDtypeStruct(*each) for each in shapes))
    waits = re.findall(r"xgpu.warpgroup_wait.*pending = (\d)", program.ir("emitted"))
    assert waits == ["0"]


@pytest.mark.parametrize("carried", ["rounded", "wide", "itself"])
def test_a_left_operand_may_be_carried_too(carried: str) -> None:
    """Steps carry what is computed for a product, or sums of it, in the registers that have it."""

    @block.kernel(threads=128)
    def kernel(x: Any, w: Any) -> Any:
        (i,) = block.grid(block.cdiv(x.shape[0], 64))

        def step(number: Any, before: Any) -> Any:
            wide = x.tile((64, 32), (i, number)).astype(jnp.float32) * 2
            left = wide.astype(x.dtype)
            kept = {"rounded": before[0] + left, "wide": before[0] + wide, "itself": left}[carried]
            return kept, before[1] + block.dot(left, w.tile((32, 64), (number, 0)))

        start = jnp.zeros((64, 32), jnp.float32 if carried == "wide" else x.dtype), jnp.zeros((64, 64))
        kept, total = block.steps(3, step, start)
        return block.store(kept, (x.shape[0], 32), (i, 0)), block.store(total, (x.shape[0], 64), (i, 0))

    values = np.random.default_rng(5)
    arguments = [values.integers(-2, 3, shape).astype(jnp.bfloat16) for shape in ((100, 96), (96, 64))]
    program = xgpu.compile(kernel, *(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arguments))
    results, wanted = program.run(*arguments, sanitize=True), kernel.reference(*arguments)
    for result, expected in zip(results, wanted, strict=True):
        assert compare(result, np.asarray(expected)).agrees
