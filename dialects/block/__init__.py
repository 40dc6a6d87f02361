"""Operations of the xgpu dialect for kernels whose blocks work on tiles: copies, waits, and matrix products."""
