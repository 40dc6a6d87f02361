"""Facts that the CUDA driver reports of itself and of this machine's GPUs, without starting one."""

import ctypes
from typing import Any

from xgpu.records import dataclass

_LIBRARY = "libcuda.so.1"
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
_NAME_BYTES = 256


@dataclass(frozen=True)
class Driver:
    """A driver: the newest version of CUDA that it knows, such as ``12.8``, and each GPU's name and target.

    ``problem`` says why the GPUs cannot be used, empty if they can.
    """

    version: str
    gpus: tuple[tuple[str, str], ...]
    problem: str = ""


def find_driver() -> Driver | None:
    """Return what the driver says; None if there is none."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    return ask(library)


def ask(library: Any) -> Driver:
    """Return what a driver's library says. No context is made, so that no memory of a GPU is taken."""
    number = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(number))
    version = f"{number.value // 1000}.{number.value % 1000 // 10}"
    result = library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(number))
    if result:
        return Driver(version, (), f"the driver reports error {result}")
    return Driver(version, tuple(_gpu(library, index) for index in range(number.value)))


def _gpu(library: Any, index: int) -> tuple[str, str]:
    device, name = ctypes.c_int(), ctypes.create_string_buffer(_NAME_BYTES)
    library.cuDeviceGet(ctypes.byref(device), index)
    library.cuDeviceGetName(name, _NAME_BYTES, device)
    capability = []
    for attribute in (_MAJOR, _MINOR):
        value = ctypes.c_int()
        library.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        capability.append(value.value)
    return name.value.decode(errors="replace"), f"sm_{capability[0]}{capability[1]}"
