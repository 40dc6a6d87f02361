"""The maps of windows, dot products and convolutions, by brute force: sums of what they read are the results."""

import numpy as np
from hypothesis import given

from tests.py.indexing.hlo_programs import array, build, check, element_at, random_shape, tagged, type_of
from tests.py.indexing.indexing_strategies import decisions, grid, hundreds, in_domain
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
    """The result that the maps describe: the sum over all points of the products of the elements read there."""
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


@hundreds
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


@hundreds
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


class Convolution:
    """A convolution with dimensions in any order: the attributes, and the shapes of the operands and the result."""

    def __init__(self, rng):
        self.feature_groups, self.batch_groups = rng.choice([(1, 1), (1, 1), (2, 1), (1, 2), (3, 1), (1, 3)])
        batch, features, per_group = (rng.randint(1, 3) for _ in range(3))
        self.parts = [make_spatial(rng) for _ in range(rng.randint(0, 2))]
        sizes = [
            {"b": batch * self.batch_groups, "f": features * self.feature_groups},
            {"i": features, "o": per_group * self.feature_groups * self.batch_groups},
            {"b": batch, "f": per_group * self.feature_groups * self.batch_groups},
        ]
        for number, part in enumerate(self.parts):
            for named, size in zip(sizes, (part["size"], part["window"], part["output"]), strict=True):
                named[str(number)] = size
        self.layouts = [rng.sample(list(named), len(named)) for named in sizes]
        self.shapes = [tuple(named[name] for name in layout) for named, layout in zip(sizes, self.layouts, strict=True)]

    def attributes(self):
        layouts = [f"[{', '.join(layout)}]" for layout in self.layouts]
        strides, bases, dilations = ([part[name] for part in self.parts] for name in ("stride", "base", "dilation"))
        reversal = ", ".join(str(part["reversed"]).lower() for part in self.parts)
        return f"""dimension_numbers = #stablehlo.conv<{layouts[0]}x{layouts[1]}->{layouts[2]}>,
            feature_group_count = {self.feature_groups} : i64, batch_group_count = {self.batch_groups} : i64,
            window_strides = {array(strides)}, lhs_dilation = {array(bases)}, rhs_dilation = {array(dilations)},
            window_reversal = array<i1{": " if self.parts else ""}{reversal}>,
            padding = {padding_of([part["pads"] for part in self.parts])}"""

    def expected(self, values, kernel):
        """The result by its definition: every window of the input times the kernel, group by group."""
        spatial = [str(number) for number in range(len(self.parts))]
        values = values.transpose([self.layouts[0].index(name) for name in ("b", *spatial, "f")])
        kernel = kernel.transpose([self.layouts[1].index(name) for name in ("o", *spatial, "i")])
        for axis, part in enumerate(self.parts, 1):
            values = padded(dilated(values, axis, part["base"]), axis, part["pads"])
            kernel = dilated(kernel, axis, part["dilation"])
            kernel = np.flip(kernel, axis) if part["reversed"] else kernel
        results = []
        for number, weights in enumerate(kernel):
            group = number * self.feature_groups * self.batch_groups // len(kernel)
            axis, groups = (-1, self.feature_groups) if self.feature_groups > 1 else (0, self.batch_groups)
            results.append(self.windows_times(np.split(values, groups, axis)[group], weights))
        result = np.stack(results, -1)
        order = ["b", *spatial, "f"]
        return result.transpose([order.index(name) for name in self.layouts[2]])

    def windows_times(self, values, weights):
        """The sums of products of ``weights`` with every window of one group, batch by batch."""
        total = np.zeros((len(values), *(part["output"] for part in self.parts)), np.int32)
        for index in np.ndindex(total.shape[1:]):
            starts = [i * part["stride"] for i, part in zip(index, self.parts, strict=True)]
            window = tuple(slice(start, start + size) for start, size in zip(starts, weights.shape, strict=False))
            products = values[:, *window] * weights
            total[:, *index] = products.sum(axis=tuple(range(1, products.ndim)), dtype=np.int32)
        return total


def make_spatial(rng):
    """A spatial dimension of a convolution."""
    part = {name: rng.randint(1, 3) for name in ("window", "stride", "base", "dilation")}
    whole = spread(size := rng.randint(1, 4), part["base"])
    low = rng.randint(-min(1, whole), 3)
    pads = low, rng.randint(-min(1, whole + low), 3)
    output = windows(whole + sum(pads), spread(part["window"], part["dilation"]), part["stride"])
    return part | {"size": size, "pads": pads, "reversed": rng.random() < 0.5, "output": output}


def dilated(values, axis, step):
    """The array with zeros between its elements."""
    shape = list(values.shape)
    shape[axis] = spread(shape[axis], step)
    result = np.zeros(shape, values.dtype)
    result[(slice(None),) * axis + (slice(None, None, step),)] = values
    return result


def padded(values, axis, pads):
    """The array with zeros at both ends of an axis, or without elements where there are fewer than none."""
    low, high = pads
    zeros = [(max(low, 0), max(high, 0)) if i == axis else (0, 0) for i in range(values.ndim)]
    kept = slice(max(-low, 0), values.shape[axis] - max(-high, 0))
    return np.pad(values[(slice(None),) * axis + (kept,)], zeros)


@hundreds
@given(decisions)
def test_convolution(rng):
    convolution = Convolution(rng)
    operands = [tagged(shape, 1) for shape in convolution.shapes[:2]]
    op = f'"stablehlo.convolution"(%0, %1) {{{convolution.attributes()}}}'
    # The interpreter of older versions ends the process at some of them.
    check_sum(op, operands, convolution.shapes[2], expected=convolution.expected(*operands))
