"""Common parts of XLA's handler: the record of a kernel, functions' names, accesses to structures."""

import ctypes

from xgpu.target.xla.ffi import FfiHeader

INSTANTIATE, EXECUTE, RELEASE = "xgpu_instantiate", "xgpu_execute", "xgpu_release"
"""Functions that the module exports: the handlers of a call's start and of a launch, and the release of a record."""
TYPE_ID = "xgpu_type_id"
"""Exported variable for the number that XLA gives the type of records."""
FIND, FAIL = "xgpu_find", "xgpu_fail"
"""Functions that the handler imports, both Python's.

``void FIND(ptr frame, ptr answer)`` has XLA keep the record of a call's kernel; ``void FAIL(ptr api, ptr record, i32
what, ptr context, ptr answer)`` makes an error of what went wrong. They put an error, or null, into an `Answer`.
"""
DIVERGED, WRONG_BUFFERS, MISALIGNED, NO_MEMORY = range(4)
"""Errors of a launch."""


class Answer(ctypes.Structure):
    """Python's answer, which counts only if marked: an exception that leaves Python (Ctrl-C) returns garbage."""

    _fields_ = [("error", ctypes.c_void_p), ("is_given", ctypes.c_int64)]


class KernelRecord(ctypes.Structure):
    """A kernel as the handler knows it.

    ``address`` is its entry point's, ``buffers`` how many a call has, of which some may follow the kernel's own;
    ``alignment_mask`` has the address bits that are zero in every buffer; ``is_split`` tells whether a launch is worth
    spreading over several cores; ``released`` is how often XLA has released the record; the rest is as in `HostCode`.
    """

    _fields_ = [
        ("address", ctypes.c_void_p),
        ("buffers", ctypes.c_int64),
        ("blocks", ctypes.c_int64),
        ("alignment_mask", ctypes.c_int64),
        ("is_split", ctypes.c_int64),
        ("context_bytes", ctypes.c_int64),
        ("shared_end", ctypes.c_int64),
        ("released", ctypes.c_int64),
    ]


type _Structure = str | type[ctypes.Structure]


class Writer:
    """Writes accesses to structures, those of XLA's header by their name."""

    def __init__(self, header: FfiHeader):
        self._header = header
        self._count = 0

    def number(self, name: str) -> int:
        """Return a number of XLA's header."""
        return self._header.number(name)

    def at(self, result: str, base: str, structure: _Structure, path: str) -> str:
        """Return IR of the address of a field."""
        if isinstance(structure, str):
            offset = self._header.offset(structure, path)
        else:
            offset = int(getattr(structure, path).offset)
        return f"  %{result} = getelementptr inbounds i8, ptr %{base}, i64 {offset}"

    def get(self, result: str, type_: str, base: str, structure: _Structure, path: str) -> str:
        """Return IR that loads a field."""
        return f"{self.at(f'{result}.at', base, structure, path)}\n  %{result} = load {type_}, ptr %{result}.at"

    def put(self, value: str, base: str, structure: _Structure, path: str) -> str:
        """Return IR that stores ``value``, which has its type before it, in a field."""
        self._count += 1
        return f"{self.at(f'to.{self._count}', base, structure, path)}\n  store {value}, ptr %to.{self._count}"

    def call(self, result: str, function: str, **inputs: str) -> str:
        """Return IR that calls a function of ``%api``, which returns an error; where it puts answers is `prepare`'s."""
        return (
            f"{self.prepare(result, function, **inputs)}\n  %{result} = call ptr %{result}.function(ptr %{result}.args)"
        )

    def prepare(self, result: str, function: str, **inputs: str) -> str:
        """Return IR that names a function of ``%api`` ``%result.function``, and its arguments ``%result.args``."""
        structure = f"{function}_Args"
        size = self._header.size(structure)
        lines = [
            f"  %{result}.args = alloca [{size} x i8], align 8",
            f"  store [{size} x i8] zeroinitializer, ptr %{result}.args, align 8",
            self.put(f"i64 {size}", f"{result}.args", structure, "struct_size"),
            *(self.put(value, f"{result}.args", structure, name) for name, value in inputs.items()),
            self.get(f"{result}.function", "ptr", "api", "Api", f"XLA_FFI_{function}"),
        ]
        return "\n".join(lines)
