"""XLA's C interface for foreign functions: its structures and numbers, as the header ``c_api.h`` declares them.

jaxlib comes with the header of the XLA in it, so where a field lies is never a guess.
"""

import ctypes
import re
from typing import Any

from xgpu.errors import ToolError

VERSION = 0
"""The interface's major version that we know; within one, what there is keeps its meaning."""

_SCALARS: dict[str, Any] = {
    "size_t": ctypes.c_size_t,
    "int64_t": ctypes.c_int64,
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int": ctypes.c_int,
}
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRUCTURE = re.compile(r"(?:typedef )?struct (\w+) \{(.*?)\}[^;]*;", re.DOTALL)
_ENUMERATION = re.compile(r"enum(?: \w+)? \{(.*?)\}\s*(\w*);", re.DOTALL)
_TYPE_NAME = re.compile(r"typedef (\w+) (\w+);")
# A pointer to a function, a function of the interface, or a type and a name.
_FIELD = re.compile(r".*\(\*(?P<function>\w+)\).*|_XLA_FFI_API_STRUCT_FIELD\((?P<api>\w+)\)|(?P<type>.*?)(?P<name>\w+)")


class FfiHeader:
    """The declarations of ``c_api.h``; names are given without ``XLA_FFI_``. Raises ToolError for a missing one."""

    def __init__(self, text: str):
        text = _COMMENTS.sub("", text)
        self._numbers = {name: int(value) for name, value in re.findall(r"(XLA_FFI_\w+) = (\d+)", text)}
        self._numbers |= {name: int(value) for name, value in re.findall(r"#define (XLA_FFI_\w+) (\d+)\n", text)}
        self._types = dict(_SCALARS)
        self._types |= {name: ctypes.c_int for _, name in _ENUMERATION.findall(text) if name}
        self._types |= {name: _SCALARS[old] for old, name in _TYPE_NAME.findall(text) if old in _SCALARS}
        for name, body in _STRUCTURE.findall(text):
            self._declare(name, body)
        if self.number("API_MAJOR") != VERSION:
            raise ToolError(
                f"XLA's interface for foreign functions has version {self.number('API_MAJOR')}, not {VERSION}"
            )

    def _declare(self, name: str, body: str) -> None:
        """Add a structure, unless it has fields of a type that is not known."""
        fields = []
        for line in filter(None, (" ".join(each.split()) for each in body.split(";"))):
            found = _FIELD.fullmatch(line)
            if found is None:
                return
            kind = (found["type"] or "*").replace("const ", "").strip()
            type_ = ctypes.c_void_p if kind.endswith("*") else self._types.get(kind.removeprefix("struct "))
            if type_ is None:
                return
            fields.append((found["function"] or found["api"] or found["name"], type_))
        self._types[name] = type(name, (ctypes.Structure,), {"_fields_": fields})

    def number(self, name: str) -> int:
        """Return the value of a constant or of an enumerator."""
        try:
            return self._numbers[f"XLA_FFI_{name}"]
        except KeyError:
            raise ToolError(f"XLA's header for foreign functions has no number XLA_FFI_{name}") from None

    def structure(self, name: str) -> type[ctypes.Structure]:
        """Return a structure with the header's fields."""
        found = self._types.get(f"XLA_FFI_{name}")
        if found is None or not issubclass(found, ctypes.Structure):
            raise ToolError(f"XLA's header for foreign functions has no structure XLA_FFI_{name} of known fields")
        return found

    def offset(self, name: str, path: str) -> int:
        """Return where a field lies in a structure, in bytes; ``path`` may lead through structures inside it."""
        structure, start = self.structure(name), 0
        for field in path.split("."):
            types = {each[0]: each[1] for each in structure._fields_}
            if field not in types:
                raise ToolError(f"XLA's header for foreign functions has no field {path} in XLA_FFI_{name}")
            start += int(getattr(structure, field).offset)
            structure = types[field]  # type: ignore[assignment]
        return start

    def size(self, name: str) -> int:
        """Return what a structure's field ``struct_size`` has to say: the bytes up to the end of its last field."""
        structure = self.structure(name)
        last, type_ = structure._fields_[-1][:2]
        return int(getattr(structure, last).offset) + ctypes.sizeof(type_)
