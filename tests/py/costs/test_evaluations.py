"""How often kernels compute values: the same whether kernels are counted together or each by itself."""

import jax.numpy as jnp
import pytest
from jax import lax

from tests.py.effort import by_level
from xgpu import ir
from xgpu.costs.evaluations import ONLY, Evaluations
from xgpu.driver.compiler import plan_program
from xgpu.frontend.load import load_source
from xgpu.numbered_block import NumberedBlock
from xgpu.passes.framework.base import function_name, functions
from xgpu.tools.fuzzing.generate import generate


class _Loop:
    """A kind of kernels whose threads share nothing."""

    def shares(self, op: ir.Operation) -> bool:
        return False


def _counts(operations, kernels) -> list[dict[int, float]]:
    """Return how often each kernel computes each result; every kernel stores another one of the results.

    ``kernels`` has the kind of each, and which member of that it is.
    """
    block = NumberedBlock(operations)
    values = [value for results in block.results for value in results]
    evaluations, counts = Evaluations[_Loop](block), []
    for number, (kind, member) in enumerate(kernels):
        evaluations.want(values[-1 - number % len(values)], kind, member)
    for operation in reversed(range(len(operations))):
        computing: dict[_Loop, int] = {}
        for value in block.results[operation]:
            needs = evaluations.of(value)
            for need in needs:
                assert need.kernels == need.members.bit_count()
                computing[need.kernel] = computing.get(need.kernel, 0) | need.members
            found = [
                (number, need.times)
                for number, (kind, member) in enumerate(kernels)
                for need in needs
                if need.kernel is kind and need.members & member
            ]
            counts.append(dict(found))
            assert len(counts[-1]) == len(found)
        evaluations.compute(operation, computing)
    return counts


def _agree(source, count) -> None:
    prepared = plan_program(source.module)["prepared"]
    (main,) = (each for each in functions(prepared) if function_name(each) == "main")
    *operations, _ = (op.operation for op in main.entry_block.operations)
    kind = _Loop()
    together = _counts(operations, [(kind, 1 << number) for number in range(count)])
    alone = _counts(operations, [(_Loop(), ONLY) for _ in range(count)])
    assert together == [pytest.approx(each) for each in alone]
    assert any(together) or not operations


@pytest.mark.parametrize("seed", range(by_level(5, 20, 100)))
def test_kernels_of_random_graphs(seed):
    _agree(load_source(generate(seed).text()), 8)


def _rolled(x, y):
    first = jnp.roll(x, 1) * y
    second = jnp.concatenate([first[3:], y[:3]]) + first
    return first.sum() * second + jnp.roll(second, 2), second[::-1]


def _chosen(x, y):
    """One number is read for each element, and for each vector of a broadcast."""
    number = x[0] * y[1]
    return lax.select_n(number > 0, x, y) * lax.broadcast(jnp.sin(number), (48,))


@pytest.mark.parametrize("function", [_rolled, _chosen])
def test_kernels_that_read_at_different_indices(function):
    _agree(load_source(function, ("f32[48]", "f32[48]")), 16)


@pytest.mark.parametrize("rows", range(1, 8))
def test_pieces_are_walked_apart_from_arrays_of_any_shape(rows):
    """A kernel that stores an array of a shape with the numbers of a concatenation and of a piece has both."""

    def function(x, y, z):
        return jnp.concatenate([jnp.exp(x), jnp.sin(x), jnp.cos(y)], 1), jnp.tanh(z)

    source = load_source(function, ("f32[64,3]", "f32[64,5]", f"f32[{rows},1]"))
    prepared = plan_program(source.module)["prepared"]
    operations = [op.operation for op in prepared.body.operations[0].entry_block.operations][:-1]
    evaluations, kernel = Evaluations[_Loop](NumberedBlock(operations)), _Loop()
    for value in (results := [value for values in evaluations.block.results for value in values])[-2:]:
        evaluations.want(value, kernel, ONLY)
    for number in reversed(range(len(operations))):
        evaluations.compute(number, {kernel: ONLY})
    counts = [[need.times for need in evaluations.of(value)] for value in results]
    assert counts == [[64 * 3], [64 * 3], [64 * 5], [64 * 11], [rows]]


@pytest.mark.parametrize(
    ("pieces", "size", "times"),
    [(2, 64, 1), (2, 128, 0.5), (4, 32, 1), (4, 64, 0.25), (4, 1, 0.25)],
    ids=["halves", "wholes", "quarters", "whole quarters", "elements of a thread"],
)
def test_pieces_that_alternate_within_a_warp(pieces, size, times):
    """A warp computes all pieces if it has elements of each: a piece is computed for every element of the result."""

    def function(x):
        return jnp.stack([jnp.exp(x) + number for number in range(pieces)], 1)[::-1]

    assert _of_last_sum(function, f"f32[64,{size}]") == times * 64 * pieces * size


@pytest.mark.parametrize(
    ("pieces", "size", "exponentials"),
    [(2, 32, 1), (3, 1, 1), (4, 1, 1), (3, 33, 1), (2, 64, 1), (6, 32, 2), (32, 3, 2), (2, 4096, 2)],
    ids=[
        "direct",
        "tiled",
        "of one thread",
        "odd",
        "halves",
        "vectors of more than a thread computes at once",
        "more than a thread computes at once",
        "long",
    ],
)
def test_what_pieces_share_is_computed_once(pieces, size, exponentials):
    """Threads that walk the operands of a concatenation compute elements of several pieces at once."""

    def function(x):
        return jnp.concatenate([jnp.exp(x) + number for number in range(pieces)], 1)

    assert _count_of(function, (f"f32[64,{size}]",), "stablehlo.exponential") == exponentials * 64 * size


def _of_last_sum(function, spec) -> float:
    """Return how often the kernel of a function computes its last sum."""
    return _count_of(function, (spec,), "stablehlo.add")


def _count_of(function, specs, name) -> float:
    """Return how often the kernel of a function computes the last operation of a name."""
    prepared = plan_program(load_source(function, specs).module)["prepared"]
    operations = [op.operation for op in prepared.body.operations[0].entry_block.operations][:-1]
    counts = _counts(operations, [(_Loop(), ONLY)])
    return next(count[0] for op, count in zip(reversed(operations), counts, strict=True) if op.name == name)


@pytest.mark.parametrize("is_merged", [False, True])
def test_pairs_that_are_read_at_two_places(is_merged):
    """Where a reshape merges the dimension of pairs, lanes that read them have some of each."""

    def function(x):
        pairs = jnp.stack([jnp.exp(x), jnp.sin(x) + 1], 1)
        y = pairs.reshape(-1) if is_merged else pairs
        return y[:-2] * y[2:]

    assert _of_last_sum(function, "f32[64]") == pytest.approx((2 if is_merged else 1) * (126 if is_merged else 124))


@pytest.mark.parametrize(("limits", "inner"), [(7, 1), (32, 1), (5, 3)])
def test_what_all_steps_of_a_thread_s_loop_read_is_computed_once(limits, inner):
    """Before code is generated, it is moved out of the loop."""

    def function(x):
        limit = jnp.arange(limits, dtype=jnp.float32)
        return jnp.sum(jnp.exp(x)[..., None] * inner > limit, -1)

    assert _count_of(function, (f"f32[64,{inner}]",), "stablehlo.exponential") == 64 * inner


@pytest.mark.parametrize(
    ("sums", "dtype", "columns"), [(1, "f32", 4), (1, "bf16", 8), (8, "f32", 4), (8, "bf16", 4), (16, "bf16", 2)]
)
def test_sums_of_columns_share_what_a_thread_s_columns_have_in_common(sums, dtype, columns):
    """A thread has one access of each array, and 32 accumulators for all of its columns."""

    def function(few, matrix):
        wide = matrix.astype(jnp.float32)
        return [jnp.sum(jnp.exp(few[number])[:, None] * wide, 0) for number in range(sums)]

    specs = (f"f32[{sums},64]", f"{dtype}[64,256]")
    assert _count_of(function, specs, "stablehlo.exponential") == 64 * 256 / columns
