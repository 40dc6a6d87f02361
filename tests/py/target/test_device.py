import dataclasses

import pytest

from xgpu.device import DEFAULT_DEVICE, DEVICES, device
from xgpu.errors import InvalidInput


def test_targets() -> None:
    assert list(DEVICES) == ["sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120"]
    assert device(DEFAULT_DEVICE).name == "sm_90a"


def test_compute_capability() -> None:
    assert [each.compute_capability for each in DEVICES.values()] == [80, 86, 89, 90, 90, 100, 120]


@pytest.mark.parametrize("name", DEVICES)
def test_limits_are_consistent(name: str) -> None:
    found = device(name)
    assert found.shared_bytes <= found.shared_bytes_optin < found.shared_bytes_per_sm
    assert found.max_threads_per_block <= found.max_threads_per_sm
    assert found.max_threads_per_sm % found.warp_size == 0


def test_devices_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        device("sm_80").warp_size = 64  # type: ignore[misc]


def test_unknown_device_lists_the_known() -> None:
    with pytest.raises(InvalidInput, match=r"unknown target 'sm_1'; known targets are sm_80, .*sm_120"):
        device("sm_1")
