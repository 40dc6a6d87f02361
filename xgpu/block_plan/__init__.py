"""Decisions about kernels of tiles, as pure functions of what a block computes: places, layouts, order, copies."""
