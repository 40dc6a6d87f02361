"""The bytes that a matrix spans in shared memory, against the places of all its bytes."""

import itertools

import pytest

from xgpu.dialects.block.matrices import ROW_GROUP, MatrixLayout


@pytest.mark.parametrize("rows", [8, 24, 64, 256])
def test_span(rows: int) -> None:
    """It ends with a row of a panel, of which the matrix may have less."""
    for numbers in itertools.product((0, 32, 128), (128, 1024), (0, 16, 8192), (False, True)):
        layout = MatrixLayout(*numbers)
        lines, line_bytes = (16, 2 * rows) if layout.transposed else (rows, 32)
        last = max(
            byte // layout.row_bytes * layout.panel
            + line // ROW_GROUP * layout.group
            + line % ROW_GROUP * layout.row_bytes
            + byte % layout.row_bytes
            for line in range(lines)
            for byte in range(line_bytes)
        )
        assert 0 < layout.span(rows, 16, 2) - last <= layout.row_bytes, layout
