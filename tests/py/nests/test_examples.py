"""The programs of examples/loops on the host: right, clean under the sanitizer, restarted from each level."""

import pytest

import xgpu

from .loop_references import FILES, FOLDER, REFERENCES, check, inputs_of


def test_every_program_is_here() -> None:
    assert set(FILES) == set(REFERENCES)


@pytest.mark.parametrize("name", REFERENCES)
def test_results(name: str) -> None:
    program = xgpu.compile(FILES[name])
    inputs = inputs_of(name, program)
    expected = REFERENCES[name](*inputs)
    check(program.run(*inputs, sanitize=True), expected)
    check(program.run(*inputs), expected)


@pytest.mark.parametrize("name", ["histogram", "softmax", "transpose"])
def test_levels_are_accepted_back(name: str) -> None:
    program = xgpu.compile(FILES[name])
    for level in ("loops", "mapped", "emitted"):
        again = xgpu.compile(program.ir(level))
        assert again.ir(level) == program.ir(level)
        assert again.ir("ptx") == program.ir("ptx")


def test_other_sizes() -> None:
    program = xgpu.compile(FOLDER / "matrix_product.te", "f32[3,5]", "f32[5,7]")
    inputs = program.random_inputs()
    check(program.run(*inputs, sanitize=True), [inputs[0] @ inputs[1]])
