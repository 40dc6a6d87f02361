"""The pass `share-branch-calls`."""

from typing import ClassVar

from xgpu import ir
from xgpu.dialects.xgpu import PureCallOp
from xgpu.passes.framework.base import Pass, function_name, functions
from xgpu.passes.support.scf_ops import create_if, create_yield
from xgpu.records import dataclass
from xgpu.structure import attributes_of, body_of, defining_op, nested, replace_op, terminator_of

_IF = "scf.if"
_CALL = PureCallOp.OPERATION_NAME
_MATH = 10
"""Operations as which a function of math counts."""


@dataclass(frozen=True)
class ShareBranchCalls(Pass):
    """Calls a function once after a conditional, where both of its branches return what that function returns.

    What is rotated, or has its edges repeated, is read at one index or at another. The branches of a warp whose threads
    take both run one after the other, and each has a copy of the function, or a call. Only for functions that are not
    small: loads whose index is chosen are no vectors. Needs: nothing. Run it before inline, which makes copies.

    ```mlir
    %x = scf.if %first -> (f32) {
      %0 = "xgpu.pure_call"(%t, %last) {callee = @f__x} : (tensor<8xf32>, index) -> f32
      scf.yield %0 : f32
    } else {
      %1 = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 - 1), d0 in [1, 7]>} : (index) -> index
      %2 = "xgpu.pure_call"(%t, %1) {callee = @f__x} : (tensor<8xf32>, index) -> f32
      scf.yield %2 : f32
    }
    ```
    becomes
    ```mlir
    %j = scf.if %first -> (index) {
      scf.yield %last : index
    } else {
      %1 = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 - 1), d0 in [1, 7]>} : (index) -> index
      scf.yield %1 : index
    }
    %x = "xgpu.pure_call"(%t, %j) {callee = @f__x} : (tensor<8xf32>, index) -> f32
    ```
    """

    NAME: ClassVar[str] = "share-branch-calls"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((_IF,))
    min_size: int = 25
    """Operations of a callee, with those of its callees, from which on it is called once; functions of math are ten."""

    def apply(self, module: ir.Module) -> None:
        """Share the calls of every conditional of ``module``, inner ones first: outer ones then end with a call."""
        sizes = _Sizes(module)
        for function in functions(module):
            for op in reversed([each for each in nested(function.operation) if each.name == _IF]):
                self._share(op, sizes)

    def _share(self, op: ir.Operation, sizes: "_Sizes") -> None:
        """Replace a conditional by one that chooses the operands of a call."""
        branches = [body_of(op, number) for number, region in enumerate(op.regions) if len(region.blocks)]
        calls = [call for block in branches if (call := _call_of(block)) is not None]
        if len(calls) != 2:
            return
        first, second = calls
        if attributes_of(first) != attributes_of(second) or sizes.of(first.attributes["callee"]) < self.min_size:
            return
        pairs = list(zip(first.operands, second.operands, strict=True))
        apart = [number for number, (one, other) in enumerate(pairs) if one != other]
        if any(isinstance(pairs[number][0].type, ir.RankedTensorType) for number in apart):
            # Arrays are not chosen.
            return
        with ir.InsertionPoint(op), op.location:
            chosen, *blocks = create_if(op.operands[0], [pairs[number][0].type for number in apart])
        for call, block, before in zip(calls, blocks, branches, strict=True):
            terminator_of(before).erase()
            for each in [view.operation for view in before.operations]:
                if each != call:
                    block.append(each)
            with ir.InsertionPoint(block), op.location:
                create_yield([call.operands[number] for number in apart])
        with ir.InsertionPoint(op):
            shared = first.clone()
        for number, value in zip(apart, chosen.results, strict=True):
            shared.operands[number] = value
        replace_op(op, list(shared.results))


class _Sizes:
    """The operations of functions, with those of their callees, where functions of math count as several."""

    def __init__(self, module: ir.Module):
        self._functions = {function_name(op): op.operation for op in functions(module)}
        self._known: dict[str, int] = {}
        self._bodies: dict[str, tuple[int, list[str]]] = {}

    def of(self, callee: ir.Attribute) -> int:
        """Return the size of a function, 0 for one that is not in the module.

        Chains of calls are longer than Python recurses.
        """
        asked = _name(callee)
        pending = [] if asked in self._known else [asked]
        while pending:
            name = pending[-1]
            own, called = self._inside(name)
            # What calls itself is not followed again.
            self._known.setdefault(name, 0)
            waiting = [each for each in dict.fromkeys(called) if each not in self._known]
            pending += waiting
            if not waiting:
                self._known[pending.pop()] = own + sum([self._known[each] for each in called])
        return self._known[asked]

    def _inside(self, name: str) -> tuple[int, list[str]]:
        """Return the size of a function without its callees, and these."""
        if name not in self._bodies:
            inside = list(nested(self._functions[name])) if name in self._functions else []
            called = [_name(op.attributes["callee"]) for op in inside if op.name == _CALL]
            # Without what returns.
            own = sum(_MATH if op.name.startswith("math.") else 1 for op in inside[1:])
            self._bodies[name] = own, called
        return self._bodies[name]


def _name(callee: ir.Attribute) -> str:
    return ir.FlatSymbolRefAttr(callee).value


def _call_of(block: ir.Block) -> ir.Operation | None:
    """Return the call of ``block`` of which it returns all results, and nothing else reads one; None without one."""
    returned = list(terminator_of(block).operands)
    call = defining_op(returned[0]) if returned else None
    if call is None or call.name != _CALL or call.block != block or list(call.results) != returned:
        return None
    return call if all(len(list(result.uses)) == 1 for result in returned) else None
