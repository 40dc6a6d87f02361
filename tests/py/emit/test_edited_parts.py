"""Parts of kernels edited by a person give the right results or are refused with the reason."""

import random
import re

import pytest

import xgpu
from xgpu.emit.family_table import FAMILIES

from .plans import PROGRAMS, Plan, plan_of

PARTS = ("reduce_row", "reduce_column", "rows", "loop")
"""The families of the program's parts."""


@pytest.fixture
def plan() -> Plan:
    return plan_of("parts")


def number_of(plan: Plan, emitter: str) -> int:
    """Return the number of the first part of a family."""
    return next(number for number, name in enumerate(families(plan)) if name == emitter)


def families(plan: Plan) -> list[str]:
    return re.findall(r"_part_\d+\(.*xgpu.emitter = \"(\w+)\"", plan.text)


def edited(plan: Plan, number: int, old: str, new: str) -> str:
    """Return the text with a pattern replaced in the line that a part's function starts with."""
    (line,) = (line for line in plan.text.splitlines() if re.search(rf"private @\w*_part_{number}\(", line))
    changed = re.sub(old, new, line)
    assert changed != line
    return plan.text.replace(line, changed)


def test_parts_are_of_all_families(plan: Plan) -> None:
    assert set(families(plan)) == set(PARTS)


@pytest.mark.parametrize("emitter", PARTS)
def test_other_families(plan: Plan, emitter: str) -> None:
    """A part whose family is another has the schedule of that, unless it is of none that parts may be of."""
    number, fits = number_of(plan, emitter), set()
    for name in FAMILIES:
        if name != emitter:
            pattern = rf'"{emitter}", xgpu.schedule = #xgpu.schedule<[^>]*>'
            if plan.right_or_refused(edited(plan, number, pattern, f'"{name}"')):
                fits.add(name)
    others = {
        "reduce_row": {"rows", "loop"},
        "rows": {"reduce_row"},
        "reduce_column": {"columns", "loop"},
        "loop": set(),
    }
    assert fits == others[emitter]


@pytest.mark.parametrize("emitter", PARTS)
def test_other_schedules(plan: Plan, emitter: str) -> None:
    """One number of a part does not change results, and the others are chosen for the kernel's block."""
    number, generator, taken = number_of(plan, emitter), random.Random(emitter), 0
    names = [name for name in FAMILIES[emitter].schedule.names() if name != "aligned"]
    for _ in range(40):
        text = f"{generator.choice(names)} = {generator.choice((1, 2, 4, 8, 32, 256))}"
        program = plan.right_or_refused(edited(plan, number, r"schedule<[^>]*>", f"schedule<{text}>"), sanitize=True)
        taken += program is not None
        if taken == 3:
            return
    pytest.fail(f"only {taken} of these schedules are taken")


@pytest.mark.parametrize("threads", [32, 64, 128, 256, 512])
def test_blocks_of_other_sizes(plan: Plan, threads: int) -> None:
    program = plan.right_or_refused(plan.with_schedule(f"threads = {threads}"), sanitize=True)
    assert program is not None
    assert program.kernels[-1].block == (threads, 1, 1)


def test_threads_that_parts_do_not_have_are_refused(plan: Plan) -> None:
    text = re.sub(r"schedule<threads = (\d+)>", "schedule<threads = 32>", plan.text)
    with pytest.raises(xgpu.InvalidInput, match=r"threads = 32: part @\w+ of emitter '\w+': .*expected") as caught:
        xgpu.compile(text)
    assert "of emitter 'parts'" in caught.value.message
    number = number_of(plan, "loop")
    with pytest.raises(xgpu.InvalidInput, match=r"expected blocks of \d+ threads, as its kernel has, not of 64"):
        xgpu.compile(edited(plan, number, r"schedule<[^>]*>", "schedule<threads = 64>"))


def test_the_size_that_parts_have_is_chosen(plan: Plan) -> None:
    text = re.sub(r", xgpu.schedule = #xgpu.schedule<threads = \d+>}", "}", plan.text)
    assert text != plan.text
    assert xgpu.compile(text).ir("fusions") == plan.text


def test_numbers_of_parts_are_fixed_from_python() -> None:
    function, specs = PROGRAMS["parts"]
    plan = plan_of("parts")
    (name,) = re.findall(rf"private @(\w*_part_{number_of(plan, 'loop')})\(", plan.text)
    program = xgpu.compile(function, *specs, options=xgpu.Options(schedules={name: {"vector": 2}}))
    assert re.search(rf"@{name}\(.*schedule<threads = \d+, vector = 2, rows = 1, row = \d+>", program.ir("fusions"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r"return (%\w+), (%\w+)", r"return \2, \1", "expected the results of its parts, in order"),
        (r"_part_1\(%", "_part_0(%", "expected each of its parts to be called once|operand|type"),
        (r"call @\w+_part_0\(%arg0\)", "stablehlo.negate %arg0", "expected calls of its parts alone|type|expected"),
    ],
)
def test_other_calls_are_refused(old: str, new: str, message: str) -> None:
    program = xgpu.compile(lambda x, y: ((x * x).sum(), (y * y).sum()), "f32[900]", "f32[901]")
    text = program.ir("fusions")
    start = text.rindex("func.func private")
    changed = text[:start] + re.sub(old, new, text[start:], count=1)
    assert changed != text
    with pytest.raises(xgpu.InvalidInput, match=message):
        xgpu.compile(changed)


def test_what_a_part_updates_is_given_to_it_alone() -> None:
    """What the kernel says of its updates is what its parts do, and no part reads what another one updates."""
    text = xgpu.compile(lambda x, y: (x * 2, y * 2), "f32[40]", "f32[41]").ir("fusions")
    updating = re.sub(r"(_part_0\(.*)attributes \{", r"\1attributes {xgpu.aliases = array<i64: 0>, ", text)
    with pytest.raises(xgpu.InvalidInput, match=r"expected xgpu.aliases = \[0, -1\], what its parts update"):
        xgpu.compile(updating)
    start = updating.rindex("func.func private")
    kernel = updating[start:].replace("attributes {", "attributes {xgpu.aliases = array<i64: 0, -1>, ", 1)
    assert xgpu.compile(updating[:start] + kernel).kernels[0].aliases == (0, -1)


def test_no_part_reads_what_another_one_updates() -> None:
    text = xgpu.compile(lambda x: (x * 2, x[:7] + 1), "f32[40]").ir("fusions")
    updating = re.sub(r"(_part_0\(.*)attributes \{", r"\1attributes {xgpu.aliases = array<i64: 0>, ", text)
    start = updating.rindex("func.func private")
    kernel = updating[start:].replace("attributes {", "attributes {xgpu.aliases = array<i64: 0, -1>, ", 1)
    with pytest.raises(xgpu.InvalidInput, match="what a part updates in place to be given to that part alone"):
        xgpu.compile(updating[:start] + kernel)
