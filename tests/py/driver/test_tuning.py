"""What computes products is measured once, chosen by that, and kept: with a clock that says what a test wants."""

import json
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import xgpu
from xgpu.cli.main import main
from xgpu.driver import cache, product_ways, tuning
from xgpu.driver.tuning import Winner
from xgpu.errors import ToolError
from xgpu.fusion.product_choices import ProductChoice, ProductChoices
from xgpu.interface.explanation import explain
from xgpu.runtime import measuring

TUNED, KERNELS = xgpu.Options(autotune=True), xgpu.Options(products="kernels")
X, W, B = "bf16[256,128]", "bf16[128,512]", "bf16[512]"


def linear(x: Any, w: Any, b: Any) -> Any:
    return jnp.tanh(x @ w + b)


@dataclass
class Clock:
    """A GPU on which the library takes 10 us and kernel i, counted from 1, what ``kernels`` has of it, or else 20."""

    name: str = "clock"
    kernels: dict[int, float | str] = field(default_factory=dict)
    library: float | str = 10e-6
    seen: list[tuple[list[str], list[Any]]] = field(default_factory=list)

    def measure(self, arguments: Sequence[Any], programs: Sequence[Any]) -> list[float | str]:
        self.seen.append(([str(each) for each in arguments], list(programs)))
        assert all(kernel.ptx for program in programs for kernel in program.kernels)
        return [self.library, *(self.kernels.get(number, 20e-6) for number in range(1, len(programs)))]


def forget() -> None:
    """Forget what this process has in memory, as a new one would."""
    cache._cache_in.cache_clear()
    tuning._known.clear()


@pytest.fixture
def use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Clock | None], Clock]:
    """Measures two kernels by a clock, or on no GPU, with a cache that is empty at first."""
    schedules = product_ways.schedules_to_measure
    monkeypatch.setattr(product_ways, "schedules_to_measure", lambda *given: schedules(*given)[:2])
    monkeypatch.delenv("XGPU_CACHE")
    monkeypatch.setenv("XGPU_CACHE_DIR", str(tmp_path / "cache"))
    forget()

    def use_clock(clock: Clock | None) -> Clock:
        def gpu_for(_: Any) -> Clock:
            if clock is None:
                raise ToolError("no CUDA device can be used by JAX (none)")
            return clock

        monkeypatch.setattr(measuring, "gpu_for", gpu_for)
        return clock or Clock()

    return use_clock


def compiled(*specs: str, function: Any = linear, options: xgpu.Options = TUNED, level: str = "fusions") -> str:
    return xgpu.compile(function, *(specs or (X, W, B)), options=options).ir(level)


def schedule_in(text: str) -> dict[str, str]:
    """The schedule of the one fusion of a plan."""
    (found,) = re.findall(r"xgpu.emitter = \"product\", xgpu.schedule = #xgpu.schedule<(.*?)>}", text)
    return dict(entry.split(" = ") for entry in found.split(", "))


def test_the_library_is_chosen_where_it_is_faster(use: Any) -> None:
    clock = use(Clock())
    program = xgpu.compile(linear, X, W, B, options=TUNED)
    plan = program.ir("fusions")
    assert "xgpu.product" not in plan
    assert 'xgpu.measured = "library 10.0 us, kernel 20.0 us"' in plan
    assert not program.kernels
    ((arguments, programs),) = clock.seen
    assert arguments == ["arg0: bf16[256,128]", "arg1: bf16[128,512]", "arg2: bf16[512]"]
    assert not programs[0].kernels
    assert all([kernel.emitter for kernel in each.kernels] == ["product"] for each in programs[1:])
    assert "for which XLA has libraries (measured: library 10.0 us, kernel 20.0 us)" in str(explain(program))


@pytest.mark.parametrize("number", [1, 2])
def test_a_kernel_is_chosen_with_its_schedule(use: Any, number: int) -> None:
    clock = use(Clock(kernels={number: 5e-6}))
    program = xgpu.compile(linear, X, W, B, options=TUNED)
    fastest = clock.seen[0][1][number].kernels[0]
    assert [kernel.emitter for kernel in program.kernels] == ["product"]
    assert (program.kernels[0].grid, program.kernels[0].shared_bytes) == (fastest.grid, fastest.shared_bytes)
    plan = program.ir("fusions")
    assert re.search(
        r'xgpu.measured = "library 10.0 us, kernel 5.0 us", xgpu.product = "wgmma", xgpu.schedule = #xgpu', plan
    )
    default = compiled(options=KERNELS)
    assert (schedule_in(plan) == schedule_in(default)) == (number == 1)
    assert str(explain(program)).splitlines()[-1] == "  linear_fusion_0: library 10.0 us, kernel 5.0 us"
    # The text is a program like any other.
    again = xgpu.compile(plan)
    assert again.kernels[0].ptx == program.kernels[0].ptx


def test_candidates_differ_in_their_tiles_clusters_and_results() -> None:
    program = xgpu.compile(linear, "bf16[2048,1024]", "bf16[1024,2048]", "bf16[2048]", options=KERNELS)
    function = next(op.operation for op in program.planned.body.operations if "xgpu.emitter" in op.operation.attributes)
    kernel = program.kernels[0]
    found = product_ways.schedules_to_measure(function, kernel.device, kernel.options)
    assert len({tuple(each.items()) for each in found}) == len(found) <= 12
    assert len({(each["tile_m"], each["tile_n"]) for each in found}) >= 4
    assert {each["cluster"] for each in found} == {1, 2}
    assert {each["staged"] for each in found} == {True, False}
    assert len({each["split"] for each in found}) >= 2
    assert {each["swapped"] for each in found} == {True, False}
    assert 256 in {each["tile_m"] for each in found}


@pytest.mark.parametrize(
    ("target", "specs"),
    [("sm_90a", ("bf16[255,129]", "bf16[129,511]", "bf16[511]")), ("sm_80", (X, W, B))],
    ids=["without boxes", "without warp groups"],
)
@pytest.mark.parametrize("is_faster", [False, True])
def test_products_of_warps(use: Any, target: str, specs: tuple[str, ...], is_faster: bool) -> None:
    """They are measured with one schedule; the mark says which instructions they are for."""
    clock = use(Clock(kernels={1: 5e-6} if is_faster else {}))
    program = xgpu.compile(linear, *specs, target=target, options=TUNED)
    ((_, programs),) = clock.seen
    assert [[kernel.emitter for kernel in each.kernels] for each in programs] == [[], ["warp_product"]]
    plan = program.ir("fusions")
    if is_faster:
        assert [kernel.emitter for kernel in program.kernels] == ["warp_product"]
        assert 'xgpu.measured = "library 10.0 us, kernel 5.0 us", xgpu.product = "mma", xgpu.schedule' in plan
        assert xgpu.compile(plan, target=target).kernels[0].ptx == program.kernels[0].ptx
    else:
        assert "xgpu.product" not in plan
        assert 'xgpu.measured = "library 10.0 us, kernel 20.0 us"' in plan


def test_nothing_is_measured_twice(use: Any) -> None:
    clock = use(Clock(kernels={2: 5e-6}))
    first = compiled()
    assert compiled() == first
    assert len(clock.seen) == 1
    forget()
    # The next process may find another clock: it is not asked.
    other = use(Clock(kernels={1: 1e-6}))
    assert compiled() == first
    assert not other.seen
    # Nor is there a need for a GPU.
    forget()
    use(None)
    assert compiled() == first


def test_another_gpu_text_or_compiler_is_measured_again(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    use(Clock(kernels={2: 5e-6}))
    compiled()
    other = use(Clock(name="another"))
    assert "xgpu.product" not in compiled()
    assert len(other.seen) == 1
    compiled(X, W, B, function=lambda x, w, b: jnp.tanh(x @ w - b))
    compiled("bf16[256,128]", "bf16[128,520]", "bf16[520]")
    compiled(options=xgpu.Options(autotune=True, opt_level=2))
    assert len(other.seen) == 4
    forget()
    monkeypatch.setattr(cache, "_compiler", lambda: "another")
    compiled()
    assert len(other.seen) == 5


def test_what_only_the_rest_of_the_program_differs_in_is_known(use: Any) -> None:
    clock = use(Clock(kernels={2: 5e-6}))
    compiled()

    def function(x: Any, w: Any, b: Any) -> Any:
        return linear(jnp.sin(x), w, b), jnp.sort(b)

    assert "xgpu.product" in compiled(function=function, options=xgpu.Options(autotune=True, products="kernels"))
    assert len(clock.seen) == 1


@pytest.mark.parametrize("damage", ["", "{}", "cut", "other"])
def test_a_damaged_file_is_measured_again(use: Any, tmp_path: Path, damage: str) -> None:
    clock = use(Clock(kernels={2: 5e-6}))
    first = compiled()
    files = [path for path in (tmp_path / "cache").iterdir() if "library" in path.read_text()]
    # One for this GPU, and one for machines without a GPU.
    assert len(files) == 2
    for path in files:
        whole = path.read_text()
        changed = json.dumps(json.loads(whole) | {"library": 1.0})
        path.write_text({"cut": whole[:-9], "other": changed}.get(damage, damage))
    forget()
    assert compiled() == first
    assert len(clock.seen) == 2
    forget()
    assert compiled() == first
    assert len(clock.seen) == 2


@pytest.mark.parametrize(
    "fields", [{"schedule": []}, {"schedule": {"tile_m": "64"}}, {"library": "1"}, {"dropped": [1]}, {"dropped": None}]
)
def test_fields_of_other_types_are_no_winner(fields: dict[str, Any]) -> None:
    right = {"schedule": {"tile_m": 64}, "library": 1.0, "kernel": None, "dropped": ["library: no"]}
    assert Winner.of(right) == Winner(**right)
    assert Winner.of(right | fields) is None


def test_what_another_process_measures_meanwhile_is_awaited(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    use(Clock(kernels={2: 5e-6}))
    first = compiled()
    forget()
    late = use(Clock())
    found, locked = tuning._known_winners, []
    monkeypatch.setattr(cache.fcntl, "flock", lambda _, operation: locked.append(operation))
    # It is not there before this process has waited.
    monkeypatch.setattr(tuning, "_known_winners", lambda *given: found(*given) if locked else {})
    assert compiled() == first
    assert not late.seen
    assert locked == [cache.fcntl.LOCK_EX, cache.fcntl.LOCK_UN]


def test_without_a_folder_this_process_remembers(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = use(Clock(kernels={2: 5e-6}))
    monkeypatch.setenv("XGPU_CACHE", "off")
    assert compiled() == compiled()
    assert len(clock.seen) == 1


def test_a_person_s_schedule_wins(use: Any) -> None:
    use(Clock(kernels={2: 5e-6}))
    default = schedule_in(compiled(options=KERNELS))
    tuned = schedule_in(compiled())
    assert tuned != default
    fixed = xgpu.Options(autotune=True, schedules={"linear_fusion_0": {"stages": 3}})
    assert schedule_in(compiled(options=fixed)) == default | {"stages": "3"}


def test_a_schedule_that_does_not_fit_gives_way(use: Any) -> None:
    """What follows a product may be more in the whole program than it was when it was measured."""
    use(Clock(kernels={2: 5e-6}))
    tuned = compiled()
    given = re.sub(r"(xgpu.emitter = \"product\"), xgpu.schedule = #xgpu.schedule<.*?>", r"\1", tuned)
    assert schedule_in(xgpu.compile(given).ir("fusions")) == schedule_in(tuned)
    given = re.sub(r"#xgpu.schedule<tile_m = \d+", "#xgpu.schedule<tile_m = 512", given)
    default = schedule_in(compiled(options=KERNELS))
    assert schedule_in(xgpu.compile(given).ir("fusions")) == default


def test_ways_that_fail_are_dropped_and_recorded(use: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schedules = product_ways.schedules_to_measure

    def with_a_wrong_one(*arguments: Any) -> list[dict[str, int]]:
        found = schedules(*arguments)
        return [found[0], found[0] | {"tile_n": 12}, *found[1:]]

    monkeypatch.setattr(product_ways, "schedules_to_measure", with_a_wrong_one)
    use(Clock(kernels={1: "wrong result 0: 3.00 % of its elements are not what XLA computes", 2: 5e-6}))
    with pytest.warns(
        UserWarning, match=r"does not use a way to compute a product \(.*\): kernel with tile_m = "
    ) as warned:
        compiled()
    assert len(warned) == 2
    (kept, _) = [text for path in (tmp_path / "cache").iterdir() if "library" in (text := path.read_text())]
    fields = json.loads(kept)
    assert (fields["library"], fields["kernel"]) == (10.0, 5.0)
    assert ["tile_n = 12: expected" in text for text in fields["dropped"]] == [True, False]
    assert fields["dropped"][1].endswith("3.00 % of its elements are not what XLA computes")


def test_a_failing_library_leaves_products_as_they_are(use: Any) -> None:
    """Nothing says that a kernel would be right; and what is not measured is not kept."""
    clock = use(Clock(library="out of memory", kernels={1: 1e-6, 2: "nothing to compare with"}))
    with pytest.warns(UserWarning) as warned:
        assert "xgpu.product" not in compiled()
    # What else was tried is not worth a word.
    (text,) = {str(each.message) for each in warned}
    assert re.fullmatch(
        r"xgpu does not use a way to .* product \(.*test_tuning.py:\d+:\d+\): library: out of memory", text
    )
    forget()
    with pytest.warns(UserWarning, match="library: out of memory"):
        compiled()
    assert len(clock.seen) == 2


def test_each_product_has_its_own(use: Any) -> None:
    """Equal products are measured once, and those in loops as well."""

    def function(x: Any, w: Any, v: Any) -> Any:
        y = jax.lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y @ w), x)
        return jnp.tanh(y @ w) @ v

    class ByColumns(Clock):
        def measure(self, arguments: Sequence[Any], programs: Sequence[Any]) -> list[float | str]:
            self.kernels = {2: 5e-6} if arguments[1].shape[1] == 64 else {}
            return super().measure(arguments, programs)

    clock = use(ByColumns())
    plan = compiled("bf16[256,64]", "bf16[64,64]", "bf16[64,512]", function=function)
    assert [arguments[1] for arguments, _ in clock.seen] == ["arg1: bf16[64,64]", "arg1: bf16[64,512]"]
    # Both kernels are one function.
    assert plan.count("call @lambda_fusion_0(") == 2
    assert plan.count('{xgpu.hero, xgpu.measured = "library 10.0 us, kernel 5.0 us", xgpu.product = "wgmma", ') == 1
    assert plan.count('{xgpu.measured = "library 10.0 us, kernel 20.0 us"}') == 1


def test_products_that_one_kernel_computes_are_measured_together(use: Any) -> None:
    """And chosen together: two of the library's, or one kernel."""

    def gated(x: Any, w: Any, v: Any) -> Any:
        return jax.nn.relu(x @ w) * (x @ v)

    for kernels in ({}, {2: 5e-6}):
        clock = use(Clock(kernels=kernels, name=f"clock of {len(kernels)}"))
        plan = compiled(X, W, W, function=gated)
        ((arguments, programs),) = clock.seen
        assert len(arguments) == 3
        assert [[kernel.emitter for kernel in each.kernels] for each in programs] == [[], ["product"], ["product"]]
        assert plan.count("xgpu.joined = 0") == (2 if kernels else 0)
        assert plan.count('xgpu.measured = "library 10.0 us, kernel ') == 2


def test_what_a_product_reads_through_is_measured_with_it(use: Any) -> None:
    """XLA's product may read through a broadcast of what is in memory; if a kernel makes that, it stores it so."""
    spec = "bf16[64]"
    clock = use(Clock())
    compiled(spec, W, function=lambda x, w: jnp.broadcast_to(x[:, None], (64, 128)) @ w)
    compiled(spec, W, function=lambda x, w: jnp.broadcast_to(jnp.sin(x)[:, None], (64, 128)) @ w)
    assert [arguments[0] for arguments, _ in clock.seen] == ["arg0: bf16[64]", "arg0: bf16[64,128]"]
    assert [[kernel.emitter for kernel in each.kernels] for each in clock.seen[0][1][:2]] == [[], ["loop", "product"]]


def test_programs_without_such_products_need_no_gpu(use: Any) -> None:
    use(None)
    for function, specs in ((lambda x: x * 2, (X,)), (lambda x, y: x @ y, ("f32[256,256]",) * 2)):
        assert compiled(*specs, function=function) == compiled(*specs, function=function, options=xgpu.Options())


def test_without_a_gpu_an_error_says_so(use: Any) -> None:
    use(None)
    message = (
        rf"{re.escape(__file__)}:{linear.__code__.co_firstlineno + 1}:\d+: autotune=True: this product, of 1 that were"
        r" never measured, cannot be measured now: no CUDA device can be used by JAX \(none\)$"
    )
    with pytest.raises(ToolError, match=message):
        compiled()
    with pytest.warns(UserWarning, match=f"xgpu leaves linear to XLA: {message}"):
        xgpu.jit(linear, autotune=True)(*(jnp.ones(shape, jnp.bfloat16) for shape in ((256, 128), (128, 512), (512,))))


@pytest.mark.parametrize("given", ["yes", None, 0])
def test_only_true_and_false_are_said_of_it(given: Any) -> None:
    with pytest.raises(xgpu.InvalidInput, match=f"option autotune: expected True or False, got {given!r}"):
        xgpu.jit(linear, autotune=given)


def test_the_command_clears_what_was_measured(use: Any, capsys: pytest.CaptureFixture[str]) -> None:
    clock = use(Clock())
    compiled()
    assert main(["cache", "--clear"]) == 0
    assert re.fullmatch(r".*: \d+ entries removed\n", capsys.readouterr().out)
    forget()
    compiled()
    assert len(clock.seen) == 2


def test_measured_while_a_program_is_lowered(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs run while JAX is at another one."""
    use(None)
    monkeypatch.setattr(measuring, "_ROUNDS", 1)
    monkeypatch.setattr(measuring, "_SHORT_SECONDS", 0.0)
    monkeypatch.setattr(measuring, "_CALLS", (1, 1))
    schedules = product_ways.schedules_to_measure
    monkeypatch.setattr(product_ways, "schedules_to_measure", lambda *given: schedules(*given)[:1])
    monkeypatch.setattr(measuring, "gpu_for", lambda _: measuring.Gpu(jax.devices("cpu")[0]))

    @xgpu.jit(autotune=True)
    def inner(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w)

    @jax.jit
    def function(x: Any, w: Any) -> Any:
        return inner(x, w) + 1

    x, w = jnp.ones((64, 64), jnp.bfloat16) / 8, jnp.eye(64, dtype=jnp.bfloat16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jnp.array_equal(function(x, w), jnp.tanh(x) + 1)
    (winner,) = {each.library: each for each in tuning._known.values()}.values()
    assert winner.library is not None
    assert winner.kernel is not None
    assert not winner.dropped


def test_choices_as_text() -> None:
    choices = [
        ProductChoice(),
        ProductChoice(None, 5.5, 6.25),
        ProductChoice({"tile_m": 64, "staged": True, "cluster": 1}, 5.5, 4.0),
        ProductChoice({}, None, 4.0),
    ]
    text = ProductChoices.of(choices)
    assert text == "library@-/-;library@5.50/6.25;tile_m=64+staged=true+cluster=1@5.50/4.00;@-/4.00"
    assert list(ProductChoices(text).each) == choices
    assert type(ProductChoices(text).each[2].schedule["staged"]) is bool
    for wrong in ("library", "library@1", "library@1/2/3", "tile_m=x@1/2", "tile_m=1+@1/2", "a=1+a=2@1/1", ";", "all"):
        with pytest.raises(ValueError):
            ProductChoices(wrong)
