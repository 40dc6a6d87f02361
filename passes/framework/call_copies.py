"""Chooses functions of a module to copy into their callers: before machine code is made, as a call is never free.

A function that is called has its arguments and results in certain registers, and nothing of it is computed beside other
values, so copies run faster; but they take time to compile.
"""

from collections import Counter

from xgpu import ir
from xgpu.dialects.attributes import COLD, KERNEL
from xgpu.passes.framework.base import function_name, functions
from xgpu.records import dataclass
from xgpu.structure import walk

_MOST_COPIED = 8000
"""Operations that the copies in a module may have. With so many, a kernel takes one or two seconds to compile."""
_LARGEST = 256
"""Operations of a function of several calls that is copied: of a larger one, calls are a small part of the time."""


@dataclass(frozen=True)
class _Function:
    """The operations of a function, the calls in it, and whether it is one to copy at all."""

    size: int
    calls: Counter[str]
    is_fixed: bool


def copied_functions(module: ir.Module) -> frozenset[str]:
    """Return the functions that are copied wherever they are called: not kernels, and not those called seldom.

    A copy has copies of what it calls in turn, so callers are decided first. What has a single call costs nothing.
    """
    table = {function_name(function): _facts(function.operation) for function in functions(module)}
    sites: Counter[str] = Counter()
    copied, spent = set(), 0
    for name in _callers_first(table):
        function, count = table[name], sites[name]
        cost = count * function.size if count > 1 else 0
        bodies = 1
        is_small = count <= 1 or function.size <= _LARGEST
        if not function.is_fixed and is_small and spent + cost <= _MOST_COPIED:
            copied.add(name)
            spent += cost
            bodies = max(1, count)
        for callee, calls in function.calls.items():
            sites[callee] += bodies * calls
    return frozenset(copied)


def callee_of(call: ir.Operation) -> str:
    """Return the name of the function that ``func.call`` calls."""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def _facts(function: ir.Operation) -> _Function:
    inside = walk(function)
    calls = Counter(callee_of(op) for op in inside if op.name == "func.call")
    is_fixed = KERNEL in function.attributes or COLD in function.attributes
    return _Function(len(inside) - 1, calls, is_fixed)


def _callers_first(table: dict[str, _Function]) -> list[str]:
    """Return the functions so that each comes after those that call it; those of a cycle are left out."""
    waiting = Counter(callee for function in table.values() for callee in function.calls)
    ready = [name for name in table if not waiting[name]]
    order = []
    while ready:
        name = ready.pop()
        order.append(name)
        for callee in table[name].calls:
            waiting[callee] -= 1
            if not waiting[callee] and callee in table:
                ready.append(callee)
    return order
