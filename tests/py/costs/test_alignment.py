"""How long libraries are expected to take for products whose rows are aligned or not, against what was measured."""

import pytest

from xgpu.costs.products.alignment import Matrices, library_seconds
from xgpu.device import device

H200 = device("sm_90a")


@pytest.mark.parametrize(
    ("m", "n", "k", "element_bytes", "aligned", "unaligned"),
    [
        (4096, 4104, 4096, 2, 180, 590),
        (4096, 4096, 4096, 2, 172, 522),
        (2048, 2048, 2048, 2, 25, 130),
        (1024, 1024, 1024, 2, 6.1, 16),
        (8192, 50264, 768, 2, 925, 2320),
        (4096, 4096, 4096, 4, 342, 1006),
        (4096, 4100, 4096, 4, 394, 944),
        (1024, 1024, 1024, 4, 12.3, 27.5),
        (512, 520, 512, 2, 4.3, 5.5),
    ],
)
def test_times_are_about_what_was_measured(
    m: int, n: int, k: int, element_bytes: int, aligned: float, unaligned: float
) -> None:
    """Microseconds by CUPTI on an H200. Those that are not aligned are of sizes up to 7 less."""
    matrices = Matrices(1, m, n, k, element_bytes, element_bytes)
    assert 1e6 * library_seconds(matrices, True, True, H200) == pytest.approx(aligned, rel=0.3)
    assert 1e6 * library_seconds(matrices, False, True, H200) == pytest.approx(unaligned, rel=0.45)


def test_what_memory_limits_takes_as_long_either_way() -> None:
    matrices = Matrices(1, 8, 4096, 4096, 2, 2)
    assert library_seconds(matrices, False, False, H200) < 1.25 * library_seconds(matrices, True, True, H200)
