"""Names of a program and its arrays in C, C++ and Rust: identifiers that no language keeps for itself."""

import re
from collections.abc import Iterable

from xgpu.errors import InvalidInput

_KEYWORDS = frozenset(
    """abstract alignas alignof and and_eq asm async atomic_cancel atomic_commit atomic_noexcept auto await become
    bitand bitor bool box break case catch char char16_t char32_t char8_t class co_await co_return co_yield compl
    complex concept const const_cast consteval constexpr constinit continue crate decltype default delete do double
    dyn dynamic_cast else enum explicit export extern false final float fn for friend gen goto if imaginary impl import
    in inline int let linux long loop macro match mod module move mut mutable namespace new noexcept noreturn not
    not_eq nullptr operator or or_eq override priv private protected pub public ref reflexpr register
    reinterpret_cast requires restrict return self short signed sizeof static static_assert static_cast str struct
    super switch synchronized template this thread_local throw trait true try type typedef typeid typename typeof
    unix unsafe unsigned unsized union use using virtual void volatile wchar_t where while xor xor_eq yield""".split()
)
_OURS = frozenset(
    """add_all alloc arrays assert bytes check check_arrays check_extent core data errno error extents find_signature
    found get_extents host i8 i16 i32 i64 isize f32 f64 loaded machine machine_enter machine_leave
    machine_target main memory needed null of on prepare raw run s scratch scratch_bytes session signature size_t
    sizes span status std stream u8 u16 u32 u64 units usize""".split()
)
"""The names in the package's own code where the names of arrays are known too, and types of the languages."""


def identifier(text: str, default: str) -> str:
    """Return ``text`` as an identifier of C, C++ and Rust, in lower case: other characters become underscores."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").lower()
    if not words:
        words = default
    if words[0].isdigit():
        words = f"{default}_{words}"
    is_integer_type = re.fullmatch(r"u?int\w*_t", words) is not None
    return f"{words}_" if words in _KEYWORDS or words in _OURS or is_integer_type else words


def identifiers(texts: Iterable[str], default: str, others: Iterable[str] = ()) -> tuple[str, ...]:
    """Return an identifier for each text, different from each other and from ``others``: by a number if need be."""
    taken, found = set(others), list[str]()
    for text in texts:
        name = plain = identifier(text, default)
        number = 1
        while name in taken:
            number += 1
            name = f"{plain.rstrip('_')}_{number}"
        taken.add(name)
        found.append(name)
    return tuple(found)


def package_name(given: str | None, source_name: str) -> str:
    """Return the name of a package: the one given, which must be an identifier, or one made of the program's name."""
    if given is None:
        return identifier(source_name, "program")
    if identifier(given, "program") != given or "__" in given:
        raise InvalidInput(
            f"'{given}' cannot be the name of a package: expected lower-case letters, digits and single '_', and no "
            "word that C, C++ or Rust keep for themselves"
        )
    return given
