"""Calls of LLVM intrinsics by name, for passes that come before lower-to-llvm."""

from collections.abc import Sequence

from xgpu import ir


def call_intrinsic(name: str, type_: ir.Type, operands: Sequence[ir.Value]) -> ir.Value:
    """Create a call of the intrinsic ``name``, with the types that overload it, and return its result."""
    call = ir.Operation.create(
        "llvm.call_intrinsic",
        results=[type_],
        operands=list(operands),
        attributes={
            "intrin": ir.StringAttr.get(name),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )
    return call.results[0]
