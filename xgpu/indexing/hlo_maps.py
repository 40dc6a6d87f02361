"""The elements of its operands that each StableHLO operation reads, as indexing maps: one table, one function an op.

The map of an access takes the operation's result indices as dimensions ``d0, d1, ...``, followed by one dimension for
each runtime index; its symbols run over what one result element reads many of; its constraints say for which result
elements the operand is read at all. Maps are not simplified, but for reshapes: every dimension keeps its whole range.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache

from xgpu import ir
from xgpu.hlo.chlo import RAGGED
from xgpu.hlo.operations import OPERATIONS, AccessKind, implemented
from xgpu.hlo.scan_op import SCAN
from xgpu.hlo.shards import is_between_shapes
from xgpu.hlo.source_location import unsupported
from xgpu.indexing import window_maps
from xgpu.indexing.access import (
    Access,
    Rule,
    RuntimeIndex,
    Shape,
    dims,
    identity_map,
    integer,
    integers,
    plain_map,
    ranges,
    scalar_map,
    shape_of,
    spread_index,
)
from xgpu.indexing.affine import AffineExpr, constant, delinearize, dim, linearize
from xgpu.indexing.constraints import Constraint
from xgpu.indexing.indexing_map import IndexingMap
from xgpu.indexing.interval import Interval

__all__ = ["Access", "AccessKind", "RuntimeIndex", "access_kind", "accesses"]


def accesses(op: ir.Operation | ir.OpView) -> tuple[Access, ...]:
    """Return the accesses of an operation, in an order in which runtime indices come before their use.

    Where constraints make the accesses of a piecewise operation overlap, the first whose constraints hold is the one.
    Raises Unsupported, with the operation, its type and the user's source line, for an operation not in the table.
    """
    known = _thread.known
    if known is not None and (kept := known.get(op.operation)) is not None:
        if not kept:
            kept.append(_accesses(op.operation))
        return kept[0]
    return _accesses(op.operation)


def _accesses(op: ir.Operation) -> tuple[Access, ...]:
    _check(op)
    return _RULES[op.name](op)


class _Thread(threading.local):
    known: dict[ir.Operation, list[tuple[Access, ...]]] | None = None
    """For each operation that stays as it is a list that its accesses are put into when they are first asked for."""


_thread = _Thread()


@contextmanager
def unchanged(operations: Iterable[ir.Operation]) -> Iterator[None]:
    """Context in which these ``operations`` stay as they are, in this thread: what each reads is found once.

    Analyses ask for it several times each, and most of the time goes into asking the bindings for types.
    """
    before = _thread.known
    _thread.known = {**(before or {}), **{op: [] for op in operations}}
    try:
        yield
    finally:
        _thread.known = before


def access_kind(op: ir.Operation | ir.OpView) -> AccessKind:
    """Return how an operation uses its accesses.

    ``elementwise``: computes from one element of each operand. ``indexing``: moves elements of its first operand.
    ``piecewise``: takes each element from one of several operands. ``reduce``: combines elements along symbols, from
    initial values. ``contract``: sums the products of an element of each operand along symbols. ``generator``: reads
    nothing. The maps of what is read along symbols all have the same domain: they differ in their results at most.
    Raises Unsupported for an operation not in the table.
    """
    _check(op)
    return OPERATIONS[op.operation.name].kind


def _check(op: ir.Operation | ir.OpView) -> None:
    if op.operation.name not in OPERATIONS:
        raise unsupported(op, f"operation not supported{explanation(op.operation)}")


_LAUNCHES = ("__gpu$xla.gpu.ptx", "xgpu.jit")
"""Calls of kernels, on a GPU and on this machine."""
_LIBRARIES = {
    "cuhybrid_eig": "eigenvalues of matrices that are not symmetric",
    "cusparse_gtsv": "tridiagonal systems",
    "cu_tridiagonal": "tridiagonal systems",
    "cusolver_sytrd": "tridiagonal forms of matrices",
    "cusolver_": "factors of matrices",
}
"""The computations of libraries that JAX calls, by the first letters of their names; the first that fits counts."""


def explanation(op: ir.Operation) -> str:
    """Return why an operation is not in the table, for those that a user is likely to meet."""
    if is_between_shapes(op):
        return ": it is between an array and the part of it that each of several devices has"
    if op.name == "stablehlo.custom_call":
        target = ir.StringAttr(op.attributes["call_target_name"]).value
        if target in _LAUNCHES:
            return ": it launches a kernel that is compiled already"
        computed = next((what for name, what in _LIBRARIES.items() if target.startswith(name)), None)
        if computed is not None:
            return f": '{target}' is a library's code for {computed}"
        return f": '{target}' is code that only the compiler it was made for knows"
    reason = _REASONS.get(op.name.removeprefix("stablehlo."))
    return f": {reason}" if reason else ""


def _nothing(op: ir.Operation) -> tuple[Access, ...]:
    return ()


def _elementwise(op: ir.Operation) -> tuple[Access, ...]:
    """Every operand at the result's index; a scalar operand, which clamp and select may have, for all of them."""
    result = op.results[0]
    type_, shape = result.type, shape_of(result)
    found = []
    for index, operand in enumerate(op.operands):
        # Types are compared in less time than shapes are made.
        if operand.type == type_ or (operand_shape := shape_of(operand)) == shape:
            found.append(_own_element(index, shape))
        elif operand_shape == ():
            found.append(Access(index, scalar_map(shape)))
        else:
            raise unsupported(op, f"operand {index} has shape {list(operand_shape)}, not that of the result")
    return tuple(found)


@lru_cache(maxsize=4096)
def _own_element(operand: int, shape: Shape) -> Access:
    """Return the access of an operand at the result's index."""
    return Access(operand, identity_map(shape))


def _bitcast_convert(op: ir.Operation) -> tuple[Access, ...]:
    """An element; for a narrower result the one it is a part of, for a wider one its parts, the lowest bits first."""
    shape, operand_shape = shape_of(op.results[0]), shape_of(op.operands[0])
    if len(shape) > len(operand_shape):
        return (Access(0, plain_map(shape, dims(len(operand_shape)))),)
    if len(shape) < len(operand_shape):
        parts = range(operand_shape[-1])
        return tuple(Access(0, plain_map(shape, [*dims(len(shape)), constant(part)])) for part in parts)
    return _elementwise(op)


def _broadcast_in_dim(op: ir.Operation) -> tuple[Access, ...]:
    shape, operand_shape = shape_of(op.results[0]), shape_of(op.operands[0])
    targets = integers(op, "broadcast_dimensions")
    results = [constant(0) if size == 1 else dim(target) for size, target in zip(operand_shape, targets, strict=True)]
    return (Access(0, plain_map(shape, results)),)


@lru_cache(maxsize=4096)
def reshape_map(shape: Shape, operand_shape: Shape) -> IndexingMap:
    linear = linearize(dims(len(shape)), shape)
    whole = plain_map(shape, delinearize(linear, operand_shape))
    return whole if 0 in shape else whole.simplify()


def _reshape(op: ir.Operation) -> tuple[Access, ...]:
    return (Access(0, reshape_map(shape_of(op.results[0]), shape_of(op.operands[0]))),)


def _transpose(op: ir.Operation) -> tuple[Access, ...]:
    shape = shape_of(op.results[0])
    permutation = integers(op, "permutation")
    return (Access(0, plain_map(shape, [dim(permutation.index(source)) for source in range(len(shape))])),)


def _slice(op: ir.Operation) -> tuple[Access, ...]:
    starts, strides = integers(op, "start_indices"), integers(op, "strides")
    shape = shape_of(op.results[0])
    results = [dim(i) * stride + start for i, (start, stride) in enumerate(zip(starts, strides, strict=True))]
    return (Access(0, plain_map(shape, results)),)


def _reverse(op: ir.Operation) -> tuple[Access, ...]:
    shape, reversed_dims = shape_of(op.results[0]), set(integers(op, "dimensions"))
    results = [(size - 1) - dim(i) if i in reversed_dims else dim(i) for i, size in enumerate(shape)]
    return (Access(0, plain_map(shape, results)),)


def _pad(op: ir.Operation) -> tuple[Access, ...]:
    """The operand where an element of it lies, then the padding value everywhere."""
    shape, operand_shape = shape_of(op.results[0]), shape_of(op.operands[0])
    lows, interiors = integers(op, "edge_padding_low"), integers(op, "interior_padding")
    results: list[AffineExpr] = []
    constraints: list[Constraint] = []
    for i, (size, low, interior) in enumerate(zip(operand_shape, lows, interiors, strict=True)):
        index, on_element = spread_index(dim(i) - low, size, interior + 1)
        results.append(index)
        constraints += on_element
    inside = IndexingMap(ranges(shape), (), tuple(results), tuple(constraints))
    return Access(0, inside), Access(1, scalar_map(shape))


def _concatenate(op: ir.Operation) -> tuple[Access, ...]:
    shape, axis = shape_of(op.results[0]), integer(op, "dimension")
    found, offset = [], 0
    for index, operand in enumerate(op.operands):
        size = shape_of(operand)[axis]
        results = dims(len(shape))
        results[axis] = results[axis] - offset
        part = (results[axis], Interval(0, size - 1))
        found.append(Access(index, IndexingMap(ranges(shape), (), tuple(results), (part,))))
        offset += size
    return tuple(found)


def _dynamic_slice(op: ir.Operation) -> tuple[Access, ...]:
    """The start indices, then the operand at result index plus start; starts are clamped so that the slice fits."""
    shape, operand_shape = shape_of(op.results[0]), shape_of(op.operands[0])
    starts = tuple(Access(1 + i, scalar_map(shape)) for i in range(len(shape)))
    clamps = tuple(Interval(0, whole - part) for whole, part in zip(operand_shape, shape, strict=True))
    results = tuple(dim(i) + dim(len(shape) + i) for i in range(len(shape)))
    runtime = tuple(RuntimeIndex(i, clamp) for i, clamp in enumerate(clamps))
    return *starts, Access(0, IndexingMap(ranges(shape) + clamps, (), results), runtime)


def _dynamic_update_slice(op: ir.Operation) -> tuple[Access, ...]:
    """The start indices, then the update where it lies, then the operand, which is read where the update is not."""
    shape, update_shape = shape_of(op.results[0]), shape_of(op.operands[1])
    starts = tuple(Access(2 + i, scalar_map(shape)) for i in range(len(shape)))
    clamps = tuple(Interval(0, whole - part) for whole, part in zip(shape, update_shape, strict=True))
    results = tuple(dim(i) - dim(len(shape) + i) for i in range(len(shape)))
    constraints = tuple((index, Interval(0, size - 1)) for index, size in zip(results, update_shape, strict=True))
    runtime = tuple(RuntimeIndex(i, clamp) for i, clamp in enumerate(clamps))
    update = Access(1, IndexingMap(ranges(shape) + clamps, (), results, constraints), runtime)
    return *starts, update, Access(0, identity_map(shape))


def _gather(op: ir.Operation) -> tuple[Access, ...]:
    """The components of the index vector, then the operand; starts are clamped so that each slice fits."""
    shape, operand_shape, indices_shape = (shape_of(value) for value in (op.results[0], *op.operands))
    numbers = ir.stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    sizes = integers(op, "slice_sizes")
    vector_dim = numbers.index_vector_dim
    # Result dimensions that are no offsets index, in order, the dimensions of the indices other than the vector's.
    batch = [dim(i) for i in range(len(shape)) if i not in numbers.offset_dims]
    components = []
    for component, _ in enumerate(numbers.start_index_map):
        index = list(batch)
        if vector_dim < len(indices_shape):
            index.insert(vector_dim, constant(component))
        components.append(Access(1, plain_map(shape, index)))
    clamps = tuple(Interval(0, operand_shape[target] - sizes[target]) for target in numbers.start_index_map)
    results = [constant(0)] * len(operand_shape)
    whole_dims = [
        i
        for i in range(len(operand_shape))
        if i not in numbers.collapsed_slice_dims and i not in numbers.operand_batching_dims
    ]
    for target, offset in zip(whole_dims, sorted(numbers.offset_dims), strict=True):
        results[target] = dim(offset)
    for target, source in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
        results[target] = batch[source - (vector_dim < source)]
    for component, target in enumerate(numbers.start_index_map):
        results[target] = results[target] + dim(len(shape) + component)
    runtime = tuple(RuntimeIndex(component, clamp) for component, clamp in enumerate(clamps))
    return *components, Access(0, IndexingMap(ranges(shape) + clamps, (), tuple(results)), runtime)


_REASONS: Mapping[str, str] = {
    name: reason
    for reason, names in {
        "no element of its result can be computed alone": "cholesky fft sort triangular_solve chlo.top_k",
        "control flow of the program is not compiled": "case if while",
        "it exchanges data with other devices": (
            "all_gather all_reduce all_to_all collective_broadcast collective_permute recv reduce_scatter send"
        ),
        "it asks on which of several devices it runs": "partition_id replica_id",
        "sizes and positions must be constants": (
            "dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad dynamic_reshape "
            "real_dynamic_slice set_dimension_size"
        ),
        "it draws on hidden state; use rng_bit_generator, as jax.random does": "rng",
        "its region computes in other types than its operands'": "scatter",
        "it is deprecated; use dot_general": "einsum",
        "it is deprecated; use gather": "torch_index_select",
    }.items()
    for name in names.split()
}

_MOVING: Mapping[str, Rule] = {
    "bitcast_convert": _bitcast_convert,
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": _concatenate,
    "constant": _nothing,
    "convolution": window_maps.convolution,
    "dot_general": window_maps.dot_general,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "iota": _nothing,
    "pad": _pad,
    "reduce": window_maps.reduce,
    "reduce_window": window_maps.reduce_window,
    "reshape": _reshape,
    "reverse": _reverse,
    "slice": _slice,
    "transpose": _transpose,
}

_RULES = implemented(
    {
        **{name: _elementwise for name, each in OPERATIONS.items() if each.kind == "elementwise"},
        SCAN: window_maps.scan,
        RAGGED: window_maps.ragged_dot,
        **{f"stablehlo.{name}": rule for name, rule in _MOVING.items()},
    },
    OPERATIONS,
)
