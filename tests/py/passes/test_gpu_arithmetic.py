"""Functions as the GPU computes them, which no other test without a GPU sees: with its approximate instructions.

Where JAX has the function, results rounded to bf16 are as exact as they have to be on the host. In f32, where real
instructions are more exact than the PTX manual promises, errors may be some units in the last place larger; special
values are what they have to be.
"""

import ml_dtypes
import numpy as np
import pytest

from xgpu.passes.expand_math import EXPANSIONS, HELPERS
from xgpu.tools.accuracy.formats import FORMATS, errors
from xgpu.tools.accuracy.functions import FUNCTIONS
from xgpu.tools.accuracy.samples import angles_near_quarter_turns, arguments

from .gpu_arithmetic import GpuArithmetic

NAMES = {"math.powf": "pow"}
MEASURED = {name: NAMES.get(name, name.partition(".")[2]) for name in EXPANSIONS}
CASES = [name for name, measured in MEASURED.items() if measured in FUNCTIONS]
PROMISED_LESS = 2.5
"""Units in the last place that the PTX manual's errors make of those that an H200's instructions have."""


@pytest.mark.parametrize("type_", ["f32", "bf16"])
@pytest.mark.parametrize("name", CASES)
def test_errors(name: str, type_: str) -> None:
    expansion, function, form = EXPANSIONS[name], FUNCTIONS[MEASURED[name]], FORMATS[type_]
    values = arguments(form, function.arity, function.inside, 1 << (12 if function.arity == 2 else 16))
    if function.is_angle and type_ == "f32":
        values = (np.concatenate([values[0], angles_near_quarter_turns(form)]),)
    build = expansion.short if expansion.short and type_ == "bf16" else expansion.build
    builder = GpuArithmetic(values[0].size, 16 if type_ == "bf16" else 32, HELPERS)
    with np.errstate(all="ignore"):
        got = build(builder, *(value.astype(np.float32) for value in values))
        wide = [value.astype(np.float64) for value in values]
        exact = function.exact(*wide)
        rounded = got.astype(ml_dtypes.bfloat16 if type_ == "bf16" else np.float32)
        found = errors(rounded, exact, form, function.floor)
        if function.domain is not None:
            found = np.where(function.domain(*wide), found, 0)
    worst = int(np.argmax(found))
    bound = (function.bounds[list(FORMATS).index(type_)] or 0.0) + (PROMISED_LESS if type_ == "f32" else 0.0)
    at = ", ".join(str(value[worst]) for value in values)
    assert found[worst] <= bound, f"{name}({at}) = {rounded[worst]}, exactly {exact[worst]}"


def test_most_functions_are_measured() -> None:
    assert set(MEASURED.values()) - set(FUNCTIONS) == {"exp2", "log2"}
