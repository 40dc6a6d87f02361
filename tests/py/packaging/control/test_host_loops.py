"""Packages of programs with loops and branches: what their host libraries compute is what JAX does."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py.packaging.packages import STRICT, Library, aligned, do_run, exported, placed, tool
from xgpu.errors import Unsupported
from xgpu.packaging.model import ChoiceStep, CopyStep, LaunchStep, LoopStep, Package, Step, SwapStep, all_steps


def newton(a: jax.Array, x: jax.Array) -> Any:
    """A loop that values end, and whose condition is of two of them."""

    def step(state: Any) -> Any:
        x, _, n = state
        y = 0.5 * (x + a / x)
        return y, jnp.max(jnp.abs(y - x)), n + 1

    return lax.while_loop(lambda state: (state[1] > 1e-5) & (state[2] < 50), step, (x, jnp.float32(1), 0))


def rnn(w: jax.Array, u: jax.Array, h: jax.Array, xs: jax.Array) -> Any:
    """Products of a state, and results that are stacked."""

    def step(h: jax.Array, x: jax.Array) -> Any:
        h = jnp.tanh(h @ w + x @ u)
        return h, h.sum(axis=1)

    return lax.scan(step, h, xs)


def jacobi(b: jax.Array, x: jax.Array) -> jax.Array:
    """A state that no kernel can compute in place, an odd number of times."""

    def step(_: Any, x: jax.Array) -> jax.Array:
        p = jnp.pad(x, 1)
        return 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]) + b

    return lax.fori_loop(0, 9, step, x)


def nested(a: jax.Array, xs: jax.Array) -> Any:
    """A loop that values end in each step of one that is counted."""

    def step(c: jax.Array, x: jax.Array) -> Any:
        y = lax.while_loop(lambda v: jnp.sum(v) < 100.0, lambda v: v * 2.0 + x, c)
        return jnp.tanh(y @ a), jnp.sum(y)

    return lax.scan(step, jnp.ones(xs.shape[1:], xs.dtype), xs)


def cond_in_scan(w: jax.Array, xs: jax.Array) -> Any:
    """A branch in each step; one of them updates the state in place."""

    def step(c: jax.Array, x: jax.Array) -> Any:
        c = lax.cond(jnp.sum(x) > 0, lambda c: jnp.tanh(c @ w), lambda c: c - x, c)
        return c, c.sum(axis=0)

    return lax.scan(step, jnp.ones(xs.shape[1:], xs.dtype), xs)


def powers(n: jax.Array, x: jax.Array) -> Any:
    """A loop whose number of iterations is an argument: none, for zero."""
    return lax.while_loop(lambda state: state[0] < n, lambda state: (state[0] + 1, jnp.cumsum(state[1], 0)), (0, x))


def turned(n: jax.Array, a: jax.Array, b: jax.Array) -> Any:
    """States that change places."""

    def step(state: Any) -> Any:
        n, a, b = state
        return n - 1, b, jnp.cumsum(a)

    return lax.while_loop(lambda state: state[0] > 0, step, (n, a, b))[1:]


def turned_three_times(a: jax.Array, b: jax.Array) -> Any:
    """The same, counted; and a state that is given from outside."""

    def step(_: Any, state: Any) -> Any:
        a, b, c = state
        return b, jnp.cumsum(a), a[::-1] + c

    return lax.fori_loop(0, 3, step, (a, b, a))


def handed_on(a: jax.Array, b: jax.Array) -> Any:
    """A state that becomes what is around the loop, and one value that is two states."""

    def step(state: Any) -> Any:
        n, x, y, z = state
        s = jnp.cumsum(x + y)
        return n + s[0].astype(n.dtype), b, s, s + z[::-1]

    return lax.while_loop(lambda state: state[0] < 9, step, (jnp.int32(0), a, b, a))[1:]


def switched(i: jax.Array, x: jax.Array, w: jax.Array) -> Any:
    """Three branches: one makes a value, one updates an argument, one returns it."""
    return lax.switch(i, [lambda x: x @ w, lambda x: x.at[0].set(1.0), lambda x: x], x)


def conditions_with_loops(x: jax.Array) -> jax.Array:
    """A condition that is computed by a loop of its own."""

    def goes_on(x: jax.Array) -> jax.Array:
        return lax.while_loop(lambda s: s[0].sum() > 1, lambda s: (s[0] / 2, s[1] + 1), (x, 0))[1] < 20

    return lax.while_loop(goes_on, lambda x: jnp.cumsum(x) * 1.5 + 1, x)


def stepped(x: jax.Array) -> Any:
    """A loop of which the end of the counter is a result, and others of which nobody needs anything."""
    n, y, _ = lax.while_loop(lambda s: s[0] < 20, lambda s: (s[0] + 3, jnp.cumsum(s[1]), s[2] + 1), (2, x, x))
    unused = lax.fori_loop(0, 5, lambda _, y: jnp.cumsum(y), x)
    del unused
    return n, y


def packed(x: jax.Array, n: jax.Array) -> Any:
    """Elements that share bytes, and ones without a whole word."""

    def step(state: Any) -> Any:
        n, x, p = state
        return n - 1, x[::-1] + x, ~p

    return lax.while_loop(lambda s: s[0] > 0, step, (n, x, x > 0))[1:]


def empty_states(x: jax.Array) -> Any:
    """A state without elements."""
    return lax.fori_loop(0, 3, lambda _, s: (jnp.cumsum(s[0]), s[1] * 2), (x, x[:0]))


def empty_branches(i: jax.Array, x: jax.Array) -> Any:
    """A branch of which nothing has elements but a loop inside it."""

    def until(e: jax.Array) -> jax.Array:
        start = jnp.cumsum(x), e
        return lax.while_loop(lambda s: jnp.sum(s[0]) < 100, lambda s: (jnp.cumsum(s[0] + 1), s[1]), start)[1]

    return lax.cond(i > 0, until, lambda e: e * 2, x[:0]), x


def solved(a: jax.Array, x: jax.Array) -> jax.Array:
    """A while loop over a batch: it goes on while any of its rows does."""

    def one(a: jax.Array, x: jax.Array) -> jax.Array:
        return lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-3, lambda x: 0.5 * (x + a / x), x)

    return jax.vmap(one)(a, x)


def counted_by_values(n: jax.Array, m: jax.Array, x: jax.Array) -> Any:
    """Loops of which it is known how often they run when they begin: up, down, and one inside the other."""
    up = lax.fori_loop(m, n, lambda i, x: jnp.cumsum(x) * 0.1 + i, x)
    down = lax.while_loop(lambda s: n < s[0], lambda s: (s[0] - 1, jnp.cumsum(s[1]) * 0.1), (m, x))
    inside = lax.fori_loop(0, 3, lambda i, x: lax.fori_loop(i, m, lambda _, y: jnp.cumsum(y) * 0.1 + 1, x), x)
    return up, *down, inside


def small_counters(n: jax.Array, x: jax.Array) -> jax.Array:
    """A counter whose whole range it goes through, without a sign."""
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + jnp.uint8(1), s[1][::-1] * 0.9), (jnp.uint8(0), x))[1]


def no_simple_bounds(n: jax.Array, x: jax.Array) -> Any:
    """What looks like a counted loop, and is none: steps of two, and a bound that changes."""
    two = lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 2, jnp.cumsum(s[1]) * 0.1), (0, x))
    near = lax.while_loop(lambda s: s[0] < s[1], lambda s: (s[0] + 1, s[1] - 1, jnp.cumsum(s[2]) * 0.1), (0, n, x))
    return *two, *near


F = np.float32
R = np.random.default_rng(0)
PROGRAMS: dict[str, tuple[Callable[..., Any], list[list[Any]]]] = {
    "newton": (newton, [[R.random((64, 64), F) + 1, R.random((64, 64), F) + 1]]),
    "rnn": (rnn, [[R.standard_normal(s, F) / 8 for s in ((64, 64), (32, 64), (16, 64), (7, 16, 32))]]),
    "jacobi": (jacobi, [[R.random((64, 64), F), R.random((64, 64), F)]]),
    "nested": (nested, [[R.standard_normal((32, 32), F), R.random((5, 32, 32), F)]]),
    "cond_in_scan": (cond_in_scan, [[R.standard_normal((32, 32), F) / 8, R.standard_normal((6, 32, 32), F)]]),
    "powers": (powers, [[np.int32(n), R.random((32, 64), F)] for n in (0, 1, 3, -1)]),
    "turned": (turned, [[np.int32(n), R.random(300, F), R.random(300, F)] for n in (0, 1, 2, 5)]),
    "turned_three_times": (turned_three_times, [[R.random(300, F), R.random(300, F)]]),
    "handed_on": (handed_on, [[R.random(300, F) + 1, R.random(300, F)]]),
    "switched": (switched, [[np.int32(i), R.random((32, 32), F), R.random((32, 32), F)] for i in (-1, 0, 1, 2, 7)]),
    "conditions_with_loops": (conditions_with_loops, [[R.random(100, F)]]),
    "stepped": (stepped, [[R.random(100, F) / 100]]),
    "packed": (packed, [[np.arange(-3, 4).astype(jnp.int4), np.int32(n)] for n in (0, 3)]),
    "empty_states": (empty_states, [[R.random(100, F)]]),
    "empty_branches": (empty_branches, [[np.int32(i), R.random(100, F)] for i in (0, 1)]),
    "counted_by_values": (
        counted_by_values,
        [[np.int32(n), np.int32(m), R.random(100, F)] for n, m in ((0, 0), (5, 2), (2, 5), (-3, 1), (-7, -9))],
    ),
    "small_counters": (small_counters, [[np.uint8(n), R.random(100, F)] for n in (0, 1, 200, 255)]),
    "no_simple_bounds": (no_simple_bounds, [[np.int32(n), R.random(100, F)] for n in (-1, 0, 1, 6, 7)]),
    "solved": (solved, [[R.random(33, F) + 1, R.random(33, F) + 1]]),
}


def specs_of(arrays: list[Any]) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arrays]


def steps_of(package: Package) -> list[Step]:
    return list(all_steps(package.signatures[0].variants[0].steps))


@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name: str, tmp_path: Path) -> None:
    function, given = PROGRAMS[name]
    package = exported(function, *specs_of(given[0]), to=tmp_path, name=name)
    library = Library(tmp_path, package)
    for arrays in given:
        for found, expected in zip(library.run(arrays), jax.tree.leaves(function(*arrays)), strict=True):
            wide = np.asarray(expected).astype(np.float64)
            np.testing.assert_allclose(found.astype(np.float64), wide, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ["jacobi", "powers", "turned"])
def test_a_state_in_the_memory_of_its_argument(name: str, tmp_path: Path) -> None:
    function, given = PROGRAMS[name]
    package = exported(function, *specs_of(given[0]), to=tmp_path, name=name)
    signature = package.signatures[0]
    (result, argument), *_ = signature.in_place
    library = Library(tmp_path, package)
    for arrays in given:
        inputs = [placed(array, spec) for array, spec in zip(arrays, signature.arguments, strict=True)]
        outputs = [aligned(spec.bytes) for spec in signature.results]
        outputs[result] = inputs[argument]
        assert library.call(0, [*inputs, *outputs], aligned(signature.scratch_bytes, 0x5A)) == 0, library.message
        expected = np.asarray(jax.tree.leaves(function(*arrays))[result])
        np.testing.assert_allclose(outputs[result].view(F).reshape(expected.shape), expected, rtol=2e-5)


def test_no_iteration_copies_a_state(tmp_path: Path) -> None:
    for name in ("newton", "rnn", "jacobi", "nested", "cond_in_scan", "turned_three_times"):
        function, given = PROGRAMS[name]
        package = exported(function, *specs_of(given[0]), to=tmp_path / name, name=name, host=False)
        bodies = [step.body for step in steps_of(package) if isinstance(step, LoopStep)]
        assert bodies and not any(isinstance(step, CopyStep) for body in bodies for step in all_steps(body)), name


def test_what_is_known_is_not_asked(tmp_path: Path) -> None:
    def package_of(name: str) -> Package:
        function, given = PROGRAMS[name]
        return exported(function, *specs_of(given[0]), to=tmp_path / name, name=name, host=False)

    package = package_of("jacobi")
    assert not package.waits
    (turn,) = (step for step in steps_of(package) if isinstance(step, LoopStep))
    # Nothing but the step itself: the host counts, and the odd number of swaps ends in the result.
    assert turn.trips == 9 and [type(step) for step in turn.body] == [LaunchStep, SwapStep]
    copies = [step for step in steps_of(package) if isinstance(step, CopyStep)]
    assert len(copies) == 1 and len(package.targets[0].kernels) == 1
    text = (tmp_path / "jacobi" / "include" / "xgpu" / "jacobi.h").read_text()
    assert "none waits for the GPU" in text

    package = package_of("newton")
    assert package.waits
    text = (tmp_path / "newton" / "include" / "xgpu" / "newton.h").read_text()
    assert "only to run waits for the GPU" in text and "it cannot be captured" in text
    assert max(map(len, text.splitlines())) <= 120
    assert "waits for values that say how it goes on" in (tmp_path / "newton" / "rust" / "lib.rs").read_text()
    # What only a copy reaches has the alignment of its type; what a kernel reaches by way of a slot has the kernel's.
    assert [array.alignment for array in package_of("turned").signatures[0].results] == [16, 4]
    # One launch an iteration: the condition comes from the kernel that makes what it is computed from.
    (turn,) = (step for step in steps_of(package) if isinstance(step, LoopStep))
    assert turn.trips is None and sum(isinstance(step, LaunchStep) for step in turn.body) == 1


def test_what_is_known_when_a_loop_begins_is_asked_once(tmp_path: Path) -> None:
    function, given = PROGRAMS["counted_by_values"]
    package = exported(function, *specs_of(given[0]), to=tmp_path / "counted", name="counted", host=False)
    loops = [step for step in steps_of(package) if isinstance(step, LoopStep)]
    assert package.waits and all(loop.condition is None for loop in loops)
    assert [loop.trips for loop in loops].count(None) == 3
    function, given = PROGRAMS["no_simple_bounds"]
    package = exported(function, *specs_of(given[0]), to=tmp_path / "others", name="others", host=False)
    loops = [step for step in steps_of(package) if isinstance(step, LoopStep)]
    assert len(loops) == 2 and all(loop.condition is not None for loop in loops)


def test_the_manifest_lists_loops_and_branches(tmp_path: Path) -> None:
    function, given = PROGRAMS["cond_in_scan"]
    exported(function, *specs_of(given[0]), to=tmp_path, name="cond_in_scan", host=False)
    (signature,) = json.loads((tmp_path / "manifest.json").read_text())["signatures"]
    (variant,) = signature["variants"]
    assert variant["waits"] and "result0" in " ".join(variant["slots"]).replace("_", "")
    (loop,) = (step for step in variant["steps"] if "repeat" in step)
    assert loop["repeat"] == 6
    (choice,) = (step for step in loop["steps"] if "case" in step)
    assert choice["case"].startswith("scratch + ")
    assert [next(iter(branch[0])) for branch in choice["branches"]] == ["launch", "launch"]
    assert choice["branches"][1][1] == {"swap": [0, 1]}


def test_branches_are_chosen_by_truth_values_too(tmp_path: Path) -> None:
    text = """
func.func @main(%p: tensor<i1>, %x: ARRAY, %w: ARRAY) -> ARRAY {
  %0 = "stablehlo.if"(%p) ({
    %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (ARRAY, ARRAY) -> ARRAY
    stablehlo.return %a : ARRAY
  }, {
    stablehlo.return %w : ARRAY
  }) : (tensor<i1>) -> ARRAY
  return %0 : ARRAY
}
""".replace("ARRAY", "tensor<64x64xf32>")
    package = exported(text, to=tmp_path, name="chosen")
    (choice,) = (step for step in steps_of(package) if isinstance(step, ChoiceStep))
    assert choice.is_truth
    library = Library(tmp_path, package)
    x, w = R.random((64, 64), F), R.random((64, 64), F)
    for p, expected in ((True, x @ w), (False, w)):
        (found,) = library.run([np.array(p), x, w])
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_what_is_refused_in_a_loop_is_named(tmp_path: Path) -> None:
    def turning(x: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 3, lambda _, x: lax.linalg.tridiagonal_solve(x[0], x[1], x[2], x), x)

    def choosing(x: jax.Array) -> jax.Array:
        return lax.cond(x.sum() > 0, lambda: lax.linalg.tridiagonal_solve(x[0], x[1], x[2], x), lambda: x)

    with pytest.raises(Unsupported) as refused:
        exported(turning, "f32[64,64]", to=tmp_path)
    assert "stablehlo.custom_call of type tensor<64x64xf32>" in str(refused.value)
    assert "test_host_loops.py:" in str(refused.value)
    assert "stablehlo.while" not in str(refused.value)
    with pytest.raises(Unsupported) as refused:
        exported(choosing, "f32[64,64]", to=tmp_path)
    assert "stablehlo.custom_call" in str(refused.value) and "stablehlo.case" not in str(refused.value)


MAIN_CPP = """
#include <cstdlib>
#include <iostream>
#include <vector>
#include "xgpu/newton.hpp"
namespace newton = xgpu::newton;
static void *allocate(std::size_t bytes) { return std::aligned_alloc(128, (bytes + 127) / 128 * 128); }
int main() {
  const auto extents = newton::get_extents();
  newton::memory scratch(extents.scratch_bytes, allocate, std::free);
  std::vector<float> a(extents.a, 2), x(extents.x, 1), root(extents.result_0), error(extents.result_1);
  std::vector<std::int32_t> count(extents.result_2);
  newton::run(a, x, root, error, count, scratch);
  std::cout << root[0] << ' ' << count[0] << '\\n';
}
"""
MAIN_RS = """
fn main() {
    let extents = xgpu_newton::extents().unwrap();
    let (a, x) = (vec![2.0; extents.a], vec![1.0; extents.x]);
    let (mut root, mut error, mut count) = (vec![0.0; extents.result_0], vec![0.0; 1], vec![0; 1]);
    xgpu_newton::run_on_host(&a, &x, &mut root, &mut error, &mut count).unwrap();
    println!("{:.5} {}", root[0], count[0]);
    assert_eq!(xgpu_newton::Status::CannotCapture as u32, 14);
}
"""


def test_cpp_and_rust(tmp_path: Path) -> None:
    function, given = PROGRAMS["newton"]
    folder = tmp_path / "newton"
    exported(function, *specs_of(given[0]), to=folder, name="newton")
    root, _, count = newton(jnp.full((64, 64), 2.0), jnp.ones((64, 64)))
    expected = f"{root[0, 0]:.5f} {count}\n"
    (tmp_path / "main.cpp").write_text(MAIN_CPP)
    include = f"-I{folder / 'include'}"
    do_run(
        tool("gcc"), *STRICT, include, "-DNEWTON_HOST", "-c", folder / "src" / "newton.c", "-o", tmp_path / "newton.o"
    )
    objects = tmp_path / "newton.o", *(folder / "src").glob("*.o")
    do_run(tool("g++"), "-std=c++17", *STRICT, include, tmp_path / "main.cpp", *objects, "-lm", "-o", tmp_path / "main")
    assert do_run(tmp_path / "main") == expected

    crate = tmp_path / "app"
    (crate / "src").mkdir(parents=True)
    (crate / "src" / "main.rs").write_text(MAIN_RS)
    dependency = f'xgpu_newton = {{ path = "{folder}", features = ["host"] }}'
    manifest = '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n\n[workspace]\n\n[dependencies]\n'
    (crate / "Cargo.toml").write_text(f"{manifest}{dependency}\n")
    target = {"CARGO_TARGET_DIR": str(tmp_path / "target")}
    assert do_run(tool("cargo"), "run", "--offline", "--quiet", cwd=crate, **target) == expected


def test_a_plan_that_was_made_for_xla_is_refused(tmp_path: Path) -> None:
    function, given = PROGRAMS["jacobi"]
    plan = xgpu.compile(function, *specs_of(given[0])).ir("fusions")
    with pytest.raises(Unsupported) as refused:
        exported(plan, to=tmp_path)
    assert "stablehlo.while" in str(refused.value) and "planned for XLA to run" in str(refused.value)
    # Nor does a mark in the text make a host of it.
    marked = plan.replace("tensor<64x64xf32>\n    cond", "tensor<64x64xf32> attributes {xgpu.host}\n    cond")
    assert marked != plan
    with pytest.raises(Unsupported, match="planned for XLA to run"):
        exported(marked, to=tmp_path)
    with jax.enable_x64(True):
        planned = xgpu.compile(
            function, *specs_of(given[0]), options=xgpu.Options(products="all", control_flow="launches")
        )
    package = exported(planned.ir("fusions"), to=tmp_path, name="planned")
    (found,) = Library(tmp_path, package).run(given[0])
    np.testing.assert_allclose(found, function(*given[0]), rtol=2e-5)


MARKED = """
module attributes {xgpu.level = "fusions"} {
  func.func private @two(%i: tensor<i32>) -> tensor<i32> attributes {xgpu.emitter = "loop"} {
    %two = stablehlo.constant dense<2> : tensor<i32>
    %next = stablehlo.add %i, %two : tensor<i32>
    return %next : tensor<i32>
  }
  func.func @main(%n: tensor<i32>, %start: tensor<i32>) -> tensor<i32> {
    %1:2 = stablehlo.while(%i = %start, %end = %n) : tensor<i32>, tensor<i32> attributes {xgpu.host}
    cond {
      %less = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
    } do {
      %next = func.call @two(%i) : (tensor<i32>) -> tensor<i32>
      stablehlo.return %next, %end : tensor<i32>, tensor<i32>
    }
    return %1#0 : tensor<i32>
  }
}
"""


def test_a_counter_that_kernels_compute_is_none_of_the_host(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="planned for XLA to run"):
        exported(MARKED, to=tmp_path)


@pytest.mark.parametrize("name", ["newton", "cond_in_scan", "turned"])
def test_xla_runs_what_was_planned_for_a_host(name: str) -> None:
    function, given = PROGRAMS[name]
    program = xgpu.compile(function, *specs_of(given[0]), options=xgpu.Options(products="all", control_flow="launches"))
    for arrays in given:
        expected = jax.tree.leaves(function(*arrays))
        for found, other in zip(program.run(*arrays), expected, strict=True):
            np.testing.assert_allclose(found, other, rtol=2e-5, atol=2e-5)


def test_equal_programs_give_equal_bytes(tmp_path: Path) -> None:
    function, given = PROGRAMS["nested"]
    for folder in ("one", "other"):
        exported(function, *specs_of(given[0]), to=tmp_path / folder, name="nested")
    files = [sorted(path for path in (tmp_path / folder).rglob("*") if path.is_file()) for folder in ("one", "other")]
    for one, other in zip(*files, strict=True):
        assert one.read_bytes() == other.read_bytes()
