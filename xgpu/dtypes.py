"""The element types that xgpu reads: one table of their HLO, NumPy and MLIR names."""

import math
import re
from collections.abc import Sequence
from typing import Any, Literal

import ml_dtypes
import numpy as np

from xgpu import ir
from xgpu.errors import InvalidInput, Unsupported, did_you_mean
from xgpu.records import dataclass

Kind = Literal["bool", "signed", "unsigned", "float", "complex"]


@dataclass(frozen=True)
class DType:
    """One element type under its names.

    ``hlo`` is the name in HLO text and in ``f32[8]`` specifications, ``numpy`` the NumPy type, ``mlir`` the element
    type in StableHLO (where ``ui8`` is unsigned), ``bits`` the width of a value. Signedness lives in operations, not
    in types, from the ``emitted`` level on; see ``signless``.
    """

    hlo: str
    numpy: np.dtype[Any]
    mlir: str
    bits: int
    kind: Kind

    @property
    def is_float(self) -> bool:
        """Whether values are floating-point numbers."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether values are integers; pred is not."""
        return self.kind in ("signed", "unsigned")

    @property
    def is_signed(self) -> bool:
        """Whether values can be negative."""
        return self.kind in ("signed", "float", "complex")

    @property
    def is_unsigned(self) -> bool:
        """Whether integer operations on this type are the unsigned ones; pred compares as an unsigned bit."""
        return self.kind in ("unsigned", "bool")

    @property
    def signless(self) -> str:
        """The MLIR element type from the ``emitted`` level on: ``i8`` for both ``s8`` and ``u8``."""
        return self.mlir.removeprefix("u")

    @property
    def storage_bits(self) -> int:
        """Width of an element in a kernel's memory: pred takes a byte, elements of 2 and 4 bits share one."""
        return max(self.bits, 8) if self.kind == "bool" else self.bits

    @property
    def is_packed(self) -> bool:
        """Whether several elements share a byte of a kernel's memory; NumPy has each in a byte of its own."""
        return self.storage_bits < 8

    def __str__(self) -> str:
        return self.hlo


def _dtype(hlo: str, numpy_type: Any, mlir: str, bits: int, kind: Kind) -> DType:
    return DType(hlo, np.dtype(numpy_type), mlir, bits, kind)


DTYPES: tuple[DType, ...] = (
    _dtype("pred", np.bool_, "i1", 1, "bool"),
    _dtype("s2", ml_dtypes.int2, "i2", 2, "signed"),
    _dtype("s4", ml_dtypes.int4, "i4", 4, "signed"),
    _dtype("s8", np.int8, "i8", 8, "signed"),
    _dtype("s16", np.int16, "i16", 16, "signed"),
    _dtype("s32", np.int32, "i32", 32, "signed"),
    _dtype("s64", np.int64, "i64", 64, "signed"),
    _dtype("u2", ml_dtypes.uint2, "ui2", 2, "unsigned"),
    _dtype("u4", ml_dtypes.uint4, "ui4", 4, "unsigned"),
    _dtype("u8", np.uint8, "ui8", 8, "unsigned"),
    _dtype("u16", np.uint16, "ui16", 16, "unsigned"),
    _dtype("u32", np.uint32, "ui32", 32, "unsigned"),
    _dtype("u64", np.uint64, "ui64", 64, "unsigned"),
    _dtype("f4e2m1fn", ml_dtypes.float4_e2m1fn, "f4E2M1FN", 4, "float"),
    _dtype("f8e3m4", ml_dtypes.float8_e3m4, "f8E3M4", 8, "float"),
    _dtype("f8e4m3", ml_dtypes.float8_e4m3, "f8E4M3", 8, "float"),
    _dtype("f8e4m3fn", ml_dtypes.float8_e4m3fn, "f8E4M3FN", 8, "float"),
    _dtype("f8e4m3fnuz", ml_dtypes.float8_e4m3fnuz, "f8E4M3FNUZ", 8, "float"),
    _dtype("f8e4m3b11fnuz", ml_dtypes.float8_e4m3b11fnuz, "f8E4M3B11FNUZ", 8, "float"),
    _dtype("f8e5m2", ml_dtypes.float8_e5m2, "f8E5M2", 8, "float"),
    _dtype("f8e5m2fnuz", ml_dtypes.float8_e5m2fnuz, "f8E5M2FNUZ", 8, "float"),
    _dtype("f8e8m0fnu", ml_dtypes.float8_e8m0fnu, "f8E8M0FNU", 8, "float"),
    _dtype("bf16", ml_dtypes.bfloat16, "bf16", 16, "float"),
    _dtype("f16", np.float16, "f16", 16, "float"),
    _dtype("f32", np.float32, "f32", 32, "float"),
    _dtype("f64", np.float64, "f64", 64, "float"),
    _dtype("c64", np.complex64, "complex<f32>", 64, "complex"),
    _dtype("c128", np.complex128, "complex<f64>", 128, "complex"),
)

_BY_HLO = {dtype.hlo: dtype for dtype in DTYPES}
_BY_MLIR = {dtype.mlir: dtype for dtype in DTYPES}
_BY_CLASS = {getattr(ir, f"{name.upper()}Type"): _BY_MLIR[name] for name in ("bf16", "f16", "f32", "f64")}
"""The usual types of floats: their classes tell them, and their text takes MLIR longer to print."""
_SIGNLESS = {dtype.bits: dtype for dtype in DTYPES if dtype.mlir == f"i{dtype.bits}"}
_BY_NUMPY = {dtype.numpy: dtype for dtype in DTYPES}
_BY_NUMPY_NAME = {dtype.numpy.name: dtype for dtype in DTYPES}

# Far above any real array; keeps the byte size of a specified array within 64 bits.
MAX_ELEMENTS = 2**48
# Of elements of the widest type, c128.
MAX_BYTES = 16 * MAX_ELEMENTS
MAX_RANK = 64
_SPEC = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(?:\[([^\[\]{}]*)\]\s*)?")
_MLIR_SPEC = re.compile(r"(?:tensor<)?((?:[0-9]+x)+)([A-Za-z][A-Za-z0-9]*)>?")
_NEAR_SPEC = re.compile(r"([A-Za-z][A-Za-z0-9]*)\s*[\[(<]([0-9][0-9x,; ]*)[\])>]?")
_C_NAMES = {"half": "f16", "float": "f32", "double": "f64", "int": "s32", "long": "s64", "byte": "u8"}
_SIMILAR_TYPE = 0.85  # float23 is near float32; f33 is near nothing


def float_range(dtype: DType) -> tuple[float, float]:
    """Return the lowest and the highest number of a floating-point type: infinities, if the type has them."""
    infinity = float(np.array(math.inf, dtype.numpy))
    if math.isinf(infinity):
        return -infinity, infinity
    limits = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    return float(limits.min), float(limits.max)


def dtype_named(name: str) -> DType:
    """Return the type with this HLO name (``f32``, ``s8``, ``pred``) or NumPy name (``float32``, ``bool``).

    Raises InvalidInput, listing the known names, if there is none.
    """
    found = _BY_HLO.get(name) or _BY_NUMPY_NAME.get(name)
    if found is None:
        known = f"known are {', '.join(_BY_HLO)}, and NumPy's names for them"
        raise InvalidInput(f"unknown element type '{name}'{_near_type(name)}; {known}")
    return found


def _near_type(name: str) -> str:
    """Suggest the type that MLIR (``i8``), C (``half``) or a slip (``F32``, ``fp16``) calls ``name``."""
    meant = _BY_MLIR.get(name)
    hlo = meant.hlo if meant else _C_NAMES.get(name, re.sub(r"^fp(?=[0-9])", "f", name))
    return did_you_mean(hlo, [*_BY_HLO, *_BY_NUMPY_NAME], _SIMILAR_TYPE)


def dtype_of_numpy(numpy_type: Any) -> DType:
    """Return the entry of a NumPy type, dtype or scalar class. Raises Unsupported if XLA has no such type."""
    dtype = np.dtype(numpy_type)
    found = _BY_NUMPY.get(dtype.newbyteorder("="))
    if found is None:
        raise Unsupported(f"arrays of NumPy type '{dtype}' are not supported")
    return found


def dtype_of_element(element: object) -> DType:
    """Return the entry of a StableHLO element type, an ``ir.Type`` or its text. Raises Unsupported if unknown."""
    found = _BY_CLASS.get(type(element))
    if found is None and isinstance(element, ir.IntegerType) and element.is_signless:
        found = _SIGNLESS.get(element.width)
    if found is None:
        found = _BY_MLIR.get(str(element))
    if found is None:
        raise Unsupported(f"element type '{element}' is not supported")
    return found


def format_spec(dtype: DType, shape: Sequence[int]) -> str:
    """Return ``f32[128,1024]``, the text that ``parse_spec`` reads."""
    return f"{dtype.hlo}[{','.join(map(str, shape))}]"


def parse_spec(text: str) -> tuple[DType, tuple[int, ...]]:
    """Read an array specification such as ``f32[128,1024]``, ``pred[]`` or ``bf16`` (a scalar).

    NumPy's names (``float32[8]``) are read too. Raises InvalidInput if the text is no specification.
    """
    match = _SPEC.fullmatch(text)
    if match is None:
        expected = f"expected a form such as f32[128,1024] or s32[]{_near_spec(text)}"
        raise InvalidInput(f"'{text}' is not an array specification; {expected}")
    name, sizes_text = match.groups()
    dtype = dtype_named(name)
    sizes = [] if not (sizes_text or "").strip() else [size.strip() for size in sizes_text.split(",")]
    for size in sizes:
        if not (size.isascii() and size.isdecimal()):
            expected = f"expected a number such as 128{_near_spec(text)}"
            raise InvalidInput(f"'{size}' in '{text}' is not a dimension size; {expected}")
    if len(sizes) > MAX_RANK:
        raise InvalidInput(f"'{text}' has {len(sizes)} dimensions; an array has at most {MAX_RANK}")
    # Python refuses to read numbers of thousands of digits.
    if any(len(size) > 18 for size in sizes) or math.prod(map(int, sizes)) > MAX_ELEMENTS:
        raise InvalidInput(f"'{text}' is too large; an array has at most {MAX_ELEMENTS} elements")
    shape = tuple(map(int, sizes))
    return dtype, shape


def _near_spec(text: str) -> str:
    """Suggest the specification for text in another notation: ``f32[2x3]``, ``f32(2,3)``, ``tensor<2x3xf32>``."""
    if match := _MLIR_SPEC.fullmatch(text.strip()):
        sizes, name = match.groups()
    elif match := _NEAR_SPEC.fullmatch(text.strip()):
        name, sizes = match.groups()
    else:
        return ""
    dtype = _BY_HLO.get(name) or _BY_NUMPY_NAME.get(name) or _BY_MLIR.get(name)
    return f" (did you mean '{dtype.hlo}[{','.join(re.findall('[0-9]+', sizes))}]'?)" if dtype else ""
