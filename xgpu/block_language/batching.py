"""Batches of block programs: one more dimension of the grid, or more blocks along its first one."""

from collections.abc import Sequence
from dataclasses import replace

from xgpu.block_language.program import BlockProgram, Body, NamedArrayType, TileStore, index_p, read_p, steps_p
from xgpu.indexing.affine import AffineExpr, dim
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval

_MOST_DIMENSIONS = 3


class _Batch:
    """A batch of ``size``: how maps of the program become those of the batch."""

    def __init__(self, grid: tuple[int, ...], size: int):
        self._folded = len(grid) == _MOST_DIMENSIONS
        self.grid = (grid[0] * size, *grid[1:]) if self._folded else (size, *grid)
        self.number: AffineExpr = dim(0) // grid[0] if self._folded else dim(0)
        self._first = grid[0]

    def map(self, map_: IndexingMap, axis: int | None) -> IndexingMap:
        """Return the map of a tile; ``axis`` is the dimension of the array that is the batch's, None for none."""
        count = len(map_.dims)
        if self._folded:
            old = [dim(0) % self._first, *(dim(number) for number in range(1, count))]
            dims = (Interval(0, self.grid[0] - 1), *map_.dims[1:])
        else:
            old = [dim(number + 1) for number in range(count)]
            dims = (Interval(0, self.grid[0] - 1), *map_.dims)
        results = [each.substitute(old) for each in map_.results]
        constraints: tuple[Constraint, ...] = tuple((each.substitute(old), bound) for each, bound in map_.constraints)
        if axis is not None:
            results.insert(axis, self.number)
        plain = IndexingMap(dims, map_.symbols, tuple(results)).with_simple_results()
        # Constraints are of results, and are found to be such by being written like them.
        simple = IndexingMap(dims, map_.symbols, tuple(each for each, _ in constraints)).with_simple_results().results
        bounds = tuple((each, bound) for each, (_, bound) in zip(simple, constraints, strict=True))
        return replace(plain, constraints=bounds)


def batched(program: BlockProgram, size: int, axes: Sequence[int | None]) -> BlockProgram:
    """Return the program for a batch; ``axes`` are the inputs' dimensions of the batch, None where they have none.

    That of outputs is their first one.
    """
    inputs = tuple(
        each if axis is None else NamedArrayType(each.name, (*each.shape[:axis], size, *each.shape[axis:]), each.dtype)
        for each, axis in zip(program.inputs, axes, strict=True)
    )
    outputs = tuple(NamedArrayType(each.name, (size, *each.shape), each.dtype) for each in program.outputs)
    made = _with_more_blocks(program, size, axes, 0)
    return replace(made, inputs=inputs, outputs=outputs)


def widened(program: BlockProgram) -> BlockProgram:
    """Return the program with one more dimension of the grid, of one block."""
    return _with_more_blocks(program, 1, [None] * len(program.inputs), None)


def _with_more_blocks(program: BlockProgram, size: int, axes: Sequence[int | None], stored: int | None) -> BlockProgram:
    batch = _Batch(program.grid, size)
    stores = tuple(TileStore(each.output, batch.map(each.map, stored), each.location) for each in program.stores)
    return replace(program, grid=batch.grid, body=_body(program.body, batch, axes), stores=stores)


def _body(body: Body, batch: _Batch, axes: Sequence[int | None]) -> Body:
    equations = []
    for each in body.equations:
        given = dict(each.params)
        if each.primitive is read_p:
            given["map"] = batch.map(given["map"], axes[given["array"]])
        elif each.primitive is index_p:
            given["map"] = batch.map(given["map"], None)
        elif each.primitive is steps_p:
            given["body"] = _body(given["body"], batch, axes)
        equations.append(each.replace(params=given))
    return replace(body, equations=tuple(equations))
