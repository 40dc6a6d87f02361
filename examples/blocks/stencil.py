"""An image smoothed by overlapping tiles: ``xgpu run examples/blocks/stencil.py:smoothed --check``."""

from xgpu import block

ROWS, COLUMNS = 8, 64


@block.kernel
def smoothed(image):
    """Return the mean of each element and its four neighbours; those outside are zero."""
    m, n = image.shape
    i, j = block.grid(block.cdiv(m, ROWS), block.cdiv(n, COLUMNS))

    def moved(down, right):
        return image.tile((ROWS, COLUMNS), offset=(i * ROWS + down, j * COLUMNS + right))

    total = moved(0, 0) + moved(-1, 0) + moved(1, 0) + moved(0, -1) + moved(0, 1)
    return block.store(total / 5, (m, n), (i, j))


smoothed.example_args = ("f32[50,100]",)
