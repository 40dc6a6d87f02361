"""Places of instructions in HLO text, by the names that XLA gives them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from xgpu.errors import InvalidInput
from xgpu.frontend import hlo_import_worker
from xgpu.frontend.hlo_lines import instruction_places, root_place
from xgpu.frontend.hlo_text import from_hlo_text

TEXT = """HloModule m

add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }

%add.2 (a: f32[], b: f32[]) -> f32[] {
  a = f32[] parameter(0)
  // d = f32[] comment(a)
  b.1 = f32[] parameter(1), metadata={op_name="e = f32[] string(a)"}
  ROOT %c =
    f32[] add(a, b.1)
}

ENTRY %main (a: f32[8]) -> (f32[], /*index=1*/f32[]) {
  a.1 = f32[8]{0} parameter(0)
  b = f32[] constant(0)
  c = f32[] reduce(a.1, b), dimensions={0}, to_apply=add
  c.1 = f32[] reduce(a.1, b), dimensions={0}, to_apply=%add.2
  ROOT %tuple = (f32[], f32[]) tuple(c, c.1)
}
"""


NUMBERED = """HloModule m

c {
  a.007 = f32[8] parameter(0)
  a.7 = f32[8] sine(a.007)
  a.0 = f32[8] cosine(a.7)
  ROOT a = f32[8] exponential(a.0)
}

ENTRY e {
  a.007 = f32[8] parameter(0)
  a.9223372036854775808 = f32[8] log(a.007)
  a.9223372036854775807 = f32[8] tan(a.9223372036854775808)
  a.-5 = f32[8] negate(a.9223372036854775807)
  a.LONG = f32[8] floor(a.-5)
  ROOT r = f32[8] call(a.LONG), to_apply=c
}
""".replace("LONG", "1" * 5000)


def lines(text: str) -> dict[str, str]:
    return {name: str(place).removeprefix("t.hlo:") for name, place in instruction_places(text, "t.hlo").items()}


def test_every_instruction_has_a_place_and_a_name_of_its_own() -> None:
    places = " ".join(f"{name}@{place}" for name, place in lines(TEXT).items())
    assert places == ("a@3:7 b@3:30 c@3:53 a.1@6:3 b.1@8:3 c.1@9:3 a.2@14:3 b.2@15:3 c.2@16:3 c.3@17:3 tuple@18:3")


def test_names_are_those_that_xla_gives() -> None:
    worker = [sys.executable, "-P", hlo_import_worker.__file__]
    imported = subprocess.run(worker, input=TEXT, capture_output=True, text=True, check=True, env={}).stdout
    constant = re.search(r"constant.* loc\((#\w+)\)", imported)
    assert constant is not None
    assert f'{constant[1]} = loc("b.2")' in imported
    reduced = re.findall(r"stablehlo.reduce.* loc\((#\w+)\)", imported)
    for location, name in zip(reduced, ("c.2", "c.3"), strict=True):
        assert f'{location} = loc("{name}")' in imported


def test_numbers_in_names_are_those_that_xla_reads() -> None:
    worker = [sys.executable, "-P", hlo_import_worker.__file__]
    imported = subprocess.run(worker, input=NUMBERED, capture_output=True, text=True, check=True, env={}).stdout
    names = {each for each in re.findall(r'loc\("([^"]*)"', imported) if each.startswith("a")}
    assert names == lines(NUMBERED).keys() - {"r"}


def test_blank_lines_take_no_time() -> None:
    # Searched from each of them to the last, they took minutes.
    blank = "\n" * 200_000
    assert str(root_place(blank + TEXT, "t.hlo", "add.2")) == "t.hlo:200009:3"
    with pytest.raises(InvalidInput, match="no ENTRY computation"):
        from_hlo_text(
            "HloModule m, entry_computation_layout={()->f32[]}\n" + blank + "c { ROOT a = f32[] constant(1) }"
        )


def test_names_in_what_xla_compiled_are_their_own() -> None:
    text = (Path(__file__).parents[2] / "data" / "fused_gpu.hlo").read_text()
    for name, place in instruction_places(text, "t.hlo").items():
        assert re.match(rf"(ROOT )?%?{re.escape(name)} = ", text.splitlines()[place.line - 1][place.column - 1 :])


def test_roots() -> None:
    assert [str(root_place(TEXT, "t.hlo", name)) for name in ("add", "add.2", "main")] == [
        "t.hlo:3:53",
        "t.hlo:9:3",
        "t.hlo:18:3",
    ]
    assert root_place(TEXT, "t.hlo", "other") is None
