"""Expansions: the expanded program computes, on XLA and on the host, what XLA makes of the operation itself."""

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xgpu
from xgpu.dtypes import dtype_named
from xgpu.errors import Unsupported
from xgpu.frontend.mlir_text import parse_module
from xgpu.frontend.stablehlo_text import from_stablehlo_text
from xgpu.passes.normalize.expansions import select_and_scatter as expansion
from xgpu.runtime.reference import Reference

few = settings(max_examples=10, deadline=None)


def type_of(array):
    return f"tensor<{''.join(f'{size}x' for size in array.shape)}{xgpu.dtypes.dtype_of_numpy(array.dtype).mlir}>"


def program(operation, operands, results):
    """A module that applies one operation, written with %0, %1... for operands, and returns its results."""
    types = [type_of(operand) for operand in operands]
    arguments = ", ".join(f"%{i}: {each}" for i, each in enumerate(types))
    listed = ", ".join(results)
    outputs = ", ".join(f"%r#{i}" for i in range(len(results)))
    return f"""module @t {{ func.func @main({arguments}) -> ({listed}) {{
        %r:{len(results)} = {operation} : ({", ".join(types)}) -> ({listed})
        return {outputs} : {listed}
    }} }}"""


def by_xla(text, operands):
    """XLA's results for the program as it is."""
    return Reference(parse_module(text, "t.mlir"))(operands)


def expanded(text, operands):
    """XLA's results for the expanded program."""
    return Reference(from_stablehlo_text(text).module)(operands)


def check(text, operands, tolerance=0.0):
    """The operation, its expansion, and the expansion's kernels agree."""
    expected = by_xla(text, operands)
    for results in (expanded(text, operands), xgpu.compile(text).run(*operands)):
        for result, wanted in zip(results, expected, strict=True):
            assert result.dtype == wanted.dtype
            if tolerance:
                wide = (array.astype(np.float64) for array in (result, wanted))
                np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance)
            else:
                np.testing.assert_array_equal(result, wanted)


def random_bits(algorithm, dtype, shape):
    result = f"tensor<{''.join(f'{size}x' for size in shape)}{dtype_named(dtype).mlir}>"
    operation = f'"stablehlo.rng_bit_generator"(%0) {{rng_algorithm = #stablehlo<rng_algorithm {algorithm}>}}'
    return operation, result


SHAPES = ((), (1,), (2,), (7,), (5, 3), (3, 4, 5), (2, 1, 6), (0, 3), (1, 1), (9, 9))
STATES = {
    2: np.array([0x0123456789ABCDEF, 2**64 - 3], np.uint64),
    3: np.array([0x0123456789ABCDEF, 2**64 - 3, 2**64 - 1], np.uint64),
}


@pytest.mark.parametrize("dtype", ["u8", "u16", "u32", "u64"])
@pytest.mark.parametrize(("algorithm", "words"), [("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 2)])
def test_random_bits_are_those_of_xla(algorithm, words, dtype):
    operation, result = random_bits(algorithm, dtype, (5, 3, 7))
    check(program(operation, [STATES[words]], [type_of(STATES[words]), result]), [STATES[words]])


@pytest.mark.parametrize("dtype", ["u8", "u64"])
@pytest.mark.parametrize(("algorithm", "words"), [("THREE_FRY", 2), ("PHILOX", 2)])
def test_random_bits_of_every_shape_are_those_of_xla(algorithm, words, dtype):
    for shape in SHAPES:
        operation, result = random_bits(algorithm, dtype, shape)
        text = program(operation, [STATES[words]], [type_of(STATES[words]), result])
        for got, wanted in zip(expanded(text, [STATES[words]]), by_xla(text, [STATES[words]]), strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("algorithm", ["THREE_FRY", "PHILOX"])
@few
@given(st.lists(st.integers(0, 7), max_size=4), st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=2))
def test_expanded_random_bits_of_any_shape_are_those_of_xla(algorithm, shape, state):
    operation, result = random_bits(algorithm, "u32", shape)
    operands = [np.array(state, np.uint64)]
    text = program(operation, operands, [type_of(operands[0]), result])
    for got, wanted in zip(expanded(text, operands), by_xla(text, operands), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_state_of_another_size_is_refused():
    operation, result = random_bits("THREE_FRY", "u32", (4,))
    text = program(operation, [STATES[3]], [type_of(STATES[3]), result])
    with pytest.raises(Unsupported, match=r"rng_bit_generator .*the state of THREE_FRY is tensor<2xui64>, not"):
        from_stablehlo_text(text)


def test_random_floats_are_refused():
    operation, result = random_bits("PHILOX", "f32", (4,))
    text = program(operation, [STATES[2]], [type_of(STATES[2]), result])
    with pytest.raises(Unsupported, match="random bits are integers, not f32"):
        from_stablehlo_text(text)


def batch_norm_operands(dtype, shape, feature, count):
    generator = np.random.default_rng(3)
    whole = generator.standard_normal(shape)
    vectors = [np.abs(generator.standard_normal(shape[feature])) + 0.5 for _ in range(count)]
    return [array.astype(dtype_named(dtype).numpy) for array in (whole, *vectors)]


TOLERANCES = {"f64": 1e-12, "f32": 2e-5, "f16": 2e-2, "bf16": 1e-1}


@pytest.mark.parametrize(
    ("dtype", "shape", "feature"),
    [*((dtype, (4, 3, 5), 1) for dtype in TOLERANCES), ("f32", (6, 2), 0), ("f32", (7,), 0)],
)
def test_batch_norm_is_that_of_xla(dtype, shape, feature):
    attributes = f"{{epsilon = 0.001 : f32, feature_index = {feature} : i64}}"
    whole, scale, offset, mean, variance = batch_norm_operands(dtype, shape, feature, 4)
    per_feature = type_of(scale)
    operands = [whole, scale, offset]
    text = program(
        f'"stablehlo.batch_norm_training"(%0, %1, %2) {attributes}', operands, [type_of(whole), *[per_feature] * 2]
    )
    if shape != (7,):
        # One element per feature has no variance: the result is an amplified rounding error.
        check(text, operands, TOLERANCES[dtype])
    operands = [whole, scale, offset, mean, variance]
    check(
        program(f'"stablehlo.batch_norm_inference"(%0, %1, %2, %3, %4) {attributes}', operands, [type_of(whole)]),
        operands,
        TOLERANCES[dtype],
    )
    operands = [whole, scale, mean, variance, whole[::-1].copy()]
    results = [type_of(whole), per_feature, per_feature]
    check(
        program(f'"stablehlo.batch_norm_grad"(%0, %1, %2, %3, %4) {attributes}', operands, results),
        operands,
        TOLERANCES[dtype],
    )


REGIONS = {
    "largest": "stablehlo.compare GE, %a, %b",
    "strictly-largest": "stablehlo.compare GT, %a, %b",
    "smallest": "stablehlo.compare LE, %a, %b",
}
SCATTERS = ("add", "maximum", "multiply")


def select_and_scatter(element, window, strides, pads, select="largest", scatter="add"):
    scalar = f"tensor<{element}>"
    rows = ", ".join(f"[{low}, {high}]" for low, high in pads)
    return f"""\"stablehlo.select_and_scatter\"(%0, %1, %2) ({{
        ^bb0(%a: {scalar}, %b: {scalar}):
          %s = {REGIONS[select]} : ({scalar}, {scalar}) -> tensor<i1>
          stablehlo.return %s : tensor<i1>
        }}, {{
        ^bb0(%a: {scalar}, %b: {scalar}):
          %s = stablehlo.{scatter} %a, %b : {scalar}
          stablehlo.return %s : {scalar}
        }}) {{window_dimensions = array<i64: {", ".join(map(str, window))}>,
             window_strides = array<i64: {", ".join(map(str, strides))}>,
             padding = dense<[{rows}]> : tensor<{len(pads)}x2xi64>}}"""


@st.composite
def scatterings(draw):
    """Shapes of operand and source, window, strides and padding; windows overlap, leave gaps, or lie in the padding."""
    shape, counts, window, strides, pads = [], [], [], [], []
    for _ in range(draw(st.integers(1, 2))):
        size, extent, stride = (draw(st.integers(1, limit)) for limit in (6, 4, 4))
        low, high = (draw(st.integers(0, extent + 1)) for _ in range(2))
        if size + low + high < extent:
            high = extent - size - low
        shape.append(size)
        window.append(extent)
        strides.append(stride)
        pads.append((low, high))
        counts.append((size + low + high - extent) // stride + 1)
    return shape, counts, window, strides, pads


@settings(few, max_examples=40)
@given(
    scatterings(),
    st.sampled_from(sorted(REGIONS)),
    st.sampled_from(SCATTERS),
    st.integers(0, 2**32 - 1),
    st.sampled_from((0, 32)),
)
def test_select_and_scatter_is_that_of_xla(scattering, select, scatter, seed, most_steps):
    shape, counts, window, strides, pads = scattering
    generator = np.random.default_rng(seed)
    # All values differ: which of equal ones XLA selects depends on how it orders its loops.
    operand = generator.permutation(math.prod(shape)).reshape(shape).astype(np.int32)
    source = generator.integers(1, 100, counts).astype(np.int32)
    operands = [operand, source, np.int32(5)]
    text = program(select_and_scatter("i32", window, strides, pads, select, scatter), operands, [type_of(operand)])
    with mock.patch.object(expansion, "_MOST_STEPS", most_steps):
        result = expanded(text, operands)[0]
    np.testing.assert_array_equal(result, by_xla(text, operands)[0])


@pytest.mark.parametrize(
    ("window", "strides", "pads", "steps"),
    [
        ((2, 2), (2, 2), (0, 0), 1),
        ((3, 2), (2, 2), (1, 0), 2),
        ((3, 3), (1, 2), (1, 1), 6),
        ((2, 2), (3, 3), (0, 0), 1),
        ((6, 6), (1, 1), (3, 3), None),
    ],
)
def test_each_element_looks_only_at_windows_that_may_cover_it(window, strides, pads, steps):
    operand = np.random.default_rng(0).permutation(13 * 12).reshape(13, 12).astype(np.int32)
    rows = zip(operand.shape, window, strides, pads, strict=True)
    counts = [(size + 2 * pad - extent) // stride + 1 for size, extent, stride, pad in rows]
    operands = [operand, np.arange(1, math.prod(counts) + 1, dtype=np.int32).reshape(counts), np.int32(3)]
    text = program(
        select_and_scatter("i32", window, strides, [(pad, pad) for pad in pads]), operands, [type_of(operand)]
    )
    module = str(from_stablehlo_text(text).module)
    if steps is None:
        assert "stablehlo.reduce(" in module
    else:
        assert "stablehlo.reduce(" not in module
        assert module.count("stablehlo.add ") == steps
    check(text, operands)


def test_windows_side_by_side_scatter_in_the_kernel_of_what_follows():
    x = np.zeros((4, 8, 8), np.float32)
    operands = [x, x[:, ::2, ::2], np.float32(0)]
    operation = select_and_scatter("f32", (1, 2, 2), (1, 2, 2), [(0, 0)] * 3)
    kernels = xgpu.compile(program(operation, operands, [type_of(x)])).kernels
    assert [kernel.emitter for kernel in kernels] == ["loop"] * len(kernels)
    assert len(kernels) <= 2


@pytest.mark.parametrize("most_steps", [0, 32])
def test_sums_of_16_bit_floats_are_rounded_once(most_steps):
    bf16 = dtype_named("bf16").numpy
    operands = [np.array([0, 0, 1, 0, 0], bf16), np.array([256, 1, 1], bf16), np.zeros((), bf16)]
    text = program(select_and_scatter("bf16", (3,), (1,), [(0, 0)]), operands, [type_of(operands[0])])
    with mock.patch.object(expansion, "_MOST_STEPS", most_steps):
        (result,) = xgpu.compile(text).run(*operands)
    np.testing.assert_array_equal(result.astype(np.float32), [0, 0, 258, 0, 0])


def scatter_by_hand(operand, source, window, strides, pads):
    """The sum of the source values of all windows at the first of their largest elements, in row-major order."""
    result = np.zeros_like(operand)
    for number in np.ndindex(*source.shape):
        selected = None
        for offset in np.ndindex(*window):
            rows = zip(number, strides, offset, pads, strict=True)
            point = tuple(i * stride + k - low for i, stride, k, (low, _) in rows)
            inside = all(0 <= i < size for i, size in zip(point, operand.shape, strict=True))
            if inside and (selected is None or not operand[selected] >= operand[point]):
                selected = point
        if selected is not None:
            result[selected] += source[number]
    return result


@pytest.mark.parametrize("dtype", ["f32", "bf16", "s8"])
@pytest.mark.parametrize(
    ("window", "pads"), [((1, 3, 3), ((0, 0), (0, 0), (1, 1))), ((1, 4, 2), ((0, 0), (0, 1), (0, 1)))]
)
def test_kernels_of_select_and_scatter_take_the_first_of_equal_elements(dtype, window, pads):
    generator = np.random.default_rng(1)
    operand = generator.integers(-3, 4, (3, 7, 9)).astype(dtype_named(dtype).numpy)
    source = generator.integers(-3, 4, (3, 3, 5)).astype(operand.dtype)
    operation = select_and_scatter(dtype_named(dtype).mlir, window, (1, 2, 2), pads)
    operands = [operand, source, np.zeros((), operand.dtype)]
    (result,) = xgpu.compile(program(operation, operands, [type_of(operand)])).run(*operands)
    np.testing.assert_array_equal(result, scatter_by_hand(operand, source, window, (1, 2, 2), pads))


@pytest.mark.parametrize("pads", [(0, 8), (8, 0)])
def test_windows_that_reach_to_an_end_take_the_first_of_equal_elements(pads):
    """Their selections are a scan, which takes in the last element first where windows reach to the last one."""
    operand = np.random.default_rng(1).integers(-1, 2, (4, 9)).astype(np.int32)
    source = np.arange(36, dtype=np.int32).reshape(4, 9) + 1
    window, padding = (1, 9), ((0, 0), pads)
    operands = [operand, source, np.zeros((), np.int32)]
    text = program(select_and_scatter("i32", window, (1, 1), padding), operands, [type_of(operand)])
    (result,) = xgpu.compile(text).run(*operands)
    np.testing.assert_array_equal(result, scatter_by_hand(operand, source, window, (1, 1), padding))


def test_windows_that_are_too_large_are_refused():
    operands = [np.zeros(1, np.int32), np.zeros(1, np.int32), np.int32(0)]
    text = program(select_and_scatter("i32", [2**50], [1], [(0, 2**50 - 1)]), operands, ["tensor<1xi32>"])
    with pytest.raises(Unsupported, match=r"windows of shape .* are too large"):
        from_stablehlo_text(text)


def test_sizes_of_dimensions_are_constants():
    text = """func.func @main(%x: tensor<4x6xf32>) -> tensor<i32> {
        %0 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<4x6xf32>) -> tensor<i32>
        return %0 : tensor<i32>
    }"""
    assert "dense<6>" in str(from_stablehlo_text(text).module)


@pytest.mark.parametrize(
    ("operation", "static"),
    [
        ('"stablehlo.dynamic_iota"(%sizes) {iota_dimension = 0 : i64} : (tensor<2xi64>)', "iota"),
        ('"stablehlo.dynamic_reshape"(%x, %sizes) : (tensor<6x4xf32>, tensor<2xi64>)', "reshape"),
        (
            '"stablehlo.dynamic_broadcast_in_dim"(%y, %sizes) {broadcast_dimensions = array<i64: 1>} : '
            "(tensor<6xf32>, tensor<2xi64>)",
            "broadcast_in_dim",
        ),
    ],
)
def test_dynamic_operations_of_constant_sizes_are_static(operation, static):
    text = f"""func.func @main(%x: tensor<6x4xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {{
        %sizes = stablehlo.constant dense<[4, 6]> : tensor<2xi64>
        %0 = {operation} -> tensor<4x6xf32>
        return %0 : tensor<4x6xf32>
    }}"""
    module = str(from_stablehlo_text(text).module)
    assert f"stablehlo.{static}" in module
    assert "dynamic" not in module
