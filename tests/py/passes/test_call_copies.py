"""Which functions lower-to-llvm leaves to be inlined: not those whose copies would take long to compile."""

import pytest

from xgpu import ir
from xgpu.passes.framework.manager import run
from xgpu.passes.framework.registry import parse_pipeline


def program(operations: int, calls: int) -> str:
    body = "\n".join(f"%v{i + 1} = arith.addf %v{i}, %v{i} : f32" for i in range(operations))
    uses = "\n".join(f"%c{i + 1} = func.call @f(%c{i}) : (f32) -> f32" for i in range(calls))
    return f"""
      func.func @k(%c0: f32) -> f32 {{
        {uses}
        return %c{calls} : f32
      }}
      func.func private @f(%v0: f32) -> f32 {{
        {body}
        return %v{operations} : f32
      }}"""


@pytest.mark.parametrize(
    ("operations", "calls", "inlined"),
    [(20000, 1, True), (100, 8, True), (100, 70, True), (100, 90, False), (5000, 2, False)],
)
def test_functions_of_many_copies_stay_functions(operations: int, calls: int, inlined: bool) -> None:
    text = program(operations, calls)
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run(module, parse_pipeline("lower-to-llvm{target=nvvm}"))
        function = next(op for op in module.body.operations if "@f(" in str(op).splitlines()[0])
        assert ("no_inline" in function.operation.attributes) is not inlined
