"""A product whose warps have roles: boxes are copied by one, and multiplied by a warp group; and what it lacks."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tests.py.runtime.block.kernels import Array, host_kernel, memory, placed, without
from tests.py.runtime.block.pipelines import warp_roles
from xgpu.errors import KernelFault

SIZES = [(64, 64, 64), (128, 128, 512), (100, 72, 136)]


def run(text: str, rows: int, columns: int, depth: int) -> tuple[Array, Array]:
    """Run a product, and return its result and the right one."""
    draw = np.random.default_rng(0).standard_normal
    a, b = (placed(draw((size, depth)).astype(ml_dtypes.bfloat16)) for size in (rows, columns))
    out = memory((rows, columns), np.float32)
    host_kernel(text).launch([a, b, memory((1 << 14,), np.uint8), out])
    return out, a.astype(np.float64) @ b.astype(np.float64).T


@pytest.mark.parametrize(("rows", "columns", "depth"), SIZES)
def test_product(rows: int, columns: int, depth: int) -> None:
    out, expected = run(warp_roles(rows, columns, depth), rows, columns, depth)
    np.testing.assert_allclose(out, expected, atol=1e-4)


def fault(change: Callable[[str], str]) -> str:
    with pytest.raises(KernelFault) as caught:
        run(change(warp_roles(128, 128, 512)), 128, 128, 512)
    return str(caught.value)


def test_no_arrival_of_the_producer() -> None:
    message = fault(lambda text: without(text, '"xgpu.mbarrier_expect"'))
    assert "thread (0, 0, 0) of block (0, 0, 0) and 127 others wait at mbarrier wait" in message
    assert "phase 0 of the mbarrier at byte 49152 of shared memory" in message
    assert "1 of 1 arrivals and 0 bytes are expected and copies of 16384 were started" in message


def test_no_arrival_of_the_consumers() -> None:
    message = fault(lambda text: without(text, '"xgpu.mbarrier_arrive"'))
    assert "thread (128, 0, 0) of block (0, 0, 0) waits at mbarrier wait" in message
    assert "128 of 128 arrivals" in message


def test_no_copy() -> None:
    message = fault(lambda text: without(text, '"xgpu.tensor_load"'))
    assert "16384 bytes are expected and copies of 8192 were started" in message


def test_no_mbarrier() -> None:
    message = fault(lambda text: without(text, '"xgpu.mbarrier_init"'))
    assert "expects an mbarrier at byte 49152 of shared memory, where none was made" in message


def test_products_are_not_seen_before_they_are_waited_for() -> None:
    out, _ = run(warp_roles(64, 64, 64).replace("{pending = 0 : i64}", "{pending = 1 : i64}"), 64, 64, 64)
    assert np.isnan(out).all()


def test_products_that_are_in_no_group_are_not_waited_for() -> None:
    out, _ = run(without(warp_roles(64, 64, 64), '"xgpu.warpgroup_commit"'), 64, 64, 64)
    assert np.isnan(out).all()
