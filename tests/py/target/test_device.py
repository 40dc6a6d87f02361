import dataclasses
import re
import subprocess
import sys

import pytest

import xgpu
from xgpu.device import _PROCESSORS, DEFAULT_DEVICE, DEVICES, MOST_CLUSTER_BLOCKS, device
from xgpu.errors import InvalidInput, Unsupported
from xgpu.tools.fuzzing.blocks.text import BlockText


def test_targets() -> None:
    assert list(DEVICES) == ["sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120"]
    assert device(DEFAULT_DEVICE).name == "sm_90a"


def test_compute_capability() -> None:
    assert [each.compute_capability for each in DEVICES.values()] == [80, 86, 89, 90, 90, 100, 120]


@pytest.mark.parametrize("name", DEVICES)
def test_limits_are_consistent(name: str) -> None:
    found = device(name)
    assert found.shared_bytes <= found.shared_bytes_optin
    assert found.max_threads_per_block <= found.max_threads_per_sm
    assert found.max_threads_per_sm % found.machine.warp_size == 0


@pytest.mark.parametrize("name", DEVICES)
def test_those_with_clusters_have_the_instructions(name: str) -> None:
    found = device(name)
    assert (found.max_cluster_blocks > 1) == ("cluster" in found.machine.instructions)
    assert found.max_cluster_blocks <= MOST_CLUSTER_BLOCKS == 16


@pytest.mark.parametrize(("name", "blocks"), [("sm_80", 2), ("sm_120", 16)])
def test_clusters_of_more_blocks_are_refused(name: str, blocks: int) -> None:
    written = BlockText([((32, 8), "f32")], [((32, 8), "f32")], (16,), 32, cluster=blocks)
    written.insert(written.tile(0, (written.at[0], None), (2, 8)), 0, (written.at[0], None))
    most = device(name).max_cluster_blocks
    with pytest.raises(Unsupported, match=f"needs clusters of {blocks} blocks, {name} has at most {most}"):
        xgpu.compile(written.text(), target=name).ir("ptx")
    assert ".reqnctapercluster" in xgpu.compile(written.text(), target="sm_90a").ir("ptx")


def test_devices_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        device("sm_80").sm_count = 64  # type: ignore[misc]


def test_processors_are_ones_that_llvm_knows() -> None:
    code = "import llvmlite.binding as l; l.initialize_all_targets(); "
    code += "l.Target.from_triple('nvptx64-nvidia-cuda').create_target_machine(cpu='help')"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    assert set(_PROCESSORS) <= set(re.findall(r"^  (sm_\w+) +- Select", listed, re.MULTILINE))


def test_unknown_processor_lists_the_known() -> None:
    message = r"device new: LLVM knows no processor 'sm_999a', but sm_80, .*sm_121f"
    with pytest.raises(InvalidInput, match=message):
        dataclasses.replace(device("sm_80"), name="new", cpu="sm_999a")


def test_unknown_device_lists_the_known() -> None:
    with pytest.raises(InvalidInput, match=r"unknown target 'sm_1'; known targets are sm_80, .*sm_120"):
        device("sm_1")
