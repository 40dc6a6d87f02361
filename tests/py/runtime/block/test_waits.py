"""Barriers of some warps and of clusters, what the lanes of a warp do together, and what is wrong with their use."""

import ctypes
import re

import numpy as np
import pytest

from tests.py.runtime.block.kernels import Array, at, constants, host_kernel, kernel, lowered, memory, placed
from xgpu import ir
from xgpu.errors import CompilerError, Fault, KernelFault
from xgpu.runtime.host_executor import aligned_empty
from xgpu.target.host.context import ALIGNMENT, SHARED
from xgpu.target.host.kernel_source import from_text, to_text
from xgpu.target.host.machine_code import host_source, load_source

STORE = """  %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %value, %to : i32, !llvm.ptr<1>"""


def run(body: str, threads: int = 64, sanitize: bool = True, **options: object) -> Array:
    """Run a kernel that stores an i32 for each thread of each block."""
    blocks = int(np.prod(options.get("grid", (1, 1, 1))))  # type: ignore[call-overload]
    out = memory((threads * blocks,), np.int32)
    numbers = constants(0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 64)
    text = kernel(f"{numbers}\n{body}", ["out"], block=(threads, 1, 1), **options)  # type: ignore[arg-type]
    host_kernel(text, sanitize).launch([out])
    return out


def faults(body: str, **options: object) -> tuple[Fault, ...]:
    with pytest.raises(KernelFault) as caught:
        run(body, **options)  # type: ignore[arg-type]
    return caught.value.faults


PRODUCER = f"""  %is_consumer = arith.cmpi ult, %t, %c32 : i32
  %lane = arith.andi %t, %c31 : i32
{at("slot", "shared", "0")}
  %place = llvm.getelementptr %slot[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  scf.if %is_consumer {{
    "xgpu.named_barrier"(%c3) {{threads = 64 : i64, wait = true}} : (i32) -> ()
    %value = llvm.load %place : !llvm.ptr<3> -> i32
{STORE}
  }} else {{
    %value = arith.muli %t, %c2 : i32
    llvm.store %value, %place : i32, !llvm.ptr<3>
    "xgpu.named_barrier"(%c3) {{threads = 64 : i64, wait = false}} : (i32) -> ()
  }}"""


def test_one_warp_waits_for_another() -> None:
    assert run(PRODUCER)[:32].tolist() == [2 * (32 + lane) for lane in range(32)]


def test_a_warp_that_does_not_arrive() -> None:
    (fault,) = faults(PRODUCER.replace("wait = false}} : (i32) -> ()", "").replace("threads = 64", "threads = 96"))
    assert fault.kind == "deadlock" and "barrier 3: 64 of 96 threads have come" in fault.message
    assert "and 32 threads have ended" in fault.message


def test_barrier_that_two_threads_count_differently() -> None:
    changed = re.sub(r"threads = 64 : i64, wait = false", "threads = 96 : i64, wait = false", PRODUCER)
    (fault,) = faults(changed)
    assert fault.kind == "misused" and '"xgpu.named_barrier"' in fault.operation
    assert "expects a number from 1 to 15, and as many threads as others say, got number 3" in fault.message


def test_one_lane_is_elected() -> None:
    body = f"""  %elected = "xgpu.elect"() : () -> i1
  %value = arith.extui %elected : i1 to i32
{STORE}"""
    assert run(body).tolist() == [1, *[0] * 31] * 2


def test_blocks_that_are_not_whole_warps() -> None:
    body = f"""  %elected = "xgpu.elect"() : () -> i1
  %value = arith.extui %elected : i1 to i32
{STORE}"""
    with pytest.raises(CompilerError, match=r"has the operation xgpu\.elect, .*, and blocks of 48 threads"):
        run(body, threads=48)


def test_shuffles_beside_waits() -> None:
    body = f"""  %rank = "xgpu.cluster_rank"() : () -> i32
  %width = arith.constant 32 : i32
  %sent = arith.muli %t, %c2 : i32
  %by_xor, %valid1 = gpu.shuffle xor %sent, %c1, %width : i32
  %by_index, %valid2 = gpu.shuffle idx %by_xor, %c7, %width : i32
  %both = arith.addi %by_xor, %by_index : i32
  %value = arith.addi %both, %rank : i32
{STORE}"""
    assert run(body).tolist() == [2 * (t ^ 1) + 2 * (t // 32 * 32 + 6) for t in range(64)]


def test_lanes_that_part() -> None:
    body = f"""  %is_odd = arith.andi %t, %c1 : i32
  %odd = arith.cmpi eq, %is_odd, %c1 : i32
  scf.if %odd {{
    %elected = "xgpu.elect"() : () -> i1
    %value = arith.extui %elected : i1 to i32
{STORE}
  }}"""
    (fault,) = faults(body, threads=32)
    assert fault.kind == "deadlock" and "16 lanes of its warp, (0, 0, 0), (2, 0, 0), (4, 0, 0) ..." in fault.message


@pytest.mark.parametrize("transposed", ["false", "true"])
def test_matrices_of_a_warp(transposed: str) -> None:
    """Eight rows of four matrices: read by lanes, and written back."""
    array = placed(np.arange(256, dtype=np.int16))
    out, back = memory((128,), np.int32), memory((128,), np.int32)
    body = f"""{constants(4)}
  %t4 = arith.shli %t, %two : i32
  %from = llvm.getelementptr %in[%t4] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %row = llvm.load %from : !llvm.ptr<1> -> vector<4xi32>
  %place = llvm.getelementptr %shared[%t4] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
{at("other", "place", "512")}
  llvm.store %row, %place : vector<4xi32>, !llvm.ptr<3>
  gpu.barrier
  %read = "xgpu.load_matrix"(%place) {{transposed = {transposed}}} : (!llvm.ptr<3>) -> vector<4xi32>
  "xgpu.store_matrix"(%read, %other) {{transposed = {transposed}}} : (vector<4xi32>, !llvm.ptr<3>) -> ()
  gpu.barrier
  %again = llvm.load %other : !llvm.ptr<3> -> vector<4xi32>
  %to = llvm.getelementptr %out[%t4] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %read, %to : vector<4xi32>, !llvm.ptr<1>
  %to_back = llvm.getelementptr %back[%t4] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %again, %to_back : vector<4xi32>, !llvm.ptr<1>"""
    text = kernel("  %two = arith.constant 2 : i32\n" + body, ["in", "out", "back"])
    host_kernel(text, sanitize=True).launch([array, out, back])
    matrices = array.reshape(4, 8, 8)
    if transposed == "true":
        matrices = matrices.transpose(0, 2, 1)
    expected = [matrices[m, lane // 4, lane % 4 * 2 + half] for lane in range(32) for m in range(4) for half in (0, 1)]
    assert out.view(np.int16).tolist() == expected
    np.testing.assert_array_equal(back.view(np.int16), array)


REMOTE = """  %rank = "xgpu.cluster_rank"() : () -> i32
  %other = arith.xori %rank, %c1 : i32
  %place = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %there = "xgpu.cluster_pointer"(%place, %other) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
  %block = arith.muli %block_x, %c64 : i32
  %sent = arith.addi %block, %t : i32
  llvm.store %sent, %there : i32, !llvm.ptr<7>
  "xgpu.cluster_arrive"() : () -> ()
  "xgpu.cluster_wait"() : () -> ()
  %value = llvm.load %place : !llvm.ptr<3> -> i32
  %to = llvm.getelementptr %out[%sent] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %value, %to : i32, !llvm.ptr<1>"""
CLUSTERS = {"grid": (4, 1, 1), "attributes": ", xgpu.cluster = array<i64: 2, 1, 1>"}


def test_stores_to_another_block() -> None:
    out = run(REMOTE, **CLUSTERS)  # type: ignore[arg-type]
    assert out.reshape(4, 64)[:, 0].tolist() == [64, 0, 192, 128]


def test_stores_to_another_block_that_does_not_wait() -> None:
    barrier = '"xgpu.cluster_arrive"() : () -> ()\n  "xgpu.cluster_wait"() : () -> ()'
    assert {fault.kind for fault in faults(REMOTE.replace(barrier, ""), **CLUSTERS)} >= {"unwritten", "race"}


def test_stores_to_another_block_that_may_have_ended() -> None:
    late = re.search(r"  llvm.store %sent, %there.*\n", REMOTE)
    assert late is not None
    body = REMOTE.replace(late[0], "").replace("  %value = llvm.load %place : !llvm.ptr<3> -> i32\n", late[0])
    (fault,) = faults(body.replace("store %value", "store %sent"), **CLUSTERS)
    assert fault.kind == "unseen" and "before the block ends whose memory it accesses" in fault.message
    assert fault.operation.startswith("llvm.store")


def test_a_cluster_one_of_whose_blocks_does_not_arrive() -> None:
    barrier = '"xgpu.cluster_arrive"() : () -> ()\n  "xgpu.cluster_wait"() : () -> ()'
    is_first = "  %goes = arith.cmpi eq, %rank, %c0 : i32"
    body = REMOTE.replace(barrier, f"{is_first}\n  scf.if %goes {{\n  {barrier}\n  }}")
    found = [fault for fault in faults(body, **CLUSTERS) if fault.kind == "deadlock"]
    assert "the cluster's barrier: 64 of 128 threads have come" in found[0].message


def test_blocks_of_clusters_in_two_dimensions() -> None:
    """A rank counts along x fastest; blocks have their places in the grid."""
    body = f"""  %rank = "xgpu.cluster_rank"() : () -> i32
  %rows = arith.muli %block_y, %c4 : i32
  %number = arith.addi %rows, %block_x : i32
  %value = arith.addi %rank, %c0 : i32
  %line = arith.muli %number, %c32 : i32
  %index = arith.addi %line, %t : i32
{STORE.replace("[%t]", "[%index]")}"""
    options = {"grid": (4, 4, 1), "attributes": ", xgpu.cluster = array<i64: 2, 2, 1>"}
    out = run(body, threads=32, **options)  # type: ignore[arg-type]
    assert out.reshape(4, 4, 32)[:, :, 0].tolist() == [[0, 1, 0, 1], [2, 3, 2, 3]] * 2


def mbarrier(body: str, count: int = 1) -> str:
    return f"""{at("barrier", "shared", "64")}
  %is_first = arith.cmpi eq, %t, %c0 : i32
  scf.if %is_first {{
    "xgpu.mbarrier_init"(%barrier) {{count = {count} : i64}} : (!llvm.ptr<3>) -> ()
    "xgpu.fence"() {{kind = "mbarrier_init"}} : () -> ()
  }}
  gpu.barrier
{body}"""


def test_parity_of_the_phase_before() -> None:
    """A wait for the parity of the phase before the first one is over at once; then phases take turns."""
    body = f"""  "xgpu.mbarrier_wait"(%barrier, %c1) : (!llvm.ptr<3>, i32) -> ()
  "xgpu.mbarrier_arrive"(%barrier) : (!llvm.ptr<3>) -> ()
  "xgpu.mbarrier_wait"(%barrier, %c0) : (!llvm.ptr<3>, i32) -> ()
  "xgpu.mbarrier_arrive"(%barrier) : (!llvm.ptr<3>) -> ()
  "xgpu.mbarrier_wait"(%barrier, %c1) : (!llvm.ptr<3>, i32) -> ()
  %value = arith.addi %t, %c1 : i32
{STORE}"""
    assert run(mbarrier(body, 64)).tolist() == list(range(1, 65))


def test_what_was_done_before_an_arrival_is_seen_after_the_wait() -> None:
    body = f"""  %place = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
{at("mine", "place", "128")}
  llvm.store %t, %mine : i32, !llvm.ptr<3>
  "xgpu.mbarrier_arrive"(%barrier) : (!llvm.ptr<3>) -> ()
  "xgpu.mbarrier_wait"(%barrier, %c0) : (!llvm.ptr<3>, i32) -> ()
  %neighbour = arith.xori %t, %c32 : i32
  %there = llvm.getelementptr %shared[%neighbour] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
{at("theirs", "there", "128")}
  %value = llvm.load %theirs : !llvm.ptr<3> -> i32
{STORE}"""
    assert run(mbarrier(body, 64)).tolist() == [t ^ 32 for t in range(64)]
    without_wait = body.replace('"xgpu.mbarrier_wait"(%barrier, %c0) : (!llvm.ptr<3>, i32) -> ()', "")
    assert {fault.kind for fault in faults(mbarrier(without_wait, 64))} == {"unwritten", "race"}


def test_an_arrival_that_is_one_too_many() -> None:
    body = """  %first_is = arith.cmpi eq, %t, %c0 : i32
  scf.if %first_is {
    "xgpu.mbarrier_expect"(%barrier, %c16) : (!llvm.ptr<3>, i32) -> ()
    "xgpu.mbarrier_arrive"(%barrier) : (!llvm.ptr<3>) -> ()
  }"""
    found = faults(mbarrier(body))
    assert {fault.kind for fault in found} >= {"overrun"}
    assert '"xgpu.mbarrier_arrive"' in found[0].operation


def test_kernels_as_text() -> None:
    """A kernel with clusters that was written as text, as programs of XLA's carry it, runs as before."""
    text = kernel(f"{constants(1, 64)}\n{REMOTE}", ["out"], block=(64, 1, 1), **CLUSTERS)  # type: ignore[arg-type]
    with ir.make_context(), ir.Location.unknown():
        source = host_source(lowered(text))
    code = load_source(from_text(to_text(source).encode()))
    out, context = memory((256,), np.int32), aligned_empty([code.context_bytes], np.uint8, ALIGNMENT)
    context[:SHARED] = 0
    run_clusters = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 2, ctypes.c_void_p)(code.address)
    run_clusters((ctypes.c_void_p * 1)(out.ctypes.data), 0, code.clusters, context.ctypes.data)
    assert code.clusters == 2 and out.reshape(4, 64)[:, 0].tolist() == [64, 0, 192, 128]


@pytest.mark.parametrize("sanitize", [False, True])
@pytest.mark.parametrize("meeting", ["", "  gpu.barrier\n", f"{at('mine', 'shared', '0')}\n"])
def test_all_blocks_of_clusters_run_that_ask_nothing_of_each_other(meeting: str, sanitize: bool) -> None:
    body = f"""{meeting}  %first = arith.muli %block_x, %c64 : i32
  %value = arith.addi %first, %t : i32
  %to = llvm.getelementptr %out[%value] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %value, %to : i32, !llvm.ptr<1>"""
    found = run(body, sanitize=sanitize, grid=(4, 1, 1), attributes=", xgpu.cluster = array<i64: 2, 1, 1>")
    np.testing.assert_array_equal(found, np.arange(256))
