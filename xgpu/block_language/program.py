"""A block program: what a function says for arrays of some shapes, before it is text."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import jax

from xgpu.errors import SourceLocation
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.jax_internals import Primitive
from xgpu.records import dataclass

Decisions = tuple[tuple[str, Any], ...]
"""The writer's decisions about an operation: attributes by name, without ``xgpu.``."""


@dataclass(frozen=True)
class NamedArrayType:
    """An array that a kernel reads or writes: its name, its shape and the type of its elements."""

    name: str
    shape: tuple[int, ...]
    dtype: Any


@dataclass(frozen=True)
class TileStore:
    """A tile that blocks write into an output; ``map`` goes from the block's numbers and its positions to indices."""

    output: int
    map: IndexingMap
    location: SourceLocation


@dataclass(frozen=True)
class Settings:
    """The settings of a whole kernel that its writer may give; the compiler decides those that are None."""

    threads: int = 128
    emitter: str | None = None
    stages: int | None = None
    copy: str | None = None
    schedule: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Body:
    """The equations of a function that JAX has traced, of blocks or of a step: variables and values are JAX's.

    ``constants`` are the values of variables that come from outside of the kernel.
    """

    constants: Mapping[Any, Any]
    arguments: Sequence[Any]
    equations: Sequence[Any]
    results: Sequence[Any]
    debug_info: Any

    @classmethod
    def of(cls, closed: Any, constants: Mapping[Any, Any], arguments: Sequence[Any] = ()) -> "Body":
        """Return what a closed jaxpr computes."""
        jaxpr = closed.jaxpr
        return cls(constants, tuple(arguments), tuple(jaxpr.eqns), tuple(jaxpr.outvars), jaxpr.debug_info)


@dataclass(frozen=True, eq=False)
class BlockProgram:
    """A program of blocks that compute tiles; ``grid`` is the number of blocks along each dimension.

    ``body`` has no arguments: it reads tiles with `read_p` and gives one tile for each of the ``stores``.
    ``location`` is where the function is.
    """

    name: str
    inputs: tuple[NamedArrayType, ...]
    outputs: tuple[NamedArrayType, ...]
    grid: tuple[int, ...]
    body: Body
    stores: tuple[TileStore, ...]
    settings: Settings
    location: SourceLocation


read_p = Primitive("read_tile")
index_p = Primitive("index_tile")
plan_p = Primitive("plan_tile")
steps_p = Primitive("steps")
steps_p.multiple_results = True
CUTS = (read_p, index_p, plan_p, steps_p)
"""The primitives that are operations of level ``tiles``, and not JAX's: all between is lowered by JAX."""


@read_p.def_abstract_eval  # type: ignore[untyped-decorator]
def _read(*, array: int, map: IndexingMap, dtype: Any, decisions: Decisions) -> Any:
    return jax.core.ShapedArray(tuple(each.size for each in map.symbols), dtype)


@index_p.def_abstract_eval  # type: ignore[untyped-decorator]
def _index(*, map: IndexingMap, dtype: Any) -> Any:
    return jax.core.ShapedArray(tuple(each.size for each in map.symbols), dtype)


@plan_p.def_abstract_eval  # type: ignore[untyped-decorator]
def _plan(tile: Any, *, decisions: Decisions) -> Any:
    return jax.core.ShapedArray(tile.shape, tile.dtype)


@steps_p.def_abstract_eval  # type: ignore[untyped-decorator]
def _steps(*tiles: Any, body: Body, captured: int, count: int, decisions: Decisions) -> list[Any]:
    return [jax.core.ShapedArray(each.aval.shape, each.aval.dtype) for each in body.results]


def is_cut(equation: Any) -> bool:
    """Whether an equation is an operation of level ``tiles``."""
    return equation.primitive in CUTS
