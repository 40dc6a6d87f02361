"""Programs of every kind, restarted from the text of each level, give the LLVM IR of the direct way."""

import pytest

import xgpu
from tests.py import effort
from xgpu.dtypes import MAX_ELEMENTS
from xgpu.emit.family_table import FAMILIES
from xgpu.levels.pipeline import GRAPH, MLIR_LEVELS
from xgpu.tools.programs import all_programs
from xgpu.tools.programs.base import TestProgram

LEVELS = [level for level in MLIR_LEVELS if GRAPH.leads("stablehlo", level)]
"""The levels that programs of JAX have."""

_ALL = {f"{group}/{program}": program for group, program in all_programs()}
_OF_EACH_EMITTER = (
    "concatenations/inside-a-reduction",
    "concatenations/split",
    "movement/concatenate",
    "movement/concatenate-itself",
    "movement/dynamic-update-slice",
    "recurrences/gates",
    "reductions/sum-columns",
    "reductions/then-functions",
    "rows/odd-rows",
    "rows/of-columns",
    "scans/columns",
    "scans/rows",
    "scatters/few-f32",
    "scatters/once-c128",
    "transposes/bf16-128x256",
)
_FUSED = [name for name in _ALL if name.startswith("fused/")]
_NAMES = list(dict.fromkeys([*_OF_EACH_EMITTER, *_FUSED, *effort.drawn(list(_ALL), effort.by_level(3, 15, len(_ALL)))]))


def _llvm_ir(program: xgpu.Compiled) -> list[str]:
    """The kernels without their names: the text of level ``stablehlo`` does not say the user's functions."""
    return [kernel.llvmir.replace(kernel.name, f"kernel{number}") for number, kernel in enumerate(program.kernels)]


def test_every_emitter_is_there() -> None:
    programs = [_ALL[name].compile() for name in _OF_EACH_EMITTER]
    found = {kernel.emitter for program in programs for kernel in program.kernels}
    # These are taken for the sake of options or of sizes that no program here has.
    assert FAMILIES.keys() - found == {
        "attention",
        "sums",
        "product",
        "warp_product",
        "scatter_ordered",
        "scatter_sorted",
    }


@pytest.mark.parametrize("program", [_ALL[name] for name in _NAMES], ids=_NAMES)
def test_llvm_ir_is_the_same_from_every_level(program: TestProgram) -> None:
    direct = program.compile()
    if not direct.kernels:
        pytest.skip("a program whose results have no elements has no kernels, and no text at later levels")
    for level in LEVELS:
        assert _llvm_ir(xgpu.compile(direct.ir(level), options=program.options)) == _llvm_ir(direct), level


@pytest.mark.parametrize("level", ["emitted", "optimized", "lowered", "llvm"])
def test_the_largest_array_goes_on_from_every_level(level: str) -> None:
    program = xgpu.compile(lambda x: x[0, 0, :4].real * 2, f"c128[{MAX_ELEMENTS >> 2},2,2]")
    assert xgpu.compile(program.ir(level)).kernels[0].ptx == program.kernels[0].ptx
