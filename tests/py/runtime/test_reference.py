"""What XLA cannot compile is said in an error, also what would end the process."""

import numpy as np
import pytest
from jax import lax

import xgpu
from xgpu.errors import ToolError


@pytest.mark.parametrize("dtype", ["s4", "u2", "f4e2m1fn"])
def test_packed_arrays_cannot_be_concatenated_by_xla(dtype: str) -> None:
    program = xgpu.compile(lambda x: lax.concatenate([x, x], 0), f"{dtype}[3]")
    array = np.array([1, 0, 1]).astype(program.arguments[0].dtype.numpy)
    (result,) = program.run(array, on="host")
    np.testing.assert_array_equal(result.astype(np.float32), [1, 0, 1, 1, 0, 1])
    with pytest.raises(ToolError, match=f"on the CPU it does not concatenate arrays of {dtype}"):
        program.reference(array)
