"""Texts that are nearly programs: each is refused with a place, or is a program, and nothing else happens."""

import random
import re
from pathlib import Path

import pytest

from xgpu.errors import InvalidInput
from xgpu.loop_language.build import build
from xgpu.loop_language.load import print_loops
from xgpu.loop_language.parser import parse

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "loops"
_TEXTS = [path.read_text() for path in sorted(FOLDER.rglob("*.te")) if path.stem != "bitonic_sort"]
_WORD = re.compile(r"[A-Za-z_]+|\d+|\s+|.")
_OTHERS = [
    *"()[]{}|#",
    "0",
    "-1",
    "1e400",
    "9" * 30,
    "\x00",
    "é",
    "par",
    "#atomic",
    "c64",
    "s4",
    "nan",
    "//",
    "max",
    "new",
    "#together(2)",
    "#stages(2)",
]
_CASES = 120


def mutated(seed: int) -> str:
    """Return the text of a program with a few words changed."""
    generator = random.Random(seed)
    words = _WORD.findall(generator.choice(_TEXTS))
    known = [*words, *_OTHERS]
    for _ in range(generator.choice((1, 1, 2, 4))):
        place = generator.randrange(len(words))
        match generator.randrange(4):
            case 0:
                words[place] = generator.choice(known)
            case 1:
                del words[place]
            case 2:
                words.insert(place, generator.choice(known))
            case _:
                other = generator.randrange(len(words))
                words[place], words[other] = words[other], words[place]
    return "".join(words)


@pytest.mark.parametrize("part", range(4))
def test_refused_or_a_program(part: int) -> None:
    programs = 0
    for seed in range(part, _CASES, 4):
        try:
            module = build(parse(mutated(seed), "f.te")).module
        except InvalidInput as error:
            assert error.location is not None, seed
            assert error.location.line > 0, seed
            continue
        programs += 1
        text = print_loops(module)
        assert print_loops(build(parse(text)).module) == text, seed
    assert programs
