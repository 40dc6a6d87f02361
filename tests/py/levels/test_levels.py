"""The graph of levels: paths through it, also where two ways lead to a level, and kernels that are taken along them."""

import pytest

import xgpu
from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.driver.compiler import TEXTS, Kernel
from xgpu.errors import InvalidInput
from xgpu.levels import pipeline
from xgpu.levels.level_graph import Edge, Level, LevelGraph
from xgpu.options import Options

GRAPH = pipeline.GRAPH


def levels_of(path: tuple[Edge, ...] | None) -> list[str] | None:
    return None if path is None else [edge.target for edge in path]


@pytest.mark.parametrize(
    ("given", "wanted", "expected"),
    [
        ({"emitted"}, "lowered", ["optimized", "lowered"]),
        ({"emitted", "optimized"}, "lowered", ["lowered"]),
        ({"emitted", "lowered"}, "lowered", []),
        ({"tiles"}, "lowered", ["emitted", "optimized", "lowered"]),
        ({"optimized"}, "tiles", None),
        ({"emitted"}, "tiles", None),
        ({"fusions"}, "lowered", ["emitted", "optimized", "lowered"]),
        ({"stablehlo"}, "tiles", ["prepared", "fusions", "tiles"]),
        ({"llvm"}, "sass", ["llvmir", "ptx", "cubin", "sass"]),
        ({"llvm"}, "lowered", None),
    ],
)
def test_paths(given: set[str], wanted: str, expected: list[str] | None) -> None:
    assert levels_of(GRAPH.path(given, wanted)) == expected


def test_every_level_follows_from_the_program() -> None:
    through = [name for name in GRAPH.names[1:] if name != "tiles"]
    assert levels_of(GRAPH.path({"stablehlo"}, "sass")) == through
    assert all(GRAPH.leads("stablehlo", name) for name in GRAPH.names)
    assert not GRAPH.leads("ptx", "llvmir")


@pytest.mark.parametrize(
    ("edge", "message"),
    [
        (Edge("a", "c", stage="it"), "levels: a, b"),
        (Edge("c", "a", stage="it"), "levels: a, b"),
        (Edge("a", "b"), "expected passes or else a stage"),
        (Edge("a", "b", (("cse", "why"),), "it"), "expected passes or else a stage"),
    ],
)
def test_edges_that_lead_nowhere(edge: Edge, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LevelGraph((Level("a", of="program"), Level("b", of="program")), (edge,))


def test_levels_have_names_of_their_own() -> None:
    with pytest.raises(ValueError, match="one name: a, a"):
        LevelGraph((Level("a", of="program"), Level("a", of="kernel")), ())


def test_levels_of_text_are_those_with_functions() -> None:
    assert tuple(TEXTS) == tuple(level.name for level in GRAPH.levels if not level.is_mlir)


def test_a_kernel_is_given_at_its_own_level_where_it_has_no_tiles() -> None:
    (kernel,) = xgpu.compile(lambda x: x * 2.0, "f32[1000]").kernels
    assert kernel.text("tiles") == kernel.text("emitted")
    optimized = ir.Module.parse(kernel.text("optimized"), ir.make_context())
    later = Kernel(kernel.name, device(DEFAULT_DEVICE), Options(), [], {"optimized": optimized})
    assert later.text("llvm") == kernel.text("llvm")
    with pytest.raises(InvalidInput, match="given at level 'optimized', from which level 'tiles' cannot be made"):
        later.text("tiles")
