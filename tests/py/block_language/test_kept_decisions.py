"""Every keyword by which a person decides: the plan has what was given, or an error says why not, and where."""

import inspect
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xgpu import block, ir
from xgpu.block_language import tracing
from xgpu.block_language.writing import _attribute
from xgpu.errors import InvalidInput
from xgpu.hlo.source_location import source_of
from xgpu.interface.block_calls import compiled_program, source_of_program
from xgpu.interface.tile_explanation import planned_module
from xgpu.structure import walk

NOTHING: dict[str, Any] = {}
_DRAWN = np.random.default_rng(3)
ARGUMENTS = [
    _DRAWN.integers(-2, 3, shape).astype(dtype)
    for shape, dtype in (((64, 64), jnp.bfloat16), ((64, 32), jnp.bfloat16), ((64,), np.float32))
]
STRIDES, SWIZZLE, PANEL = (40, 1), (2, 3, 5), (1, 16, 512)


def decided(where: str, decisions: dict[str, Any], **settings: Any) -> block.Kernel:
    """A kernel in which something is decided at one place, on a line of its own that ends with the place's name."""

    def given(name: str) -> dict[str, Any]:
        return decisions if name == where else NOTHING

    @block.kernel(**settings)
    def kernel(x: Any, w: Any, b: Any) -> Any:
        (i,) = block.grid(2)
        once = x.tile((32, 32), (i, 0), **given("read"))  # read
        numbers = b.tile(32, (0,), **given("vector"))  # vector

        def step(s: Any, carried: Any) -> Any:
            rows = x.tile((32, 32), (i, s), **given("read in steps"))  # read in steps
            product = block.plan(block.dot(rows, w.tile((32, 32), (s, 0))), **given("product"))  # product
            total = block.plan(carried[0] + product, **given("sum"))  # sum
            twice = block.plan(numbers * b.tile(32, (s,)), **given("elementwise"))  # elementwise
            return total, carried[1] + twice

        start = (jnp.zeros((32, 32)), jnp.zeros(32))
        total, sums = block.steps(2, step, start, **given("steps"))  # steps
        after = block.plan(jnp.abs(total), **given("after a product"))  # after a product
        spread = block.plan(jnp.broadcast_to(sums[:, None], (32, 32)), **given("spread"))  # spread
        rows = block.plan(jnp.sum(after, axis=1), **given("reduction"))  # reduction
        return block.store(after + once + spread, (64, 32), (i, 0)), block.store(rows, (64,), (i,))

    return kernel


def line_of(where: str) -> int:
    lines, first = inspect.getsourcelines(decided)
    return first + next(number for number, line in enumerate(lines) if line.endswith(f"# {where}\n"))


WORDS: dict[str, tuple[Any, ...]] = {
    "copy": ("plain", "async", "bulk"),
    "place": ("shared", "computed", "fragments"),
    "product": ("wgmma", "mma", "fma"),
}
OF_TILES = ("product", "sum", "elementwise", "after a product", "spread", "reduction")
OF_READS = ("read", "read in steps", "vector")


def keywords() -> Iterator[tuple[str, dict[str, Any]]]:
    for where in OF_READS:
        for name in tracing._OF_READS:
            yield from ((where, {name: value}) for value in values_of(name, where))
    for where in OF_TILES:
        for name in tracing._OF_TILES:
            yield from ((where, {name: value}) for value in values_of(name, where))
    for name in tracing._OF_STEPS:
        yield from (("steps", {name: value}) for value in values_of(name, "steps"))
    yield "steps", {"place": ("fragments", "shared")}
    yield "steps", {"layout": (STRIDES, (1,)), "swizzle": (SWIZZLE, ())}
    yield "read", {"layout": (16, 1), "panel": PANEL}
    yield "after a product", {"layout": (16, 1), "panel": PANEL}
    yield "read", {"place": "computed", "copy": "plain"}
    yield "read", {"place": "computed", "layout": STRIDES}
    yield "after a product", {"place": "fragments", "swizzle": SWIZZLE}


def values_of(name: str, where: str) -> tuple[Any, ...]:
    others = {"layout": (STRIDES, (1,), ()), "swizzle": (SWIZZLE,), "panel": (PANEL,), "warps": ((4, 1),)}
    others |= {"stages": (1, 3), "prefetch": (1,)}
    return WORDS[name] if name in WORDS else others[name]


def is_refused(where: str, decisions: dict[str, Any]) -> bool:
    """Whether the rules of block programs leave no plan that keeps what is given."""
    place, layout = decisions.get("place"), decisions.get("layout")
    if decisions.get("copy") == "bulk" and where != "read in steps":
        return True
    if decisions.keys() & {"warps", "product"} and where != "product":
        return True
    if decisions.get("product") == "wgmma" or ("panel" in decisions and layout is None):
        return True
    if place in ("computed", "fragments") and len(decisions) > 1:
        return True
    if place == "fragments" and where not in ("product", "sum", "after a product"):
        return True
    if place == "computed" and where in ("product", "after a product", "reduction", "steps"):
        return True
    if where == "steps":
        # Two tiles are carried, of one and of two dimensions, and each has an entry of its own.
        return layout is not None and layout != (STRIDES, (1,))
    return layout is not None and len(layout) != (1 if where in ("vector", "elementwise", "reduction") else 2)


def says_where(error: InvalidInput, where: str, decisions: dict[str, Any]) -> bool:
    """Whether an error is at the line of the decision; at that of the steps where these are what cannot be planned."""
    is_of_steps = (where == "sum" and "layout" in decisions) or (where == "after a product" and "place" in decisions)
    assert error.location is not None
    return error.location.line == line_of("steps" if is_of_steps and len(decisions) == 1 else where)


@pytest.mark.parametrize(("where", "decisions"), list(keywords()), ids=str)
def test_the_plan_has_what_is_given(where: str, decisions: dict[str, Any]) -> None:
    kernel = decided(where, decisions)
    if is_refused(where, decisions):
        with pytest.raises(InvalidInput, match=r"expected|stands on") as caught:
            kernel(*ARGUMENTS)
        assert says_where(caught.value, where, decisions), caught.value
        return
    results = kernel(*ARGUMENTS)
    for result, wanted in zip(results, kernel.reference(*ARGUMENTS), strict=True):
        np.testing.assert_array_equal(result, wanted)
    (planned,) = compiled_program(kernel.program(*ARGUMENTS), "cpu").kernels
    module = planned_module(planned)
    with module.context:
        carried = 2 if where == "steps" else 0
        wanted = {f"xgpu.{name}": _attribute(name, value, carried) for name, value in decisions.items()}
        found = [op for op in walk(module.operation) if matches(op, line_of(where), wanted)]
        assert found, str(module)
        assert all(is_in_shared_memory(op) for op in found if decisions.keys() & {"copy", "layout", "swizzle"})


def matches(op: ir.Operation, line: int, wanted: dict[str, ir.Attribute]) -> bool:
    place = source_of(op)
    if place is None or place.line != line:
        return False
    return all(name in op.attributes and op.attributes[name] == value for name, value in wanted.items())


def is_in_shared_memory(op: ir.Operation) -> bool:
    """Whether all tiles of an operation of which a layout or a copy is given are in shared memory."""
    places = op.attributes["xgpu.place"]
    entries = list(places) if isinstance(places, ir.ArrayAttr) else [places]
    return all(entry.value == "shared" for entry in entries)


@pytest.mark.parametrize(
    ("where", "decisions", "message"),
    [
        ("read", {"copy": "bulk"}, "TMA cannot copy the tile: expected a tile of steps with several buffers"),
        ("read", {"place": "computed", "copy": "async"}, "expected 'xgpu.place' to be shared with it, got computed"),
        ("read", {"layout": ()}, "expected 2 strides, got ()"),
        ("read", {"panel": PANEL}, "attribute 'xgpu.panel': expected 'xgpu.layout' to be given with it"),
        ("read", {"layout": (16, 1), "panel": (1, 5, 512)}, "expected a width that divides 32, got (1, 5, 512)"),
        (
            "read",
            {"layout": (16, 1), "panel": (1, 16, 8)},
            "expected strides with a place for each element, got (16, 1)",
        ),
        (
            "product",
            {"product": "wgmma"},
            "attribute 'xgpu.product': expected another instruction: expected tiles that groups of 128 threads divide",
        ),
        ("steps", {"prefetch": 2}, "attribute 'xgpu.prefetch': expected at most 1 steps, with 2 buffers, got 2"),
        ("steps", {"place": "computed"}, "expected shared or fragments for what steps carry, got computed"),
    ],
)
def test_what_cannot_be_kept_is_refused(where: str, decisions: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        decided(where, decisions)(*ARGUMENTS)
    assert message in str(caught.value)
    assert caught.value.location is not None and caught.value.location.line == line_of(where)


def test_a_tile_is_decided_about_once() -> None:
    @block.kernel
    def kernel(x: Any) -> Any:
        block.grid(1)
        tile = x.tile(32, (0,), place="shared")
        return block.store(block.plan(tile, place="computed"), (32,), (0,))

    with pytest.raises(InvalidInput, match="the place of this tile is given twice"):
        kernel(jnp.ones(32))


def test_a_decided_broadcast_is_written_though_another_follows() -> None:
    @block.kernel
    def kernel(x: Any) -> Any:
        block.grid(1)
        square = block.plan(jnp.broadcast_to(x.tile(8, (0,)), (8, 8)), place="shared")
        return block.store(jnp.broadcast_to(square, (2, 8, 8)), (2, 8, 8), (0, 0, 0))

    assert 'xgpu.place = "shared"' in str(source_of_program(kernel.program(jnp.ones(8))).module)


@pytest.mark.parametrize("stages", [None, 2])
def test_several_buffers_are_of_tiles_that_are_copied(stages: int | None) -> None:
    @block.kernel(stages=3)
    def kernel(x: Any) -> Any:
        block.grid(1)
        return block.store(block.steps(3, lambda _, tile: tile + 1, x.tile(8, (0,)), stages=stages), (8,), (0,))

    if stages is None:
        np.testing.assert_array_equal(kernel(jnp.zeros(8)), np.full(8, 3.0))
        return
    with pytest.raises(
        InvalidInput, match="stages': expected 1, as no tile is copied to shared memory in a step, got 2"
    ):
        kernel(jnp.zeros(8))


@pytest.mark.parametrize("settings", [{"stages": 3}, {"copy": "plain"}, {"copy": "async"}, {"threads": 64}], ids=str)
def test_what_is_decided_for_all_steps(settings: dict[str, Any]) -> None:
    (planned,) = compiled_program(decided("read", NOTHING, **settings).program(*ARGUMENTS), "cpu").kernels
    text = str(planned_module(planned))
    ((name, value),) = settings.items()
    said = {"stages": f"xgpu.stages = {value}", "copy": f'xgpu.copy = "{value}"', "threads": f"threads = {value}"}[name]
    assert text.count(said) >= (3 if name == "copy" else 1)


def product(read: dict[str, Any], steps: dict[str, Any], after: dict[str, Any], **settings: Any) -> str:
    """The text of a kernel of the emitter of products."""

    @block.kernel(emitter="product", **settings)
    def kernel(x: Any, w: Any) -> Any:
        i, j = block.grid(2, 2)

        def term(s: Any) -> Any:
            return block.dot(x.tile((64, 64), (i, s), **read), w.tile((64, 64), (s, j)))

        return block.store(block.plan(jnp.tanh(block.accumulate(2, term, **steps)), **after), (128, 128), (i, j))

    array = jax.ShapeDtypeStruct((128, 128), jnp.bfloat16)
    return str(source_of_program(kernel.program(array, array)).module)


@pytest.mark.parametrize(("steps", "settings"), [({"stages": 3}, {}), ({}, {"stages": 3})])
def test_the_emitter_of_products_has_the_stages_of_its_steps(steps: dict[str, Any], settings: dict[str, Any]) -> None:
    assert "stages = 3," in product({}, steps, {}, **settings)


@pytest.mark.parametrize(
    ("decisions", "settings", "message"),
    [
        (({"copy": "async"}, {}, {}), {}, "'xgpu.tile': expected no 'xgpu.copy' about a tile, got \"async\""),
        (({}, {"place": "shared"}, {}), {}, "'xgpu.steps': expected no 'xgpu.place' about a tile"),
        (({}, {}, {"layout": (64, 1)}), {}, "'stablehlo.tanh': expected no 'xgpu.layout' about a tile"),
        (({}, {}, {}), {"threads": 256}, "the threads follow from the schedule's groups: expected no threads, got 256"),
        (({}, {}, {}), {"stages": 3, "schedule": {"stages": 4}}, "stages are given twice: 3, and 4 in its schedule"),
    ],
)
def test_the_emitter_of_products_refuses_what_it_decides(
    decisions: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        product(*decisions, **settings)
    assert message in str(caught.value)


def test_only_some_emitters_have_a_schedule() -> None:
    with pytest.raises(InvalidInput, match="of emitters, only product has a schedule: expected none"):
        block.kernel(schedule={"groups": 2})


@pytest.mark.parametrize(("dtype", "way"), [(jnp.bfloat16, "plain"), (np.float32, "async")])
def test_a_swizzle_of_single_elements_leaves_narrow_copies(dtype: Any, way: str) -> None:
    @block.kernel
    def kernel(x: Any) -> Any:
        block.grid(1)
        return block.store(x.tile((8, 16), (0, 0), swizzle=(2, 0, 4)).T, (16, 8), (0, 0))

    x = np.arange(128).reshape(8, 16).astype(dtype)
    np.testing.assert_array_equal(kernel(x), x.T)
    (planned,) = compiled_program(kernel.program(x), "cpu").kernels
    assert f'xgpu.copy = "{way}"' in str(planned_module(planned))
