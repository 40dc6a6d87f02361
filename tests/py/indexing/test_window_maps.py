"""The maps of windows, dot products and convolutions, by brute force: sums of what they read are the results."""

import numpy as np
from hypothesis import given

from tests.py.indexing.hlo_programs import array, build, check, element_at, random_shape, tagged, type_of
from tests.py.indexing.indexing_strategies import decisions, grid, in_domain, thousands
from xgpu.indexing.hlo_maps import access_kind, accesses


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
    (domain,) = {(access.map.dims, access.map.symbols, access.map.constraints) for access in found}
    box = [interval.size for interval in (*domain[0], *domain[1])]
    assert box[: len(shape)] == list(shape)
    inside = in_domain(found[0].map, *domain[:2])
    product = np.ones(box, np.int32)
    for access in found:
        point = [expr.evaluate(*grid(*domain[:2])) for expr in access.map.results]
        product *= element_at(operands[access.operand], point, inside, box)
    product[~inside] = 0
    return product.sum(axis=tuple(range(len(shape), len(box))), dtype=np.int32)


def check_sum(op_text, operands, shape, **options):
    check(op_text, operands, shape, sum_of_products, **options)


@thousands
@given(decisions)
def test_reduce_window(rng):
    shape = random_shape(rng, least=1)
    window, strides, bases, dilations = ([rng.randint(1, 3) for _ in shape] for _ in range(4))
    pads, result = [], []
    for size, base, *rest in zip(shape, bases, window, dilations, strides, strict=True):
        whole = spread(size, base)
        low = rng.randint(-min(2, whole), 3)
        pads.append((low, rng.randint(-min(2, max(whole + low, 0)), 3)))
        result.append(windows(max(whole + sum(pads[-1]), 0), spread(*rest[:2]), rest[2]))
    attributes = f"""window_dimensions = {array(window)}, window_strides = {array(strides)},
        base_dilations = {array(bases)}, window_dilations = {array(dilations)}, padding = {padding_of(pads)}"""
    region = """^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %c = stablehlo.add %a, %b : tensor<i32>
        stablehlo.return %c : tensor<i32>"""
    op = f'"stablehlo.reduce_window"(%0, %1) ({{ {region} }}) {{{attributes}}}'
    # XLA ends the process at some windows of one element.
    check_sum(op, [tagged(shape, 1), np.int32(0)], result, xla=max(window) > 1)


def test_reduce_window_without_its_optional_attributes():
    region = "^bb0(%a: tensor<i32>, %b: tensor<i32>): stablehlo.return %b : tensor<i32>"
    op = f'"stablehlo.reduce_window"(%0, %1) ({{ {region} }}) {{window_dimensions = array<i64: 2, 1>}}'
    _, operation = build(op, [type_of((3, 2)), type_of(())], type_of((2, 2)))
    first, initial = accesses(operation)
    assert first.map.evaluate((1, 1), (1, 0)) == (2, 1)
    assert initial.map.evaluate((1, 1)) == ()


@thousands
@given(decisions)
def test_dot_general(rng):
    # Dimensions by letters: batches a and b, contracted k and l, free ones m and n on the left, p and q on the right.
    sizes = {letter: rng.randint(0 if letter in "abkl" else 1, 3) for letter in "abklmnpq"}
    batch, contracted, *free = (pair[: rng.randint(0, 2)] for pair in ("ab", "kl", "mn", "pq"))
    operands, names = [], []
    for own in free:
        # Free dimensions keep their order: the result has them in it.
        order = "".join(rng.sample(batch + contracted + own, len(batch + contracted + own)))
        kept = iter(own)
        names.append("".join(next(kept) if letter in own else letter for letter in order))
        operands.append(tagged([sizes[letter] for letter in names[-1]], 1))
    numbers = ", ".join(
        f"{side}_{word}_dimensions = {[its_names.index(letter) for letter in letters]}"
        for word, letters in (("batching", batch), ("contracting", contracted))
        for side, its_names in zip(("lhs", "rhs"), names, strict=True)
    )
    op = f'"stablehlo.dot_general"(%0, %1) {{dot_dimension_numbers = #stablehlo.dot<{numbers}>}}'
    result = "".join((batch, *free))
    # The interpreter ends the process where there is nothing to sum.
    expected = np.einsum(f"{names[0]},{names[1]}->{result}", *operands)
    check_sum(op, operands, expected.shape, expected=expected)


def make_convolution(rng):
    """Attributes of a convolution, both operand shapes and the result's shape, with dimensions in any order."""
    feature_groups, batch_groups = rng.choice([(1, 1), (1, 1), (2, 1), (1, 2), (3, 1), (1, 3)])
    batch, kernel_features, per_group = (rng.randint(1, 3) for _ in range(3))
    output_features = per_group * feature_groups * batch_groups
    parts = []
    for _ in range(rng.randint(0, 2)):
        size, window, stride, base, dilation = rng.randint(1, 4), *(rng.randint(1, 3) for _ in range(4))
        whole = spread(size, base)
        low = rng.randint(-min(1, whole), 3)
        pads = low, rng.randint(-min(1, whole + low), 3)
        output = windows(whole + sum(pads), spread(window, dilation), stride)
        parts.append((size, window, stride, base, dilation, pads, rng.random() < 0.5, output))
    fixed = {
        "input": {"b": batch * batch_groups, "f": kernel_features * feature_groups},
        "kernel": {"i": kernel_features, "o": output_features},
        "output": {"b": batch, "f": output_features},
    }
    layouts, operand_shapes = [], []
    for column, (_, named) in zip((0, 1, 7), fixed.items(), strict=True):
        sizes = named | {str(i): part[column] for i, part in enumerate(parts)}
        order = rng.sample(list(sizes), len(sizes))
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


@thousands
@given(decisions)
def test_convolution(rng):
    attributes, input_shape, kernel_shape, shape = make_convolution(rng)
    op = f'"stablehlo.convolution"(%0, %1) {{{attributes}}}'
    check_sum(op, [tagged(input_shape, 1), tagged(kernel_shape, 1)], shape)
