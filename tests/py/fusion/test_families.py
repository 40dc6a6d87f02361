"""The planner asks the table of families, whichever are in it, in its order, and never for their names."""

import ast
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import xgpu.fusion
from xgpu import ir
from xgpu.device import device
from xgpu.driver.compiler import plan_program
from xgpu.emit.families.loop import LOOPS, LoopEmitter
from xgpu.emit.family import Family
from xgpu.emit.family_table import FAMILIES
from xgpu.frontend import load_source
from xgpu.fusion.grouping.block_facts import BlockFacts
from xgpu.fusion.grouping.decisions import Verdict
from xgpu.fusion.grouping.families import Candidate, Families, Match
from xgpu.fusion.grouping.grouper import group_block
from xgpu.fusion.planner import make_plan
from xgpu.indexing.access import shape_of
from xgpu.reasons import Reason


def _sorted_sums(x: jax.Array, y: jax.Array, i: jax.Array) -> jax.Array:
    return x.at[i].add(y, indices_are_sorted=True)


def _slices(x: jax.Array) -> tuple[jax.Array, ...]:
    return x[:64], x[32:512]


def _update(x: jax.Array, y: jax.Array, i: jax.Array) -> jax.Array:
    return jax.lax.dynamic_update_slice(x, y, (i, i))


def _loop(x: jax.Array, ws: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda h, w: (jnp.tanh(h * w), None), x, ws)[0]


def _joined(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.concatenate([x, y], 1)


_SCATTERED = ("f32[40000,32]", "f32[40000,32]", "s32[40000]")
PROGRAMS: dict[str, tuple[Callable[..., object], tuple[str, ...], list[str]]] = {
    "scatter_sorted": (_sorted_sums, _SCATTERED, ["scatter"]),
    "scatter_shared": (lambda x, y, i: x.at[i].add(y), ("f32[40]", "f32[40000]", "s32[40000]"), ["scatter"]),
    "scatter": (lambda x, y, i: x.at[i].add(y), ("f32[40,6]", "f32[9,6]", "s32[9]"), ["scatter_ordered"]),
    "update_slice": (_update, ("f32[64,64]", "f32[4,4]", "s32[]"), ["loop"]),
    "reduce_row": (lambda x: x.sum(1), ("f32[64,512]",), ["loop"]),
    "reduce_column": (lambda x: x.sum(0), ("f32[64,512]",), ["loop"]),
    "rows": (lambda x: jax.nn.softmax(x), ("f32[64,512]",), ["reduce_row", "reduce_row", "loop"]),
    "input_slices": (_slices, ("f32[4096]",), ["parts"]),
    "parts": (lambda x, y: (x.sum(1), y + 1), ("f32[64,512]", "f32[9]"), ["reduce_row", "loop"]),
    "transpose": (lambda x: x.T, ("f32[256,256]",), ["loop"]),
    "concatenate": (_joined, ("f32[512,16]", "f32[512,16]"), ["loop"]),
    "concatenate_tiled": (_joined, ("f32[512,3]", "f32[512,5]"), ["loop"]),
}
"""Programs that make kernels of a family, and the emitters of what they are without that family."""


def _prepared(function: Callable[..., object], specs: tuple[str, ...]) -> ir.Module:
    return plan_program(load_source(function, specs).module)["prepared"]


def _emitters(prepared: ir.Module, families: list[Family]) -> list[str]:
    """Return the emitters of the kernels that the planner makes of a program with these families."""
    reasons = make_plan(prepared, families).why({Verdict.EMITTED})
    return [line.split("emitter: ")[1].split(":")[0] for line in reasons]


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_a_family_the_next_one_is_asked(name: str) -> None:
    function, specs, others = PROGRAMS[name]
    prepared = _prepared(function, specs)
    assert name in _emitters(prepared, list(FAMILIES.values()))
    assert _emitters(prepared, [family for family in FAMILIES.values() if family.name != name]) == others


class _OtherEmitter(LoopEmitter):
    NAME = "other"


def _few(candidate: Candidate) -> Match | None:
    return Match((), Reason("few elements")) if shape_of(candidate.roots[0]) == (8,) else None


def test_a_family_is_used_where_it_matches() -> None:
    other = replace(LOOPS, heroes=None, match=_few, emitter=_OtherEmitter)
    prepared = _prepared(lambda x, y: (jnp.sin(x), jnp.sin(y)), ("f32[8]", "f32[9]"))
    assert _emitters(prepared, [other, *FAMILIES.values()]) == ["other", "loop"]
    assert "few elements" in make_plan(prepared, [other, *FAMILIES.values()]).why()[-2]
    # The first that is recognised, not the best.
    assert _emitters(prepared, [*FAMILIES.values(), other][-2:]) == ["loop", "loop"]


def test_the_planner_names_no_family() -> None:
    (folder,) = xgpu.fusion.__path__
    for path in Path(folder).rglob("*.py"):
        constants = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
        assert not [f"{path}:{node.lineno}" for node in constants if node.value in FAMILIES]


def test_groupings_do_not_change() -> None:
    prepared = _prepared(lambda x: jnp.exp(x).sum(1), ("f32[64,512]",))
    (main,) = prepared.body.operations
    *operations, terminator = (op.operation for op in main.entry_block.operations)
    families = Families(FAMILIES.values())
    before = group_block(BlockFacts(operations, list(terminator.operands), families, device("sm_90a")), False, {})
    (exponential,) = (op.results[0] for op in operations if op.name == "stablehlo.exponential")
    after = before.storing({exponential: (0, Reason("asked for"))}, families)
    assert not before.is_stored(exponential)
    assert after.stored_before(exponential, 1)
    assert [len(each.groups) for each in (before, after)] == [1, 2]
    with pytest.raises(FrozenInstanceError):
        before.fallbacks = ()  # type: ignore[misc]
