"""The maps of windows, dot products and convolutions, by brute force: sums of what they read are what XLA computes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.py.indexing.hlo_programs import array, build, few, shapes, tagged, type_of
from xgpu.indexing.hlo_maps import access_kind, accesses
from xgpu.runtime.reference import Reference

steps = st.integers(1, 3)


def spread(size, step):
    """The positions that ``size`` elements take, ``step`` apart."""
    return (size - 1) * step + 1 if size else 0


def windows(size, window, stride):
    return (size - window) // stride + 1 if size >= window else 0


def padding_of(pairs):
    rows = ", ".join(f"[{low}, {high}]" for low, high in pairs)
    return f"dense<[{rows}]> : tensor<{len(pairs)}x2xi64>" if pairs else "dense<> : tensor<0x2xi64>"


def sum_of_products(op, operands, shape):
    """What the maps say: the sum over all points of the products of the elements read there."""
    found = [access for access in accesses(op) if access.map.symbols or access_kind(op) == "contract"]
    assert len({(access.map.dims, access.map.symbols, access.map.constraints) for access in found}) == 1
    total = np.zeros(shape, np.int32)
    for index, symbols in found[0].map.points():
        factors = []
        for access in found:
            point = access.map.evaluate(index, symbols)
            limits = operands[access.operand].shape
            assert all(0 <= i < size for i, size in zip(point, limits, strict=True)), (point, limits)
            factors.append(int(operands[access.operand][point]))
        total[index] += np.prod(factors, dtype=np.int32)
    return total


def check(op_text, operands, shape):
    module, op = build(op_text, [type_of(operand.shape) for operand in operands], type_of(shape))
    (expected,) = Reference(module)(operands)
    np.testing.assert_array_equal(sum_of_products(op, operands, shape), expected)


@few
@given(shapes.filter(len), st.data())
def test_reduce_window(shape, data):
    window, strides, bases, dilations, pads, result = [], [], [], [], [], []
    for size in shape:
        window.append(data.draw(steps))
        strides.append(data.draw(steps))
        bases.append(data.draw(steps))
        dilations.append(data.draw(steps))
        whole = spread(size, bases[-1])
        low = data.draw(st.integers(-min(2, whole), 3))
        pads.append((low, data.draw(st.integers(-min(2, max(whole + low, 0)), 3))))
        result.append(windows(max(whole + sum(pads[-1]), 0), spread(window[-1], dilations[-1]), strides[-1]))
    attributes = f"""window_dimensions = {array(window)}, window_strides = {array(strides)},
        base_dilations = {array(bases)}, window_dilations = {array(dilations)}, padding = {padding_of(pads)}"""
    region = """^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %c = stablehlo.add %a, %b : tensor<i32>
        stablehlo.return %c : tensor<i32>"""
    op = f'"stablehlo.reduce_window"(%0, %1) ({{ {region} }}) {{{attributes}}}'
    check(op, [tagged(shape, 1), np.int32(0)], result)


def test_reduce_window_without_its_optional_attributes():
    region = "^bb0(%a: tensor<i32>, %b: tensor<i32>): stablehlo.return %b : tensor<i32>"
    op = f'"stablehlo.reduce_window"(%0, %1) ({{ {region} }}) {{window_dimensions = array<i64: 2, 1>}}'
    _, operation = build(op, [type_of((3, 2)), type_of(())], type_of((2, 2)))
    first, initial = accesses(operation)
    assert first.map.evaluate((1, 1), (1, 0)) == (2, 1)
    assert initial.map.evaluate((1, 1)) == ()


@few
@given(st.data())
def test_dot_general(data):
    batch, contracted = (data.draw(st.lists(st.integers(0, 3), max_size=2)) for _ in range(2))
    free = [data.draw(st.lists(st.integers(1, 3), max_size=2)) for _ in range(2)]
    operands, names = [], []
    for number in range(2):
        kinds = [
            *((f"b{i}", size) for i, size in enumerate(batch)),
            *((f"c{i}", size) for i, size in enumerate(contracted)),
            *((f"f{i}", size) for i, size in enumerate(free[number])),
        ]
        # Free dimensions keep their order: the result has them in it.
        order = data.draw(st.permutations(kinds))
        kept = iter([kind for kind in kinds if kind[0][0] == "f"])
        order = [next(kept) if kind[0][0] == "f" else kind for kind in order]
        operands.append(tagged([size for _, size in order], 1))
        names.append([name for name, _ in order])
    numbers = []
    for kind, word, count in (("b", "batching", len(batch)), ("c", "contracting", len(contracted))):
        for side, its_names in zip(("lhs", "rhs"), names, strict=True):
            numbers.append(f"{side}_{word}_dimensions = {[its_names.index(f'{kind}{i}') for i in range(count)]}")
    numbers.sort(key=lambda text: ("contracting" in text, text))
    op = f'"stablehlo.dot_general"(%0, %1) {{dot_dimension_numbers = #stablehlo.dot<{", ".join(numbers)}>}}'
    check(op, operands, [*batch, *free[0], *free[1]])


@st.composite
def convolutions(draw):
    """Attributes of a convolution, both operand shapes and the result's shape, with dimensions in any order."""
    spatial = draw(st.integers(0, 2))
    groups = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 2), (3, 1), (1, 3)]))
    feature_groups, batch_groups = groups
    batch, kernel_features, per_group = (draw(st.integers(1, 3)) for _ in range(3))
    output_features = per_group * feature_groups * batch_groups
    parts = []
    for _ in range(spatial):
        size, window, stride, base, dilation = draw(st.integers(1, 4)), *(draw(steps) for _ in range(4))
        whole = spread(size, base)
        low = draw(st.integers(-min(1, whole), 3))
        pads = low, draw(st.integers(-min(1, whole + low), 3))
        output = windows(whole + sum(pads), spread(window, dilation), stride)
        parts.append((size, window, stride, base, dilation, pads, draw(st.booleans()), output))
    fixed = {
        "input": {"b": batch * batch_groups, "f": kernel_features * feature_groups},
        "kernel": {"i": kernel_features, "o": output_features},
        "output": {"b": batch, "f": output_features},
    }
    layouts, operand_shapes = [], []
    for column, (_, named) in zip((0, 1, 7), fixed.items(), strict=True):
        sizes = named | {str(i): part[column] for i, part in enumerate(parts)}
        order = draw(st.permutations(list(sizes)))
        layouts.append(f"[{', '.join(order)}]")
        operand_shapes.append(tuple(sizes[name] for name in order))
    strides, bases, dilations = ([part[column] for part in parts] for column in (2, 3, 4))
    reversal = ", ".join(str(part[6]).lower() for part in parts)
    padding = padding_of([part[5] for part in parts])
    attributes = f"""dimension_numbers = #stablehlo.conv<{layouts[0]}x{layouts[1]}->{layouts[2]}>,
        feature_group_count = {feature_groups} : i64, batch_group_count = {batch_groups} : i64,
        window_strides = {array(strides)}, lhs_dilation = {array(bases)}, rhs_dilation = {array(dilations)},
        window_reversal = array<i1{": " if parts else ""}{reversal}>, padding = {padding}"""
    return attributes, *operand_shapes


@settings(few, max_examples=2 * few.max_examples)
@given(convolutions())
def test_convolution(convolution):
    attributes, input_shape, kernel_shape, shape = convolution
    check(f'"stablehlo.convolution"(%0, %1) {{{attributes}}}', [tagged(input_shape, 1), tagged(kernel_shape, 1)], shape)
