"""Groups of products that others compute again: found together, as they would be one by one."""

import jax
import jax.numpy as jnp
import pytest

from xgpu import ir
from xgpu.analysis.attention.attention import products_behind
from xgpu.analysis.attention.gradient import drops_nothing
from xgpu.analysis.attention.places import DOT, is_tiled
from xgpu.analysis.attention.sum_groups import SumGroups
from xgpu.frontend.load import load_source
from xgpu.indexing.access import identity_map, shape_of
from xgpu.structure import users_of

ROWS = "f32[64,32]"


def _residual_layers(x, w):
    for _ in range(5):
        x = jnp.tanh(x @ w) + x
    return x


def _sums(x, y, z):
    return jax.nn.sigmoid(x @ y.T) @ z


def _gradient_of_sums(x, y, z):
    return jax.grad(lambda *given: jnp.sum(_sums(*given) * z), (0, 1, 2))(x, y, z)


def _sums_of_sums(x, y, z):
    return _sums(_sums(x, y, z), y, z)


def _several_readers(x, y, z):
    scores = x @ y.T
    return scores.max(), jnp.exp(scores) @ z, (scores * (y @ y.T)) @ z, jnp.sin(y @ y.T) @ z


def _sum_of_one(x, y, z):
    """What is made of the first product is summed over a dimension of one element on the way to the second one."""
    scores = (x @ y.T)[None]
    others = jnp.cos(z @ y.T)
    return (scores.sum(0) * others) @ z, others @ y


PROGRAMS = {
    "residual layers": (_residual_layers, (ROWS, "f32[32,32]")),
    "sums": (_sums, (ROWS, ROWS, ROWS)),
    "gradient of sums": (_gradient_of_sums, (ROWS, ROWS, ROWS)),
    "sums of sums": (_sums_of_sums, (ROWS, ROWS, ROWS)),
    "several readers": (_several_readers, (ROWS, ROWS, ROWS)),
    "sum of one": (_sum_of_one, (ROWS, ROWS, ROWS)),
}


def _found_alone(first: ir.Operation) -> tuple[set[ir.Operation], set[ir.Operation]] | None:
    """Return the products and the ends of a group by following all that each of its values leads to."""
    products, ends = {first}, set[ir.Operation]()
    pending = [first.results[0]]
    seen = set(pending)
    while pending:
        value = pending.pop()
        for user in users_of(value):
            found = list(user.results)
            if user.name == DOT:
                ends.add(user)
                behind = products_behind(value, identity_map(shape_of(value)))
                products |= behind.keys()
                found = [result for op in behind for result in op.results]
            elif not is_tiled(user) and not drops_nothing(user):
                return None
            pending += [each for each in found if each not in seen]
            seen.update(found)
    return (products, ends) if ends and not ends & products else None


@pytest.mark.parametrize(("function", "specs"), PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("is_backwards", [False, True])
def test_groups_are_those_of_each_product_alone(function, specs, is_backwards):
    source = load_source(function, specs)
    (block,) = source.module.body.operations[0].regions[0].blocks
    dots = [op.operation for op in block.operations if op.operation.name == DOT]
    groups = SumGroups(block)
    for op in reversed(dots) if is_backwards else dots:
        group = groups.of(op)
        assert (group and (set(group.products), set(group.ends))) == _found_alone(op)


def test_what_refused_a_product_may_be_gone():
    """Something else reads one of the two products that a third one reads, until a kernel takes its place."""

    def function(x, y):
        read = x @ y
        return read.max(), (jnp.cos(y @ x) * read) @ x

    source = load_source(function, ("f32[32,32]", "f32[32,32]"))
    (block,) = source.module.body.operations[0].regions[0].blocks
    read, other, last = (op.operation for op in block.operations if op.operation.name == DOT)
    groups = SumGroups(block)
    assert groups.of(other) is None
    read.results[0].replace_all_uses_with(block.arguments[0])
    groups.forget([read])
    read.erase()
    found = groups.of(other)
    assert found is not None and found.ends == (last,)
