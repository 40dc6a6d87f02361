"""The operand maps, by brute force: what the maps read at every result index is what XLA computes."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.py.indexing.hlo_programs import array, build, few, shapes, sizes, tagged, type_of
from xgpu import ir
from xgpu.errors import Unsupported
from xgpu.frontend.mlir_text import parse_module
from xgpu.indexing.hlo_maps import access_kind, accesses, handled_ops
from xgpu.runtime.reference import Reference

nonempty_shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
index_types = st.sampled_from([np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])


def read(op, operands, index):
    """The value of one result element, by the maps; also checks that no read is out of bounds."""
    values = []
    feeding = set()
    for access in accesses(op):
        runtime = []
        for source in access.runtime:
            feeding.add(source.access)
            runtime.append(min(max(int(values[source.access]), source.clamp.lower), source.clamp.upper))
        point = access.map.evaluate((*index, *runtime))
        if point is not None:
            shape = operands[access.operand].shape
            assert len(point) == len(shape)
            assert all(0 <= i < size for i, size in zip(point, shape, strict=True)), (point, shape)
        values.append(None if point is None else operands[access.operand][point])
    data = [value for number, value in enumerate(values) if number not in feeding]
    if access_kind(op) == "piecewise":
        return next(value for value in data if value is not None)
    (value,) = data
    assert value is not None
    return value


def check(op_text, operands, result_shape):
    operands = [np.asarray(operand) for operand in operands]
    types = [type_of(operand.shape, operand.dtype) for operand in operands]
    module, op = build(op_text, types, type_of(result_shape, operands[0].dtype))
    (expected,) = Reference(module)(operands)
    assert expected.shape == tuple(result_shape)
    found = np.zeros_like(expected)
    for index in np.ndindex(*result_shape):
        found[index] = read(op, operands, index)
    np.testing.assert_array_equal(found, expected)


@st.composite
def start_values(draw, rank, dtype):
    info = np.iinfo(dtype)
    value = st.one_of(st.integers(-3, 6), st.integers(info.min, info.max)).filter(lambda v: info.min <= v <= info.max)
    return [np.array(draw(value), dtype) for _ in range(rank)]


@few
@given(st.data())
def test_broadcast_in_dim(data):
    shape = data.draw(shapes)
    dims = data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(0, len(shape)))]
    operand = tuple(data.draw(st.sampled_from([1, shape[d]])) for d in dims)
    check(f'"stablehlo.broadcast_in_dim"(%0) {{broadcast_dimensions = {array(dims)}}}', [tagged(operand)], shape)


@few
@given(nonempty_shapes, st.data())
def test_reshape(shape, data):
    target, rest = [], prod(shape)
    while rest > 1 or data.draw(st.booleans()):
        size = data.draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0]))
        target.append(size)
        rest //= size
        if len(target) == 5:
            break
    target.append(rest)
    check('"stablehlo.reshape"(%0)', [tagged(shape)], target)


@pytest.mark.parametrize(("shape", "target"), [((0, 3), (2, 0)), ((1,), ()), ((), (1, 1)), ((0,), (0, 4))])
def test_reshape_of_no_or_one_element(shape, target):
    check('"stablehlo.reshape"(%0)', [tagged(shape)], target)


@few
@given(shapes, st.data())
def test_transpose(shape, data):
    permutation = data.draw(st.permutations(range(len(shape))))
    result = [shape[d] for d in permutation]
    check(f'"stablehlo.transpose"(%0) {{permutation = {array(permutation)}}}', [tagged(shape)], result)


@few
@given(shapes, st.data())
def test_slice(shape, data):
    starts = [data.draw(st.sampled_from([0, 0, *range(size)])) if size else 0 for size in shape]
    cuts = [data.draw(st.sampled_from([0, 0, *range(size - start)])) for start, size in zip(starts, shape, strict=True)]
    limits = [size - cut for size, cut in zip(shape, cuts, strict=True)]
    strides = [data.draw(st.integers(1, 3)) for _ in shape]
    result = [-(-(limit - start) // stride) for start, limit, stride in zip(starts, limits, strides, strict=True)]
    attributes = f"start_indices = {array(starts)}, limit_indices = {array(limits)}, strides = {array(strides)}"
    check(f'"stablehlo.slice"(%0) {{{attributes}}}', [tagged(shape)], result)


@few
@given(shapes, st.data())
def test_reverse(shape, data):
    dims = sorted(data.draw(st.sets(st.sampled_from(range(len(shape)))))) if shape else []
    check(f'"stablehlo.reverse"(%0) {{dimensions = {array(dims)}}}', [tagged(shape)], shape)


@few
@given(shapes, st.data())
def test_pad(shape, data):
    lows = [data.draw(st.integers(-3, 3)) for _ in shape]
    interiors = [data.draw(st.integers(0, 2)) for _ in shape]
    widths = [size + max(size - 1, 0) * interior for size, interior in zip(shape, interiors, strict=True)]
    highs = [data.draw(st.integers(max(-3, -width - low), 3)) for width, low in zip(widths, lows, strict=True)]
    result = [width + low + high for width, low, high in zip(widths, lows, highs, strict=True)]
    attributes = f"edge_padding_low = {array(lows)}, edge_padding_high = {array(highs)}"
    op = f'"stablehlo.pad"(%0, %1) {{{attributes}, interior_padding = {array(interiors)}}}'
    check(op, [tagged(shape), np.int32(-7)], result)


@few
@given(nonempty_shapes, st.data())
def test_concatenate(shape, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    parts = data.draw(st.lists(sizes, min_size=1, max_size=4))
    operands, start = [], 0
    for part in parts:
        operands.append(tagged((*shape[:axis], part, *shape[axis + 1 :]), start))
        start += operands[-1].size
    names = ", ".join(f"%{i}" for i in range(len(parts)))
    result = (*shape[:axis], sum(parts), *shape[axis + 1 :])
    check(f'"stablehlo.concatenate"({names}) {{dimension = {axis} : i64}}', operands, result)


@few
@given(shapes, index_types, st.data())
def test_dynamic_slice(shape, dtype, data):
    result = [data.draw(st.integers(min(size, 1), size)) for size in shape]
    starts = data.draw(start_values(len(shape), dtype))
    names = "".join(f", %{1 + i}" for i in range(len(shape)))
    op = f'"stablehlo.dynamic_slice"(%0{names}) {{slice_sizes = {array(result)}}}'
    check(op, [tagged(shape), *starts], result)


@few
@given(shapes, index_types, st.data())
def test_dynamic_update_slice(shape, dtype, data):
    update = tuple(data.draw(st.sampled_from([0, *3 * list(range(1, size + 1))])) for size in shape)
    starts = data.draw(start_values(len(shape), dtype))
    names = "".join(f", %{2 + i}" for i in range(len(shape)))
    check(f'"stablehlo.dynamic_update_slice"(%0, %1{names})', [tagged(shape), tagged(update, 1000), *starts], shape)


@st.composite
def gathers(draw):
    """A gather with any dimension numbers: its text, operand shape, indices shape and result shape."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    rank = len(shape)
    roles = [draw(st.sampled_from(["offset", "offset", "collapsed", "batching"])) for _ in shape]
    batching, collapsed = ([i for i in range(rank) if roles[i] == role] for role in ("batching", "collapsed"))
    slices = [draw(st.integers(0, shape[i])) if roles[i] == "offset" else 1 for i in range(rank)]
    mapped = draw(st.permutations([i for i in range(rank) if roles[i] != "batching"]))
    mapped = mapped[: draw(st.integers(0, len(mapped)))]
    # The dimensions of the indices without the index vector: those of batching dimensions, and free ones, mixed.
    free = [("free", draw(st.integers(0, 3))) for _ in range(draw(st.integers(0, 2)))]
    indices = draw(st.permutations([*free, *((i, shape[i]) for i in batching)]))
    batch_shape = [size for _, size in indices]
    vector_dim = draw(st.integers(0, len(indices)))
    if len(mapped) == 1 and draw(st.booleans()):
        vector_dim = len(indices)
    else:
        indices.insert(vector_dim, ("vector", len(mapped)))
    indices_batching = [next(k for k, (tag, _) in enumerate(indices) if tag == i) for i in batching]
    offset_sizes = [slices[i] for i in range(rank) if roles[i] == "offset"]
    result_rank = len(batch_shape) + len(offset_sizes)
    offset_dims = sorted(draw(st.permutations(range(result_rank)))[: len(offset_sizes)])
    batches, offsets = iter(batch_shape), iter(offset_sizes)
    result = [next(offsets) if i in offset_dims else next(batches) for i in range(result_rank)]
    numbers = (
        f"#stablehlo.gather<offset_dims = {offset_dims}, collapsed_slice_dims = {collapsed}, "
        f"operand_batching_dims = {batching}, start_indices_batching_dims = {indices_batching}, "
        f"start_index_map = {list(mapped)}, index_vector_dim = {vector_dim}>"
    )
    op = f'"stablehlo.gather"(%0, %1) {{dimension_numbers = {numbers}, slice_sizes = {array(slices)}}}'
    return op, shape, [size for _, size in indices], result


@settings(few, max_examples=3 * few.max_examples)
@given(gathers(), index_types, st.data())
def test_gather(gather, dtype, data):
    op, shape, indices_shape, result = gather
    flat = data.draw(start_values(prod(indices_shape), dtype))
    indices = np.array(flat, dtype).reshape(indices_shape)
    check(op, [tagged(shape), indices], result)


@few
@given(shapes, st.data())
def test_reduce_reads_every_element_once(shape, data):
    dims = sorted(data.draw(st.sets(st.sampled_from(range(len(shape)))))) if shape else []
    result = [size for i, size in enumerate(shape) if i not in dims]
    types = [type_of(shape)] * 2 + [type_of(())] * 2
    arguments = ", ".join(f"%{i}: {operand}" for i, operand in enumerate(types))
    region = "^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>): stablehlo.return %c, %d"
    text = f"""func.func @main({arguments}) {{
        %r:2 = "stablehlo.reduce"(%0, %1, %2, %3) ({{ {region} : tensor<i32>, tensor<i32> }})
            {{dimensions = {array(dims)}}} : ({", ".join(types)}) -> ({type_of(result)}, {type_of(result)})
        return }}"""
    module = parse_module(text, "t.mlir")
    op = module.body.operations[0].regions[0].blocks[0].operations[0]
    found = accesses(op)
    assert [access.operand for access in found] == [0, 1, 2, 3]
    assert access_kind(op) == "reduce"
    values = tagged(shape, 1)
    for access in found[:2]:
        total = np.zeros(result, np.int64)
        for index, symbols in access.map.points():
            total[index] += values[access.map.evaluate(index, symbols)]
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
    assert "stablehlo.add" in handled_ops()
    assert all(context.is_registered_operation(name) for name in handled_ops())
