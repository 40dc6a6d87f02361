"""Arrays as NumPy has them: of any strides and byte order, and read-only."""

import re
from typing import Any

import numpy as np
import pytest

import xgpu

_COUNTED = np.arange(12, dtype=np.float32).reshape(3, 4)
_ARRAYS = {
    "fortran": np.asfortranarray(_COUNTED),
    "transposed": np.ascontiguousarray(_COUNTED.T).T,
    "reversed": np.ascontiguousarray(_COUNTED[::-1, ::-1])[::-1, ::-1],
    "every second": np.repeat(_COUNTED, 2, axis=1)[:, ::2],
    "broadcast": np.broadcast_to(_COUNTED[:, :1], (3, 4)),
    "big endian": _COUNTED.astype(">f4"),
    "big endian, fortran": np.asfortranarray(_COUNTED.astype(">f4")),
    "within bytes": np.frombuffer(b"\0" + _COUNTED.tobytes(), np.uint8)[1:].view(np.float32).reshape(3, 4),
}


@pytest.fixture(scope="module")
def doubled() -> xgpu.Compiled:
    return xgpu.compile(lambda x: x * 2, "f32[3,4]")


@pytest.mark.parametrize("name", _ARRAYS)
def test_programs_run_on_arrays_as_they_are(doubled: xgpu.Compiled, name: str) -> None:
    array = _ARRAYS[name]
    for run in (doubled.run, doubled.reference):
        np.testing.assert_array_equal(run(array)[0], array * np.float32(2))


def test_single_elements_of_another_byte_order() -> None:
    (result,) = xgpu.compile(lambda x: x * 2, "s32[]").run(np.array(3, ">i4"))
    assert (result.shape, int(result)) == ((), 6)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("hello", "'hello' of type str was given: arrays of NumPy type '<U5' are not supported"),
        (None, "None of type NoneType was given: arrays of NumPy type 'object' are not supported"),
        ([[1], [2, 3]], r"\[\[1\], \[2, 3\]\] of type list was given: it is no array"),
        (np.zeros((3, 5), np.float32), r"f32\[3,5\] was given"),
        (np.zeros((3, 4)), r"f64\[3,4\] was given"),
    ],
)
def test_arguments_that_are_none(doubled: xgpu.Compiled, value: Any, message: str) -> None:
    """Each way to run a program names the argument, what it is, and what was given."""
    for run in (doubled.run, doubled.reference, doubled.count):
        with pytest.raises(xgpu.InvalidInput, match=rf"argument 0 \(x\) is f32\[3,4\], but {message}"):
            run(value)
    with pytest.raises(xgpu.InvalidInput, match=r"Compiled\.run: unexpected keyword 'sanitise' \(did you mean"):
        doubled.run(_COUNTED, sanitise=True)  # type: ignore[call-arg]


def test_arguments_of_another_structure(doubled: xgpu.Compiled) -> None:
    for given, keywords, got in (((), {}, "((), {})"), ((), {"x": _COUNTED}, "((), {'x': *})")):
        message = f"expected positional and keyword arguments of the structure ((*,), {{}}), got {got}"
        with pytest.raises(xgpu.InvalidInput, match=re.escape(message)):
            doubled(*given, **keywords)
