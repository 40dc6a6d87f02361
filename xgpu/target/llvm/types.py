"""LLVM IR text of MLIR types and of constant attributes, bit-exact."""

import re
import struct
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from xgpu import ir
from xgpu.errors import CompilerError
from xgpu.passes.support.memory_layout import integer_codes

type Value = ir.Value[Any]

FLOAT_NAMES = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}
_FLOAT_DTYPES: dict[str, np.dtype[Any]] = {
    "half": np.dtype(np.float16),
    "bfloat": np.dtype(ml_dtypes.bfloat16),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}
_IDENTIFIER = re.compile(r"[A-Za-z$._-][A-Za-z$._0-9-]*")


def quote(text: str) -> str:
    """Return ``text`` as an LLVM string literal: printable ASCII as it is, every other byte as ``\\XX``."""
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in (0x22, 0x5C) else f"\\{byte:02X}" for byte in text.encode()
    )
    return f'"{escaped}"'


def symbol(name: str) -> str:
    """Return the LLVM spelling of a global's name: ``@name``, quoted where it is no plain identifier."""
    return f"@{name}" if _IDENTIFIER.fullmatch(name) else f"@{quote(name)}"


class TypePrinter:
    """Spells MLIR types as LLVM IR types; each type is spelled once, as the text is asked for at every operand."""

    def __init__(self) -> None:
        self._texts: dict[ir.Type, str] = {}
        self._suffixes: dict[ir.Type, str] = {}

    def __call__(self, type_: ir.Type) -> str:
        """Return the LLVM IR text of ``type_``; raises CompilerError for a type that LLVM IR does not have."""
        text = self._texts.get(type_)
        if text is None:
            text = self._texts[type_] = self._spell(type_)
        return text

    def suffix(self, type_: ir.Type) -> str:
        """Return what an overloaded intrinsic's name says of ``type_``: ``f32``, ``v4f32``, ``p1``."""
        text = self._suffixes.get(type_)
        if text is None:
            text = self._suffixes[type_] = self._mangle(type_)
        return text

    def _spell(self, type_: ir.Type) -> str:
        if isinstance(type_, ir.IntegerType) and type_.is_signless:
            return f"i{type_.width}"
        if isinstance(type_, ir.llvm.PointerType):
            return f"ptr addrspace({type_.address_space})" if type_.address_space else "ptr"
        if isinstance(type_, ir.VectorType):
            if type_.rank != 1 or any(type_.scalable_dims):
                raise CompilerError(f"LLVM IR has no type for {type_}: only vectors of one fixed dimension")
            return f"<{type_.shape[0]} x {self(type_.element_type)}>"
        if isinstance(type_, ir.llvm.ArrayType):
            return f"[{type_.num_elements} x {self(type_.element_type)}]"
        if isinstance(type_, ir.llvm.StructType) and type_.name is None:
            body = ", ".join(self(element) for element in struct_elements(type_))
            return f"<{{ {body} }}>" if type_.packed else f"{{ {body} }}"
        name = str(type_)
        if name == "!llvm.void":
            return "void"
        if name in FLOAT_NAMES:
            return FLOAT_NAMES[name]
        raise CompilerError(f"no LLVM IR type for {type_}: expected a lowered (LLVM-level) type")

    def _mangle(self, type_: ir.Type) -> str:
        if isinstance(type_, ir.llvm.PointerType):
            return f"p{type_.address_space}"
        if isinstance(type_, ir.VectorType):
            self(type_)
            return f"v{type_.shape[0]}{self.suffix(type_.element_type)}"
        name = str(type_)
        if isinstance(type_, ir.IntegerType) or name in FLOAT_NAMES:
            return name
        raise CompilerError(f"an overloaded intrinsic on {type_} is not supported")


def struct_elements(type_: ir.llvm.StructType) -> Sequence[ir.Type]:
    """Return the element types of a literal struct."""
    body = type_.body
    return body if isinstance(body, (list, tuple)) else []


def float_constant(bits: int, type_text: str) -> str:
    """Return the literal whose bit pattern in the LLVM type ``type_text`` (``half``, ``float``, ...) is ``bits``.

    Finite values that six decimals give exactly are written in decimal, everything else in LLVM's hexadecimal
    forms. A ``float`` is spelled by the bits of the double of the same value, NaN payloads shifted up.
    """
    value = _value_of_bits(bits, type_text)
    if value == value and abs(value) != float("inf"):
        decimal = f"{value:.6e}"
        if float(decimal) == value:
            return decimal
    if type_text == "half":
        return f"0xH{bits:04X}"
    if type_text == "bfloat":
        return f"0xR{bits:04X}"
    if type_text == "float":
        if value != value:
            bits = (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
        else:
            bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    return f"0x{bits:016X}"


def _value_of_bits(bits: int, type_text: str) -> float:
    """Return the value of a bit pattern as a Python float (NaN payloads are lost)."""
    dtype = _FLOAT_DTYPES[type_text]
    return float(np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), dtype)[0])


def _bits_of_text(text: str, type_text: str) -> int:
    """Return the bit pattern of a float as MLIR prints it: ``0x7FC0`` is the pattern itself, else a decimal.

    MLIR prints a decimal only where rounding it to the type gives the value back.
    """
    if text.startswith("0x"):
        return int(text, 16)
    value = np.array(float(text)).astype(_FLOAT_DTYPES[type_text])
    return int.from_bytes(value.tobytes(), "little")


# From this many elements on, a table is written as bytes; MLIR prints more than 100 in hexadecimal.
_LARGE_TABLE = 1024
_WHOLE_BYTES = frozenset("i8 i16 i32 i64 f16 bf16 f32 f64".split())


def constant(attribute: ir.Attribute, type_: ir.Type, types: TypePrinter) -> str:
    """Return the text of a constant of LLVM type ``type_`` (without the type) given by an attribute."""
    text = types(type_)
    if isinstance(attribute, ir.BoolAttr):
        return "true" if attribute.value else "false"
    if isinstance(attribute, ir.IntegerAttr):
        return _integer(attribute, text)
    if isinstance(attribute, ir.FloatAttr):
        if FLOAT_NAMES.get(str(attribute.type)) != text:
            raise CompilerError(f"constant {attribute} does not fit the type {type_}")
        return float_constant(_bits_of_text(str(attribute).split(" ", 1)[0], text), text)
    if isinstance(attribute, ir.DenseElementsAttr):
        return _dense(attribute, type_, types)
    if isinstance(attribute, ir.StringAttr):
        return f"c{quote(attribute.value)}"
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        return symbol(attribute.value)
    if isinstance(attribute, ir.ArrayAttr) and isinstance(type_, ir.llvm.StructType):
        elements = zip(attribute, struct_elements(type_), strict=True)
        body = ", ".join(f"{types(each)} {constant(value, each, types)}" for value, each in elements)
        return f"<{{ {body} }}>" if type_.packed else f"{{ {body} }}"
    raise CompilerError(f"no LLVM IR constant for the attribute {attribute} of type {type_}")


def large_table(attribute: ir.Attribute | None) -> str | None:
    """Return type and value of an array of bytes for a dense constant of many elements, None for any other attribute.

    Bytes in one string are written and parsed many times faster than one literal for each element.
    """
    if not isinstance(attribute, ir.DenseElementsAttr) or attribute.is_splat or len(attribute) < _LARGE_TABLE:
        return None
    if str(ir.ShapedType(attribute.type).element_type) not in _WHOLE_BYTES:
        return None
    # The text of so many elements is their bytes in hexadecimal, for every type.
    body = str(attribute).rsplit(" : ", 1)[0].removeprefix('dense<"0x').removesuffix('">')
    data = bytes.fromhex(body)
    return f'[{len(data)} x i8] c"\\{data.hex(chr(92))}"'


def _integer(attribute: ir.IntegerAttr, type_text: str) -> str:
    if not type_text.startswith("i"):
        raise CompilerError(f"constant {attribute} does not fit the LLVM type {type_text}")
    if type_text == "i1":
        return "true" if attribute.value else "false"
    return str(attribute).split(" ", 1)[0]


def _dense(attribute: ir.DenseElementsAttr, type_: ir.Type, types: TypePrinter) -> str:
    """Return a vector or (nested) array constant; a splat vector is written as ``splat (T v)``."""
    element: ir.Type = type_
    shape: list[int] = []
    while isinstance(element, (ir.llvm.ArrayType, ir.VectorType)):
        shape.append(element.num_elements if isinstance(element, ir.llvm.ArrayType) else element.shape[0])
        element = element.element_type
    element_text = types(element)
    literals = _dense_literals(attribute, element_text)
    if isinstance(type_, ir.VectorType) and attribute.is_splat:
        return f"splat ({element_text} {literals[0]})"
    total = int(np.prod(shape, dtype=np.int64)) if shape else -1
    if attribute.is_splat:
        literals = literals[:1] * total
    if len(literals) != total:
        raise CompilerError(f"a constant of {len(literals)} elements does not fit the type {type_}")
    if not total:
        return "zeroinitializer"
    return _nest([f"{element_text} {literal}" for literal in literals], type_, types)


def _nest(elements: list[str], type_: ir.Type, types: TypePrinter) -> str:
    """Bracket a row-major list of typed elements as the nested array or vector ``type_`` wants them."""
    if isinstance(type_, ir.VectorType):
        return f"<{', '.join(elements)}>"
    assert isinstance(type_, ir.llvm.ArrayType)
    inner = type_.element_type
    if not isinstance(inner, (ir.llvm.ArrayType, ir.VectorType)):
        return f"[{', '.join(elements)}]"
    step = len(elements) // type_.num_elements
    rows = (_nest(elements[at : at + step], inner, types) for at in range(0, len(elements), step))
    return f"[{', '.join(f'{types(inner)} {row}' for row in rows)}]"


def _dense_literals(attribute: ir.DenseElementsAttr, element_text: str) -> list[str]:
    """Return the literals of a dense attribute's elements, row major; of a splat at least the first."""
    if element_text == "bfloat":
        return [float_constant(pattern, "bfloat") for pattern in _bfloat_patterns(attribute)]
    if element_text in ("i2", "i4"):
        return [str(code) for code in integer_codes(attribute).tolist()]
    try:
        values = np.array(attribute).reshape(-1)
    except TypeError as error:
        raise CompilerError(f"no LLVM IR constant for elements of type {attribute.type}: {error}") from error
    if element_text == "i1":
        return ["true" if value else "false" for value in values.tolist()]
    if element_text not in _FLOAT_DTYPES:
        return [str(value) for value in values.tolist()]
    if values.dtype != _FLOAT_DTYPES[element_text]:
        raise CompilerError(f"constant of {values.dtype} elements does not fit the LLVM type {element_text}")
    patterns = np.ascontiguousarray(values).view(f"uint{values.dtype.itemsize * 8}").tolist()
    return [float_constant(pattern, element_text) for pattern in patterns]


def _bfloat_patterns(attribute: ir.DenseElementsAttr) -> list[int]:
    """Return the bit patterns of a dense bf16 attribute, read from its text: the buffer protocol has no bf16."""
    body = str(attribute).rsplit(" : ", 1)[0].removeprefix("dense<").removesuffix(">")
    if body.startswith('"0x'):
        data = bytes.fromhex(body.strip('"')[2:])
        patterns: list[int] = np.frombuffer(data, dtype="<u2").tolist()
        return patterns
    return [_bits_of_text(literal, "bfloat") for literal in re.findall(r"[^\s,\[\]]+", body)]
