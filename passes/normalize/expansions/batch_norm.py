"""Expands the batch normalisation operations to sums and arithmetic, operation by operation as XLA does."""

from math import prod

from xgpu import ir
from xgpu.hlo.stablehlo_builder import Value, broadcast, fill_region, hlo, shape_of, splat, tensor
from xgpu.structure import element_of


class _Features:
    """An operation on an array one of whose dimensions counts features; the others are summed over."""

    def __init__(self, op: ir.Operation):
        self.shape = shape_of(op.operands[0])
        self.element = element_of(op.operands[0])
        self.feature = ir.IntegerAttr(op.attributes["feature_index"]).value
        self._epsilon = ir.FloatAttr(op.attributes["epsilon"]).value
        self.others = [i for i in range(len(self.shape)) if i != self.feature]
        self._count = prod(self.shape[i] for i in self.others)

    def everywhere(self, per_feature: Value) -> Value:
        """One value per feature, at every element."""
        return broadcast(per_feature, self.shape, [self.feature])

    def sum(self, value: Value) -> Value:
        """Sums of the elements of each feature."""
        scalar = tensor([], self.element)
        type_ = tensor([self.shape[self.feature]], self.element)
        op = hlo.ReduceOp([type_], [value], [splat(0, scalar)], self.others)
        fill_region(op.operation, [scalar, scalar], lambda values: [hlo.add(*values)])
        return op.operation.results[0]

    def count(self, like: Value) -> Value:
        """The number of elements of a feature."""
        return splat(self._count, ir.RankedTensorType(like.type))

    def plus_epsilon(self, value: Value) -> Value:
        """The variance plus epsilon, which keeps it from zero."""
        return hlo.add(value, splat(self._epsilon, ir.RankedTensorType(value.type)))


def expand_batch_norm_training(op: ir.Operation) -> list[Value]:
    """Return the normalised array, and mean and variance of each feature: E[x * x] - E[x] * E[x]."""
    operand, scale, offset = op.operands
    features = _Features(op)
    total, total_of_squares = features.sum(operand), features.sum(hlo.multiply(operand, operand))
    mean = hlo.divide(total, features.count(total))
    mean_of_squares = hlo.divide(total_of_squares, features.count(total))
    variance = hlo.subtract(mean_of_squares, hlo.multiply(mean, mean))
    factor = hlo.rsqrt(features.plus_epsilon(features.everywhere(variance)))
    normalized = hlo.multiply(hlo.subtract(operand, features.everywhere(mean)), factor)
    scaled = hlo.multiply(normalized, features.everywhere(scale))
    return [hlo.add(scaled, features.everywhere(offset)), mean, variance]


def expand_batch_norm_inference(op: ir.Operation) -> list[Value]:
    """Return the array normalised by a given mean and variance of each feature."""
    operand, scale, offset, mean, variance = op.operands
    features = _Features(op)
    factor = hlo.multiply(scale, hlo.rsqrt(features.plus_epsilon(variance)))
    shift = hlo.subtract(offset, hlo.multiply(mean, factor))
    return [hlo.add(hlo.multiply(operand, features.everywhere(factor)), features.everywhere(shift))]


def expand_batch_norm_grad(op: ir.Operation) -> list[Value]:
    """Return the gradients of the operand, the scale and the offset.

    With d for the distance from the mean, g for the gradient of the output and n elements per feature, that of the
    operand is ``scale * rsqrt(variance + epsilon) / n * (n * g - sum(g) - d * sum(g * d) / (variance + epsilon))``.
    """
    operand, scale, mean, variance, gradient = op.operands
    features = _Features(op)
    distance = hlo.subtract(operand, features.everywhere(mean))
    divisor = features.plus_epsilon(features.everywhere(variance))
    total = features.sum(gradient)
    total_of_products = features.sum(hlo.multiply(gradient, distance))
    scale_gradient = hlo.multiply(total_of_products, hlo.rsqrt(features.plus_epsilon(variance)))
    factor = hlo.multiply(features.everywhere(scale), hlo.rsqrt(divisor))
    factor = hlo.divide(factor, features.count(factor))
    whole = hlo.multiply(gradient, features.count(gradient))
    correction = hlo.divide(hlo.multiply(features.everywhere(total_of_products), distance), divisor)
    rest = hlo.subtract(hlo.subtract(whole, features.everywhere(total)), correction)
    return [hlo.multiply(factor, rest), scale_gradient, total]
