"""The comparison of programs of a file, and the random programs that it may compare."""

import json
import os
import time

import jax
import numpy as np
import pytest

from xgpu.tools.timing import programs, random_programs

_FILE = """
import time
import jax.numpy as jnp
import numpy as np

def refused():
    def function(x):
        raise ValueError("not a program")
    return function, [np.ones(3)]

PROGRAMS = {
    "sine": lambda: (jnp.sin, [np.ones(64, np.float32)]),
    "refused": refused,
    "slow": lambda: time.sleep(600),
}
"""


def test_each_program_has_a_line(tmp_path, capsys):
    (tmp_path / "programs.py").write_text(_FILE)
    out = tmp_path / "out.jsonl"
    file, options = str(tmp_path / "programs.py"), ["--out", str(out), "--jobs", "1", "--limit"]
    assert programs.main([file, "sine", "refused", *options, "60"]) == 0
    found = {each["name"]: each for each in map(json.loads, out.read_text().splitlines())}
    assert found["sine"]["difference"] < 1e-6
    assert min(found["sine"][f"{kind}_us"] for kind in ("xgpu", "jax")) > 0
    assert found["refused"]["fault"] == "jax"
    assert "not a program" in found["refused"]["error"]
    assert "sine" in capsys.readouterr().out
    assert programs.main([file, "slow", *options, "1"]) == 0
    assert "more than 1 s" in json.loads(out.read_text())["error"]


@pytest.mark.parametrize(
    ("text", "words", "problem"),
    [
        ("x = 1", [], "expected a dictionary PROGRAMS"),
        ("1 /", [], "SyntaxError"),
        (_FILE, ["cosine"], "no program has a name with one of: cosine"),
    ],
    ids=["no programs", "no Python", "no such program"],
)
def test_mistakes_are_named(text, words, problem, tmp_path, capsys):
    (tmp_path / "programs.py").write_text(text)
    with pytest.raises(SystemExit):
        programs.main([str(tmp_path / "programs.py"), *words])
    assert problem in capsys.readouterr().err


def test_what_stands_still_takes_no_time(tmp_path):
    start = time.monotonic()
    # One span before the start, one across it; and one that goes on.
    (tmp_path / "spans").write_text(f"{start - 9} {start - 5}\n{start - 2} {start + 3}\n")
    (tmp_path / "alone.7").write_text(f"{start - 0.5}")
    assert programs._running(tmp_path, 1, start) == pytest.approx(-3, abs=0.5)
    assert programs._running(tmp_path, 7, start - 10) == pytest.approx(10 - 4 - 5, abs=0.5)
    with programs._alone(tmp_path):
        assert (tmp_path / f"alone.{os.getpid()}").exists()
    assert (tmp_path / "spans").read_text().count("\n") == 3
    assert not (tmp_path / f"alone.{os.getpid()}").exists()


def test_differences_are_found():
    numbers = np.array([1.0, np.nan, np.inf], np.float32)
    assert programs._difference(numbers, numbers) == 0
    assert programs._difference(numbers, numbers[::-1]) == np.inf
    assert programs._difference(numbers[:1], numbers[:1] * 2) == 0.5
    assert programs._difference(np.arange(3), np.array([0, 1, 3])) == 1


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_are_the_same_for_a_seed(seed):
    (first, given), (second, again) = (random_programs.program(seed) for _ in range(2))
    assert all(np.array_equal(*pair) for pair in zip(given, again, strict=True))
    assert str(jax.make_jaxpr(first)(*given)) == str(jax.make_jaxpr(second)(*again))
