"""The Rust crate of a package: its interface, and what builds the C source."""

import re

from xgpu.packaging.files.filling import filled
from xgpu.packaging.files.interface import Interface, described_arrays


def rust_files(interface: Interface, header: str) -> dict[str, str]:
    """Return the crate's files by their paths; ``header`` is the C header, which has the numbers of statuses."""
    return {
        "Cargo.toml": filled("Cargo.toml", interface.values),
        "rust/build.rs": filled("build.rs", interface.values),
        "rust/lib.rs": filled("lib.rs", interface.values | _values(interface) | _statuses(interface, header)),
    }


def _values(interface: Interface) -> dict[str, str]:
    names = interface.package.size_names
    sizes = "".join(f"{name}: i64, " for name in names)
    typed = [(each.name, interface.type_of(each).rust) for each in interface.arguments]
    written = [(each.name, interface.type_of(each).rust) for each in interface.results]
    every = [name for name, _ in (*typed, *written)]
    raw = [f"{name}: *const {type_}," for name, type_ in typed] + [f"{name}: *mut {type_}," for name, type_ in written]
    device = [f"{name}: DeviceSlice<'_, {type_}>," for name, type_ in typed]
    device += [f"{name}: &mut DeviceSliceMut<'_, {type_}>," for name, type_ in written]
    host = [f"{name}: &[{type_}]" for name, type_ in typed] + [f"{name}: &mut [{type_}]" for name, type_ in written]
    pointers = [f"{name}.as_ptr(), " for name, _ in typed] + [f"{name}.as_mut_ptr(), " for name, _ in written]
    return {
        "TYPES": "".join(f"{each.rust_declaration}\n\n" for each in interface.declared),
        "RAW_EXTENTS": _lines(8, [f"pub {name}: usize," for name in every]),
        "PUBLIC_EXTENTS": _lines(4, [f"pub {name}: usize," for name in every]),
        "COPIED_EXTENTS": "".join(f"{name}: found.{name}, " for name in every),
        "WAITS": "waits for values that say how it goes on" if interface.package.waits else "does not wait for it",
        "RAW_SIZES": sizes,
        "RAW_PARAMETERS": _lines(12, [*(f"{name}: i64," for name in names), *raw]),
        "SIZES": sizes.removesuffix(", "),
        "SIZE_NAMES": "".join(f"{name}, " for name in names),
        "PARAMETERS": _lines(4, [*(f"{name}: i64," for name in names), *device]),
        "HOST_PARAMETERS": ", ".join([*(f"{name}: i64" for name in names), *host]),
        "ARRAYS": "\n".join(f"/// - {line}" for line in described_arrays(interface)),
        "CHECKS": _checks(every, "{0}.length"),
        "CHECKS_ON_HOST": _checks(every, "{0}.len()"),
        "POINTERS": "".join(f"{name}.pointer, " for name in every),
        "POINTERS_ON_HOST": "".join(pointers),
    }


def _lines(indent: int, lines: list[str]) -> str:
    return "\n".join(" " * indent + line for line in lines)


def _checks(names: list[str], length: str) -> str:
    return _lines(4, [f'check_extent("{name}", {length.format(name)}, needed.{name})?;' for name in names])


def _statuses(interface: Interface, header: str) -> dict[str, str]:
    """Return the variants of Rust's enumeration, by the numbers of C's."""
    found = re.findall(rf"^  {interface.name.upper()}_(\w+) = (\d+),? +/\* (.*) \*/$", header, re.MULTILINE)
    named = [("".join(word.capitalize() for word in name.split("_")), number, text) for name, number, text in found]
    return {
        "STATUSES": _lines(
            4, [line for name, number, text in named for line in (f"/// {text}", f"{name} = {number},")]
        ),
        "STATUS_NUMBERS": _lines(12, [f"{number} => Status::{name}," for name, number, _ in named]),
    }
