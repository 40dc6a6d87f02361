"""Places that constants of any integer type give: slices, updates and gathers of them compile, and are right."""

import numpy as np
import pytest

import xgpu

_UPDATE = """
func.func @main(%x: tensor<5xi32>) -> (tensor<5xi32>, tensor<5xi32>) {{
  %place = stablehlo.constant dense<{place}> : tensor<{type}>
  %given = stablehlo.constant dense<[1, 2, 3, 4, 5]> : tensor<5xi32>
  %two = stablehlo.constant dense<7> : tensor<2xi32>
  %0 = stablehlo.dynamic_update_slice %given, %two, %place
      : (tensor<5xi32>, tensor<2xi32>, tensor<{type}>) -> tensor<5xi32>
  %1 = stablehlo.dynamic_update_slice %x, %two, %place
      : (tensor<5xi32>, tensor<2xi32>, tensor<{type}>) -> tensor<5xi32>
  return %0, %1 : tensor<5xi32>, tensor<5xi32>
}}
"""


@pytest.mark.parametrize(
    ("type_", "place", "at"),
    [
        ("ui8", 200, 3),
        ("ui16", 1, 1),
        ("ui64", 2**64 - 1, 3),
        ("ui64", 2, 2),
        ("i8", -9, 0),
        ("ui4", 2, 2),
        ("i4", 1, 1),
    ],
)
def test_updates_at_constants(type_: str, place: int, at: int) -> None:
    x = np.arange(5, dtype=np.int32)
    folded, updated = xgpu.compile(_UPDATE.format(type=type_, place=place)).run(x, sanitize=True)
    for result, start in ((folded, [1, 2, 3, 4, 5]), (updated, x)):
        expected = np.array(start, np.int32)
        expected[at : at + 2] = 7
        np.testing.assert_array_equal(result, expected)
