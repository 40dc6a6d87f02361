"""A host-lowered kernel made ready for its driver: shared memory, threads that wait for each other, checks."""

import math
from collections.abc import Sequence
from dataclasses import replace

from xgpu import ir
from xgpu.errors import CompilerError
from xgpu.records import dataclass
from xgpu.structure import copy_module, walk
from xgpu.target.host.block.calls import SITE_KINDS, callee_of, check_accumulators, complete_calls, whole_warps_of
from xgpu.target.host.block.state import state_bytes
from xgpu.target.host.block_driver import DriverLaunch, cluster_driver, coroutine_driver, loop_driver
from xgpu.target.host.context import (
    ALIGNMENT,
    FRAME_ALIGNMENT,
    SHARED,
    WARP,
    ContextTile,
    add_context,
    address_tiles,
    is_tile,
    place_tiles,
    round_up,
)
from xgpu.target.host.coroutine import SYNC_FUNCTIONS, Site, find_sites, make_coroutine
from xgpu.target.host.labels import SourceOperation, place_of
from xgpu.target.host.sanitizer import CheckedAccess, Checks, insert_checks
from xgpu.target_machine import HOST_BLOCK_PREFIX, HOST_CHECKED_PREFIX


@dataclass(frozen=True)
class Ready:
    """A kernel and what runs it.

    ``launch`` is how its ``driver``, LLVM IR, calls it. ``frames`` is where in a context the coroutines' frames begin,
    the bytes of a context that holds none; 0 if the kernel takes no context. ``shared_end`` is where shared memory ends
    in it. ``waits`` are the places at which threads wait for each other, in the order of their numbers from 1.
    ``checks`` is None unless sanitized.
    """

    module: ir.Module
    launch: DriverLaunch
    driver: str
    frames: int = 0
    shared_end: int = 0
    waits: tuple[tuple[str, SourceOperation], ...] = ()
    checks: Checks | None = None

    is_coroutine: bool = False
    """Whether threads have frames in the context."""


def make_ready(module: ir.Module, launch: DriverLaunch, buffers: Sequence[tuple[int, bool]], sanitize: bool) -> Ready:
    """Return the kernel ``launch.name`` of a module with its driver; the module is left as it is.

    ``buffers`` tells of each buffer its bytes and whether it is read-only. Raises CompilerError for a kernel that the
    host cannot run.
    """
    called = {callee_of(call) or "" for call in walk(module.operation, "llvm.call")}
    in_blocks = any(name.startswith(HOST_BLOCK_PREFIX) for name in called)
    has_tiles = any(is_tile(op.operation) for op in module.body.operations)
    if not (sanitize or has_tiles or in_blocks or called & SYNC_FUNCTIONS):
        alone = _one_by_one(launch)
        return Ready(module, alone, loop_driver(alone))
    with module.context, ir.Location.unknown():
        copy = copy_module(module)
        kernel = _function(copy, launch.name)
        add_context(copy)
        tiles = place_tiles(copy, kernel)
        if sanitize and in_blocks:
            check_accumulators(copy)
        checks = insert_checks(copy, kernel, tiles, buffers, in_blocks) if sanitize else None
        address_tiles(copy, tiles)
        return _with_driver(copy, kernel, launch, tiles, in_blocks, checks)


def _one_by_one(launch: DriverLaunch) -> DriverLaunch:
    """Return the launch of a kernel whose blocks ask nothing of each other: each runs alone, whatever its cluster."""
    return replace(launch, cluster=(1, 1, 1))


def _with_driver(
    module: ir.Module,
    kernel: ir.Operation,
    launch: DriverLaunch,
    tiles: Sequence[ContextTile],
    in_blocks: bool,
    checks: Checks | None,
) -> Ready:
    end = max([SHARED, *(tile.offset + tile.size for tile in tiles)])
    constants = tuple(checks.constants()) if checks else ()
    launch = replace(launch, has_context=True, constants=constants)
    if in_blocks:
        return _with_clusters(module, kernel, launch, end, checks)
    frames = round_up(end, FRAME_ALIGNMENT)
    launch = replace(_one_by_one(launch), frames=frames)
    sites = find_sites(module, kernel)
    if not sites:
        return Ready(module, launch, loop_driver(launch), frames, end, checks=checks)
    barriers = sum(not site.is_shuffle and not site.is_of_warp for site in sites)
    of_warps = sum(site.is_of_warp for site in sites)
    threads = math.prod(launch.block)
    if any(site.is_shuffle for site in sites) and threads % WARP:
        raise CompilerError(
            f"kernel '{launch.name}' has a shuffle, in which all {WARP} threads of a warp take part, and blocks of "
            f"{threads} threads, which are not whole warps"
        )
    waits = _names(kernel, sites)
    make_coroutine(kernel, sites, launch.block)
    driver = coroutine_driver(launch, barriers, of_warps)
    return Ready(module, launch, driver, frames, end, waits, checks, is_coroutine=True)


def _with_clusters(
    module: ir.Module, kernel: ir.Operation, launch: DriverLaunch, end: int, checks: Checks | None
) -> Ready:
    """Return a kernel whose threads wait at different places; they have a state behind the shared memory."""
    if any(size % blocks for size, blocks in zip(launch.grid, launch.cluster, strict=True)):
        raise CompilerError(f"kernel '{launch.name}' has a grid of {launch.grid} in clusters of {launch.cluster}")
    threads = math.prod(launch.block)
    if threads % WARP and (name := whole_warps_of(module)):
        raise CompilerError(
            f"kernel '{launch.name}' has the operation {name}, in which all {WARP} threads of a warp take part, and "
            f"blocks of {threads} threads, which are not whole warps"
        )
    state = round_up(end, ALIGNMENT)
    frames = round_up(state + state_bytes(threads), FRAME_ALIGNMENT)
    launch = replace(launch, frames=frames)
    waits = complete_calls(module, HOST_CHECKED_PREFIX if checks else HOST_BLOCK_PREFIX)
    if checks:
        sites = tuple(CheckedAccess(place, SITE_KINDS.get(name, 0), 0, 1) for name, place in waits)
        checks = replace(checks, accesses=checks.accesses + sites, sites=len(sites))
    make_coroutine(kernel, find_sites(module, kernel), launch.block)
    driver = cluster_driver(launch, end, state, is_checked=checks is not None)
    return Ready(module, launch, driver, frames, end, waits, checks, is_coroutine=True)


def _names(kernel: ir.Operation, sites: Sequence[Site]) -> tuple[tuple[str, SourceOperation], ...]:
    state = ir.AsmState(kernel)
    named: list[tuple[str, SourceOperation]] = []
    counts = {"shuffle": 0, "barrier of warps": 0, "barrier": 0}
    for site in sites:
        kind = "shuffle" if site.is_shuffle else "barrier of warps" if site.is_of_warp else "barrier"
        counts[kind] += 1
        named.append((f"{kind} {counts[kind]}", place_of(site.calls[0], state)))
    return tuple(named)


def _function(module: ir.Module, name: str) -> ir.Operation:
    for op in module.body.operations:
        if op.operation.name == "llvm.func" and ir.StringAttr(op.operation.attributes["sym_name"]).value == name:
            return op.operation
    raise CompilerError(f"no function '{name}'")
