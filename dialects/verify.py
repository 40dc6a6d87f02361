"""Verification beyond MLIR's own: the operations that xgpu declares, and no unknown ones."""

from xgpu import ir
from xgpu.dialects.base import Problem
from xgpu.dialects.discardable import attribute_problems
from xgpu.dialects.xgpu import OPS
from xgpu.errors import did_you_mean
from xgpu.structure import walk_others

KNOWN_DIALECTS = frozenset(
    "affine arith builtin cf chlo complex func gpu llvm math mhlo nvgpu nvvm scf sdy stablehlo tensor ub vector".split()
)
"""Dialects whose operations the C++ verifier knows."""
_KNOWN_OPERATIONS: set[str] = set()
"""Names of operations of these dialects that were met: modules are verified after every pass."""


def problems(module: ir.Module) -> list[Problem]:
    """Return what is wrong with the xgpu operations of ``module``, and every operation of an unknown dialect."""
    symbols = {
        ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation
        for op in module.body.operations
        if "sym_name" in op.operation.attributes
    }
    unknown: list[Problem] = []
    found = [
        Problem(op.operation, f"'{op.operation.name}' {problem}")
        for op in module.body.operations
        for problem in attribute_problems(op.operation)
    ]
    for op in walk_others(module.operation, _KNOWN_OPERATIONS):
        name = op.name
        dialect = name.partition(".")[0]
        if dialect == "xgpu" and name not in OPS:
            # Names have the dialect's in common, so that all are near by half.
            known = did_you_mean(name, OPS, similarity=0.85) or f"; it has {', '.join(sorted(OPS))}"
            unknown.append(Problem(op, f"'{name}' is not an operation of the xgpu dialect{known}"))
        elif dialect == "xgpu":
            found.extend(Problem(op, f"'{name}' {message}") for message in _problems_of(op, name, symbols))
        elif dialect in KNOWN_DIALECTS:
            _KNOWN_OPERATIONS.add(name)
        else:
            unknown.append(Problem(op, f"unknown operation '{name}': no dialect '{dialect}' is known"))
    # First, as what others lack may be what an operation was to be whose name is wrong.
    return unknown + found


def _problems_of(op: ir.Operation, name: str, symbols: dict[str, ir.Operation]) -> list[str]:
    view = op.opview
    assert isinstance(view, OPS[name])
    return list(view.problems()) or list(view.check(symbols))
