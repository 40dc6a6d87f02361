import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xgpu.errors import Unsupported
from xgpu.frontend.jax_function import from_jax
from xgpu.frontend.mlir_text import parse_module
from xgpu.hlo.source_location import source_of
from xgpu.passes.normalize.inline_calls import InlineCalls
from xgpu.runtime.reference import Reference

TYPE = "tensor<4xf32>"


def inlined(text):
    module = parse_module(text, "t.mlir")
    InlineCalls().apply(module)
    assert module.operation.verify()
    return module


def body_of(module):
    (main,) = module.body.operations
    return [op.operation for op in main.regions[0].blocks[0].operations]


def entry(*lines):
    return f"func.func @main(%a: {TYPE}) -> {TYPE} {{\n" + "\n".join(lines) + "\n}\n"


def chain(length, calls, last):
    """@main calls @f0, which calls @f1 several times, and so on up to the given last function."""
    functions = [entry(f"%0 = call @f0(%a) : ({TYPE}) -> {TYPE}", f"return %0 : {TYPE}"), last]
    for i in range(length):
        lines = [f"%{k} = call @f{i + 1}(%a) : ({TYPE}) -> {TYPE}" for k in range(calls)]
        functions.append(entry(*lines, f"return %0 : {TYPE}").replace("@main", f"private @f{i}"))
    return "\n".join(functions)


def leaf(number):
    return entry(f"%0 = stablehlo.abs %a : {TYPE}", f"return %0 : {TYPE}").replace("@main", f"private @f{number}")


def test_each_call_gets_its_own_copy_with_its_own_operands():
    callee = f"""func.func private @f(%x: {TYPE}, %y: {TYPE}) -> ({TYPE}, {TYPE}) {{
      %0 = stablehlo.subtract %x, %y : {TYPE} return %0, %x : {TYPE}, {TYPE} }}"""
    module = inlined(
        entry(
            f"%0 = stablehlo.abs %a : {TYPE}",
            f"%1:2 = call @f(%a, %0) : ({TYPE}, {TYPE}) -> ({TYPE}, {TYPE})",
            f"%2:2 = call @f(%1#0, %1#1) : ({TYPE}, {TYPE}) -> ({TYPE}, {TYPE})",
            f"return %2#0 : {TYPE}",
        )
        + callee
    )
    absolute, first, second, result = body_of(module)
    argument = module.body.operations[0].regions[0].blocks[0].arguments[0]
    assert list(first.operands) == [argument, absolute.result]
    assert list(second.operands) == [first.result, argument]
    assert list(result.operands) == [second.result]


def test_regions_of_the_callee_keep_referring_to_its_values():
    callee = f"""func.func private @f(%x: {TYPE}) -> {TYPE} {{
      %s = stablehlo.abs %x : {TYPE}
      %0 = stablehlo.while(%i = %x) : {TYPE}
        cond {{ %c = stablehlo.constant dense<true> : tensor<i1> stablehlo.return %c : tensor<i1> }}
        do {{ %r = stablehlo.add %i, %s : {TYPE} stablehlo.return %r : {TYPE} }}
      return %0 : {TYPE} }}"""
    module = inlined(entry(f"%0 = call @f(%a) : ({TYPE}) -> {TYPE}", f"return %0 : {TYPE}") + callee)
    absolute, loop, _ = body_of(module)
    add = loop.regions[1].blocks[0].operations[0]
    assert add.operands[1] == absolute.result


def test_calls_inside_regions():
    module = inlined(
        entry(
            f"%0 = stablehlo.while(%i = %a) : {TYPE}",
            "cond { %c = stablehlo.constant dense<true> : tensor<i1> stablehlo.return %c : tensor<i1> }",
            f"do {{ %r = func.call @f0(%i) : ({TYPE}) -> {TYPE} stablehlo.return %r : {TYPE} }}",
            f"return %0 : {TYPE}",
        )
        + leaf(0)
    )
    assert body_of(module)[0].regions[1].blocks[0].operations[0].operation.name == "stablehlo.abs"


def test_a_long_chain_of_calls():
    assert [op.name for op in body_of(inlined(chain(2000, 1, leaf(2000))))] == ["stablehlo.abs", "func.return"]


def test_the_number_of_operations_is_what_the_calls_say():
    assert len(body_of(inlined(chain(10, 2, leaf(10))))) == 2**10 + 1


def test_inlining_that_would_explode_is_refused_before_it_starts():
    with pytest.raises(Unsupported, match=r"inlining makes \d{19} operations; at most 1000000 are supported"):
        inlined(chain(60, 2, leaf(60)))


@pytest.mark.parametrize("target", ["main", "f0", "f1", "f2"])
def test_recursion(target):
    last = leaf(2).replace("stablehlo.abs %a :", f"call @{target}(%a) : ({TYPE}) ->")
    with pytest.raises(Unsupported, match=r"function @\w+ calls itself, directly or through others"):
        inlined(chain(2, 1, last))


def test_a_callee_without_a_body():
    with pytest.raises(Unsupported, match="function @f0 is called but has no body"):
        inlined(chain(0, 1, f"func.func private @f0({TYPE}) -> {TYPE}"))


def test_jax_functions_called_twice_know_the_line_of_their_call():
    def program(x):
        first = jax.nn.relu(x)
        return first, jax.nn.relu(jnp.where(x > 1, first, 2.0))

    source = from_jax(program, ["f32[5]"])
    main = source.module.body.operations[0]
    lines = {op.operation.name: source_of(op).line for op in main.regions[0].blocks[0].operations}
    start = program.__code__.co_firstlineno
    assert lines["stablehlo.select"] == start + 2
    assert lines["stablehlo.maximum"] in (start + 1, start + 2)
    x = np.linspace(-2, 2, 5, dtype=np.float32)
    for found, expected in zip(Reference(source.module)([x]), program(x), strict=True):
        np.testing.assert_array_equal(found, expected)
