"""Which dimensions of products are padded, and when: by their sizes, where they are in memory, and what is copied."""

import pytest

from xgpu.device import device
from xgpu.fusion.product_orders import LabelledProduct, Labels, StoredOperand
from xgpu.fusion.product_pads import MovedForPads, best_pads

H200 = device("sm_90a")
FREE = MovedForPads((0, 0), 0)


def _product(sizes: tuple[int, ...], batch: int, left: Labels, right: Labels, bits: int = 16) -> LabelledProduct:
    """Return a product whose operands have these labels in memory; the last label is contracted."""
    operands = (
        StoredOperand(labels, labels, _size(sizes, labels) * bits / 8, is_made=False) for labels in (left, right)
    )
    contracted = max(*left, *right)
    return LabelledProduct(sizes, batch, (next(operands), next(operands)), tuple(range(contracted)), bits, True)


def _size(sizes: tuple[int, ...], labels: Labels) -> int:
    found = 1
    for label in labels:
        found *= sizes[label]
    return found


@pytest.mark.parametrize(
    ("sizes", "batch", "left", "right", "expected"),
    [
        ((4096, 4096, 4093), 0, (0, 2), (2, 1), {2: 4096}),
        ((4096, 4096, 4093), 0, (2, 0), (2, 1), {}),
        ((4095, 4096, 4093), 0, (2, 0), (2, 1), {0: 4096}),
        ((4095, 4097, 4093), 0, (0, 2), (2, 1), {1: 4104, 2: 4096}),
        ((4096, 4097, 4096), 0, (0, 2), (1, 2), {1: 4104}),
        ((3, 2048, 2047, 2048), 1, (0, 1, 3), (0, 3, 2), {2: 2048}),
        ((4096, 333, 3, 4096), 0, (0, 3), (3, 1, 2), {1: 336}),
        ((4096, 3, 333, 4096), 0, (0, 3), (3, 1, 2), {2: 336}),
        ((4096, 4, 1022, 4096), 0, (0, 3), (3, 1, 2), {}),
    ],
)
def test_dimensions_that_are_padded_for_nothing(
    sizes: tuple[int, ...], batch: int, left: Labels, right: Labels, expected: dict[int, int]
) -> None:
    assert best_pads(_product(sizes, batch, left, right), FREE, H200) == expected


def test_elements_of_32_bits_are_fewer() -> None:
    assert best_pads(_product((4096, 4097, 4093), 0, (0, 2), (2, 1), bits=32), FREE, H200) == {1: 4100, 2: 4096}


@pytest.mark.parametrize(
    ("sizes", "moved", "expected"),
    [
        ((255, 255, 257), MovedForPads((2.6e5, 2.6e5), 2.6e5), {}),
        ((1023, 1023, 1023), MovedForPads((4e6, 4e6), 4e6), {1: 1024, 2: 1024}),
        ((511, 511, 511), MovedForPads((1e6, 1e6), 1e6), {}),
        ((8, 4097, 4093), MovedForPads((1.3e5, 6.7e7), 1.3e5), {}),
        ((64, 4097, 4093), MovedForPads((1e6, 3e8), 1e6), {}),
    ],
)
def test_what_is_moved_for_pads_must_pay(sizes: tuple[int, ...], moved: MovedForPads, expected: dict[int, int]) -> None:
    assert best_pads(_product(sizes, 0, (0, 2), (2, 1)), moved, H200) == expected


def test_the_result_is_padded_where_that_pays_for_it_alone() -> None:
    logits = _product((8192, 50257, 768), 0, (0, 2), (1, 2))
    assert best_pads(logits, MovedForPads((0, 1.5e8), 0), H200) == {1: 50264}
    assert best_pads(logits, MovedForPads((0, 1.5e8), 1.6e9), H200) == {}


def test_a_row_that_is_the_only_one_begins_where_its_array_does() -> None:
    assert best_pads(_product((1, 4096, 4093), 0, (0, 2), (2, 1)), FREE, H200) == {}
