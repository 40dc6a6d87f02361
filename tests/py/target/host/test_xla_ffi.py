"""The layout of XLA's foreign function interface, read from the header in jaxlib."""

from pathlib import Path

import jax
import pytest

from xgpu.errors import ToolError
from xgpu.target.xla.ffi import FfiHeader


@pytest.fixture(scope="module")
def header() -> FfiHeader:
    return FfiHeader(Path(jax.ffi.include_dir(), "xla/ffi/api/c_api.h").read_text())


@pytest.mark.parametrize(
    ("structure", "path", "offset"),
    [
        ("CallFrame", "extension_start", 8),
        ("CallFrame", "args.size", 56),
        ("CallFrame", "args.args", 72),
        ("CallFrame", "rets.rets", 112),
        ("CallFrame", "future", 168),
        ("Buffer", "data", 24),
        ("Buffer", "dims", 40),
        ("Metadata", "api_version.minor_version", 28),
        ("Api", "XLA_FFI_Error_Create", 48),
        ("TypeInfo", "deleter", 16),
    ],
)
def test_offsets(header: FfiHeader, structure: str, path: str, offset: int) -> None:
    """As a C compiler has them, for 64-bit pointers."""
    assert header.offset(structure, path) == offset


def test_sizes_end_with_the_last_field(header: FfiHeader) -> None:
    assert header.size("Error_Create_Args") == 28
    assert header.size("State_Get_Args") == 48


def test_numbers(header: FfiHeader) -> None:
    assert header.number("API_MAJOR") == 0
    assert header.number("ExecutionStage_EXECUTE") == 3
    assert header.number("Error_Code_INTERNAL") == 13


def test_what_the_header_lacks(header: FfiHeader) -> None:
    with pytest.raises(ToolError, match="no number XLA_FFI_Other"):
        header.number("Other")
    with pytest.raises(ToolError, match="no structure XLA_FFI_Other"):
        header.structure("Other")
    with pytest.raises(ToolError, match=r"no field args\.other in XLA_FFI_CallFrame"):
        header.offset("CallFrame", "args.other")


def test_another_version() -> None:
    with pytest.raises(ToolError, match="has version 7, not 0"):
        FfiHeader("#define XLA_FFI_API_MAJOR 7\n")
