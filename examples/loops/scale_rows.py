"""Rows of a matrix, each multiplied by a number of its own: the loop language in Python."""

from xgpu import loops

M, N = loops.sizes(M=64, N=100)


@loops.program
def scale_rows(A: loops.f32[M, N], factors: loops.f32[M], B: loops.out(loops.f32[M, N])):
    """Multiply row ``i`` of ``A`` by ``factors[i]``."""
    with loops.par(M, "i") as i, loops.par(N, "j") as j:
        B[i, j] = A[i, j] * factors[i]
