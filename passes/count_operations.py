"""The pass count-operations."""

from typing import ClassVar

from xgpu import ir
from xgpu.dialects.attributes import KERNEL
from xgpu.passes.framework.base import Pass, functions
from xgpu.passes.llvm.memory import GLOBAL_SPACE, atomic_update, i64_attribute, pointer_type
from xgpu.passes.support import arith_builder as b
from xgpu.passes.support.arith_builder import element_type
from xgpu.records import dataclass
from xgpu.structure import walk

_BYTES = 8
_ARITHMETIC = ("arith.", "math.", "xgpu.")
"""Prefixes of the names of operations on numbers at level `lowered`."""
_FREE = frozenset(("arith.constant", "arith.bitcast"))
_LOAD = "llvm.load"


@dataclass(frozen=True)
class CountOperations(Pass):
    """Makes a kernel count its operations on elements and its loads; a vector counts once for each element.

    Every function gets a last parameter, a pointer to an i64, to which each block adds how many of its own operations
    count; for the kernel that is one more array. Constants, bitcasts and operations with an operand or a result of type
    `index`, which are about places and not elements, do not count. Functions such as `math.exp` are one operation.
    Needs: lower-tensors. Not part of any pipeline: `xgpu run --count` runs it first of all on the way to `llvm`.

    ```mlir
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %y = arith.mulf %x, %x : f32
    ```
    becomes
    ```mlir
    %c2_i64 = arith.constant 2 : i64
    %0 = llvm.atomicrmw add %counter, %c2_i64 syncscope("device") monotonic : !llvm.ptr<1>, i64
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %y = arith.mulf %x, %x : f32
    ```
    """

    NAME: ClassVar[str] = "count-operations"

    def apply(self, module: ir.Module) -> None:
        """Add the parameter and the updates to all functions that have a body."""
        defined = [each.operation for each in functions(module) if len(each.operation.regions[0].blocks)]
        counters = {ir.StringAttr(each.attributes["sym_name"]).value: _add_counter(each) for each in defined}
        for function in defined:
            counter = counters[ir.StringAttr(function.attributes["sym_name"]).value]
            operations = walk(function)
            _count(function, operations, counter)
            for call in operations:
                if call.name == "func.call" and ir.FlatSymbolRefAttr(call.attributes["callee"]).value in counters:
                    _pass_on(call, counter)


def _add_counter(function: ir.Operation) -> ir.Value:
    """Give a function its last parameter and return it."""
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs = [*type_.inputs, pointer_type(GLOBAL_SPACE)]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, type_.results))
    if "arg_attrs" in function.attributes or KERNEL in function.attributes:
        given = list(ir.ArrayAttr(function.attributes["arg_attrs"])) if "arg_attrs" in function.attributes else []
        given += [ir.DictAttr.get({})] * (len(inputs) - 1 - len(given))
        facts = {"llvm.align": i64_attribute(_BYTES), "llvm.dereferenceable": i64_attribute(_BYTES)}
        described = ir.DictAttr.get({**facts, "llvm.noalias": ir.UnitAttr.get()})
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([*given, described])
    return function.regions[0].blocks[0].add_argument(inputs[-1], function.location)


def _count(function: ir.Operation, operations: list[ir.Operation], counter: ir.Value) -> None:
    """Add, at the start of each block of a function, its number of operations to the counter."""
    counts: dict[ir.Block, int] = {}
    for op in operations:
        if op != function and (weight := _weight(op)):
            counts[op.block] = counts.get(op.block, 0) + weight
    for block, count in counts.items():
        with ir.InsertionPoint.at_block_begin(block), function.location:
            atomic_update("add", counter, b.constant(count, b.integer_type(64)))


def _weight(op: ir.Operation) -> int:
    """Return how many operations count when ``op`` is executed."""
    if op.name == _LOAD:
        return _lanes(op.results[0].type)
    if not op.name.startswith(_ARITHMETIC) or op.name in _FREE or not len(op.results):
        return 0
    types = [value.type for value in (*op.operands, *op.results)]
    if any(isinstance(element_type(type_), ir.IndexType) for type_ in types):
        return 0
    return _lanes(op.results[0].type)


def _lanes(type_: ir.Type) -> int:
    return int(type_.shape[0]) if isinstance(type_, ir.VectorType) else 1


def _pass_on(call: ir.Operation, counter: ir.Value) -> None:
    types = [result.type for result in call.results]
    operands, attributes = [*call.operands, counter], dict(call.attributes.items())
    new = ir.Operation.create(call.name, types, operands, attributes, loc=call.location, ip=ir.InsertionPoint(call))
    for old, value in zip(call.results, new.results, strict=True):
        old.replace_all_uses_with(value)
    call.erase()
