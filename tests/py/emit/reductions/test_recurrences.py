"""Loops of a known length that are one kernel: what they become, and which loops do not. Their numbers are those of
the test programs.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py.emit.emitters import emitter_of
from xgpu.emit.families.recurrence import RecurrenceEmitter
from xgpu.errors import InvalidInput
from xgpu.options import Options
from xgpu.tools.programs import recurrences

PROGRAMS = {program.name: program for program in recurrences.programs()}
OF_SEVERAL_KERNELS = {
    *("gradient-of-gates", "several-states", "counters", "gates-of-a-batch", "state-space-of-a-batch"),
    *("rows", "rows-of-two", "rows-of-a-warp", "rows-f64"),
    *recurrences.SHORT,
    *recurrences.MASKED,
}


def emitters(compiled):
    return [kernel.emitter for kernel in compiled.kernels]


def average(x):
    return lax.scan(lambda mean, y: (mean + (y - mean) / 4,) * 2, jnp.zeros_like(x[0]), x)


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - OF_SEVERAL_KERNELS))
def test_a_loop_is_one_kernel(name):
    program = PROGRAMS[name]
    compiled = program.compile()
    assert emitters(compiled) == ["recurrence"]
    assert compiled.main is None


@pytest.mark.parametrize("name", sorted(recurrences.SHORT))
def test_a_loop_whose_rows_a_thread_holds_is_one_kernel(name):
    compiled = PROGRAMS[name].compile()
    assert emitters(compiled).count("recurrence") == 1
    assert compiled.main is None


def rotated(x, rows=lambda x: x):
    def step(i, x):
        a, b = x[:, 0], x[:, 1]
        return jnp.stack([0.8 * a - 0.6 * b, rows(0.6 * a + 0.8 * b)], 1)

    return lax.fori_loop(0, 9, step, x)


@pytest.mark.parametrize(
    ("loop", "spec", "is_one"),
    [
        (rotated, "f32[33,2]", True),
        (rotated, "f32[0,2]", False),
        (lambda x: rotated(x, lambda x: x[::-1]), "f32[33,2]", False),
        (lambda x: rotated(x, lambda x: x / jnp.sum(x)), "f32[33,2]", False),
        # Places among a row's, and among all rows.
        (lambda x: lax.fori_loop(0, 9, lambda i, x: x.at[:, i % 2].add(1) + x[:, ::-1], x), "f32[33,2]", True),
        (lambda x: lax.fori_loop(0, 9, lambda i, x: x.at[i].add(1) + x[:, ::-1], x), "f32[33,2]", False),
        (lambda x: lax.fori_loop(0, 9, lambda i, x: x.at[jnp.arange(33) % 5].add(x[:, ::-1]), x), "f32[33,2]", False),
        (lambda x: lax.fori_loop(0, 9, lambda i, x: x[:, ::-1] + x[3], x), "f32[33,2]", False),
        # Products that one thread after the other would compute for longer than kernels do.
        (lambda x: lax.fori_loop(0, 9, lambda i, x: jnp.tanh(x @ x), x), "f32[4,4]", True),
        (lambda x: lax.fori_loop(0, 9, lambda i, x: jnp.tanh(x @ x), x), "f32[12,12]", False),
        # One row more than a thread holds.
        (lambda x: lax.fori_loop(0, 9, lambda i, x: jnp.cumsum(x, 0), x), "f32[17,33]", False),
    ],
)
def test_rows_that_a_thread_holds(loop, spec, is_one):
    compiled = xgpu.compile(loop, spec)
    assert ("recurrence" in emitters(compiled)) == is_one
    (x,) = compiled.random_inputs(2)
    (result,) = compiled.run(x)
    np.testing.assert_allclose(result, jax.jit(loop)(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["rows", "rows-of-two", "rows-of-a-warp", "rows-f64", "counters"])
def test_the_end_of_a_counter_is_a_constant_beside_it(name):
    program = PROGRAMS[name]
    assert emitters(program.compile()) == ["recurrence", "loop"]


def test_a_gradient_is_two_loops():
    program = PROGRAMS["gradient-of-gates"]
    found = emitters(program.compile())
    assert found.count("recurrence") == 2


def test_a_transposed_stack_of_rows_is_read_where_it_is():
    program = PROGRAMS["gates-of-a-batch"]
    assert emitters(program.compile()) == ["recurrence", "loop"]


def test_stacks_are_read_and_written_once():
    (kernel,) = xgpu.jit(average).explain(jnp.zeros((64, 100))).kernels
    assert kernel.bytes == 4 * (2 * 64 * 100 + 100)


def test_iterations_come_together_where_much_is_read():
    compiled = xgpu.compile(average, "f32[100,64]")
    text = compiled.kernels[0].text("optimized")
    # 96 iterations in turns of 32, and 4 more.
    assert text.count("scf.for") == 2
    assert text.count("tensor.extract") == 33


def test_a_sum_that_is_the_same_each_time_is_computed_before():
    def function(x, w):
        return lax.fori_loop(0, 9, lambda i, x: x + w @ jnp.ones(33), x)

    assert emitters(xgpu.compile(function, "f32[33]", "f32[33,33]")) == ["reduce_row", "recurrence"]


@pytest.mark.parametrize(
    ("loop", "specs"),
    [
        (lambda x: lax.fori_loop(0, 9, lambda i, x: x + jnp.roll(x, 1), x), ["f32[33]"]),
        (lambda x: lax.fori_loop(0, 9, lambda i, x: x[::-1] + 1, x), ["f32[33]"]),
        (lambda x: lax.fori_loop(0, 9, lambda i, x: x / jnp.sum(x), x), ["f32[33]"]),
        (lambda x: lax.fori_loop(0, 9, lambda i, x: x + x[3], x), ["f32[33]"]),
        # Rows whose lanes are no power of two, or more than a warp, or not neighbours.
        (lambda x: lax.fori_loop(0, 9, lambda i, x: x / jnp.sum(x, 1, keepdims=True), x), ["f32[9,12]"]),
        (lambda x: lax.fori_loop(0, 9, lambda i, x: x / jnp.sum(x, 1, keepdims=True), x), ["f32[9,64]"]),
        (lambda x: lax.fori_loop(0, 9, lambda i, x: x / jnp.sum(x, 0, keepdims=True), x), ["f32[16,9]"]),
        # A matrix product, and a row's result that another row needs.
        (lambda x, w: lax.fori_loop(0, 9, lambda i, x: jnp.tanh(w @ x), x), ["f32[16]", "f32[16,16]"]),
        (lambda x: lax.fori_loop(0, 9, lambda i, x: x + jnp.max(x, 1)[::-1, None], x), ["f32[9,16]"]),
        (lambda x: lax.fori_loop(0, 9, lambda i, x: jnp.sort(x) + x, x), ["f32[33]"]),
        (lambda x, n: lax.fori_loop(0, n, lambda i, x: jnp.sin(x), x), ["f32[33]", "s32"]),
        (lambda x: lax.while_loop(lambda x: x[0] < 9, lambda x: x * 2 + 1, x), ["f32[33]"]),
        # Only the first element that is written is the last one.
        (
            lambda x: lax.fori_loop(0, 33, lambda i, x: lax.dynamic_update_slice(x, jnp.ones(1) * i, (i // 2,)), x),
            ["f32[33]"],
        ),
        (lambda x: lax.fori_loop(0, 9, lambda i, x: x ^ (x >> 1), x), ["s4[33]"]),
        # States of different sizes.
        (lambda x, y: lax.fori_loop(0, 9, lambda i, s: (s[0] + s[1], s[1] * 2), (x, y)), ["f32[40,33]", "f32[33]"]),
    ],
)
def test_other_loops_stay_loops(loop, specs):
    compiled = xgpu.compile(loop, *specs)
    assert "recurrence" not in emitters(compiled)
    inputs = [np.int32(9) if spec == "s32" else x for spec, x in zip(specs, compiled.random_inputs(2), strict=True)]
    results = zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True)
    for result, expected in results if compiled.main is not None else ():
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("rows", "is_one"), [(32, True), (4096, False)])
def test_what_a_row_shares_is_computed_once_if_it_is_much(rows, is_one):
    def function(x, y):
        def step(i, x):
            for _ in range(6):
                i = jnp.tan(y + i)
            return x * i[:, None]

        return lax.fori_loop(0, 9, step, x)

    found = xgpu.jit(function).explain(jnp.zeros((rows, 2048)), jnp.zeros(rows))
    assert ([kernel.emitter for kernel in found.kernels] == ["recurrence"]) == is_one


def test_a_loop_that_never_ends_for_the_counter_wraps_around_is_left():
    loop = xgpu.jit(lambda x: lax.while_loop(lambda s: s[0] <= 255, lambda s: (s[0] + 1, s[1] + 1), (jnp.uint8(0), x)))
    assert [each.operation for each in loop.explain(jnp.zeros(33)).fallbacks] == ["stablehlo.while"]


@pytest.mark.parametrize(
    ("start", "more", "step", "trips"),
    [
        (0, lambda i: i < 7, 1, 7),
        (0, lambda i: i <= 7, 3, 3),
        (-2, lambda i: i != 8, 5, 2),
        (9, lambda i: i > 0, -4, 3),
        (9, lambda i: i >= 1, -4, 3),
        (2**31 - 3, lambda i: lax.gt(jnp.int32(2**31 - 1), i), 1, 2),
    ],
)
def test_lengths(start, more, step, trips):
    def function(x):
        return lax.while_loop(lambda s: more(s[0]), lambda s: (s[0] + step, s[1] + 1), (jnp.int32(start), x))

    compiled = xgpu.compile(function, "s32[5]")
    assert "recurrence" in emitters(compiled)
    end, result = compiled.run(np.zeros(5, np.int32))
    assert end == start + trips * step
    np.testing.assert_array_equal(result, trips)


def test_a_loop_in_a_loop():
    def function(x):
        def step(total, row):
            inner = lax.fori_loop(0, 5, lambda i, y: y * total[::-1] + i, row)
            return total + inner[::-1], inner

        return lax.scan(step, jnp.zeros_like(x[0]), x)

    compiled = xgpu.compile(function, "f32[4,33]")
    assert emitters(compiled).count("recurrence") == 1
    (x,) = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(x), compiled.reference(x), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4)


def test_transformations():
    def loss(x, h):
        return jnp.sum(PROGRAMS["gates"].function(x, h)[1] ** 2)

    generator = np.random.default_rng(0)
    x, h = (generator.standard_normal(shape).astype(np.float32) for shape in ((2, 9, 17), (2, 17)))
    batched = jax.vmap(jax.value_and_grad(loss, (0, 1)))
    got = jax.tree.leaves(xgpu.jit(batched)(x, h))
    for result, expected in zip(got, jax.tree.leaves(jax.jit(batched)(x, h)), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(), (1,), (31,), (33,), (1023, 1025), (7, 1, 13), (2, 3, 1, 2, 3, 1, 2, 3)], ids=str)
def test_every_element_is_written_once(shape):
    stacked = (5, *shape)
    emitter = emitter_of(xgpu.compile(lambda x: average(x[::-1]), f"f32[{','.join(map(str, stacked))}]"))
    assert emitter.thread_to_output(0).is_bijection(shape) is True
    assert emitter.thread_to_output(1).is_bijection(stacked) is True


@pytest.mark.parametrize(("rows", "lanes"), [((), 2), ((1,), 16), ((31,), 32), ((3, 11), 4), ((1021,), 16)], ids=str)
def test_every_row_is_written_once(rows, lanes):
    def function(x):
        def step(h, y):
            h = h / 2 + y
            total = jnp.sum(h, -1)
            return h, (total, h * total[..., None])

        return lax.scan(step, jnp.zeros_like(x[0]), x)

    emitter = emitter_of(xgpu.compile(function, f"f32[{','.join(map(str, (3, *rows, lanes)))}]"))
    assert isinstance(emitter, RecurrenceEmitter)
    for number, shape in enumerate([(*rows, lanes), (3, *rows), (3, *rows, lanes)]):
        assert emitter.thread_to_output(number).is_bijection(shape) is True


@pytest.mark.parametrize("level", ["fusions", "emitted", "optimized", "lowered"])
def test_a_loop_goes_on_from_every_level(level):
    direct = xgpu.compile(average, "f32[9,33]")
    (kernel,) = xgpu.compile(direct.ir(level)).kernels
    assert kernel.llvmir == direct.kernels[0].llvmir


def test_states_of_fewer_elements_are_written_once():
    emitter = emitter_of(xgpu.compile(PROGRAMS["euler"].function, "f32[33,7]"))
    for number, shape in enumerate([(), (33,), (33, 7)]):
        assert emitter.thread_to_output(number).is_bijection(shape) is True


def test_a_loop_of_one_operation_after_the_other():
    """Each operation rounds to its own type, in the order of the program."""

    def unrolled(x):
        time, speed = jnp.float32(1), x[:, 0] * 2
        for _ in range(9):
            speed = speed * 0.9 + time
            new = x + 0.015625 * jnp.sin(time + x) * speed[:, None]
            time, speed, x = lax.optimization_barrier((time + 0.125, speed, new))
        return time, speed, x

    compiled = xgpu.compile(PROGRAMS["euler"].function, "f32[33,7]")
    inputs = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(*inputs), xgpu.compile(unrolled, "f32[33,7]").run(*inputs), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("threads", [1, 20, 100, 1024])
@pytest.mark.parametrize("name", ["rows", "euler"])
def test_blocks_of_any_size(name, threads):
    function, specs = PROGRAMS[name].function, PROGRAMS[name].specs
    compiled = xgpu.compile(function, *specs, options=Options(threads_per_block=threads))
    inputs = compiled.random_inputs(1)
    expected = xgpu.compile(function, *specs).run(*inputs)
    for result, other in zip(compiled.run(*inputs, sanitize=True), expected, strict=True):
        np.testing.assert_array_equal(result, other)


def test_iterations_without_states_are_threads():
    emitter = emitter_of(xgpu.compile(lambda x: lax.map(lambda y: jnp.sin(y) * 2, x), "f32[13,33]"))
    assert emitter.launch_dimensions().grid[0] * emitter.launch_dimensions().block[0] >= 13 * 33
    assert emitter.thread_to_output(0).is_bijection((13, 33)) is True


def test_a_text_whose_loop_is_no_recurrence_is_refused():
    text = xgpu.compile(average, "f32[9,33]").ir("fusions")
    with pytest.raises(InvalidInput, match="expected a loop of known length"):
        xgpu.compile(text.replace("compare LT", "compare EQ"))
    program = xgpu.compile(lambda x: lax.fori_loop(0, 9, lambda i, x: jnp.sin(x), x), "f32[33]")
    reverse = "stablehlo.reverse %iterArg_1, dims = [0] : tensor<33xf32>"
    text = program.ir("fusions").replace("stablehlo.sine %iterArg_1 : tensor<33xf32>", reverse)
    with pytest.raises(InvalidInput, match="computes each element of its state from the same element"):
        xgpu.compile(text)
