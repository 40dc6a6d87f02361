"""Makes complex constants of two real ones: MLIR's Python bindings cannot read the attribute of a complex constant."""

import re

import numpy as np

from xgpu import ir

# A number is a decimal or, where a decimal would not be exact, the bits in hexadecimal.
_PAIR = re.compile(r"\(([^(),]+),([^(),]+)\)")


def split_complex_constants(module: ir.Module) -> bool:
    """Replace each constant of complex numbers by `stablehlo.complex` of its parts.

    Returns whether the module has complex numbers at all.
    """
    found: list[ir.Operation] = []
    has_complex = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal has_complex
        if any(_is_complex(value.type) for values in (op.results, op.operands) for value in values):
            has_complex = True
            if op.name == "stablehlo.constant":
                found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    for op in found:
        _split(op)
    return has_complex


def _is_complex(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and isinstance(type_.element_type, ir.ComplexType)


def _split(op: ir.Operation) -> None:
    shaped = ir.RankedTensorType(op.results[0].type)
    part = ir.ComplexType(shaped.element_type).element_type
    with ir.InsertionPoint(op), op.location:
        type_ = ir.RankedTensorType.get(shaped.shape, part)
        constants = [
            ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": value}).results[0]
            for value in _parts(_elements_of(op), type_)
        ]
        joined = ir.Operation.create("stablehlo.complex", results=[shaped], operands=constants)
    op.results[0].replace_all_uses_with(joined.results[0])
    op.erase()


def _elements_of(op: ir.Operation) -> str:
    """Return the text between the angle brackets of ``dense<...>``."""
    for name in [name for name in op.attributes if name != "value"]:
        del op.attributes[name]
    _, _, text = str(op).partition("dense<")
    body, _, _ = text.rpartition("> : ")
    return body


def _parts(elements: str, type_: ir.RankedTensorType) -> list[ir.Attribute]:
    """Return the real and the imaginary parts as constants of ``type_``."""
    if not elements.startswith('"0x'):
        return [ir.Attribute.parse(f"dense<{_PAIR.sub(group, elements)}> : {type_}") for group in (r"\1", r"\2")]
    # Many elements are printed as their bytes, in pairs of the two parts.
    number = np.float32 if isinstance(type_.element_type, ir.F32Type) else np.float64
    pairs = np.frombuffer(bytes.fromhex(elements.strip('"')[2:]), number).reshape(-1, 2)
    return [
        ir.DenseElementsAttr.get(np.ascontiguousarray(pairs[:, i]).reshape(type_.shape), type=type_) for i in range(2)
    ]
