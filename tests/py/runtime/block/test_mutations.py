"""Correct pipelines, in which the checks find nothing, and what they find where one wait or fence is missing."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tests.py.runtime.block.cluster_pipeline import multicast
from tests.py.runtime.block.kernels import host_kernel, memory, placed
from tests.py.runtime.block.mutations import mutations
from tests.py.runtime.block.pipelines import overlapping, warp_roles
from tests.py.runtime.block.warps_pipeline import async_copies
from xgpu.errors import Fault, KernelFault

# How it is written, rows, columns, depth, the result's type, and whether it needs memory for tensor maps.
PIPELINES: dict[str, tuple[Callable[[int, int, int], str], tuple[int, int, int], type, bool]] = {
    "roles": (warp_roles, (64, 64, 512), np.float32, True),
    "overlapping": (overlapping, (64, 64, 512), np.float32, True),
    "warps": (async_copies, (64, 32, 128), np.float32, False),
    "cluster": (multicast, (128, 64, 512), ml_dtypes.bfloat16, True),
}
MUTATIONS = [(name, which) for name, (write, shape, *_) in PIPELINES.items() for which, _ in mutations(write(*shape))]


def run(name: str, text: str) -> None:
    """Run a pipeline, checked, and compare the result with the right one."""
    _, (rows, columns, depth), dtype, has_maps = PIPELINES[name]
    draw = np.random.default_rng(0).standard_normal
    a, b = (placed(draw((size, depth)).astype(ml_dtypes.bfloat16)) for size in (rows, columns))
    out = memory((rows, columns), dtype)
    maps = [memory((1 << 12,), np.uint8)] if has_maps else []
    host_kernel(text, sanitize=True).launch([a, b, *maps, out])
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(out.astype(np.float64), expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("name", PIPELINES)
def test_nothing_is_found(name: str) -> None:
    write, shape, *_ = PIPELINES[name]
    run(name, write(*shape))


def faults(name: str, which: str) -> tuple[Fault, ...]:
    write, shape, *_ = PIPELINES[name]
    with pytest.raises(KernelFault) as caught:
        run(name, dict(mutations(write(*shape)))[which])
    return caught.value.faults


@pytest.mark.parametrize(("name", "which"), MUTATIONS, ids=[f"{name}-{which}" for name, which in MUTATIONS])
def test_one_is_missing(name: str, which: str) -> None:
    assert faults(name, which)


@pytest.mark.parametrize(
    ("name", "which", "kind", "words"),
    [
        ("roles", "warpgroup_wait-0", "pending", "takes accumulators of products that it has not waited for"),
        ("roles", "warpgroup_commit-0", "reused", "has read or written, or still reads, with no wait between"),
        ("roles", "mbarrier_wait-0", "overrun", "arrives at an mbarrier to which all have come in this phase"),
        ("roles", "mbarrier_wait-1", "in flight", "which a copy that thread (128, 0, 0) started is still to write"),
        ("roles", "mbarrier_arrive-0", "deadlock", "there is missing: 128 of 128 arrivals"),
        ("roles", "acquire_tensor_map-0", "unacquired", "takes a tensor map that it has not acquired"),
        ("roles", "warpgroup_fence-0", "unfenced", "with no fence before"),
        ("warps", "async_wait-0", "in flight", "is still to write"),
        ("warps", "async_commit-0", "in flight", "is still to write"),
        ("warps", "barrier-0", "in flight", "is still to write"),
        ("warps", "barrier-1", "reused", "has read or written"),
        ("cluster", "fence-1", "unfenced", "has written and not fenced (xgpu.fence, kind async)"),
        ("cluster", "named_barrier-0", "race", "accesses with no barrier between"),
        ("cluster", "bulk_commit-0", "unfinished", "has started what it has not waited for at the end"),
        ("cluster", "cluster_wait-1", "unseen", "before the block ends whose memory it accesses"),
    ],
)
def test_what_is_found(name: str, which: str, kind: str, words: str) -> None:
    found = [fault for fault in faults(name, which) if fault.kind == kind]
    assert found and words in found[0].message, [str(fault) for fault in faults(name, which)]


def test_operations_are_named_with_their_lines() -> None:
    text = dict(mutations(warp_roles(64, 64, 512)))["mbarrier_wait-1"]
    with pytest.raises(KernelFault) as caught:
        run("roles", text)
    fault = next(fault for fault in caught.value.faults if fault.kind == "in flight")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "xgpu.warpgroup_mma" in line]
    assert fault.location is not None and fault.location.line == lines[0]
    assert fault.operation.startswith("%") and '"xgpu.warpgroup_mma"' in fault.operation
    assert fault.other is not None and '"xgpu.tensor_load"' in fault.other
    assert (fault.memory, fault.thread, fault.block) == ("tile 'tile'", (0, 0, 0), (0, 0, 0))
