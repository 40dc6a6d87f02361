"""Barriers: none is missing and none superfluous, as the sanitizer tells when any one is taken away."""

import pytest

import xgpu
from xgpu.errors import KernelFault

from .loop_references import FOLDER, inputs_of

_BARRIER = '"xgpu.barrier"'


@pytest.mark.parametrize(
    ("name", "barriers"), [("histogram", 2), ("prefix_sum", 10), ("smith_waterman", 2), ("stencil", 1), ("transpose", 1)]
)
def test_each_is_needed(name: str, barriers: int) -> None:
    program = xgpu.compile(FOLDER / f"{name}.te")
    inputs = inputs_of(name, program)
    lines = program.ir("mapped").splitlines()
    places = [number for number, line in enumerate(lines) if _BARRIER in line]
    assert len(places) == barriers
    for place in places:
        mutated = xgpu.compile("\n".join([*lines[:place], *lines[place + 1 :]]))
        with pytest.raises(KernelFault, match="another thread"):
            mutated.run(*inputs, sanitize=True)


def _barriers_of(text: str, tmp_path_name: str) -> int:
    return compiled(text).ir("mapped").count(_BARRIER)


def compiled(text: str) -> xgpu.Compiled:
    """Compile the text of a program."""
    from xgpu.loop_language.build import build
    from xgpu.loop_language.parser import parse

    return xgpu.compile(str(build(parse(text, "f.te")).module))
