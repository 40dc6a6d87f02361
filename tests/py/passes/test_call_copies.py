"""Which functions lower-to-llvm leaves to be inlined: not those whose copies would take long to compile."""

import pytest

from xgpu import ir
from xgpu.passes.framework.call_copies import copied_functions
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
    [(20000, 1, True), (100, 8, True), (100, 70, True), (100, 90, False), (250, 2, True), (300, 2, False)],
)
def test_functions_of_many_copies_stay_functions(operations: int, calls: int, inlined: bool) -> None:
    text = program(operations, calls)
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run(module, parse_pipeline("lower-to-llvm{target=nvvm}"))
        function = next(op for op in module.body.operations if "@f(" in str(op).splitlines()[0])
        assert ("no_inline" in function.operation.attributes) is not inlined


NESTED = """
  func.func @k(%x: f32) -> f32 attributes {{xgpu.kernel, xgpu.block = array<i64: 32, 1, 1>}} {{
    %a = func.call @outer(%x) : (f32) -> f32
    %b = func.call @outer(%a) : (f32) -> f32
    %c = func.call @rare(%b) : (f32) -> f32
    %d = func.call @rare(%c) : (f32) -> f32
    return %d : f32
  }}
  func.func private @outer(%x: f32) -> f32 {{
    {calls}
    return %c{count} : f32
  }}
  func.func private @inner(%v0: f32) -> f32 {{
    {body}
    return %v100 : f32
  }}
  func.func private @rare(%x: f32) -> f32 attributes {{xgpu.cold}} {{
    %y = func.call @inner(%x) : (f32) -> f32
    return %y : f32
  }}"""


@pytest.mark.parametrize(("count", "inlined"), [(30, {"outer", "inner"}), (50, {"outer"})])
def test_copies_of_what_copies_call_count(count: int, inlined: set[str]) -> None:
    """Each copy of a function has copies of those that it calls: 2 times 50 times 100 operations are too many."""
    calls = "\n".join(f"%c{n + 1} = func.call @inner(%{f'c{n}' if n else 'x'}) : (f32) -> f32" for n in range(count))
    body = "\n".join(f"%v{n + 1} = arith.addf %v{n}, %v{n} : f32" for n in range(100))
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(NESTED.format(calls=calls, count=count, body=body))
        assert copied_functions(module) == inlined
        run(module, parse_pipeline("lower-to-llvm{target=nvvm}"))
        always = {
            ir.StringAttr(op.attributes["sym_name"]).value
            for op in module.body.operations
            if "always_inline" in op.operation.attributes
        }
        assert always == inlined
