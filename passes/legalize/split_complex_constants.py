"""The pass `split-complex-constants`."""

import re
from typing import ClassVar

import numpy as np

from xgpu import ir
from xgpu.hlo.contents import Contents
from xgpu.passes.framework.base import ModuleRewrite
from xgpu.records import dataclass

# A number is a decimal or, where a decimal would not be exact, the bits in hexadecimal.
_PAIR = re.compile(r"\(([^(),]+),([^(),]+)\)")


@dataclass(frozen=True)
class SplitComplexConstants(ModuleRewrite):
    """Splits constants of complex numbers into two real ones.

    MLIR's Python bindings cannot read the attribute of a complex constant. Needs: nothing.

    ```mlir
    %0 = stablehlo.constant dense<(1.0, 2.0)> : tensor<4xcomplex<f32>>
    ```
    becomes
    ```mlir
    %1 = stablehlo.constant dense<1.0> : tensor<4xf32>
    %2 = stablehlo.constant dense<2.0> : tensor<4xf32>
    %0 = stablehlo.complex %1, %2 : tensor<4xcomplex<f32>>
    ```
    """

    NAME: ClassVar[str] = "split-complex-constants"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(("stablehlo.constant",))

    def has_work(self, contents: Contents) -> bool:
        """Whether there are constants, and complex numbers."""
        return super().has_work(contents) and any(isinstance(element, ir.ComplexType) for element in contents.elements)

    def rewrite(self, op: ir.Operation) -> None:
        """Split one constant if it is complex."""
        if _is_complex(op.results[0].type):
            _split(op)


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
    # Else all of the function would be verified, and its values numbered, for each of its constants.
    _, _, text = str(op.get_asm(assume_verified=True, use_local_scope=True)).partition("dense<")
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
