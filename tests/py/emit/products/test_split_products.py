"""Products whose tiles blocks of a cluster compute together, and those whose operands are exchanged."""

import functools
import random
import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py import effort
from tests.py.emit.emitters import emitter_of
from xgpu.emit.families.products.product import ProductEmitter
from xgpu.errors import KernelFault
from xgpu.target.nvptx.cubin import find_ptxas

from .products import ORDERS, compiled, is_exact, whole_numbers

type Drawn = tuple[str, str, tuple[int, int, int], dict[str, int]]


def _drawn(count: int) -> list[Drawn]:
    """Return products: order in memory, elements, sizes and a schedule."""
    generator = random.Random(effort.seed_of_commit())
    found: list[Drawn] = []
    while len(found) < count:
        elements = generator.choice(("bf16", "f16", "s8"))
        order = generator.choice(list(ORDERS)) if elements != "s8" else "mk,nk"
        m, n = (generator.randint(2, generator.choice((20, 300))) for _ in range(2))
        k = generator.randint(1, 700)
        left, right = order.split(",")
        unit, step = (16, 128) if elements == "s8" else (8, 64)
        m, n, k = (
            -(-size // unit) * unit if name in (left[1], right[1]) else size
            for name, size in zip("mnk", (m, n, k), strict=True)
        )
        is_swapped = generator.random() < 0.6
        split = generator.choice([each for each in (1, 2, 4, 8) if each <= -(-k // step)])
        # Boxes of operands whose columns are neighbours in memory have 64 of them.
        is_along = (left if is_swapped else right)[1] == "k"
        rows, groups = generator.choice(((64, 1), (64, 1), (128, 1), (128, 2), (256, 2)))
        columns = generator.choice((8, 16, 32, 64, 96, 128) if is_along else (64, 128))
        down, along = -(-(n if is_swapped else m) // rows), -(-(m if is_swapped else n) // columns)
        blocks = down * along * split if split > 1 else generator.randint(1, down * along)
        shared = {"groups": groups, "blocks": blocks, "cluster": 1, "band": 1, "staged": False, "stages": 2}
        tile = {"tile_m": rows, "tile_n": columns, "split": split, "swapped": is_swapped}
        found.append((order, elements, (m, n, k), {**tile, **shared}))
    return found


def _product(order: str, elements: str, sizes: tuple[int, int, int], schedule: dict[str, int]) -> xgpu.Compiled:
    by_name = dict(zip("mnk", sizes, strict=True))
    specs = [f"{elements}[{','.join(str(by_name[name]) for name in names)}]" for names in order.split(",")]
    numbers = (tuple((each,) for each in ORDERS[order]), ((), ()))
    total = jnp.int32 if elements == "s8" else jnp.float32
    return compiled(lambda x, y: lax.dot_general(x, y, numbers, preferred_element_type=total), *specs, **schedule)


_CASES: list[Drawn] = [
    ("mk,kn", "bf16", (130, 72, 304), {"tile_m": 128, "groups": 2, "tile_n": 64, "split": 2, "blocks": 8}),
    ("mk,nk", "bf16", (70, 100, 520), {"tile_m": 64, "groups": 1, "tile_n": 96, "split": 8, "blocks": 32}),
    (
        "mk,kn",
        "f16",
        (5, 136, 264),
        {"tile_m": 64, "groups": 1, "tile_n": 8, "split": 4, "blocks": 12, "swapped": True},
    ),
    ("km,kn", "bf16", (72, 136, 129), {"tile_m": 64, "groups": 1, "tile_n": 64, "blocks": 3, "swapped": True}),
    (
        "mk,nk",
        "s8",
        (20, 200, 400),
        {"tile_m": 256, "groups": 2, "tile_n": 32, "split": 2, "blocks": 2, "swapped": True},
    ),
]


def _in_full(case: Drawn) -> Drawn:
    *product, schedule = case
    fixed = {"cluster": 1, "band": 1, "staged": False, "stages": 2, "split": 1, "swapped": False}
    return (*product, {**fixed, **schedule})  # type: ignore[return-value]


@pytest.mark.parametrize("case", [*map(_in_full, _CASES), *_drawn(effort.by_level(1, 3, 200))], ids=str)
def test_results(case: Drawn) -> None:
    """Each element is written once, by the thread that the map says, with the sum of all parts."""
    program = _product(*case)
    is_exact(program)
    (m, n, _), emitter = case[2], emitter_of(program)
    assert isinstance(emitter, ProductEmitter)
    assert emitter.thread_to_output(0).coverage((m, n)).is_exact


def _follows(x: Any, w: Any, bias: Any, rest: Any) -> Any:
    y = jnp.dot(x, w, preferred_element_type=jnp.float32) + bias
    return jnp.maximum(y, 0).astype(jnp.bfloat16) * rest, y > 3


@pytest.mark.parametrize("is_swapped", [False, True])
def test_what_follows(is_swapped: bool) -> None:
    """An epilogue of two results, of a row and of a whole array, is computed from whole sums."""
    tile = {"tile_m": 64, "groups": 1, "tile_n": 64, "split": 2, "swapped": is_swapped}
    fixed = {"blocks": 12, "cluster": 1, "band": 1, "staged": False, "stages": 3}
    specs = ("bf16[70,200]", "bf16[200,136]", "f32[136]", "bf16[70,136]")
    is_exact(compiled(_follows, *specs, **tile, **fixed))


_ROW = """
module attributes {xgpu.level = "fusions"} {
  func.func @main(%x: tensor<1x600xbf16>, %w: tensor<600x136xbf16>) -> tensor<1x136xf32> {
    %0 = call @product(%x, %w) : (tensor<1x600xbf16>, tensor<600x136xbf16>) -> tensor<1x136xf32>
    return %0 : tensor<1x136xf32>
  }
  func.func private @product(%x: tensor<1x600xbf16>, %w: tensor<600x136xbf16>) -> tensor<1x136xf32>
      attributes {xgpu.emitter = "product", xgpu.schedule = #xgpu.schedule<SCHEDULE>} {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {xgpu.hero}
        : (tensor<1x600xbf16>, tensor<600x136xbf16>) -> tensor<1x136xf32>
    return %0 : tensor<1x136xf32>
  }
}
"""


@pytest.mark.parametrize("tile", ["tile_m = 64, tile_n = 8, split = 8, swapped = true", "split = 1, swapped = false"])
def test_a_single_row(tile: str) -> None:
    """Boxes have the one row that there is, and zeros beyond."""
    is_exact(xgpu.compile(_ROW.replace("SCHEDULE", tile)))


def test_batches() -> None:
    """Matrices of a batch are tiles like others."""
    tile = {"tile_m": 64, "groups": 1, "tile_n": 16, "split": 2, "swapped": True}
    fixed = {"blocks": 12, "cluster": 1, "band": 1, "staged": False, "stages": 2}
    numbers = (((2,), (2,)), ((0,), (0,)))
    function = lambda x, y: lax.dot_general(x, y, numbers, preferred_element_type=jnp.float32)  # noqa: E731
    is_exact(compiled(function, "bf16[3,10,136]", "bf16[3,72,136]", **tile, **fixed))


def test_operands_of_two_types_are_exchanged_with_their_types() -> None:
    """So are precision and algorithm, which name each operand."""
    tile = {"tile_m": 64, "groups": 1, "tile_n": 8, "split": 2, "swapped": True}
    fixed = {"blocks": 2, "cluster": 1, "band": 1, "staged": False, "stages": 2}
    algorithm = lax.DotAlgorithm(
        lhs_precision_type=jnp.float8_e4m3fn, rhs_precision_type=jnp.float8_e5m2, accumulation_type=jnp.float32,
        allow_imprecise_accumulation=True,
    )  # fmt: skip

    def function(x: Any, y: Any) -> Any:
        numbers = (((1,), (1,)), ((), ()))
        return lax.dot_general(x, y, numbers, precision=algorithm, preferred_element_type=jnp.float32)

    program = compiled(function, "f8e4m3fn[6,256]", "f8e5m2[40,256]", **tile, **fixed)
    assert "lhs_precision_type = f8E5M2, rhs_precision_type = f8E4M3FN" in program.ir("tiles")
    (found,) = program.run(*(arguments := whole_numbers(program)), sanitize=True)
    x, y = (each.astype(np.float32) for each in arguments)
    np.testing.assert_array_equal(found, x @ y.T)


def test_numbers_that_are_not_given_fit_those_that_are() -> None:
    """Of a tile that a person chooses, the blocks are as many as it needs."""
    program = compiled(jnp.matmul, "bf16[70,600]", "bf16[600,136]", tile_m=64, tile_n=64, split=4, swapped=True)
    kernel = program.kernels[0]
    assert (kernel.grid, kernel.block) == ((24, 1, 1), (256, 1, 1))
    is_exact(program)


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
@pytest.mark.parametrize(
    "schedule",
    [
        {"tile_m": 128, "groups": 2, "tile_n": 256, "split": 4, "swapped": False},
        {"tile_m": 64, "groups": 1, "tile_n": 256, "split": 2, "swapped": True},
    ],
    ids=str,
)
def test_sums_stay_in_registers(schedule: dict[str, int]) -> None:
    program = compiled(jnp.matmul, "bf16[512,512]", "bf16[512,512]", **schedule)
    assembled = program.kernels[0].assembled
    assert (assembled.spill_bytes, assembled.remarks) == (0, ())


_NEEDED = re.compile(r'"xgpu\.(cluster_arrive|cluster_wait|named_barrier)"\([^)]*\)[^\n]*\n')


@functools.cache
def _emitted() -> str:
    tile = {"tile_m": 128, "groups": 2, "tile_n": 16, "split": 2, "swapped": True}
    fixed = {"blocks": 2, "cluster": 1, "band": 1, "staged": False, "stages": 2}
    return _product("mk,nk", "bf16", (12, 100, 256), {**tile, **fixed}).ir("emitted")


def _run(text: str) -> None:
    program = xgpu.compile(text)
    (found,) = program.run(*(arguments := whole_numbers(program)), sanitize=True)
    x, y = (each.astype(np.float32) for each in arguments)
    np.testing.assert_array_equal(found, x @ y.T)


@pytest.mark.parametrize(("name", "number"), [(m[1], i) for i, m in enumerate(_NEEDED.finditer(_emitted()))])
def test_every_meeting_is_needed(name: str, number: int) -> None:
    """The host's checks find a kernel that lacks one: a race, a deadlock, or a block that is gone too early."""
    match = list(_NEEDED.finditer(_emitted()))[number]
    assert match[1] == name
    with pytest.raises(KernelFault) as caught:
        _run(_emitted()[: match.start()] + _emitted()[match.end() :])
    assert caught.value.faults


def test_nothing_is_found_in_a_whole_kernel() -> None:
    _run(_emitted())
