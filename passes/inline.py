"""The pass `inline`."""

from collections.abc import Iterator
from dataclasses import field
from typing import ClassVar

from xgpu import ir
from xgpu.dialects.traits import traits_of
from xgpu.dialects.xgpu import OPS, PureCallOp
from xgpu.errors import InvalidInput
from xgpu.hlo.source_location import source_of
from xgpu.passes.framework.base import Pass, function_name, functions
from xgpu.passes.support.regions import move_body
from xgpu.records import dataclass
from xgpu.structure import body_of, is_used, replace_op

_CALL = PureCallOp.OPERATION_NAME


@dataclass(frozen=True)
class Inline(Pass):
    """Replaces calls of subgraph functions by their bodies where the callee is small or called rarely.

    Functions are taken callees first, so a callee is judged with what was inlined into it. Equal `xgpu.pure_call`s
    and index operations merge if one of them is in the same block or one around; those without users, and private
    functions without callers, go away. A callee with many callers that is not small stays a function, so code grows
    linearly.
    Needs: nothing. Functions that call each other in a cycle are an error.

    ```mlir
    func.func @f(%t: tensor<8xf32>, %i: index) -> f32 {
      %x = "xgpu.pure_call"(%t, %i) {callee = @f__x} : (tensor<8xf32>, index) -> f32
      ...
    func.func private @f__x(%t: tensor<8xf32>, %j: index) -> f32 {
      %y = tensor.extract %t[%j] : tensor<8xf32>
      return %y : f32
    }
    ```
    becomes
    ```mlir
    func.func @f(%t: tensor<8xf32>, %i: index) -> f32 {
      %x = tensor.extract %t[%i] : tensor<8xf32>
      ...
    ```
    """

    NAME: ClassVar[str] = "inline"
    max_ops: int = 24
    """Operations of a callee, its own callees inlined, up to which it is inlined into several callers."""
    max_copies: int = 1024
    """Operations of all copies of a callee together up to which it is inlined though it is not small."""
    max_growth: int = 4096
    """Operations that copies of small callees may add to one caller."""
    max_depth: int = 32
    """Nested regions that inlining may make."""

    def apply(self, module: ir.Module) -> None:
        """Inline in all functions of ``module``."""
        _Inliner(module, self).run()


@dataclass(eq=False)
class _Function:
    """Facts about a function for inlining; ``size`` and ``depth`` include what is planned to be inlined into it."""

    name: str
    op: ir.Operation
    private: bool
    single_block: bool
    size: int = 0
    """Operations but for the return."""
    depth: int = 0
    """Nested regions."""
    calls: list[tuple[ir.Operation, str, int]] = field(default_factory=list)
    """The calls in it: operation, callee, and how many regions it is nested in."""
    others: list[str] = field(default_factory=list)
    """Symbols that it refers to by other means than a call."""
    plan: "list[tuple[ir.Operation, _Function]]" = field(default_factory=list)
    """The calls that are to be replaced by the body of their callee."""
    moves: bool = False
    """Whether the body goes to the only caller, so that no copy is needed."""


@dataclass
class _Scope:
    """A block in the course of a walk."""

    operations: Iterator[ir.OpView]
    depth: int
    keys: list[tuple[object, ...]] = field(default_factory=list)


class _Inliner:
    def __init__(self, module: ir.Module, options: Inline):
        self._options = options
        self._functions: dict[str, _Function] = {}
        for op in functions(module):
            name = function_name(op)
            single_block = len(op.operation.regions[0].blocks) == 1
            self._functions[name] = _Function(name, op.operation, _is_private(op.operation), single_block)
        self._uses = dict.fromkeys(self._functions, 0)

    def run(self) -> None:
        """Inline everywhere."""
        # The second round is for operations that the first made equal: merging may leave a single call of a function.
        for budget in (self._options.max_growth, 0):
            self._refresh()
            order = self._callees_first()
            for function in order:
                self._decide(function, budget)
            if not any(function.plan for function in order):
                return
            for function in order:
                if not function.moves:
                    self._carry_out(function)
        self._refresh()

    def _refresh(self) -> None:
        """Clean up every function, record what is in it, and erase functions without callers."""
        self._uses = dict.fromkeys(self._functions, 0)
        for function in self._functions.values():
            _scan(function)
            self._count(function, 1)
        self._erase_unused(list(self._functions.values()))

    def _count(self, function: _Function, change: int) -> None:
        for callee in (*(callee for _, callee, _ in function.calls), *function.others):
            if callee in self._uses:
                self._uses[callee] += change

    def _erase_unused(self, candidates: list[_Function]) -> None:
        """Erase those of ``candidates`` that are private and unused, and what only they use."""
        while candidates:
            function = candidates.pop()
            if not function.private or self._uses[function.name] or function.name not in self._functions:
                continue
            del self._functions[function.name]
            self._count(function, -1)
            candidates += [self._functions[name] for _, name, _ in function.calls if name in self._functions]
            function.op.erase()

    def _callees_first(self) -> list[_Function]:
        """Return the functions so that each comes after those it calls."""
        order: list[_Function] = []
        state: dict[str, bool] = {}
        """False while the calls of a function are being followed, True after."""
        for root in self._functions:
            path = [] if root in state else [(root, iter(self._functions[root].calls))]
            while path:
                name, calls = path[-1]
                state.setdefault(name, False)
                callee = next((c for _, c, _ in calls if not state.get(c, False) and c in self._functions), None)
                if callee is None:
                    path.pop()
                    state[name] = True
                    order.append(self._functions[name])
                elif callee in state:
                    names = [name for name, _ in path]
                    cycle = [*names[names.index(callee) :], callee]
                    problem = f"functions call each other in a cycle: {' -> '.join(f'@{n}' for n in cycle)}"
                    raise InvalidInput(problem, source_of(self._functions[callee].op))
                else:
                    path.append((callee, iter(self._functions[callee].calls)))
        return order

    def _decide(self, caller: _Function, budget: int) -> None:
        """Plan which calls in ``caller`` to replace, by at most ``budget`` copied operations.

        Those in its callees have been decided.
        """
        size, depth = caller.size, caller.depth
        for call, name, call_depth in caller.calls:
            callee = self._functions.get(name)
            if callee is None or not callee.single_block or call_depth + callee.depth > self._options.max_depth:
                continue
            callee.moves = callee.private and self._uses[name] == 1
            if not callee.moves:
                is_small = callee.size <= self._options.max_ops
                is_rare = callee.size * self._uses[name] <= self._options.max_copies
                if callee.size > budget or not (is_small or is_rare):
                    continue
                budget -= callee.size
            caller.plan.append((call, callee))
            size += callee.size - 1
            depth = max(depth, call_depth + callee.depth)
        caller.size, caller.depth = size, depth

    def _carry_out(self, caller: _Function) -> None:
        """Carry out the plan of ``caller``, and the plans of the functions that move into it.

        Those come after the function itself, so that every operation moves once however long the chain of calls.
        """
        pending = list(caller.plan)
        while pending:
            call, callee = pending.pop()
            source = callee.op if callee.moves else callee.op.clone(ip=False)
            replace_op(call, move_body(body_of(source), list(call.operands), call))
            source.erase()
            if callee.moves:
                pending += callee.plan
                del self._functions[callee.name]


def _is_private(function: ir.Operation) -> bool:
    attributes = function.attributes
    return "sym_visibility" in attributes and ir.StringAttr(attributes["sym_visibility"]).value == "private"


def _scan(function: _Function) -> None:
    """Merge equal pure operations in ``function``, remove unused ones, and record what is left."""
    function.size, function.depth, function.others, function.plan = -1, 0, [], []
    pure: list[tuple[ir.Operation, int]] = []
    known: dict[tuple[object, ...], ir.Operation] = {}
    scopes = [_Scope(iter(block.operations), 0) for block in function.op.regions[0].blocks]
    while scopes:
        scope = scopes[-1]
        view = next(scope.operations, None)
        if view is None:
            for key in scopes.pop().keys:
                del known[key]
            continue
        op = view.operation
        function.size += 1
        name = op.name
        if traits_of(name).pure:
            pure.append((op, scope.depth))
            _merge(op, name, known, scope)
        elif name.startswith(("xgpu.", "func.")):
            function.others += _symbols_of(op)
        for region in op.regions:
            function.depth = max(function.depth, scope.depth + 1)
            scopes += [_Scope(iter(block.operations), scope.depth + 1) for block in region.blocks]
    _record_calls(function, pure)


def _record_calls(function: _Function, pure: list[tuple[ir.Operation, int]]) -> None:
    """Erase those of ``pure`` without users, users first, and record the calls that are left."""
    function.calls = []
    for op, depth in reversed(pure):
        if all(not is_used(result) for result in op.results):
            function.size -= 1
            op.erase()
        elif op.name == _CALL:
            function.calls.append((op, ir.FlatSymbolRefAttr(op.attributes["callee"]).value, depth))
    function.calls.reverse()


def _merge(op: ir.Operation, name: str, known: dict[tuple[object, ...], ir.Operation], scope: _Scope) -> None:
    """Replace the results of ``op`` by those of an equal operation of ``known``, or add it there."""
    key = (name, *(op.attributes[each.name] for each in OPS[name].ATTRIBUTES), *op.operands)
    equal = known.setdefault(key, op)
    if equal is op:
        scope.keys.append(key)
        return
    for result, other in zip(list(op.results), list(equal.results), strict=True):
        result.replace_all_uses_with(other)


def _symbols_of(op: ir.Operation) -> list[str]:
    values = [op.attributes[name] for name in op.attributes]
    return [ir.FlatSymbolRefAttr(value).value for value in values if isinstance(value, ir.FlatSymbolRefAttr)]
