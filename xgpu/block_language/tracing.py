"""The parts of a block program while its function is traced: the grid, tiles of arrays, steps and stores."""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from xgpu.block_language.maps import Given, called_indices, element_indices, map_of_tile, positions, whole_sizes
from xgpu.block_language.numbers import Number, as_number, here, wrong
from xgpu.block_language.program import Body, Decisions, NamedArrayType, TileStore, index_p, plan_p, read_p, steps_p
from xgpu.dialects.discardable import MAX_GRID
from xgpu.dtypes import dtype_of_numpy
from xgpu.errors import InvalidInput
from xgpu.hlo.tensor_cores import sum_type
from xgpu.indexing.affine import AffineExpr, dim
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.jax_internals import core, source_info_util
from xgpu.records import dataclass

_MOST_DIMENSIONS = 3


@dataclass
class Tracing:
    """A program that is being traced. ``trace`` is JAX's, of the function or of the innermost steps."""

    name: str
    grid: tuple[int, ...] | None = None
    outputs: list["Output"] = field(default_factory=list)
    stores: list[tuple[TileStore, Any]] = field(default_factory=list)
    steps: object | None = None
    count: int = 0
    trace: Any = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The number of blocks along each dimension, and inside of steps the number of steps."""
        if self.grid is None:
            raise wrong("tiles are read by blocks: call block.grid first, with how many blocks there are")
        return (*self.grid, self.count) if self.steps is not None else self.grid

    def check_place(self, what: str) -> None:
        """Raise InvalidInput where JAX traces something else than the program: it may keep that trace for later."""
        if core.trace_ctx.trace is not self.trace:
            raise wrong(
                f"{what} must stand in the kernel's function or in a body of block.steps, not inside jax.jit, jax.vmap,"
                " jax.grad, lax.scan or the like"
            )

    def check_numbers(self, indices: Sequence[Number], what: str) -> list[AffineExpr]:
        """Return the expressions of indices. Raises InvalidInput for the number of steps that are over."""
        for each in indices:
            if each.steps is not None and each.steps is not self.steps:
                raise wrong(f"{what}: an index is the number of a step, outside of these steps")
        return [each.expression for each in indices]


class _Thread(threading.local):
    """The programs that a thread traces, the innermost last."""

    def __init__(self) -> None:
        self.programs: list[Tracing] = []


_thread = _Thread()


@contextmanager
def saying(tracing: Tracing) -> Iterator[None]:
    """Context in which a function of this thread is traced as a program."""
    _thread.programs.append(tracing)
    try:
        yield
    finally:
        _thread.programs.pop()


def current() -> Tracing:
    """Return the program that is being traced. Raises InvalidInput if there is none."""
    if not _thread.programs:
        raise wrong("call this inside a function that block.kernel decorates")
    return _thread.programs[-1]


class Array:
    """An array argument of a kernel. Its elements are read by tiles."""

    def __init__(self, number: int, type_: NamedArrayType):
        self._number, self._type = number, type_

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the array's dimensions."""
        return self._type.shape

    @property
    def ndim(self) -> int:
        """The number of the array's dimensions."""
        return len(self._type.shape)

    @property
    def dtype(self) -> Any:
        """The type of the array's elements."""
        return self._type.dtype

    def __repr__(self) -> str:
        return f"Array({self._type.name}: {self._type.dtype}{list(self._type.shape)})"

    def __jax_array__(self) -> Any:
        name = self._type.name
        if not self.shape:
            raise wrong(
                f"'{name}' is an array without dimensions: read its element, {name}.tile((), ()), or give a constant by"
                " keyword"
            )
        raise wrong(f"'{name}' is the whole array: read a tile of it, for example {name}.tile((128, 64), (i, j))")

    def tile(
        self,
        shape: Given,
        at: Sequence[Any] | None = None,
        *,
        offset: Sequence[Any] | None = None,
        fill: Any = 0,
        **decisions: Any,
    ) -> Any:
        """Read a tile of the array, by its tile index ``at``, or by the index ``offset`` of its first element.

        A tile may have fewer dimensions than the array: its dimensions are the last ones, without those that are None
        in ``shape``. Along the others ``at`` is the index of an element. Elements outside of the array are ``fill``.
        ``copy``, ``place``, ``layout`` and ``swizzle`` fix decisions of the compiler.
        """
        sizes, indices = element_indices(self._type.name, self.ndim, shape, at, offset)
        return self._filled(sizes, indices, fill, decisions)

    def elements(self, shape: Given, indices: Callable[..., Any], *, fill: Any = 0, **decisions: Any) -> Any:
        """Read a tile whose element at positions ``p, q, ...`` is the array's at ``indices(p, q, ...)``."""
        sizes, found = called_indices(self._type.name, self.ndim, shape, indices)
        return self._filled(sizes, found, fill, decisions)

    def inside(self, shape: Given, at: Sequence[Any] | None = None, *, offset: Sequence[Any] | None = None) -> Any:
        """Return the mask of a `tile`: whether each of its elements is inside the array."""
        sizes, indices = element_indices(self._type.name, self.ndim, shape, at, offset)
        return self._inside(sizes, self._map(sizes, indices))

    def _map(self, sizes: tuple[int, ...], indices: Sequence[Number]) -> IndexingMap:
        tracing, what = current(), f"tile of '{self._type.name}'"
        tracing.check_place(what)
        return map_of_tile(tracing.numbers, sizes, tracing.check_numbers(indices, what), self.shape)

    def _filled(self, sizes: tuple[int, ...], indices: Sequence[Number], fill: Any, decisions: dict[str, Any]) -> Any:
        map_, decided = self._map(sizes, indices), checked_decisions(decisions, _OF_READS)
        tile = read_p.bind(array=self._number, map=map_, dtype=self.dtype, decisions=decided)  # type: ignore[no-untyped-call]
        is_zero = isinstance(fill, int | float) and fill == 0 and math.copysign(1, fill) > 0
        if is_zero or not map_.constraints:
            return tile
        return jnp.where(self._inside(sizes, map_), tile, self._filling(fill))

    def _filling(self, fill: Any) -> Any:
        """Return what is outside of the array; raise InvalidInput for a constant that its type has not."""
        if isinstance(fill, core.Tracer):
            return jnp.asarray(fill, self.dtype)
        try:
            given, is_float = np.asarray(fill), jnp.issubdtype(self.dtype, np.inexact)
        except (TypeError, ValueError):
            # Lists of several lengths, or keys of random numbers, are no arrays.
            given, is_float = np.empty(0), False
        is_number = given.shape == () and (given.dtype == bool or jnp.issubdtype(given.dtype, np.number))
        is_real = jnp.issubdtype(self.dtype, np.complexfloating) or not jnp.issubdtype(given.dtype, np.complexfloating)
        if is_number and is_real:
            with np.errstate(all="ignore"):
                found = given.astype(self.dtype)
            if is_float or found == given:
                return jnp.asarray(found)
        raise wrong(f"tile of '{self._type.name}', fill: expected a number that {self.dtype} has, got {fill!r}")

    def _inside(self, sizes: tuple[int, ...], map_: IndexingMap) -> Any:
        found = jnp.ones(sizes, bool)
        for expression, bound in map_.constraints:
            number = _index_tile(map_.dims, map_.symbols, expression)
            low, high = expression.interval(map_.dims, map_.symbols).lower, bound.upper
            found = found & (number <= high) if low >= 0 else found & (number >= 0) & (number <= high)
        return found


def _no_tile(array: Array, *others: Any) -> Any:
    return array.__jax_array__()


for _name in ("add", "sub", "mul", "truediv", "matmul", "pow", "floordiv", "mod"):
    setattr(Array, f"__{_name}__", _no_tile)
    setattr(Array, f"__r{_name}__", _no_tile)
for _name in ("neg", "getitem", "lt", "le", "gt", "ge"):
    setattr(Array, f"__{_name}__", _no_tile)


class Output:
    """A result of a kernel. Blocks store tiles into it."""

    def __init__(self, number: int, type_: NamedArrayType):
        self._number, self._type = number, type_

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the array's dimensions."""
        return self._type.shape

    @property
    def dtype(self) -> Any:
        """The type of the array's elements."""
        return self._type.dtype

    def store(
        self,
        tile: Any,
        at: Sequence[Any] | None = None,
        *,
        offset: Sequence[Any] | None = None,
        shape: Given | None = None,
    ) -> "Output":
        """Write a tile, converted to the array's type, and return this output. Its place is as in `Array.tile`.

        Elements of the tile outside of the array are dropped. Each element of the array must be written once, by one
        block. ``shape`` has None for dimensions that the tile does not have, if these are not the first ones.
        """
        value = self._value(tile)
        sizes, indices = element_indices(
            self._type.name, len(self.shape), value.shape if shape is None else shape, at, offset
        )
        return self._stored(value, sizes, indices)

    def store_elements(self, tile: Any, indices: Callable[..., Any]) -> "Output":
        """Write a tile whose element at positions ``p, q, ...`` is the array's at ``indices(p, q, ...)``."""
        value = self._value(tile)
        return self._stored(value, *called_indices(self._type.name, len(self.shape), value.shape, indices))

    def _value(self, tile: Any) -> Any:
        current().check_place(f"store into '{self._type.name}'")
        return jnp.asarray(tile)

    def _stored(self, value: Any, sizes: tuple[int, ...], indices: Sequence[Number]) -> "Output":
        tracing, what = current(), f"store into '{self._type.name}'"
        if tracing.steps is not None:
            raise wrong(f"{what}: tiles are stored after the steps, from what these carry")
        if tuple(value.shape) != sizes:
            raise wrong(f"{what}: expected a tile of shape {sizes}, got one of {tuple(value.shape)}")
        map_ = map_of_tile(tracing.numbers, sizes, tracing.check_numbers(indices, what), self.shape)
        tracing.stores.append((TileStore(self._number, map_, here()), value.astype(self.dtype)))
        return self


def grid(*sizes: int) -> tuple[Number, ...]:
    """Set the number of the kernel's blocks along 1 to 3 dimensions, and return the indices of the block."""
    tracing = current()
    if tracing.grid is not None:
        raise wrong("block.grid is called once in a kernel")
    if not 1 <= len(sizes) <= _MOST_DIMENSIONS:
        raise wrong(f"block.grid: expected 1 to {_MOST_DIMENSIONS} dimensions, got {len(sizes)}")
    counts = whole_sizes(sizes, "block.grid")
    if int(np.prod(counts)) > MAX_GRID[0]:
        raise wrong(f"block.grid: expected at most {MAX_GRID[0]} blocks in all, got {counts}")
    tracing.grid = counts
    return tuple(Number(dim(number)) for number in range(len(counts)))


def index(shape: Given, number: Any, dtype: Any = jnp.int32) -> Any:
    """Return a tile of integers: ``number`` is an affine index, or a function from positions in the tile to one."""
    sizes, tracing = whole_sizes(shape, "block.index"), current()
    tracing.check_place("block.index")
    given = number(*positions(sizes)) if callable(number) else number
    (expression,) = tracing.check_numbers([as_number(given, "block.index")], "block.index")
    plain = map_of_tile(tracing.numbers, sizes, [expression])
    return index_p.bind(map=plain, dtype=np.dtype(dtype))  # type: ignore[no-untyped-call]


def _index_tile(dims: Any, symbols: Any, expression: AffineExpr) -> Any:
    return index_p.bind(map=IndexingMap(dims, symbols, (expression,)), dtype=np.dtype(np.int32))  # type: ignore[no-untyped-call]


def output(shape: Given, dtype: Any, name: str = "") -> Output:
    """Make an output of the kernel. The kernel's function returns it, or a tree of such."""
    tracing = current()
    number = len(tracing.outputs)
    called = name or f"result{number}"
    made = Output(number, NamedArrayType(called, whole_sizes(shape, f"output '{called}'"), np.dtype(dtype)))
    tracing.outputs.append(made)
    return made


def store(
    tile: Any, array: Given, at: Sequence[Any] | None = None, *, offset: Sequence[Any] | None = None, name: str = ""
) -> Output:
    """Make an output with the shape ``array`` and the tile's type, and write the tile into it: see `Output.store`."""
    value = jnp.asarray(tile)
    return output(array, value.dtype, name).store(value, at, offset=offset)


def steps(count: int, body: Callable[..., Any], init: Any, **decisions: Any) -> Any:
    """Run ``body(step, carried)`` for each of ``count`` steps in order, and return the last one's result.

    The first step is given ``init``, a tile or a tree of tiles; each step returns the same shapes and types, for the
    next one. ``stages`` is the number of buffers for the tiles that steps read, and ``place`` the place of the carried
    tiles.
    """
    tracing = current()
    tracing.check_place("block.steps")
    if tracing.steps is not None:
        raise wrong("block.steps: steps cannot be nested")
    (many,) = whole_sizes(count, "block.steps")
    leaves, tree = jax.tree.flatten(init)
    taken = [jnp.asarray(each) for each in leaves]
    types = [jax.core.ShapedArray(each.shape, each.dtype) for each in taken]
    decided = checked_decisions(decisions, _OF_STEPS)
    closed = _traced_step(tracing, body, many, types, tree)
    own = Body.of(closed, {}, [*closed.jaxpr.constvars, *closed.jaxpr.invars])
    captured = len(closed.consts)
    found = steps_p.bind(  # type: ignore[no-untyped-call]
        *closed.consts, *taken, body=own, captured=captured, count=many, decisions=decided
    )
    return jax.tree.unflatten(tree, found)


def _traced_step(tracing: Tracing, body: Callable[..., Any], count: int, types: Sequence[Any], tree: Any) -> Any:
    """Return a step as a jaxpr, which takes and gives the leaves of what is carried."""
    before, mark = tracing.trace, object()
    number = Number(dim(len(tracing.numbers)), mark)

    def step(*leaves: Any) -> list[Any]:
        tracing.trace = core.trace_ctx.trace
        result = body(number, jax.tree.unflatten(tree, leaves))
        given, got = jax.tree.flatten(result)
        if got != tree:
            raise wrong(f"block.steps: a step takes {tree}, expected the same from what it returns, got {got}")
        values = [jnp.asarray(each) for each in given]
        names = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(jax.tree.unflatten(tree, types))]
        for name, value, type_ in zip(names, values, types, strict=True):
            if (value.shape, value.dtype) != (type_.shape, type_.dtype):
                raise _of_step(body, name, type_, value)
        return values

    tracing.steps, tracing.count = mark, count
    try:
        return jax.make_jaxpr(step)(*types)
    finally:
        tracing.trace, tracing.steps, tracing.count = before, None, 0


def _of_step(body: Callable[..., Any], name: str, type_: Any, value: Any) -> InvalidInput:
    called = f"carried tile {name}" if name else "the carried tile"
    expected = f"{type_.dtype}{list(type_.shape)}"
    return wrong(
        f"block.steps: {called} changes in a step of {getattr(body, '__name__', 'it')}: expected {expected}, as it"
        f" began, got {value.dtype}{list(value.shape)}"
    )


def accumulate(count: int, term: Callable[[Number], Any], **decisions: Any) -> Any:
    """Return the sum of ``term(step)`` over ``count`` steps: a tile, or a tree of tiles. Sums begin as zeros."""
    at = source_info_util.current().traceback

    def add(step: Number, totals: Any) -> Any:
        terms = term(step)
        # JAX keeps the lines of this trace alone, and no line of the user's adds.
        with source_info_util.user_context(at):
            return jax.tree.map(jnp.add, totals, terms)

    tracing = current()
    tracing.check_place("block.accumulate")
    (many,) = whole_sizes(count, "block.accumulate")
    before, tracing.steps, tracing.count = tracing.trace, object(), many
    number = Number(dim(len(tracing.numbers) - 1), tracing.steps)

    def once() -> Any:
        tracing.trace = core.trace_ctx.trace
        return term(number)

    try:
        types = jax.eval_shape(once)
    finally:
        tracing.trace, tracing.steps, tracing.count = before, None, 0
    zeros = jax.tree.map(lambda each: jnp.zeros(each.shape, each.dtype), types)
    return steps(many, add, zeros, **decisions)


def dot(left: Any, right: Any, precision: Any = None) -> Any:
    """Return the matrix product of two tiles, summed as tensor cores sum: floats in f32, integers in s32.

    Elements of 64 bits are summed in their own type. f32 is multiplied as tf32, as `jax.jit` does on GPUs, unless
    ``precision`` is "highest".
    """
    shapes = jnp.shape(left), jnp.shape(right)
    if not _is_product(*shapes):
        expected = "the last dimension of the left one as long as the last but one of the right one"
        raise wrong(f"block.dot: expected two tiles, {expected}, got shapes {shapes[0]} and {shapes[1]}")
    dtype = dtype_of_numpy(jnp.result_type(left, right))
    total = (dtype if dtype.bits == 64 else sum_type(dtype)).numpy
    return jnp.matmul(left, right, precision=precision, preferred_element_type=total)


def _is_product(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Whether arrays of these shapes have a matrix product, as `jax.numpy.matmul` has them."""
    if not left or not right or left[-1] != right[-2:][0]:
        return False
    pairs = zip(reversed(left[:-2]), reversed(right[:-2]), strict=False)
    return all(1 in pair or pair[0] == pair[1] for pair in pairs)


def plan(tile: Any, **decisions: Any) -> Any:
    """Return ``tile`` with decisions fixed: its ``place``, ``layout``, ``panel`` or ``swizzle``.

    Of a product also which ``warps`` share it, and by which instruction they multiply: ``product``.
    """
    current().check_place("block.plan")
    return plan_p.bind(tile, decisions=checked_decisions(decisions, _OF_TILES))  # type: ignore[no-untyped-call]


def cdiv(size: int, tile: int) -> int:
    """Return the number of tiles that cover ``size``: the quotient, rounded up."""
    (of_tile,) = whole_sizes(tile, "block.cdiv, the tile")
    return -(-size // of_tile)


_OF_TILES = ("place", "layout", "panel", "swizzle", "warps", "product")
_OF_READS = ("copy", "place", "layout", "panel", "swizzle")
_OF_STEPS = ("stages", "prefetch", "place", "layout", "panel", "swizzle")
_WORDS = ("copy", "place", "product")
"""Decisions that are words; others are numbers."""


def checked_decisions(given: dict[str, Any], known: Sequence[str]) -> Decisions:
    """Return decisions as they are kept. Raises InvalidInput for what nobody decides."""
    for name in given:
        if name not in known:
            raise wrong(f"unexpected keyword '{name}'; what can be decided here: {', '.join(known)}")
    found = tuple((name, _frozen(value)) for name, value in given.items() if value is not None)
    for name, value in found:
        expected = str if name in _WORDS else int
        if any(type(each) is not expected for each in jax.tree.leaves(value)):
            what = "words" if expected is str else "whole numbers"
            raise wrong(f"keyword '{name}': expected {what}, got {value!r}")
    return found


def _frozen(value: Any) -> Any:
    return tuple(_frozen(each) for each in value) if isinstance(value, list | tuple) else value
