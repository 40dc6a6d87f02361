"""Inlining keeps long chains of functions linear in operations and shallow in regions."""

import pytest

from xgpu import ir
from xgpu.passes.framework import manager
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.structure import walk

ENTRY = """
func.func @kernel(%t: tensor<8xf32>, %i: index) -> f32 attributes {xgpu.kernel} {
  %x = "xgpu.pure_call"(%t, %i) {callee = @f0} : (tensor<8xf32>, index) -> f32
  return %x : f32
}
"""
# Like pad followed by add: one use of the next value is shifted and checked, the other is not.
USED_TWICE = """
func.func private @f{this}(%t: tensor<8xf32>, %i: index) -> f32 {{
  %zero = arith.constant 0.0 : f32
  %j = "xgpu.apply_indexing"(%i) {{map = #xgpu.map<(d0) -> (d0 + 1), d0 in [0, 7]>}} : (index) -> index
  %in = "xgpu.in_domain"(%i) {{map = #xgpu.map<(d0) -> (), d0 in [0, 7], d0 in [0, 6]>}} : (index) -> i1
  %a = scf.if %in -> f32 {{
    %x = "xgpu.pure_call"(%t, %j) {{callee = @f{next}}} : (tensor<8xf32>, index) -> f32
    scf.yield %x : f32
  }} else {{
    scf.yield %zero : f32
  }}
  %b = "xgpu.pure_call"(%t, %i) {{callee = @f{next}}} : (tensor<8xf32>, index) -> f32
  %r = arith.addf %a, %b : f32
  return %r : f32
}}
"""
USED_ONCE = """
func.func private @f{this}(%t: tensor<8xf32>, %i: index) -> f32 {{
  %zero = arith.constant 0.0 : f32
  %in = "xgpu.in_domain"(%i) {{map = #xgpu.map<(d0) -> (), d0 in [0, 7], d0 in [0, 6]>}} : (index) -> i1
  %a = scf.if %in -> f32 {{
    %x = "xgpu.pure_call"(%t, %i) {{callee = @f{next}}} : (tensor<8xf32>, index) -> f32
    scf.yield %x : f32
  }} else {{
    scf.yield %zero : f32
  }}
  return %a : f32
}}
"""
NO_REGIONS = """
func.func private @f{this}(%t: tensor<8xf32>, %i: index) -> f32 {{
  %x = "xgpu.pure_call"(%t, %i) {{callee = @f{next}}} : (tensor<8xf32>, index) -> f32
  %r = arith.negf %x : f32
  return %r : f32
}}
"""
LEAF = """
func.func private @f{this}(%t: tensor<8xf32>, %i: index) -> f32 {{
  %x = tensor.extract %t[%i] : tensor<8xf32>
  return %x : f32
}}
"""


def inlined(link: str, length: int) -> ir.Module:
    links = [link.format(this=i, next=i + 1) for i in range(length)]
    module = ir.Module.parse(ENTRY + "".join(links) + LEAF.format(this=length))
    manager.run(module, parse_pipeline("inline"))
    return module


def nesting(module: ir.Module) -> int:
    deepest = 0
    for op in walk(module.operation):
        depth = 0
        while op.parent is not None:
            op = op.parent.operation
            depth += 1
        deepest = max(deepest, depth)
    return deepest


@pytest.mark.parametrize("link", [USED_TWICE, USED_ONCE, NO_REGIONS], ids=["twice", "once", "flat"])
def test_chain_stays_linear_and_shallow(link: str) -> None:
    with ir.make_context(), ir.Location.unknown():
        counts = []
        for length in (200, 400):
            module = inlined(link, length)
            counts.append(len(walk(module.operation)))
            # The module and the function are around the regions that the option max-depth counts.
            assert nesting(module) <= 32 + 2
        assert counts[1] <= 2.1 * counts[0]


def test_long_chain_called_once_becomes_one_function() -> None:
    with ir.make_context(), ir.Location.unknown():
        module = inlined(NO_REGIONS, 3000)
        assert len(module.body.operations) == 1
        assert len(walk(module.operation, "arith.negf")) == 3000


def test_copies_of_small_functions_are_limited() -> None:
    calls = "\n".join(f'  %x{i} = "xgpu.pure_call"(%x{i - 1}) {{callee = @g}} : (f32) -> f32' for i in range(1, 101))
    text = f"func.func @f(%x0: f32) -> f32 {{\n{calls}\n  return %x100 : f32\n}}\n"
    text += "func.func private @g(%x: f32) -> f32 {\n  %y = math.exp %x : f32\n  return %y : f32\n}\n"
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        manager.run(module, parse_pipeline("inline{max-growth=30}"))
        assert len(walk(module.operation, "xgpu.pure_call")) == 70


@pytest.mark.parametrize(("size", "calls", "left"), [(40, 25, 0), (40, 26, 26), (24, 100, 0)])
def test_functions_are_copied_up_to_1024_operations(size: int, calls: int, left: int) -> None:
    """Together; those of 24 or fewer, several times as many."""
    lines = "\n".join(f"  %y{i + 1} = math.sin %y{i} : f32" for i in range(size - 1))
    callee = f"""
func.func private @f0(%t: tensor<800xf32>, %i: index) -> f32 {{
  %y0 = tensor.extract %t[%i] : tensor<800xf32>
{lines}
  return %y{size - 1} : f32
}}
"""
    called = "\n".join(
        f'  %c{i} = arith.constant {i} : index\n  %x{i} = "xgpu.pure_call"(%t, %c{i}) {{callee = @f0}} :'
        " (tensor<800xf32>, index) -> f32"
        for i in range(calls)
    )
    sums = "\n".join(f"  %s{i + 1} = arith.addf %s{i}, %x{i + 1} : f32" for i in range(calls - 1))
    sums = sums.replace("%s0,", "%x0,")
    entry = f"""
func.func @kernel(%t: tensor<800xf32>) -> f32 attributes {{xgpu.kernel}} {{
{called}
{sums}
  return %s{calls - 1} : f32
}}
"""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(entry + callee)
        manager.run(module, parse_pipeline("inline"))
        assert str(module).count("xgpu.pure_call") == left
