"""The C++ header of a package."""

from xgpu.packaging.files.filling import filled
from xgpu.packaging.files.interface import Interface


def cpp_files(interface: Interface) -> dict[str, str]:
    """Return the header of C++ by its path."""
    names = interface.package.size_names
    arguments = [f"span<const {interface.type_of(each).c}> {each.name}, " for each in interface.arguments]
    results = [f"span<{interface.type_of(each).c}> {each.name}, " for each in interface.results]
    values = interface.values | {
        "SIZES": "".join(f"std::int64_t {name}, " for name in names),
        "SIZE_PARAMETERS": ", ".join(f"std::int64_t {name}" for name in names),
        "SIZE_ARGUMENTS": ", ".join(names),
        "SIZE_NAMES": "".join(f"{name}, " for name in names),
        "SPANS": "".join([*arguments, *results]),
        "CHECKS": "\n".join(
            f'  check_extent("{each.name}", {each.name}.size(), needed.{each.name});' for each in interface.arrays
        ),
        "DATA": "".join(f"{each.name}.data(), " for each in interface.arrays),
        "FORWARDED": "".join(f"{each.name}, " for each in interface.arrays),
    }
    return {f"include/xgpu/{interface.name}.hpp": filled("header.hpp", values)}
