"""Where instructions are in HLO text, by the names that XLA gives them."""

import re
import subprocess
import sys
from pathlib import Path

from xgpu.frontend import hlo_import_worker
from xgpu.frontend.hlo_lines import instruction_places, root_place

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
