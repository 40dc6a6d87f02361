"""Runs pipelines: passes of ours and MLIR's in one list, verified, timed and printed after every pass."""

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Literal

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.dialects.base import Problem
from xgpu.dialects.verify import problems
from xgpu.errors import CompilerError, XgpuError, described
from xgpu.hlo.contents import Contents
from xgpu.hlo.source_location import source_of
from xgpu.passes.framework.acts_on import WaitingPass
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import Listener, listening
from xgpu.records import dataclass


@dataclass(frozen=True)
class MlirPass:
    """A pass, or a nested pipeline, of MLIR's own, as its pass manager spells it: ``cse``, ``func.func(cse)``."""

    text: str

    def apply(self, module: ir.Module) -> None:
        """Run it on ``module``."""
        kept = _pipelines.setdefault(module.context, {})
        if self.text not in kept:
            kept[self.text] = _mlir_pipeline(self.text)
        kept[self.text].run(module.operation)

    def __str__(self) -> str:
        return self.text


Step = Pass | WaitingPass | MlirPass
"""One step of a pipeline."""


_pipelines: weakref.WeakKeyDictionary[ir.Context, dict[str, ir.PassManager]] = weakref.WeakKeyDictionary()
"""MLIR's passes in each context: one that canonicalises first collects the patterns of all operations."""


def _mlir_pipeline(text: str) -> ir.PassManager:
    manager = ir.PassManager.parse(f"builtin.module({text})")
    manager.enable_verifier(False)
    return manager


def is_mlir_pass(text: str) -> bool:
    """Tell whether MLIR knows ``text`` as a pass or pipeline. A context is current."""
    try:
        _mlir_pipeline(text)
    except (ValueError, ir.MLIRError):
        return False
    return True


@dataclass
class Instrumentation:
    """Hooks around each pass. ``times`` collects (pass, seconds) in running order.

    ``verify`` says when the module is verified: after each pass, after the last one, or never. ``source`` is the
    command that runs passes on the same module, without them: empty if there is none, None if the module is a level's,
    which can be printed. ``remark`` takes what passes say that they did not do.
    """

    before: Callable[[Step, ir.Module], None] = lambda step, module: None
    after: Callable[[Step, ir.Module], None] = lambda step, module: None
    verify: Literal["each", "last", "never"] = "each"
    source: str | None = None
    remark: Listener | None = None
    times: list[tuple[str, float]] = field(default_factory=list)


_compile: str | None = None
"""The command that compiles the program at hand; None for one of Python's."""
_announce: Callable[[str | None], None] | None = None
"""Takes note of the pass that is about to run, for the message if native code ends the process; of None after it."""


def announce_to(note: Callable[[str | None], None]) -> None:
    """Call ``note`` from now on with each pass that runs and how to repeat it, and with None after the last."""
    global _announce
    _announce = note


def compiling_with(command: str | None) -> None:
    """Record the command that compiles the program at hand: how to repeat a pass begins with it."""
    global _compile
    _compile = command


def compiled_with() -> str | None:
    """Return what was recorded last."""
    return _compile


def run(module: ir.Module, steps: Sequence[Step], instrumentation: Instrumentation | None = None) -> None:
    """Run ``steps`` on ``module`` in order, verifying after each unless the instrumentation says otherwise.

    Raises `CompilerError` naming the pass, the operation and how to repeat the failure if a pass fails or makes IR
    that does not verify; errors about the input (`InvalidInput`) pass through.
    """
    instrumentation = instrumentation or Instrumentation()
    with module.context, ir.Location.unknown():
        given = module.operation.attributes
        level = ir.StringAttr(given[attributes.LEVEL]).value if attributes.LEVEL in given else "stablehlo"
        source = _printing(level) if instrumentation.source is None else instrumentation.source
        contents = Contents(module)
        for position, step in enumerate(steps):
            instrumentation.before(step, module)
            if _announce is not None:
                _announce(f"running pass '{step}'{_repeat(steps[: position + 1], source)}")
            start, blamed = time.perf_counter(), "pass"
            try:
                if instrumentation.verify == "each" and not isinstance(step, MlirPass):
                    step.check(module)
                if isinstance(step, MlirPass) or step.has_work(contents):
                    with listening(instrumentation.remark):
                        step.apply(module)
                    contents = Contents(module)
                is_last = position + 1 == len(steps)
                if instrumentation.verify == "last" and position:
                    blamed = "one of the passes up to"
                if instrumentation.verify == "each" or (instrumentation.verify == "last" and is_last):
                    verify(module)
            except XgpuError:
                raise
            except Exception as error:
                raise _failure(error, f"{blamed} '{step}'", steps[: position + 1], source) from error
            instrumentation.times.append((str(step), time.perf_counter() - start))
            instrumentation.after(step, module)
        if _announce is not None:
            _announce(None)


class InvalidIR(Exception):
    """A module that does not verify. Its text names the operation, what was expected and what was found, and where."""

    def __init__(self, problem: Problem):
        super().__init__(f"{problem.message}\n  in: {problem.op}")
        self.location = source_of(problem.op)


def verify(module: ir.Module) -> None:
    """Raise `InvalidIR` (ours) or `ir.MLIRError` (MLIR's) if ``module`` does not verify."""
    module.operation.verify()
    if found := problems(module):
        raise InvalidIR(found[0])


def _failure(error: Exception, blamed: str, steps: Sequence[Step], source: str) -> CompilerError:
    """Describe the failure of the pass ``blamed``, the last of ``steps``, and the command that repeats it."""
    reported = isinstance(error, ir.MLIRError | InvalidIR)
    reason = str(error) if reported else described(error)
    location = error.location if isinstance(error, InvalidIR) else None
    return CompilerError(f"{blamed} failed: {reason}{_repeat(steps, source)}", location)


def _printing(level: str) -> str:
    """Return the command that runs passes on a level of the program at hand."""
    if _compile is None:
        return f"save xgpu.compile(...).ir('{level}') as level.mlir, and run xgpu-opt level.mlir --split-input-file"
    return f"{_compile} --emit {level} | xgpu-opt --split-input-file"


def _repeat(steps: Sequence[Step], source: str) -> str:
    """Return a line that says how to run ``steps`` again with the command ``source``; nothing without one."""
    return f"\nto repeat: {source} -p '{','.join(str(step) for step in steps)}'" if source else ""
