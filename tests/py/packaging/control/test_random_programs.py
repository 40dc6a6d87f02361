"""Random programs of loops and branches as packages: their host libraries compute what JAX does, in place too."""

from pathlib import Path

import jax
import numpy as np
import pytest

from tests.py.packaging.control.programs import Program, expected
from tests.py.packaging.packages import Library, aligned, exported, placed, taken

SEEDS = (*range(16), 106, 133, 201, 214)
"""Some, and those that found numbers that were left to XLA, and views that were looked for in the wrong block."""


@pytest.mark.parametrize("seed", SEEDS)
def test_results(seed: int, tmp_path: Path) -> None:
    program = Program(seed)
    specs = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in program.arguments]
    package = exported(program.__call__, *specs, to=tmp_path, name="program")
    library, results = Library(tmp_path, package), expected(program)
    for found, result in zip(library.run(program.arguments), results, strict=True):
        np.testing.assert_array_equal(found, result)
    signature = package.signatures[0]
    for position, argument in signature.in_place:
        inputs = [placed(array, spec) for array, spec in zip(program.arguments, signature.arguments, strict=True)]
        outputs = [aligned(spec.bytes, 0xA5) for spec in signature.results]
        outputs[position] = inputs[argument]
        assert library.call(0, [*inputs, *outputs], aligned(signature.scratch_bytes, 0x5A)) == 0, library.message
        for memory, spec, result in zip(outputs, signature.results, results, strict=True):
            np.testing.assert_array_equal(taken(memory, spec), result)
