"""The text of conditionals, whose blocks take what they compute with from around them, as JAX writes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from xgpu.tools.fuzzing.ops import TensorType


def branches_text(number: int, operands: Sequence[str], types: Sequence[TensorType], params: Mapping[str, Any]) -> str:
    """Return the lines of a conditional of two results.

    Operands: an index or a condition, the condition of conditionals inside, and two arrays of one type. ``params``:
    ``branches`` has what each block computes, which is the name of each result's operation, or two such pairs.
    """
    index, condition, *arrays = operands
    name = "if" if types[0].dtype.kind == "bool" else "case"
    blocks = []
    for position, branch in enumerate(params["branches"]):
        local = f"%v{number}_{position}"
        if isinstance(branch[0], str):
            blocks.append(_block(branch, local, arrays, types[2]))
            continue
        inner = [_block(each, f"{local}_{i}", arrays, types[2]) for i, each in enumerate(branch)]
        lines = [_conditional(local, "if", condition, types[1], inner, types[2])]
        blocks.append([*lines, f"stablehlo.return {local}#0, {local}#1 : {types[2]}, {types[2]}"])
    return _conditional(f"%{number}", name, index, types[0], blocks, types[2])


def _conditional(
    result: str, name: str, index: str, of: TensorType, blocks: Sequence[Sequence[str]], type_: TensorType
) -> str:
    regions = ", ".join("{\n    " + "\n    ".join(lines) + "\n  }" for lines in blocks)
    return f'{result}:2 = "stablehlo.{name}"({index}) ({regions}) : ({of}) -> ({type_}, {type_})'


def _block(names: Sequence[str], local: str, arrays: Sequence[str], type_: TensorType) -> list[str]:
    """Return the lines of a block: each result is one of the arrays, the first one reversed, or both combined."""
    lines, results = [], []
    for i, name in enumerate(names):
        if name in ("first", "second"):
            results.append(arrays[name == "second"])
            continue
        results.append(f"{local}_r{i}")
        dims = ", ".join(map(str, range(len(type_.shape))))
        reads = f"{arrays[0]}, dims = [{dims}]" if name == "reverse" else ", ".join(arrays)
        lines.append(f"{results[-1]} = stablehlo.{name} {reads} : {type_}")
    return [*lines, f"stablehlo.return {', '.join(results)} : {type_}, {type_}"]
