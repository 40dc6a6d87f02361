"""The pass `inline-calls`."""

from typing import ClassVar

from xgpu import ir
from xgpu.errors import Unsupported
from xgpu.hlo.source_location import source_of
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import count_ops, replace_op, walk

# Inlining can multiply a small program without bound; this is far above any program that a person compiles.
MAX_OPERATIONS = 1_000_000
_CALL = "func.call"


@dataclass(frozen=True)
class InlineCalls(Pass):
    """Replaces every call under ``@main`` by the callee's body, and erases the other functions.

    MLIR's own inliner needs an interface that the bindings do not attach to calls. Takes time linear in the size of the
    result. Operations that know no source line take that of the call. Raises Unsupported for recursion, a callee
    without a body, or too large a result. Needs: functions of one block each.

    ```mlir
    func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {
      %1 = stablehlo.negate %a : tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    ```
    becomes
    ```mlir
    %0 = stablehlo.negate %x : tensor<4xf32>
    ```
    """

    NAME: ClassVar[str] = "inline-calls"

    def apply(self, module: ir.Module) -> None:
        """Inline all calls of ``@main``."""
        functions = {_name(op.operation): op.operation for op in module.body.operations}
        _check_calls(functions)
        pending = walk(functions["main"], _CALL)
        while pending:
            pending += _inline(pending.pop(), functions)
        for name, function in functions.items():
            if name != "main":
                function.erase()


def _inline(call: ir.Operation, functions: dict[str, ir.Operation]) -> list[ir.Operation]:
    """Replace one call by a copy of its callee's body; return the calls in that copy."""
    copy = functions[_callee(call)].clone(ir.InsertionPoint(functions["main"]))
    calls = walk(copy, _CALL)
    if source_of(call) is not None:
        _give_location(copy, call.location)
    block = copy.regions[0].blocks[0]
    for argument, operand in zip(block.arguments, call.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *body, terminator = (op.operation for op in block.operations)
    for op in body:
        op.move_before(call)
    replace_op(call, list(terminator.operands))
    copy.erase()
    return calls


def _give_location(function: ir.Operation, caller: ir.Location) -> None:
    """Let operations without a source line (those of functions that JAX cached) name the line of the call."""

    for op in walk(function):
        if source_of(op) is None:
            op.location = ir.Location.callsite(op.location, [caller], context=op.context)


def _check_calls(functions: dict[str, ir.Operation]) -> None:
    """Refuse recursion, missing bodies, and programs that inlining would blow up, before inlining them."""
    callees = {name: [_callee(call) for call in walk(function, _CALL)] for name, function in functions.items()}
    inlined: dict[str, int] = {}
    pending = ["main"]
    open_calls: set[str] = set()
    while pending:
        name = pending[-1]
        missing = [callee for callee in dict.fromkeys(callees[name]) if callee not in inlined]
        if name in missing or not open_calls.isdisjoint(missing):
            raise Unsupported(f"function @{name} calls itself, directly or through others; recursion is not supported")
        if missing:
            open_calls.add(name)
            pending += missing
            continue
        pending.pop()
        open_calls.discard(name)
        own = count_ops(functions[name])
        if not own:
            raise Unsupported(f"function @{name} is called but has no body")
        inlined[name] = own + sum(inlined[callee] for callee in callees[name])
    if inlined["main"] > MAX_OPERATIONS:
        raise Unsupported(f"inlining makes {inlined['main']} operations; at most {MAX_OPERATIONS} are supported")


def _name(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _callee(call: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value
