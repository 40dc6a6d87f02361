"""The pass `read-resources`."""

import math
import re
from collections.abc import Mapping
from typing import ClassVar

from xgpu import ir
from xgpu.dtypes import dtype_of_element
from xgpu.errors import InvalidInput
from xgpu.hlo.source_location import source_of
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import walk

_CONSTANTS = ("stablehlo.constant", "mhlo.constant")
_KEY = re.compile(r'dense_resource<((?:"(?:[^"\\]|\\.)*"|[^">])*)>')
_RESOURCE = re.compile(r'^\s*("(?:[^"\\]|\\.)*"|[\w$.-]+): "0x([0-9A-Fa-f]*)"', re.MULTILINE)
_ALIGNMENT_BYTES = 4
"""Bytes before those of the elements, which say how these are aligned."""


@dataclass(frozen=True)
class ReadResources(Pass):
    """Replaces constants whose elements are in a resource by constants that contain the elements.

    Large constants are written so, the bytes at the end of the file; MLIR's Python bindings cannot read them. Raises
    InvalidInput for a resource that is not there: printers can leave out what is large. Needs: nothing.

    ```mlir
    %0 = stablehlo.constant dense_resource<weights> : tensor<2xf32>
    {-# dialect_resources: { builtin: { weights: "0x040000000000803F00000040" } } #-}
    ```
    becomes
    ```mlir
    %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
    ```
    """

    NAME: ClassVar[str] = "read-resources"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset(_CONSTANTS)

    def apply(self, module: ir.Module) -> None:
        """Replace all such constants at once, as reading what they name prints all of them."""
        found = [(op.operation, _key(op)) for op in walk(module.operation) if op.name in _CONSTANTS]
        named = [(op, key) for op, key in found if key is not None]
        bodies = _bodies([op for op, _ in named]) if named else {}
        for op, key in named:
            _read(op, key, bodies)


def _read(op: ir.Operation, key: str, bodies: Mapping[str, bytes]) -> None:
    """Replace a constant by one that has the elements of the resource ``key``."""
    type_ = ir.RankedTensorType(op.results[0].type)
    if key not in bodies:
        raise InvalidInput(
            f"the elements of a constant of type {type_} were left out of the text: there is no resource {key}",
            source_of(op),
        )
    text = f"{{value = {_elements(op, key, bodies[key], type_)} : {type_}}} : () -> {type_}"
    constant = ir.Operation.parse(f'"{op.name}"() {text}', context=op.context).operation
    constant.location = op.location
    ir.InsertionPoint(op).insert(constant)
    op.results[0].replace_all_uses_with(constant.results[0])
    op.erase()


def _key(op: ir.Operation) -> str | None:
    """Return the name of the resource that has the elements of a constant, None if it has them itself."""
    try:
        value = op.attributes["value"]
    except TypeError:
        # The bindings have no class for the elements of complex constants.
        return None
    named = None if isinstance(value, ir.DenseElementsAttr) else _KEY.match(str(value))
    return named.group(1) if named else None


def _bodies(constants: list[ir.Operation]) -> dict[str, bytes]:
    """Return the bytes of the elements in each resource that is there, as the text after a module lists them."""
    with constants[0].context, ir.Location.unknown():
        copy = ir.Module.create()
        for op in constants:
            copy.body.append(op.clone())
    _, _, listed = str(copy).rpartition("{-#")
    return {key: bytes.fromhex(digits)[_ALIGNMENT_BYTES:] for key, digits in _RESOURCE.findall(listed)}


def _elements(op: ir.Operation, key: str, body: bytes, type_: ir.RankedTensorType) -> str:
    """Return the elements as they are written in an attribute."""
    bits = dtype_of_element(type_.element_type).bits
    expected = math.prod(type_.shape) * -(-bits // 8)
    if len(body) != expected:
        raise InvalidInput(f"the resource {key} has {len(body)} bytes; {type_} takes {expected}", source_of(op))
    if bits == 1:
        # How many of these a byte of hexadecimal digits has depends on the version of MLIR.
        return f"dense<{_nested(['true' if byte else 'false' for byte in body], type_.shape) if body else ''}>"
    return f'dense<"0x{body.hex()}">' if body else "dense<>"


def _nested(elements: list[str], shape: list[int]) -> str:
    """Return elements in row-major order in as many brackets as there are dimensions."""
    for size in reversed(shape):
        elements = [f"[{', '.join(elements[i : i + size])}]" for i in range(0, len(elements), size)]
    return elements[0]
