"""The part of a test program that is made for one package and one of its signatures, in C, C++ and Rust."""

from xgpu.packaging.model import Package, PackageArray, PackageSignature

_LETTERS = {
    "pred": "?", "s8": "b", "u8": "c", "s16": "h", "u16": "H", "s32": "i", "u32": "I", "s64": "l", "u64": "L",
    "f16": "e", "bf16": "B", "f32": "f", "f64": "d",
}  # fmt: skip
"""The letters by which the harness knows types of elements."""


def sources(package: Package, signature: PackageSignature) -> dict[str, str]:
    """Return the files ``package.h``, ``package.hpp`` and ``package.rs``."""
    return {
        "package.h": _c(package, signature),
        "package.hpp": _cpp(package, signature),
        "package.rs": _rust(package, signature),
    }


def _sizes(signature: PackageSignature) -> str:
    return "".join(f"{size}, " for size in signature.sizes)


def _letters(signature: PackageSignature) -> str:
    return "".join(_LETTERS[each.dtype.hlo] for each in signature.arrays)


def _bytes(signature: PackageSignature) -> str:
    return ", ".join(str(each.bytes) for each in signature.arrays)


def _c(package: Package, signature: PackageSignature) -> str:
    name, count = package.name, len(signature.arrays)
    arrays = "".join(f"arrays[{number}], " for number in range(count))
    return f"""#include "xgpu/{name}.h"
enum {{ ARGUMENTS = {len(signature.arguments)}, ARRAYS = {count} }};
static const size_t array_bytes[] = {{{_bytes(signature)}}};
static const char array_types[] = "{_letters(signature).replace("?", "\\?")}";
static const int package_waits = {int(package.waits)};
static const int package_cannot_capture = {name.upper()}_CANNOT_CAPTURE;
static size_t package_scratch_bytes(void) {{
  {name}_extents extents;
  {name}_get_extents({_sizes(signature)}&extents);
  return extents.scratch_bytes;
}}
static int package_run(void *const *arrays, void *scratch, size_t scratch_bytes, void *stream) {{
  return (int){name}_run({_sizes(signature)}{arrays}scratch, scratch_bytes, stream);
}}
static int package_unload(void *stream) {{ return (int){name}_unload(stream); }}
static const char *package_message(void) {{ return {name}_error_message(); }}
"""


def _spans(arrays: tuple[PackageArray, ...], pattern: str) -> str:
    return "".join(pattern.format(number=number, name=each.name) for number, each in enumerate(arrays))


def _cpp(package: Package, signature: PackageSignature) -> str:
    name = package.name
    sizes = ", ".join(map(str, signature.sizes))
    spans = _spans(signature.arrays, "elements{{memory[{number}], extents.{name}}}, ")
    return f"""#include <cstddef>
#include <vector>
#include "xgpu/{name}.hpp"
namespace package {{
constexpr int argument_count = {len(signature.arguments)}, array_count = {len(signature.arrays)};
constexpr std::size_t array_bytes[] = {{{_bytes(signature)}}};
constexpr char array_types[] = "{_letters(signature).replace("?", "\\?")}";
constexpr bool waits = {str(package.waits).lower()};
constexpr int cannot_capture = {name.upper()}_CANNOT_CAPTURE;
using error = xgpu::{name}::error;
using loaded = xgpu::{name}::loaded;
using scratch_memory = xgpu::{name}::memory;
struct elements {{
  void *data;
  std::size_t size;
  template <typename T>
  operator xgpu::{name}::span<T>() const {{
    return {{static_cast<T *>(data), size}};
  }}
}};
inline std::size_t scratch_bytes() {{ return xgpu::{name}::get_extents({sizes}).scratch_bytes; }}
inline void run(const std::vector<void *> &memory, const scratch_memory &scratch, void *stream) {{
  const auto extents = xgpu::{name}::get_extents({sizes});
  xgpu::{name}::run({_sizes(signature)}{spans}scratch, stream);
}}
}}  // namespace package
"""


def _rust(package: Package, signature: PackageSignature) -> str:
    crate, arguments = f"xgpu_{package.name}", len(signature.arguments)
    read = "        DeviceSlice::from_raw_parts(memory[{number}].cast(), extents.{name}),\n"
    written = "        &mut DeviceSliceMut::from_raw_parts(memory[{number}].cast(), extents.{name}),\n"
    lines = [
        (read if number < arguments else written).format(number=number, name=each.name)
        for number, each in enumerate(signature.arrays)
    ]
    return f"""use std::ffi::c_void;
#[allow(unused_imports)]
use {crate}::{{extents, DeviceSlice, DeviceSliceMut, Stream}};
pub use {crate}::{{Error, Status}};
pub const ARGUMENTS: usize = {arguments};
pub const ARRAY_BYTES: &[usize] = &[{_bytes(signature)}];
pub const ARRAY_TYPES: &[u8] = b"{_letters(signature)}";
pub const WAITS: bool = {str(package.waits).lower()};
pub fn scratch_bytes() -> usize {{
    extents({_sizes(signature)}).unwrap().scratch_bytes
}}
pub unsafe fn run(memory: &[*mut c_void], scratch: *mut c_void, stream: *mut c_void) -> Result<(), Error> {{
    let extents = extents({_sizes(signature)})?;
    {crate}::run(
        {_sizes(signature)}
{"".join(lines)}        &mut DeviceSliceMut::from_raw_parts(scratch.cast(), extents.scratch_bytes),
        Stream::from_raw(stream),
    )
}}
pub unsafe fn unload(stream: *mut c_void) -> Result<(), Error> {{
    {crate}::unload(Stream::from_raw(stream))
}}
"""
