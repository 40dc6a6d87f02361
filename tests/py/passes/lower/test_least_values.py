"""What values of floats are known never to be less than, as `expand-math` asks for divisors and arguments of roots."""

import math

import pytest

from xgpu import ir
from xgpu.passes.floats.least_values import LeastValues

CASES = {
    "math.exp %x : f32": 0.0,
    "math.cosh %x : f32": 1.0,
    "math.sin %x : f32": -math.inf,
    "arith.constant -2.5 : f32": -2.5,
    "arith.constant 0x7FC00000 : f32": -math.inf,
    "arith.mulf %x, %x : f32": 0.0,
    "arith.mulf %x, %size : f32": -math.inf,
    "arith.mulf %size, %two : f32": 0.0,
    "arith.addf %size, %two : f32": 2.0,
    "arith.addf %x, %two : f32": -math.inf,
    "math.fma %x, %x, %two : f32": 2.0,
    "math.fma %x, %size, %two : f32": -math.inf,
    "arith.maximumf %x, %two : f32": 2.0,
    "arith.minimumf %size, %two : f32": 0.0,
    "arith.minimumf %x, %two : f32": -math.inf,
    "arith.select %c, %size, %two : f32": 0.0,
    "arith.divf %size, %two : f32": 0.0,
    # Zero may be a negative one.
    "arith.divf %two, %size : f32": -math.inf,
    "arith.truncf %two : f32 to bf16": 1.0,
    "arith.extf %h : bf16 to f32": -math.inf,
    "math.rsqrt %size : f32": -math.inf,
}


@pytest.mark.parametrize("text", CASES)
def test_least_values(text: str) -> None:
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"""
          func.func @f(%x: f32, %h: bf16, %c: i1) {{
            %two = arith.constant 2.0 : f32
            %size = math.absf %x : f32
            %y = {text}
            return
          }}""")
        operations = list(module.body.operations[0].regions[0].blocks[0].operations)
        assert LeastValues().of(operations[-2].results[0]) == CASES[text]


def test_long_chains_are_not_followed() -> None:
    """What is looked at is bounded, so time is linear."""
    sums = "\n".join(f"%v{n + 1} = arith.addf %v{n}, %v{n} : f32" for n in range(100))
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func @f() {{ %v0 = arith.constant 1.0 : f32\n{sums}\nreturn }}")
        operations = list(module.body.operations[0].regions[0].blocks[0].operations)
        assert LeastValues().of(operations[5].results[0]) == 32.0
        assert LeastValues().of(operations[100].results[0]) == -math.inf
