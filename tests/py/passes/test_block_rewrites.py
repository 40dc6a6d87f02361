"""Rewrites of StableHLO do in bodies of loops and in branches what they do in ``@main``."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from xgpu import ir
from xgpu.dialects.verify import problems
from xgpu.errors import InvalidInput
from xgpu.levels.pipeline import PREPARE
from xgpu.passes.framework import manager
from xgpu.passes.framework.base import BlockRewrite
from xgpu.passes.framework.registry import all_passes, parse_pipeline

LIT = Path(__file__).resolve().parents[2] / "lit" / "passes"
REWRITES = [cls.NAME for cls in all_passes() if issubclass(cls, BlockRewrite)]
OUTWARD = ("select-branches", "merge-products", "pad-products", "turn-product-operands", "hoist-invariants")
"""Rewrites that write around the block: the lit tests of these have loops and branches in branches."""
_PIPELINE = re.compile(r"^// RUN: .* -p '?([^' ]+)", re.MULTILINE)
_MAIN = re.compile(
    r"^func\.func @main\((?P<parameters>[^\n]*)\) -> (?P<types>[^\n]*) \{\n"
    r"(?P<body>.*)\n  return (?P<values>[^\n]*) : [^\n]*\n\}",
    re.DOTALL | re.MULTILINE,
)


def test_all_rewrites_before_the_planner_are_meant() -> None:
    assert len(REWRITES) >= 20
    assert set(REWRITES) == {text.partition("{")[0] for text, _ in PREPARE} - {"set-level", "func.func(trivial-dce)"}


def _programs(name: str) -> tuple[str, list[re.Match[str]]]:
    """Return how the lit test of a pass runs it, and the programs in it, each in the parts of its text."""
    (path,) = (each for each in LIT.rglob(f"{name.replace('-', '_')}*") if each.stem == name.replace("-", "_"))
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        text = file.read_text()
        pipeline = _PIPELINE.search(text)
        assert pipeline is not None
        if found := [each for part in text.split("// -----\n") if (each := _MAIN.search(part)) is not None]:
            return pipeline[1], found
    raise AssertionError(f"no lit test of {name} has programs with results")


def _types(text: str) -> list[str]:
    return re.findall(r"tensor<(?:[^<>]|<[^<>]*>)*>", text)


def _in_branch(program: re.Match[str]) -> str:
    types = ", ".join(_types(program["types"]))
    count = len(_types(program["types"]))
    results = ", ".join(f"%wrapped#{i}" for i in range(count))
    return f"""func.func @main({_with(program, "%branch: tensor<i32>")}) -> ({types}) {{
      %wrapped:{count} = "stablehlo.case"(%branch) ({{
        {program["body"]}
        stablehlo.return {program["values"]} : {types}
      }}) : (tensor<i32>) -> ({types})
      return {results} : {types}
    }}"""


def _with(program: re.Match[str], parameter: str) -> str:
    """Return the program's parameters, of which there may be none, and one more."""
    return ", ".join(filter(None, (program["parameters"], parameter)))


def _in_body(program: re.Match[str]) -> str:
    own = _types(program["types"])
    types = ", ".join(["tensor<i1>", *own])
    starts = "\n".join(f"%start{i} = stablehlo.iota dim = 0 : {type_}" for i, type_ in enumerate(own) if "x" in type_)
    starts += "\n".join(
        f"%start{i} = stablehlo.constant dense<{'0.0' if 'f' in type_ else '0'}> : {type_}"
        for i, type_ in enumerate(own)
        if "x" not in type_
    )
    states = ", ".join(["%go", *(f"%start{i}" for i in range(len(own)))])
    return f"""func.func @main({_with(program, "%go: tensor<i1>")}) -> ({", ".join(own)}) {{
      {starts}
      %wrapped:{len(own) + 1} = "stablehlo.while"({states}) ({{
      ^bb0(%on: tensor<i1>{"".join(f", %old{i}: {type_}" for i, type_ in enumerate(own))}):
        stablehlo.return %on : tensor<i1>
      }}, {{
      ^bb0(%on: tensor<i1>{"".join(f", %old{i}: {type_}" for i, type_ in enumerate(own))}):
        {program["body"]}
        stablehlo.return %on, {program["values"]} : {types}
      }}) : ({types}) -> ({types})
      return {", ".join(f"%wrapped#{i + 1}" for i in range(len(own)))} : {", ".join(own)}
    }}"""


def _rewritten(text: str, pipeline: str) -> ir.Module:
    """Return a program after a pass."""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        manager.run(module, parse_pipeline(pipeline))
        assert not problems(module)
        return module


def _main(module: ir.Module) -> ir.Block:
    """Return the block of ``@main``, which lives as long as its module."""
    (main,) = module.body.operations
    block: ir.Block = main.entry_block
    return block


def _described(block: ir.Block, outer: ir.Block) -> str:
    """Return what the operations of ``block`` are, whatever values are called; ``outer`` is that of ``@main``."""
    numbers: dict[ir.Value, str] = {value: f"argument {i}" for i, value in enumerate(outer.arguments)}

    def number(values: Any) -> Iterator[str]:
        for value in values:
            yield numbers.setdefault(value, f"value {len(numbers)}")

    def describe(op: ir.Operation) -> list[Any]:
        attributes = {name: str(op.attributes[name]) for name in op.attributes}
        inner = [
            [list(number(inner.arguments)), [describe(each.operation) for each in inner.operations]]
            for region in op.regions
            for inner in region.blocks
        ]
        types = [str(result.type) for result in op.results]
        return [op.name, list(number(op.operands)), list(number(op.results)), types, attributes, inner]

    *operations, end = (view.operation for view in block.operations)
    described = [describe(op) for op in operations]
    first = 1 if block.owner.operation.name == "stablehlo.while" else 0
    found: dict[str, str] = {}
    text = str([*described, list(number(list(end.operands)[first:]))])
    # Numbered in the order in which they come up: in a wrapped program there are more arguments.
    return re.sub(r"value \d+", lambda match: found.setdefault(match[0], f"v{len(found)}"), text)


def _inner_block(main: ir.Block) -> ir.Block:
    """Return the last block of the operation that a program was wrapped in."""
    *_, wrapper, _ = (view.operation for view in main.operations)
    (block,) = wrapper.regions[len(wrapper.regions) - 1].blocks
    return block


@pytest.mark.parametrize("name", [name for name in REWRITES if name not in OUTWARD])
def test_blocks_are_rewritten_alike(name: str) -> None:
    pipeline, programs = _programs(name)
    changed = 0
    for program in programs:
        given, expected = _rewritten(program[0], ""), _rewritten(program[0], pipeline)
        wanted = _described(_main(expected), _main(expected))
        changed += wanted != _described(_main(given), _main(given))
        for wrap in (_in_branch, _in_body):
            wrapped = _rewritten(wrap(program), pipeline)
            assert _described(_inner_block(_main(wrapped)), _main(wrapped)) == wanted, (wrap, program[0])
    assert changed


def test_a_program_without_main_is_refused() -> None:
    with ir.make_context(), pytest.raises(InvalidInput, match="'slice-parts' rewrites the function @main, and the"):
        manager.run(ir.Module.parse("func.func @f() { return }"), parse_pipeline("slice-parts"))
