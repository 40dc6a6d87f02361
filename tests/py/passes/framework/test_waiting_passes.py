"""Passes of pipelines that are imported when they first have work: the same steps, and only for what they act on."""

from dataclasses import replace

import pytest

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.errors import CompilerError
from xgpu.levels import pipeline
from xgpu.options import Options
from xgpu.passes.framework import acts_on, manager, registry
from xgpu.passes.framework.acts_on import ActsOn, known_passes
from xgpu.passes.framework.registry import all_passes, parse_pipeline
from xgpu.target_machine import HOST

OTHERS = Options(
    pad_products=False, fuse_attention=False, products="kernels", control_flow="launches", deterministic=True
)
"""Options that are not those of passes."""
PROGRAM = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = stablehlo.{} %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}}
"""


def test_the_table_is_what_the_classes_say() -> None:
    assert known_passes() == {cls.NAME: ActsOn.of(cls) for cls in all_passes() if cls.OPERATIONS}


@pytest.mark.parametrize("target", [DEFAULT_DEVICE, "sm_80", "sm_100a"])
@pytest.mark.parametrize("options", [Options(), OTHERS], ids=["usual", "others"])
def test_steps_are_those_of_the_text(monkeypatch: pytest.MonkeyPatch, target: str, options: Options) -> None:
    """They are known by the same texts, which messages and times have."""

    def texts() -> list[str]:
        pipeline._parsed.cache_clear()
        edges = [edge.passes for edge in pipeline.GRAPH.edges if edge.passes]
        with ir.make_context():
            steps = [pipeline.steps(passes, device(target), options) for passes in (pipeline.NORMALIZE, *edges)]
            steps.append(pipeline.to_llvm(HOST, device(target)))
        return [str(step) for each in steps for step in each]

    waiting = texts()
    monkeypatch.setattr(pipeline, "parse_pipeline", lambda text, is_known: parse_pipeline(text))
    assert texts() == waiting
    pipeline._parsed.cache_clear()


def test_a_pass_is_loaded_for_what_it_acts_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table here has another operation than the class acts on, which is found out as soon as that is loaded."""
    wrong = replace(known_passes()["expand-powers"], operations=frozenset(("stablehlo.abs",)))
    known = {**known_passes(), "expand-powers": wrong}
    for module in (acts_on, registry):
        monkeypatch.setattr(module, "known_passes", lambda: known)
    with ir.make_context():
        negation, absolute = (ir.Module.parse(PROGRAM.format(kind)) for kind in ("negate", "abs"))
        steps = parse_pipeline("expand-powers", is_known=True)
        manager.run(negation, steps, manager.Instrumentation(verify="last"))
        with pytest.raises(
            CompilerError, match=r"'expand-powers' and acts_on\.py differ: run python -m xgpu.tools\.make_docs"
        ):
            manager.run(absolute, steps, manager.Instrumentation(verify="last"))
        with pytest.raises(CompilerError, match=r"acts_on\.py differ"):
            parse_pipeline("expand-powers")
