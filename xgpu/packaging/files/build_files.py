"""Files that build and describe a package: CMake, pkg-config, a licence note, and how to begin."""

from xgpu.packaging.files.filling import filled
from xgpu.packaging.files.interface import Interface


def build_files(interface: Interface) -> dict[str, str]:
    """Return the files by their paths."""
    libraries = {interface.name: "-ldl -lpthread", f"{interface.name}_host": "-lm"}
    files = {
        "CMakeLists.txt": filled("CMakeLists.txt", interface.values),
        "cmake/config.cmake.in": filled("config.cmake.in", interface.values),
        "NOTICE.txt": filled("NOTICE.txt", interface.values),
        "README.md": filled("README.md", interface.values),
    }
    for library, private in libraries.items():
        values = interface.values | {"LIBRARY": library, "PRIVATE_LIBS": private}
        files[f"cmake/{library}.pc.in"] = filled("package.pc.in", values)
    return files
