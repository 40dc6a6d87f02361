"""The words of the language in which the functions are written that kernels call on this machine.

Such a function is Python by its form: `xgpu.target.host.language.compiler` makes LLVM IR of it, and it never runs as
Python; nor do the words that are only declared here, whose meaning the compiler knows. Its parameters and variables are
integers (``int``, 64 bits), numbers (``float``, 32 bits), truth values and pointers; the fields and elements that
pointers lead to have the types of ``ctypes``. ``//`` and ``%`` are those of numbers without a sign.
"""

# Words have no bodies.
# mypy: disable-error-code="empty-body"

import ctypes
from collections.abc import Callable
from functools import wraps
from typing import Any

from xgpu.errors import CompilerError

CHECKED = False
"""Whether the functions check what kernels do; each is compiled once with either value."""

COMPILED = "__compiled_for_the_host__"
"""The attribute that marks a function of the language."""


def compiled[FunctionT: Callable[..., Any]](function: FunctionT) -> FunctionT:
    """Mark a function as one of the language."""
    setattr(function, COMPILED, True)
    return function


def _word[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Declare a word that is written as a call; Python cannot call it."""

    @wraps(function)
    def fail(*_: P.args, **__: P.kwargs) -> R:
        raise CompilerError(f"'{function.__name__}' is a word for functions that are compiled, none that Python calls")

    return fail


class Pointer[T]:
    """A pointer to an element, or the first of several, of a ``ctypes`` type or structure.

    ``p.field`` is a field of a structure, ``p[i]`` an element: for structures and arrays, a pointer to it. ``p + i`` is
    the pointer to element ``i``.
    """

    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...
    def __getitem__(self, index: int) -> Any: ...
    def __setitem__(self, index: int, value: Any) -> None: ...
    def __add__(self, index: int) -> "Pointer[T]": ...
    def __bool__(self) -> bool: ...


Bytes = Pointer[ctypes.c_uint8]


@_word
def cast[T](type_: type[T], value: Any) -> Pointer[T]:
    """A pointer, or an address, as a pointer to another type."""


@_word
def address(pointer: Any) -> int:
    """The address that a pointer holds."""


@_word
def size_of(type_: type[Any]) -> int:
    """The bytes that a type takes."""


@_word
def as_float(bits: int) -> float:
    """The number whose bits are the lowest 32."""


@_word
def as_bits(number: float) -> int:
    """The 32 bits of a number."""


@_word
def to_number(value: int) -> float:
    """An integer as a number."""


@_word
def to_integer(number: Any) -> Any:
    """A number, or eight, without a fraction, as an integer."""


@_word
def copy(to: Any, source: Any, count: int) -> None:
    """Copy bytes; the two ranges do not overlap."""


@_word
def fill(to: Any, byte: int, count: int) -> None:
    """Set bytes."""


@_word
def resume(frame: Any) -> None:
    """Let the coroutine of a frame go on until it suspends."""


@_word
def make_thread(make: Any, buffers: Any, x: int, y: int, z: int, context: Any, frame: Any) -> int:
    """Make the coroutine of a thread in a frame; the bytes of a frame if that is null."""


@_word
def vector(pointer: Any) -> Any:
    """Eight numbers of 32 bits; they may be added and multiplied."""


@_word
def splat(value: Any) -> Any:
    """Eight times a number."""


@_word
def set_vector(pointer: Any, value: Any) -> None:
    """Store eight numbers."""
