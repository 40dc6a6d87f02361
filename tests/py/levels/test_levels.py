"""The graph of levels: paths through it, also where two ways lead to a level, and kernels that are taken along them."""

import pytest

import xgpu
from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.driver.kernel import TEXTS, ProgramKernel
from xgpu.errors import InvalidInput
from xgpu.levels import pipeline
from xgpu.levels.level_graph import Edge, Level, LevelGraph
from xgpu.options import Options

GRAPH = pipeline.GRAPH
BRANCHED = LevelGraph(
    (*GRAPH.levels, Level("outline", of="kernel")),
    (
        *GRAPH.edges,
        Edge("fusions", "outline", stage="an emitter of outlines"),
        Edge("outline", "lowered", pipeline.LOWER),
    ),
)
"""Kernels that are written as outlines do without threads' indices: they join the others when these are lowered."""


def levels_of(path: tuple[Edge, ...] | None) -> list[str] | None:
    return None if path is None else [edge.target for edge in path]


@pytest.mark.parametrize(
    ("given", "wanted", "expected"),
    [
        ({"emitted"}, "lowered", ["optimized", "lowered"]),
        ({"emitted", "optimized"}, "lowered", ["lowered"]),
        ({"emitted", "lowered"}, "lowered", []),
        ({"outline"}, "llvm", ["lowered", "llvm"]),
        ({"outline"}, "optimized", None),
        ({"outline"}, "emitted", None),
        ({"fusions"}, "lowered", ["outline", "lowered"]),
        ({"stablehlo"}, "outline", ["prepared", "fusions", "outline"]),
        ({"llvm"}, "sass", ["llvmir", "ptx", "cubin", "sass"]),
        ({"llvm"}, "lowered", None),
    ],
)
def test_paths(given: set[str], wanted: str, expected: list[str] | None) -> None:
    assert levels_of(BRANCHED.path(given, wanted)) == expected


def test_every_level_follows_from_the_program() -> None:
    of_all = [level.name for level in GRAPH.levels if not level.is_of_some]
    assert levels_of(GRAPH.path({"stablehlo"}, "sass")) == of_all[1:]
    of_loops = ("te", "loops", "mapped")
    assert all(GRAPH.leads("stablehlo", name) for name in GRAPH.names if name not in of_loops)
    assert levels_of(GRAPH.path({"te"}, "emitted")) == ["loops", "mapped", "emitted"]
    assert not any(GRAPH.leads("stablehlo", name) for name in of_loops)
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
    assert tuple(TEXTS) == tuple(level.name for level in GRAPH.levels if not level.is_mlir and level.of == "kernel")


def test_a_kernel_of_another_branch_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    (kernel,) = xgpu.compile(lambda x: x * 2.0, "f32[1000]").kernels
    optimized = str(kernel.module("optimized"))
    monkeypatch.setattr(pipeline, "GRAPH", BRANCHED)
    tiles = ir.Module.parse(optimized, ir.make_context())
    joined = ProgramKernel(kernel.name, device(DEFAULT_DEVICE), Options(), [], {"outline": tiles})
    assert joined.text("llvm") == kernel.text("llvm")
    assert list(joined.modules) == ["outline", "lowered", "llvm"]
    with pytest.raises(InvalidInput, match="given at level 'outline', from which level 'optimized' cannot be made"):
        joined.module("optimized")
