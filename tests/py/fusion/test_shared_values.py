"""Values that several kernels need: stored once where that is cheaper, computed again where it is not."""

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu


def _updates(steps: int):
    """A chain of which every value is added to an array in place: each of the updates waits for the one before it."""

    def function(x, y, i):
        for _ in range(steps):
            y = jnp.sin(y) + 1
            x = x.at[i].add(y, unique_indices=True)
        return x

    return function


def _sines(steps: int, elements: int) -> int:
    arguments = f"f32[{elements}]", f"f32[{elements}]", f"s32[{elements}]"
    return xgpu.compile(_updates(steps), *arguments).ir("fusions").count("stablehlo.sine")


@pytest.mark.parametrize("steps", [4, 16])
def test_what_takes_long_is_computed_once(steps):
    assert _sines(steps, 1 << 22) <= steps + 2


def test_what_is_done_sooner_than_a_kernel_starts_is_computed_again():
    assert _sines(4, 1000) == 4 + 3 + 2 + 1


def test_programs_grow_with_their_operations_alone():
    """However cheap the values of a long chain are, no kernel computes more than a part of it."""
    assert _sines(64, 1000) <= 64 * 10
    assert _sines(128, 1000) <= 128 * 10


def _clipped(arrays: int):
    """Divide arrays, each of a shape of its own, by the root of the sum of all squares."""

    def function(*xs):
        norm = jnp.sqrt(sum(jnp.sum(x * x) for x in xs))
        return [x / norm for x in xs]

    return xgpu.compile(function, *(f"f32[{100 + i}]" for i in range(arrays)))


def test_a_number_of_many_others_is_computed_once():
    compiled = _clipped(40)
    assert compiled.ir("fusions").count("stablehlo.sqrt") == 1
    inputs = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_a_number_of_few_others_takes_no_kernel():
    assert [kernel.emitter for kernel in _clipped(20).kernels] == ["parts", "parts"]


def test_stored_values_are_right():
    compiled = xgpu.compile(_updates(40), "f32[64]", "f32[50]", "s32[50]")
    inputs = compiled.random_inputs(1)
    # Sums of 40 numbers of up to 2, in the order of the updates in both.
    np.testing.assert_allclose(compiled.run(*inputs)[0], compiled.reference(*inputs)[0], rtol=1e-6, atol=1e-5)


def test_a_cheap_value_of_two_reductions_is_computed_in_both():
    """The exponent of a softmax: reading it would take as long as reading what it is computed from."""
    text = xgpu.compile(lambda x: jax.nn.softmax(x, 0), "f32[4096,4096]").ir("fusions")
    assert text.count("stablehlo.exponential") == 2


def test_a_long_function_is_stored_by_the_kernel_that_reduces_it():
    def function(x):
        y = jax.lax.erf_inv(x)
        return (y - y.max(0)) * 2

    compiled = xgpu.compile(function, "f32[4096,16384]")
    assert [launch.kernel.emitter for launch in compiled.launches] == ["reduce_column", "loop"]
    assert len(compiled.launches[0].outputs) == 2
    assert compiled.ir("fusions").count("chlo.erf_inv") == 1


def _layer(x, scale):
    return jnp.tanh(x * scale + 1).sum(0)[:, None] + scale


@pytest.mark.parametrize("left", [False, True], ids=["whole", "left to XLA"])
def test_equal_layers_are_the_same_kernels(left):
    def function(x, scales):
        for scale in scales:
            x = _layer(x, scale)
            x = jnp.sort(x, 0) if left else x
        return x

    def compiled(layers):
        return xgpu.compile(function, "f32[40,40]", [jax.ShapeDtypeStruct((40,), np.float32)] * layers)

    few, many = compiled(3), compiled(6)
    assert len(few.kernels) == len(many.kernels)
    assert len(few.launches) >= 3
    assert len(many.launches) >= 6
    assert len({kernel.name for kernel in many.kernels}) == len(many.kernels)
    inputs = many.random_inputs(2)
    # Sums of 40 f32 numbers in another order, six times one after the other.
    np.testing.assert_allclose(many.run(*inputs)[0], many.reference(*inputs)[0], rtol=1e-5, atol=1e-5)


def test_kernels_that_differ_in_a_constant_alone_are_not_the_same():
    compiled = xgpu.compile(lambda x: jnp.sort(x + 1) * 2 + jnp.sort(x + 3) * 2, "f32[40]")
    inputs = compiled.random_inputs(3)
    assert len(compiled.kernels) == len(compiled.launches)
    np.testing.assert_array_equal(compiled.run(*inputs)[0], compiled.reference(*inputs)[0])


def test_a_large_constant_of_one_number_is_text_like_any_other(tmp_path):
    layer = """
        %d{n} = stablehlo.divide %c, %y{n} : tensor<100x100xf32>
        %y{m} = stablehlo.cholesky %d{n}, lower = true : tensor<100x100xf32>"""
    path = tmp_path / "layers.mlir"
    path.write_text(f"""
    module {{
      func.func @main(%y0: tensor<100x100xf32>) -> tensor<100x100xf32> {{
        %c = stablehlo.constant dense<3.0> : tensor<100x100xf32>
        {layer.format(n=0, m=1)}
        {layer.format(n=1, m=2)}
        return %y2 : tensor<100x100xf32>
      }}
    }}""")
    compiled = xgpu.compile(path)
    assert (len(compiled.kernels), len(compiled.launches)) == (1, 2)


def test_the_report_counts_launches():
    def function(x, w):
        for _ in range(4):
            x = jax.nn.silu(x) @ w
        return x

    report = xgpu.jit(function).explain(np.ones((512, 512), np.float32), np.ones((512, 512), np.float32))
    assert [kernel.launches for kernel in report.kernels] == [4]
    assert "4 times" in str(report)


def _scaled(axes: tuple[int, ...], images: str, function=jax.lax.digamma):
    """Images of which a later kernel multiplies each element by a function of one number for each group of them."""

    def scale(x, s, others):
        return (x - others.max(0)) * jnp.expand_dims(function(s), axes)

    # Of other images, as a column program would be one kernel.
    return xgpu.compile(scale, images, "f32[640,256]", images)


def _emitters(compiled):
    return [launch.kernel.emitter for launch in compiled.launches]


def test_a_value_before_a_broadcast_is_stored():
    """A kernel more, but 163840 digammas in place of 784 times as many."""
    compiled = _scaled((1, 2), "f32[640,28,28,256]")
    maximum, scales, products = compiled.launches
    assert _emitters(compiled) == ["reduce_column", "loop", "loop"]
    assert compiled.ir("fusions").count("chlo.digamma") == 1
    assert scales.inputs == (1,)
    assert products.inputs == (0, *maximum.outputs, *scales.outputs)


@pytest.mark.parametrize(
    ("axes", "images", "function"),
    [
        # Few elements; what is soon done; what is the same for neighbours, for which a thread computes it once.
        ((1, 2), "f32[640,2,2,256]", jax.lax.digamma),
        ((1, 2), "f32[640,28,28,256]", jnp.square),
        ((2, 3), "f32[640,256,8,8]", jax.lax.digamma),
    ],
    ids=["few", "cheap", "for neighbours"],
)
def test_a_value_before_a_broadcast_is_computed_again(axes, images, function):
    assert _emitters(_scaled(axes, images, function)) == ["reduce_column", "loop"]


def test_the_stored_values_before_a_broadcast_are_right():
    def function(x, s):
        return (x - x.max(0)) * jax.lax.lgamma(jnp.exp(s) + 2)

    compiled = xgpu.compile(function, "f32[600000,8]", "f32[8]")
    assert _emitters(compiled).count("loop") == 2
    inputs = compiled.random_inputs(1)
    np.testing.assert_allclose(compiled.run(*inputs)[0], compiled.reference(*inputs)[0], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("width", [64, 4096])
def test_what_follows_a_reduction_is_stored_by_its_kernel(width):
    """An epilogue that is read at many indices waits for its reduction, at whatever depth of the program that is."""

    def function(x, y):
        most = (x - x.max(-1, keepdims=True)).max(-1)
        scale = jax.lax.digamma(jnp.where(jnp.isfinite(most), most, 0) + 3)
        for shift in range(1, 6):
            y = y + jnp.roll(scale, shift)[:, None] * jnp.exp(-scale[::-1])[:, None]
        return y

    compiled = xgpu.compile(function, "f32[64,300]", f"f32[64,{width}]")
    assert {"reduce_row", "rows"} & {launch.kernel.emitter for launch in compiled.launches}
    inputs = compiled.random_inputs(1)
    # Five terms of up to ten, each with the accuracy of digamma and exp.
    np.testing.assert_allclose(compiled.run(*inputs)[0], compiled.reference(*inputs)[0], rtol=2e-5, atol=2e-5)


def _pairs(x):
    """The gradient of a sum over pairs of points, by either point: two reductions of the same long function."""

    def energy(x):
        distances = jnp.sum((x[:, None] - x) ** 2, -1) + 1
        return jnp.sum(jnp.exp(-distances) / distances**3)

    return jax.grad(energy)(x)


def _blurred(size):
    """A sum over windows of an image that is reflected at its edges."""

    def function(x):
        padded = jnp.pad(x, size // 2, mode="reflect")
        windows = [padded[i : i + x.shape[0], j : j + x.shape[1]] for i, j in itertools.product(range(size), repeat=2)]
        return sum(jnp.tanh(window - x) for window in windows)

    return function


def _leapfrog(e, h):
    def curl(x):
        return sum(sign * jnp.roll(x, sign * step, axis) for axis, sign in ((0, 1), (1, -1)) for step in (1, -1))

    h = h - 0.5 * curl(e)
    return e + 0.5 * curl(h), h


@pytest.mark.parametrize(
    ("function", "shapes", "emitters"),
    [
        # Each of the three coordinates would compute a pair again, in both reductions.
        (_pairs, ("f32[2048,3]",), ["loop", "reduce_column", "reduce_column", "loop"]),
        # Each read finds out on which side of four edges it is: that takes long 81 times, not 9 times.
        (_blurred(9), ("f32[1024,1024]",), ["loop", "loop"]),
        (_blurred(3), ("f32[1024,1024]",), ["loop"]),
        # A result is stored anyway; others read it if that saves more than a launch takes.
        (_leapfrog, ("f32[2048,2048]",) * 2, ["loop", "loop"]),
        (_leapfrog, ("f32[100,100]",) * 2, ["loop"]),
    ],
    ids=["pairs", "many-windows", "few-windows", "large-result", "small-result"],
)
def test_what_is_computed_many_times_is_stored_before(function, shapes, emitters):
    compiled = xgpu.compile(function, *shapes)
    assert [kernel.emitter for kernel in compiled.kernels] == emitters
    inputs = compiled.random_inputs(1)
    for result, expected in zip(compiled.run(*inputs), compiled.reference(*inputs), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("steps", [5, 16])
def test_the_gradient_of_a_chain_of_steps_takes_a_kernel_for_each(steps):
    """Each stores what the next one moves, and what a later one reads as it is; no kernel only moves or computes."""

    def function(x):
        for _ in range(steps):
            padded = jnp.pad(x, 1, mode="reflect")
            x = x + jnp.tanh(padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2])
        return jnp.sum(x**2)

    assert _emitters(xgpu.compile(jax.grad(function), "f32[1024,1024]")) == ["loop"] * (2 * steps)


def _stored(function, *specs):
    """The values that kernels store, as text."""
    program = xgpu.compile(function, *specs)
    return [str(program.values[name].shape) for launch in program.launches for name in launch.outputs]


def test_what_kernels_read_anyway_costs_nothing_to_recompute_from():
    """The mask of a logarithm of a sigmoid is computed from logits that both of its readers load."""

    def loss(a, b):
        return -jax.nn.log_sigmoid((a @ b.T) * 3 + 1).sum()

    large = _stored(jax.value_and_grad(loss, (0, 1)), "f32[4096,256]", "f32[4096,256]")
    assert large.count("(4096, 4096)") == 1


@pytest.mark.parametrize("reads_rows", [False, True])
def test_what_is_read_of_one_row_is_not_read_anyway(reads_rows):
    """Arrays of which a kernel reads a row are read whole to recompute what is computed from all of them."""

    def function(a, b, c, d):
        value = a + b * c - d
        result = jnp.exp(value - value.max(0))
        return (((result + a[:1]) * b[:1]) + c[:1]) * d[:1] if reads_rows else result

    assert _stored(function, *["f32[4096,4096]"] * 4).count("(4096, 4096)") == 2


def test_a_reduction_does_not_read_transposed_what_another_kernel_moves_by_tiles():
    """The gradient of similarities of rows and of columns: both parts end in one array, and in a sum over it."""

    def loss(a, b, scale):
        s = jnp.exp(scale) * (a @ b.T)
        return -(jax.nn.log_softmax(s) + jax.nn.log_softmax(s.T)).trace()

    program = xgpu.compile(jax.value_and_grad(loss, (0, 1, 2)), "f32[4096,256]", "f32[4096,256]", "f32[]")
    fusions = program.ir("fusions").split("func.func private @")[1:]
    # Columns are summed of transposes of transposes, which are read as they are.
    rows = [each for each in fusions if re.search('emitter = "(reduce_row|rows)"', each)]
    assert len(rows) >= 2
    assert not any(re.search("stablehlo.transpose .*4096x4096", each) for each in rows)


def test_what_costs_no_instructions_more_to_store_is_stored():
    """Few elements of a recursion over even and odd elements, which two kernels read, and are computed of many."""

    def joined(first, second):
        return first[0] * second[0], first[1] * second[0] + second[1]

    def loss(x):
        return jnp.sum(jnp.sin(jax.lax.associative_scan(joined, (jax.nn.sigmoid(x), x))[1]))

    elements = (1 << 22) - 3
    assert f"({elements},)" in _stored(jax.grad(loss), f"f32[{elements}]")


GATHERED = {
    "elements": (lambda x, i: jax.nn.softmax(x[i]), ("f32[4194304]", "s32[4194304]"), 1),
    "short rows": (lambda x, i: jax.nn.softmax(x[i], 0), ("f32[2000000,2]", "s32[4000000]"), 1),
    "few": (lambda x, i: jax.nn.softmax(x[i]), ("f32[100000]", "s32[10000]"), 3),
    "long rows": (lambda x, i: jax.nn.softmax(x[i], 0), ("f32[50000,512]", "s32[8192]"), 3),
}


@pytest.mark.parametrize("name", GATHERED)
def test_what_is_gathered_from_sectors_all_over_is_stored_for_all_readers(name):
    """Each element of its own sector costs eight times its bytes: all kernels wait for the one that gathers them."""
    function, shapes, gathering = GATHERED[name]
    program = xgpu.compile(function, *shapes, target="sm_90a")
    fusions = program.ir("fusions").split("func.func private @")[1:]
    assert sum('"stablehlo.gather"' in each for each in fusions) == gathering


@pytest.mark.parametrize("name", GATHERED)
def test_what_is_gathered_is_right(name):
    function, shapes, _ = GATHERED[name]
    size = 100_000 if name == "elements" else 50
    program = xgpu.compile(function, *(re.sub(r"\d{4,}", str(size), each) for each in shapes))
    inputs = program.random_inputs()
    found, expected = program.run(*inputs), program.reference(*inputs)
    assert all(np.allclose(*each, rtol=1e-4, atol=1e-5, equal_nan=True) for each in zip(found, expected, strict=True))


@pytest.mark.parametrize(("bins", "is_stored"), [(9, True), (8, False)])
def test_what_few_neighbours_need_is_computed_once_if_no_thread_has_several(bins, is_stored):
    """A thread has a vector of eight bins, or of four of them, but one of nine."""

    def function(x, y):
        angle = jnp.arctan2(x, y) * 3
        spread = jnp.abs(angle[..., None] - jnp.arange(bins, dtype=jnp.float32))
        return jnp.sum((jnp.maximum(0.0, 1 - spread) * x[..., None]).reshape(16, 32, 8, 32, 8, bins), (2, 4))

    specs = ["f32[16,256,256]"] * 2
    kernels = xgpu.compile(function, *specs).kernels
    assert ("loop" in [kernel.emitter for kernel in kernels]) == is_stored
