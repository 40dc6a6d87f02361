"""The functions that kernels call whose threads wait at different places, as LLVM IR, each by its name."""

from collections.abc import Callable
from functools import cache
from typing import Any

from xgpu.target.host.block import copies, loads, products, races, scheduler, threads, waits, warps
from xgpu.target.host.block_driver import RUN_CHECKED_CLUSTERS, RUN_CLUSTERS
from xgpu.target.host.language.compiler import compile_functions
from xgpu.target_machine import HOST_BLOCK_PREFIX, HOST_CHECKED_PREFIX

_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(waits.barrier, waits.named_barrier, waits.cluster_arrive, waits.cluster_wait, waits.cluster_rank),
    *(waits.cluster_pointer, waits.mbarrier_init, waits.mbarrier_expect, waits.mbarrier_arrive),
    *(waits.mbarrier_arrive_remote, waits.mbarrier_arrive_copies, waits.mbarrier_wait, waits.fence),
    *(waits.set_registers, copies.async_copy, copies.async_commit, copies.async_wait, copies.bulk_store),
    *(copies.tensor_store, copies.bulk_commit, copies.bulk_wait, loads.bulk_load, loads.tensor_load),
    *(loads.tensor_load_multicast, loads.encode_tensor_map, loads.acquire_tensor_map),
    *(warps.elect, warps.is_elected, warps.warp_barrier, warps.shuffle, warps.shuffle_xor, warps.shuffle_idx),
    *(warps.load_matrix, warps.store_matrix, warps.mma, warps.mma_f64, warps.lane_operands, warps.lane_result),
    *(products.warpgroup_mma, products.warpgroup_fence, products.warpgroup_commit, products.warpgroup_wait),
    *(products.warpgroup_result, products.check_accumulators, threads.registers),
)

FUNCTIONS = {f"{HOST_BLOCK_PREFIX}{function.__name__}": function for function in _FUNCTIONS}
"""The functions by the names that kernels call them by. Each takes the context and a site besides."""


CHECKED_FUNCTIONS = {f"{HOST_CHECKED_PREFIX}{function.__name__}": function for function in (*_FUNCTIONS, races.check)}
"""Those that check, which sanitized kernels call."""
EXPORTS = (*FUNCTIONS, RUN_CLUSTERS)
CHECKED_EXPORTS = (*CHECKED_FUNCTIONS, RUN_CHECKED_CLUSTERS)
"""The functions that kernels and their drivers call."""


@cache
def library_ir() -> str:
    """Return the module of all these functions, and of the driver."""
    return compile_functions({**FUNCTIONS, RUN_CLUSTERS: scheduler.run_clusters}, {"CHECKED": 0})


@cache
def checked_library_ir() -> str:
    """Return the module of the functions that check, and of their driver."""
    roots: dict[str, Callable[..., Any]] = {**CHECKED_FUNCTIONS, RUN_CHECKED_CLUSTERS: scheduler.run_clusters}
    return compile_functions(roots, {"CHECKED": 1})
