"""Loops over blocks and threads on the host compute what the kernel says for one thread."""

import numpy as np
import pytest

import xgpu


@pytest.mark.parametrize("columns", [4, 8, 16])
def test_a_broadcast_between_two_dimensions(columns: int) -> None:
    # LLVM 22.1's loop vectoriser gets the index b*d + t mod d of this program wrong.
    program = xgpu.compile(lambda x: x[:, None, :].repeat(32, 1), f"f32[2,{columns}]")
    x = np.arange(2 * columns, dtype=np.float32).reshape(2, columns)
    (got,) = program.run(x)
    np.testing.assert_array_equal(got, np.repeat(x[:, None, :], 32, 1))
