"""Arrays as NumPy has them: of any strides and byte order, and read-only."""

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
