"""The names of element types in C, C++ and Rust, and what each type is made of."""

from collections.abc import Iterable

from xgpu.dtypes import DType
from xgpu.packaging.model import PackageArray
from xgpu.records import dataclass

_NUMBERS = {
    "s8": ("int8_t", "i8"),
    "s16": ("int16_t", "i16"),
    "s32": ("int32_t", "i32"),
    "s64": ("int64_t", "i64"),
    "u8": ("uint8_t", "u8"),
    "u16": ("uint16_t", "u16"),
    "u32": ("uint32_t", "u32"),
    "u64": ("uint64_t", "u64"),
    "f32": ("float", "f32"),
    "f64": ("double", "f64"),
}
"""Types that the languages have themselves, in C and in Rust."""
_PARTS = {"c64": "f32", "c128": "f64"}


@dataclass(frozen=True)
class CElementType:
    """The type of what an array's pointer points to: several elements if they share a byte, else one.

    ``c`` and ``rust`` are its names; ``c_declaration`` and ``rust_declaration`` declare it, empty for types of the
    languages.
    """

    c: str
    rust: str
    c_declaration: str
    rust_declaration: str

    @staticmethod
    def count(array: PackageArray) -> int:
        """Return how many of its type an array's pointer points to."""
        return array.bytes // max(array.dtype.storage_bits // 8, 1)


def element_type(dtype: DType, package: str) -> CElementType:
    """Return what elements of a type are called in a package's code."""
    if dtype.hlo in _NUMBERS:
        return CElementType(*_NUMBERS[dtype.hlo], "", "")
    name = f"{dtype.hlo}x{8 // dtype.bits}" if dtype.is_packed else dtype.hlo
    c, rust = f"{package}_{name}", name.capitalize()
    if dtype.kind == "complex":
        c_part, rust_part = _NUMBERS[_PARTS[dtype.hlo]]
        what = "A complex number."
        return CElementType(
            c,
            rust,
            f"/* {what} */\ntypedef struct {c} {{\n  {c_part} re;\n  {c_part} im;\n}} {c};",
            f"/// {what}\n#[repr(C)]\n#[derive(Clone, Copy, Debug, Default, PartialEq)]\n"
            f"pub struct {rust} {{\n    pub re: {rust_part},\n    pub im: {rust_part},\n}}",
        )
    bits = 16 if dtype.storage_bits == 16 else 8
    what = _description(dtype)
    return CElementType(
        c,
        rust,
        f"/* {what} */\ntypedef uint{bits}_t {c};",
        f"/// {what}\npub type {rust} = u{bits};",
    )


def declared_types(arrays: Iterable[PackageArray], package: str) -> list[CElementType]:
    """Return the types that a package must declare for its arrays, each once."""
    types = {each.dtype: element_type(each.dtype, package) for each in arrays}
    return [types[dtype] for dtype in sorted(types, key=str) if types[dtype].c_declaration]


def _description(dtype: DType) -> str:
    if dtype.is_packed:
        return f"{8 // dtype.bits} elements of {dtype.hlo}, the first in the lowest bits."
    if dtype.kind == "bool":
        return "A truth value: 0 or 1."
    return f"The bits of an element of {dtype.hlo}."
