"""Modules of xgpu may be imported before JAX and after it."""

import subprocess
import sys

import pytest

import xgpu
from xgpu.levels import pipeline
from xgpu.passes.framework.registry import pass_class
from xgpu.target.host.machine_code import host_source

_USE = "import xgpu; print(xgpu.jit(lambda x: x - 1)(jnp.arange(4.0)))"


@pytest.mark.parametrize(
    "imports",
    [
        "from xgpu import ir; import jax.numpy as jnp",
        "import jax.numpy as jnp; from xgpu import ir",
        "import xgpu.levels.pipeline, xgpu.passes.inline; import jax.numpy as jnp",
    ],
)
def test_order_of_imports_does_not_matter(imports: str) -> None:
    result = subprocess.run([sys.executable, "-c", f"{imports}; {_USE}"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout.strip()) == (0, "[-1.  0.  1.  2.]"), result.stderr


def test_what_functions_have_no_use_for_is_not_imported() -> None:
    """The loop language, Pallas, whose import takes longer than the compilation of a kernel, classes of operations."""
    names = ("jax.extend", "xgpu.loop_language", *(f"jaxlib.mlir.dialects.{name}" for name in ("gpu", "llvm", "nvvm")))
    listing = f"import sys; print([name for name in sys.modules if name.startswith({names})])"
    result = subprocess.run(
        [sys.executable, "-c", f"import jax.numpy as jnp; {_USE}; {listing}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "[]"), result.stderr


def test_passes_without_work_are_not_imported() -> None:
    """Two thirds of those of a program, with what they import alone: nine tenths of what a first call imported."""
    passes = (
        "blocks.",
        "legalize.legalize",
        "nests.",
        "normalize.expansions",
        "normalize.find",
        "normalize.scans",
        "tiles",
    )
    prepare = (
        "chains",
        "concatenations",
        "control",
        "library",
        "products",
        "scatters",
        "solves",
        "sorting",
        "transforms",
    )
    names = tuple(f"xgpu.passes.{name}" for name in (*passes, *(f"prepare.{name}." for name in prepare)))
    listing = f"import sys; print([name for name in sys.modules if name.startswith({names})])"
    result = subprocess.run(
        [sys.executable, "-c", f"import jax.numpy as jnp; {_USE}; {listing}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "[]"), result.stderr


@pytest.mark.parametrize("imports", [("xgpu.ir", "jaxlib.mlir.dialects"), ("jaxlib.mlir.dialects", "xgpu.ir")])
def test_dialects_whose_classes_are_not_needed_are_left_to_others(imports: tuple[str, str]) -> None:
    """The classes of LLVM's and GPUs' operations, whose import takes a fifth of that of xgpu."""
    theirs = "from jaxlib.mlir.dialects import gpu, llvm, nvvm, vector"
    code = "; ".join("from xgpu import ir" if name == "xgpu.ir" else theirs for name in imports)
    classes = "assert llvm.AddOp and gpu.BarrierOp and nvvm.BarrierOp and vector.BroadcastOp"
    code = f"import jax.numpy as jnp; {code}; {classes}; {_USE}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout.strip()) == (0, "[-1.  0.  1.  2.]"), result.stderr


def test_a_process_that_compiles_kernels_imports_no_planner() -> None:
    """Programs wait for it to start: JAX, the frontend, the planner and the emitters are two fifths of that time."""
    others = ("jax.", "xgpu.emit", "xgpu.frontend", "xgpu.fusion.grouping", "xgpu.fusion.planner")
    code = f"import sys, xgpu.driver.compile_worker; print([name for name in sys.modules if name.startswith({others})])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout.strip()) == (0, "[]"), result.stderr


def test_a_process_that_compiles_kernels_has_their_passes() -> None:
    """Those that are forked from it do not each import what a kernel has work for."""
    texts = [text for passes in (pipeline.OPTIMIZE, pipeline.LOWER, pipeline.TO_LLVM) for text, _ in passes]
    classes = [pass_class(text.partition("{")[0]) for text in texts]
    names = sorted({cls.__module__ for cls in classes if cls is not None})
    code = (
        f"import sys; from xgpu.driver.compile_worker import warm_up; warm_up(); print({{*{names}}} - {{*sys.modules}})"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (len(names) > 20, result.returncode, result.stdout.strip()) == (True, 0, "set()"), result.stderr


def test_no_dialect_is_searched_for_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bindings look for a Python module of a dialect at each operation, again and again where there is none."""

    def source_of_sum() -> None:
        (kernel,) = xgpu.compile(lambda x: x.sum(axis=1), "f32[64,1000]").kernels
        host_source(kernel.host_module(), kernel.name, kernel.grid, kernel.block)

    source_of_sum()
    searched: list[str] = []

    class Finder:
        def find_spec(self, name: str, *_: object) -> None:
            searched.append(name)

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    source_of_sum()
    assert not searched
