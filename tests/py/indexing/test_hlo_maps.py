"""The operand maps, by brute force: what the maps read at every result index is what the operation gives there."""

from math import prod

import numpy as np
import pytest
from hypothesis import given

from tests.py.indexing.hlo_programs import array, build, check, elements_read, parse, random_shape, tagged, type_of
from tests.py.indexing.indexing_strategies import decisions, grid, hundreds
from xgpu import ir
from xgpu.dialects.xgpu import OPS
from xgpu.errors import Unsupported
from xgpu.frontend.mlir_text import parse_module
from xgpu.hlo.operations import OPERATIONS
from xgpu.indexing.hlo_maps import access_kind, accesses, unchanged

INDEX_TYPES = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64]


def check_read(op_text, operands, shape):
    check(op_text, operands, shape, elements_read)


def random_starts(rng, count):
    """Start indices of one type, scalars: near the array's bounds, anywhere, or the type's bounds."""
    dtype = rng.choice(INDEX_TYPES)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    ranges = [rng.choice([(max(-3, low), 6), (low, high), (low, low), (high, high)]) for _ in range(count)]
    return [np.array(rng.randint(*bounds), dtype) for bounds in ranges]


@hundreds
@given(decisions)
def test_broadcast_in_dim(rng):
    shape = random_shape(rng)
    dims = rng.sample(range(len(shape)), rng.randint(0, len(shape)))
    operand = tuple(rng.choice([1, shape[d]]) for d in dims)
    check_read(f'"stablehlo.broadcast_in_dim"(%0) {{broadcast_dimensions = {array(dims)}}}', [tagged(operand)], shape)


@hundreds
@given(decisions)
def test_reshape(rng):
    shape = [rng.randint(1, 4) for _ in range(rng.randint(1, 3))]
    target, rest = [], prod(shape)
    while rest > 1 or rng.random() < 0.5:
        size = rng.choice([d for d in range(1, rest + 1) if rest % d == 0])
        target.append(size)
        rest //= size
        if len(target) == 5:
            break
    check_read('"stablehlo.reshape"(%0)', [tagged(shape)], [*target, rest])


@pytest.mark.parametrize(("shape", "target"), [((0, 3), (2, 0)), ((1,), ()), ((), (1, 1)), ((0,), (0, 4))])
def test_reshape_of_no_or_one_element(shape, target):
    check_read('"stablehlo.reshape"(%0)', [tagged(shape)], target)


@hundreds
@given(decisions)
def test_transpose(rng):
    shape = random_shape(rng, most=4)
    permutation = rng.sample(range(len(shape)), len(shape))
    result = [shape[d] for d in permutation]
    check_read(f'"stablehlo.transpose"(%0) {{permutation = {array(permutation)}}}', [tagged(shape)], result)


@hundreds
@given(decisions)
def test_slice(rng):
    shape = random_shape(rng)
    starts = [rng.choice([0, 0, *range(size)]) if size else 0 for size in shape]
    cuts = [rng.choice([0, 0, *range(size - start)]) for start, size in zip(starts, shape, strict=True)]
    limits = [size - cut for size, cut in zip(shape, cuts, strict=True)]
    strides = [rng.randint(1, 3) for _ in shape]
    result = [-(-(limit - start) // stride) for start, limit, stride in zip(starts, limits, strides, strict=True)]
    attributes = f"start_indices = {array(starts)}, limit_indices = {array(limits)}, strides = {array(strides)}"
    check_read(f'"stablehlo.slice"(%0) {{{attributes}}}', [tagged(shape)], result)


@hundreds
@given(decisions)
def test_reverse(rng):
    shape = random_shape(rng, most=4)
    dims = sorted(rng.sample(range(len(shape)), rng.randint(0, len(shape))))
    check_read(f'"stablehlo.reverse"(%0) {{dimensions = {array(dims)}}}', [tagged(shape)], shape)


@hundreds
@given(decisions)
def test_pad(rng):
    shape = random_shape(rng)
    lows = [rng.randint(-3, 3) for _ in shape]
    interiors = [rng.randint(0, 2) for _ in shape]
    widths = [size + max(size - 1, 0) * interior for size, interior in zip(shape, interiors, strict=True)]
    highs = [rng.randint(max(-3, -width - low), 3) for width, low in zip(widths, lows, strict=True)]
    result = [width + low + high for width, low, high in zip(widths, lows, highs, strict=True)]
    attributes = f"edge_padding_low = {array(lows)}, edge_padding_high = {array(highs)}"
    op = f'"stablehlo.pad"(%0, %1) {{{attributes}, interior_padding = {array(interiors)}}}'
    check_read(op, [tagged(shape), np.int32(-7)], result)


@hundreds
@given(decisions)
def test_concatenate(rng):
    shape = random_shape(rng, least=1)
    axis = rng.randrange(len(shape))
    parts = [rng.randint(0, 5) for _ in range(rng.randint(1, 4))]
    operands, start = [], 0
    for part in parts:
        operands.append(tagged((*shape[:axis], part, *shape[axis + 1 :]), start))
        start += operands[-1].size
    names = ", ".join(f"%{i}" for i in range(len(parts)))
    result = (*shape[:axis], sum(parts), *shape[axis + 1 :])
    check_read(f'"stablehlo.concatenate"({names}) {{dimension = {axis} : i64}}', operands, result)


@hundreds
@given(decisions)
def test_dynamic_slice(rng):
    shape = random_shape(rng)
    result = [rng.randint(min(size, 1), size) for size in shape]
    starts = random_starts(rng, len(shape))
    names = "".join(f", %{1 + i}" for i in range(len(shape)))
    op = f'"stablehlo.dynamic_slice"(%0{names}) {{slice_sizes = {array(result)}}}'
    check_read(op, [tagged(shape), *starts], result)


@hundreds
@given(decisions)
def test_dynamic_update_slice(rng):
    shape = random_shape(rng)
    update = tuple(rng.choice([0, *3 * list(range(1, size + 1))]) for size in shape)
    starts = random_starts(rng, len(shape))
    names = "".join(f", %{2 + i}" for i in range(len(shape)))
    check_read(
        f'"stablehlo.dynamic_update_slice"(%0, %1{names})', [tagged(shape), tagged(update, 1000), *starts], shape
    )


def make_gather(rng):
    """A gather with any dimension numbers: its text, operand shape, indices shape and result shape."""
    shape = [rng.randint(1, 4) for _ in range(rng.randint(1, 4))]
    rank = len(shape)
    roles = [rng.choice(["offset", "offset", "collapsed", "batching"]) for _ in shape]
    batching, collapsed = ([i for i in range(rank) if roles[i] == role] for role in ("batching", "collapsed"))
    slices = [rng.randint(0, shape[i]) if roles[i] == "offset" else 1 for i in range(rank)]
    mapped = [i for i in range(rank) if roles[i] != "batching"]
    mapped = rng.sample(mapped, rng.randint(0, len(mapped)))
    # The dimensions of the indices without the index vector: those of batching dimensions, and free ones, mixed.
    indices = [*(("free", rng.randint(0, 3)) for _ in range(rng.randint(0, 2))), *((i, shape[i]) for i in batching)]
    rng.shuffle(indices)
    batch_shape = [size for _, size in indices]
    vector_dim = rng.randint(0, len(indices))
    if len(mapped) == 1 and rng.random() < 0.5:
        vector_dim = len(indices)
    else:
        indices.insert(vector_dim, ("vector", len(mapped)))
    indices_batching = [next(k for k, (tag, _) in enumerate(indices) if tag == i) for i in batching]
    offset_sizes = [slices[i] for i in range(rank) if roles[i] == "offset"]
    result_rank = len(batch_shape) + len(offset_sizes)
    offset_dims = sorted(rng.sample(range(result_rank), len(offset_sizes)))
    batches, offsets = iter(batch_shape), iter(offset_sizes)
    result = [next(offsets) if i in offset_dims else next(batches) for i in range(result_rank)]
    numbers = (
        f"#stablehlo.gather<offset_dims = {offset_dims}, collapsed_slice_dims = {collapsed}, "
        f"operand_batching_dims = {batching}, start_indices_batching_dims = {indices_batching}, "
        f"start_index_map = {mapped}, index_vector_dim = {vector_dim}>"
    )
    op = f'"stablehlo.gather"(%0, %1) {{dimension_numbers = {numbers}, slice_sizes = {array(slices)}}}'
    return op, shape, [size for _, size in indices], result


@hundreds
@given(decisions)
def test_gather(rng):
    op, shape, indices_shape, result = make_gather(rng)
    starts = random_starts(rng, prod(indices_shape))
    indices = np.array(starts, starts[0].dtype if starts else np.int32).reshape(indices_shape)
    check_read(op, [tagged(shape), indices], result)


@hundreds
@given(decisions)
def test_reduce_reads_every_element_once(rng):
    shape = random_shape(rng)
    dims = sorted(rng.sample(range(len(shape)), rng.randint(0, len(shape))))
    result = [size for i, size in enumerate(shape) if i not in dims]
    types = [type_of(shape)] * 2 + [type_of(())] * 2
    arguments = ", ".join(f"%{i}: {operand}" for i, operand in enumerate(types))
    region = "^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>): stablehlo.return %c, %d"
    _, op = parse(f"""func.func @main({arguments}) {{
        %r:2 = "stablehlo.reduce"(%0, %1, %2, %3) ({{ {region} : tensor<i32>, tensor<i32> }})
            {{dimensions = {array(dims)}}} : ({", ".join(types)}) -> ({type_of(result)}, {type_of(result)})
        return }}""")
    found = accesses(op)
    assert [access.operand for access in found] == [0, 1, 2, 3]
    assert access_kind(op) == "reduce"
    values = tagged(shape, 1)
    for access in found[:2]:
        assert access.map.constraints == ()
        points = grid(access.map.dims, access.map.symbols)
        read = values[tuple(expr.evaluate(*points) for expr in access.map.results)]
        box = [interval.size for interval in (*access.map.dims, *access.map.symbols)]
        assert box[: len(result)] == result
        total = np.broadcast_to(read, box).sum(axis=tuple(range(len(result), len(box))), dtype=np.int64)
        np.testing.assert_array_equal(total, values.sum(axis=tuple(dims), dtype=np.int64))
    assert all(access.map.results == () and len(access.map.dims) == len(result) for access in found[2:])


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        ('"stablehlo.add"(%0, %1)', [(2, 3), (2, 3)]),
        ('"stablehlo.negate"(%0)', [(2, 3)]),
        ('"stablehlo.clamp"(%0, %1, %2)', [(), (2, 3), ()]),
        ('"stablehlo.clamp"(%0, %1, %2)', [(2, 3), (2, 3), (2, 3)]),
    ],
)
def test_elementwise_reads_at_the_result_index_and_scalars_everywhere(op, shapes):
    _, operation = build(op, [type_of(shape) for shape in shapes], type_of((2, 3)))
    assert access_kind(operation) == "elementwise"
    found = accesses(operation)
    assert [access.operand for access in found] == list(range(len(shapes)))
    for access, shape in zip(found, shapes, strict=True):
        assert access.runtime == ()
        for index in np.ndindex(2, 3):
            assert access.map.evaluate(index) == (index if shape else ())


def test_select_with_a_scalar_predicate():
    types = ["tensor<i1>", type_of((3,)), type_of((3,))]
    _, op = build('"stablehlo.select"(%0, %1, %2)', types, type_of((3,)))
    assert [access.map.evaluate((2,)) for access in accesses(op)] == [(), (2,), (2,)]


@pytest.mark.parametrize("op", ["iota dim = 0", "constant dense<1>"])
def test_generators_read_nothing(op):
    text = f"func.func @main() -> tensor<2xi32> {{ %r = stablehlo.{op} : tensor<2xi32> return %r : tensor<2xi32> }}"
    module = parse_module(text, "t.mlir")
    generator = module.body.operations[0].regions[0].blocks[0].operations[0]
    assert accesses(generator) == ()
    assert access_kind(generator) == "generator"


def test_dimensions_keep_their_whole_range():
    op = '"stablehlo.dynamic_update_slice"(%0, %1, %2)'
    _, operation = build(op, [type_of((8,)), type_of((3,)), type_of(())], type_of((8,)))
    start, update, operand = accesses(operation)
    assert (start.operand, update.operand, operand.operand) == (2, 1, 0)
    assert str(update.map) == "(d0, d1) -> (d0 - d1), d0 in [0, 7], d1 in [0, 5], d0 - d1 in [0, 2]"
    assert update.runtime[0].access == 0


def test_a_bitcast_to_narrower_elements_reads_the_one_that_each_is_part_of():
    _, op = build('"stablehlo.bitcast_convert"(%0)', [type_of((2,))], type_of((2, 4), np.uint8))
    (access,) = accesses(op)
    assert [access.map.evaluate(index) for index in np.ndindex(2, 4)] == [(i,) for i in range(2) for _ in range(4)]


def test_a_bitcast_to_wider_elements_reads_their_parts_in_order():
    _, op = build('"stablehlo.bitcast_convert"(%0)', [type_of((2, 4), np.uint8)], type_of((2,)))
    assert access_kind(op) == "elementwise"
    assert [access.map.evaluate((1,)) for access in accesses(op)] == [(1, part) for part in range(4)]


def test_an_operation_outside_the_table_is_named_with_type_and_line():
    _, op = build('"stablehlo.cholesky"(%0)', ["tensor<2x2xf32>"], "tensor<2x2xf32>")
    message = r"t\.mlir:2:6: stablehlo\.cholesky of type tensor<2x2xf32>: operation not supported"
    with pytest.raises(Unsupported, match=message):
        accesses(op)
    with pytest.raises(Unsupported, match=message):
        access_kind(op)


def test_handled_operations_exist():
    context = ir.make_context()
    assert "stablehlo.add" in OPERATIONS
    assert not [name for name in OPERATIONS if not context.is_registered_operation(name) and name not in OPS]


def _reversal():
    module, op = build(f'"stablehlo.reverse"(%0) {{dimensions = {array([0])}}}', [type_of((4,))], type_of((4,)))
    return module, op


def test_what_an_unchanged_operation_reads_is_found_once():
    _module, op = _reversal()
    assert accesses(op) is not accesses(op)
    with unchanged([op]):
        found = accesses(op)
        with unchanged([]):
            assert accesses(op) is found
        assert accesses(op) is found
    assert accesses(op) == found
    assert accesses(op) is not found


def test_only_operations_that_are_said_to_stay_are_kept():
    (_module, op), (_other, other) = _reversal(), _reversal()
    with unchanged([op]):
        before = accesses(other)
        with other.context:
            other.attributes["dimensions"] = ir.DenseI64ArrayAttr.get([])
        assert accesses(other) != before
