"""About how many instructions operations are, and the loads that wait for conditions."""

from xgpu import ir
from xgpu.dialects.xgpu import PureCallOp
from xgpu.passes.framework.base import function_name, functions
from xgpu.structure import walk

LOAD = 16
"""Instructions in whose time the first-level cache serves a conditional load of one of a thread's four elements: four
lines of a warp's request, and four instructions are issued while it serves one."""
SAVED = 0.5
"""Share of that time which a version without conditions saves, about."""
_IF, _EXTRACT = "scf.if", "tensor.extract"
_SLOW = {"arith.divf": 10, "math": 20}
"""Instructions of an operation, or of those of a dialect, about; one of all others that compute."""


class Called:
    """The functions that kernels of a module call."""

    def __init__(self, module: ir.Module):
        self._functions = {function_name(each): each.operation for each in functions(module)}
        self._found: dict[str, int] = {}

    def instructions(self, op: ir.Operation) -> int:
        """Return about how many instructions an operation is, with those in it and what it calls, each of them once."""
        count = 0
        for each in walk(op):
            dialect = each.name.partition(".")[0]
            if each.name == _EXTRACT:
                count += LOAD
            elif dialect in ("arith", "math"):
                count += _SLOW.get(each.name, _SLOW.get(dialect, 1))
            elif each.name == PureCallOp.OPERATION_NAME:
                count += self._of(ir.FlatSymbolRefAttr(each.attributes["callee"]).value)
        return count

    def _of(self, name: str) -> int:
        """Return the instructions of a function."""
        if name not in self._found:
            self._found[name] = 0
            self._found[name] = self.instructions(self._functions[name]) if name in self._functions else 0
        return self._found[name]


def numbers_loaded(conditional: ir.Operation) -> int:
    """Return how many loads a conditional is around; 0 if it is around all that a thread does."""
    if any(isinstance(result.type, ir.RankedTensorType) for result in conditional.results):
        return 0
    return sum(_is_in(each, conditional) for each in walk(conditional, _EXTRACT))


def _is_in(load: ir.Operation, conditional: ir.Operation) -> bool:
    """Whether a conditional is the innermost one around a load."""
    around = load.parent
    while around is not None and around.operation.name != _IF:
        around = around.operation.parent
    return around is not None and around.operation == conditional
