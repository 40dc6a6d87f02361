"""Kernels as calls of a foreign function in XLA's programs for the CPU: Python has no part in a launch.

The kernel itself is an attribute of the call (`host_source`), so a program can be exported, or its executable
serialised, and run in another process that has imported xgpu. When XLA makes an executable of a program, the handler
gets each call's kernel once, compiles it unless this process has it, and leaves XLA a record of it, which XLA releases
with the executable. Kernels of programs that are lowered here are compiled before that, where an error, or Ctrl-C, ends
in Python as it should.
"""

import ctypes
import threading
from pathlib import Path
from typing import Any

import jax

from xgpu.errors import InvalidInput, KernelFault, XgpuError
from xgpu.jax_internals import export
from xgpu.records import dataclass
from xgpu.runtime.host_faults import divergence
from xgpu.runtime.program import CompiledKernel
from xgpu.target.host.context import Header
from xgpu.target.host.kernel_source import from_text, to_text
from xgpu.target.host.linker import link_glue
from xgpu.target.host.machine_code import HostCode, host_source, load_source
from xgpu.target.xla.ffi import FfiHeader
from xgpu.target.xla.handler import handler_ir
from xgpu.target.xla.writer import (
    DIVERGED,
    EXECUTE,
    FAIL,
    FIND,
    INSTANTIATE,
    NO_MEMORY,
    RELEASE,
    TYPE_ID,
    WRONG_BUFFERS,
    Answer,
    KernelRecord,
)

TARGET = "xgpu.jit"
"""The name of the foreign function. Where it is unknown, XLA's message names it: that is what has to be imported."""

_MOST_WAITING = 1024
"""Kernels that stay compiled though XLA has not asked for them: most programs are compiled soon after lowering."""

_POINTER = ctypes.c_void_p
_FUNCTION = ctypes.CFUNCTYPE(_POINTER, _POINTER)
_FIND = ctypes.CFUNCTYPE(None, _POINTER, _POINTER)
_FAIL = ctypes.CFUNCTYPE(None, _POINTER, _POINTER, ctypes.c_int32, _POINTER, _POINTER)


def allow_export(target: str) -> None:
    """Let JAX export programs that call a foreign function: only if somebody says that its calls stay what they are."""
    stable = getattr(export, "_CUSTOM_CALL_TARGETS_GUARANTEED_STABLE", None)
    if isinstance(stable, set):
        stable.add(target)


def kernel_text(kernel: CompiledKernel) -> str:
    """Return the attribute ``kernel`` of a call that launches a kernel."""
    return to_text(host_source(kernel.host_module(), kernel.name, kernel.grid, kernel.block))


@dataclass(eq=False)
class _Kernel:
    """A kernel of XLA's executables: ``taken`` is how many of their calls were given its record."""

    record: KernelRecord
    taken: int = 0

    @property
    def is_released(self) -> bool:
        """Whether XLA had the record, and has no call of it left."""
        return 0 < self.taken == self.record.released


class Handler:
    """XLA's handler, and the kernels that XLA has calls of, or will have: their programs have been lowered."""

    def __init__(self, header: FfiHeader):
        self._header = header
        self._lock = threading.Lock()
        self._kernels: dict[bytes, _Kernel] = {}
        self._codes: dict[int, HostCode] = {}
        self._find = _FIND(self._put_record)
        self._fail = _FAIL(self._put_failure)
        imports = {FIND: _address(self._find), FAIL: _address(self._fail)}
        exports = [INSTANTIATE, EXECUTE, RELEASE, TYPE_ID]
        self._symbols, self._library = link_glue(handler_ir(header), exports, imports)
        type_info = header.structure("TypeInfo")
        self._type_info = type_info(header.size("TypeInfo"), None, self._symbols[RELEASE])

    def register(self) -> None:
        """Register the handler with XLA. It stays so as long as the process lives."""
        capsules = {"type_id": self._symbols[TYPE_ID], "type_info": ctypes.addressof(self._type_info)}
        jax.ffi.register_ffi_type(TARGET, _capsules(capsules), "cpu")
        stages = {"instantiate": self._symbols[INSTANTIATE], "execute": self._symbols[EXECUTE]}
        jax.ffi.register_ffi_target(TARGET, _capsules(stages), "cpu")

    def load(self, text: str) -> None:
        """Compile a kernel for this process, which XLA will ask for; raises what `load_source` raises."""
        with self._lock:
            self._forget()
            self._kernel(text.encode())

    def count_kernels(self) -> int:
        """Let go of what XLA has released, and return how many kernels this process has for XLA."""
        with self._lock:
            self._forget()
            return len(self._kernels)

    def _put_record(self, address: int, answer: int) -> None:
        """Give XLA the record of the kernel that a call names, or an error."""
        frame = self._at("CallFrame", address)
        try:
            kernel = self._take(self._text_of(frame.attrs))
            stage = self._header.number("ExecutionStage_INSTANTIATE")
            state = {"ctx": frame.ctx, "stage": stage, "type_id": self._symbols[TYPE_ID]}
            error = self._call(frame.api, "State_Set", **state, state=ctypes.addressof(kernel.record))
            if error is not None:
                self._give_back(kernel)
        except BaseException as caught:  # Whatever it is, it must reach XLA: this was not called from Python.
            error = self._error(frame.api, _reason(caught))
        _put(answer, error)

    def _text_of(self, attributes: Any) -> bytes:
        """Return a call's one attribute."""
        is_text = attributes.size == 1 and _item(attributes.types, ctypes.c_int) == self._header.number(
            "AttrType_STRING"
        )
        if not is_text:
            raise InvalidInput(f"a call of {TARGET} has one attribute, the text of a kernel")
        span = self._at("ByteSpan", _item(attributes.attrs, ctypes.c_void_p))
        return ctypes.string_at(span.ptr, span.len)

    def _take(self, text: bytes) -> "_Kernel":
        """Return a kernel for XLA, which will release it."""
        with self._lock:
            kernel = self._kernel(text)
            kernel.taken += 1
            return kernel

    def _give_back(self, kernel: "_Kernel") -> None:
        """Take a kernel back that XLA did not take."""
        with self._lock:
            kernel.taken -= 1

    def _kernel(self, text: bytes) -> "_Kernel":
        if text not in self._kernels:
            code = load_source(from_text(text))
            kernel = self._kernels[text] = _Kernel(_record_of(code))
            self._codes[ctypes.addressof(kernel.record)] = code
        return self._kernels[text]

    def _forget(self) -> None:
        """Drop the kernels that XLA has released, and the oldest of very many that it never asked for."""
        released = [text for text, kernel in self._kernels.items() if kernel.is_released]
        waiting = [text for text, kernel in self._kernels.items() if not kernel.taken]
        for text in (*released, *waiting[:-_MOST_WAITING]):
            del self._codes[ctypes.addressof(self._kernels.pop(text).record)]

    def _put_failure(self, api: int, record: int, what: int, context: int | None, answer: int) -> None:
        """Create XLA's error for a failed launch."""
        try:
            message = _message(self._codes[record], what, context)
        except BaseException as caught:  # As above.
            message = _reason(caught)
        _put(answer, self._error(api, message))

    def _error(self, api: int, message: str) -> int | None:
        text = ctypes.create_string_buffer(message.replace("\0", " ").encode())
        code = self._header.number("Error_Code_INTERNAL")
        return self._call(api, "Error_Create", message=ctypes.addressof(text), errc=code)

    def _call(self, api: int, function: str, **inputs: int | None) -> int | None:
        """Call a function of XLA's interface, and return the pointer that it returns."""
        structure = f"{function}_Args"
        given = self._header.structure(structure)(struct_size=self._header.size(structure), **inputs)
        address = getattr(self._at("Api", api), f"XLA_FFI_{function}")
        pointer: int | None = _FUNCTION(address)(ctypes.addressof(given))
        return pointer

    def _at(self, structure: str, address: int) -> Any:
        return self._header.structure(structure).from_address(address)


def _record_of(code: HostCode) -> KernelRecord:
    alignment = max((parameter.alignment for parameter in code.parameters), default=1)
    return KernelRecord(
        code.address,
        len(code.parameters) + 1,  # The last is the result that nobody reads.
        code.clusters,
        alignment - 1,
        code.is_split,
        code.context_bytes,
        code.shared_end,
    )


def _message(code: HostCode, what: int, context: int | None) -> str:
    if what == DIVERGED and context and (fault := divergence(code, Header.from_address(context))):
        return str(KernelFault(code.name, (fault,)))
    if what == NO_MEMORY:
        return f"kernel '{code.name}': no memory for the {code.context_bytes} bytes that its threads need"
    if what == WRONG_BUFFERS:
        return f"kernel '{code.name}' takes {len(code.parameters)} buffers, another number was given"
    alignment = max(parameter.alignment for parameter in code.parameters)
    return f"kernel '{code.name}': a buffer is not aligned to {alignment} bytes"


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, XgpuError) else f"{type(error).__name__}: {error}"


def _put(answer: int, error: int | None) -> None:
    given = Answer.from_address(answer)
    given.error = error
    given.is_given = True


def _item(array: int, type_: Any) -> Any:
    """Return the first item of a C array."""
    return type_.from_address(array).value


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _capsules(addresses: dict[str, int]) -> Any:
    return {name: jax.ffi.pycapsule(address) for name, address in addresses.items()}  # type: ignore[no-untyped-call]


def make_handler() -> Handler | None:
    """Register the handler with XLA on the CPU; None if this XLA's interface is unknown."""
    try:
        header = FfiHeader(Path(jax.ffi.include_dir(), "xla/ffi/api/c_api.h").read_text(encoding="utf-8"))
        handler = Handler(header)
        handler.register()
    except (OSError, XgpuError, AttributeError, RuntimeError):
        return None
    # For good: executables that Python frees at its end, after this module, still give back what they took.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(handler))
    return handler


HANDLER = make_handler()
"""Made on import, so once in a process, whichever threads compile first; programs call it as long as that lives."""
allow_export(TARGET)
