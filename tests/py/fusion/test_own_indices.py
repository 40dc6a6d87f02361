"""Values that are read through steps back to a reader's own indices are computed once, however long their chain is."""

import numpy as np
import pytest

from tests.py.planned import TARGET, planned
from xgpu.options import Options

_STEP = """
    %s{i} = stablehlo.reshape %m{before} : (tensor<9xui32>) -> tensor<9x1xui32>
    %g{i} = "stablehlo.gather"(%table, %s{i}) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}}>
      : (tensor<64xui32>, tensor<9x1xui32>) -> tensor<9x1xui32>
    %v{i} = stablehlo.reshape %g{i} : (tensor<9x1xui32>) -> tensor<9xui32>
    %c{i} = stablehlo.compare LT, %v{i}, %x : (tensor<9xui32>, tensor<9xui32>) -> tensor<9xi1>
    %m{i} = stablehlo.select %c{i}, %v{i}, %m{before} : tensor<9xi1>, tensor<9xui32>
"""


@pytest.mark.parametrize("steps", [3, 12])
def test_chain_of_gathered_indices_is_one_kernel(steps: int) -> None:
    body = "".join(_STEP.format(i=i, before=i - 1) for i in range(1, steps + 1))
    text = f"""func.func @main(%table: tensor<64xui32>, %m0: tensor<9xui32>, %x: tensor<9xui32>) -> tensor<9xui32> {{
        {body} return %m{steps} : tensor<9xui32> }}"""
    compiled = planned(text, [], TARGET, Options())
    assert [kernel.emitter for kernel in compiled.kernels] == ["loop"]
    table, first, limits = compiled.random_inputs()
    table, first = table % 64, first % 64
    expected = first
    for _ in range(steps):
        expected = np.where(table[expected] < limits, table[expected], expected)
    np.testing.assert_array_equal(compiled.run(table, first, limits, on="host")[0], expected)
