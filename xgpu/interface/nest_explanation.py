"""Explains a program of par and seq loops: what was decided for each kernel."""

from typing import cast

from xgpu import ir
from xgpu.dialects.nests.loops import WARP_SCOPE, BarrierOp, LaunchOp, NewOp, ParOp
from xgpu.errors import InvalidInput
from xgpu.hlo.source_location import source_of
from xgpu.interface.api import Compiled
from xgpu.nests.lifetimes import bytes_of, shared_buffers, shared_bytes
from xgpu.nests.structure import PAR, all_launches_of, ancestors, band_at
from xgpu.structure import walk

_INDENT = "  "


def explain_nests(program: Compiled) -> str:
    """Return what was decided for the kernels of a program of loops. Raises `InvalidInput` for other programs."""
    mapped = program.modules.get("mapped")
    if mapped is None:
        raise InvalidInput(f"expected a program of loops; this one was given at level '{program.given_level}'")
    with mapped.context:
        lines = [
            line for number, launch in enumerate(all_launches_of(mapped)) for line in _launch(number, launch, program)
        ]
    return "\n".join(lines or ["no kernels"])


def _launch(number: int, launch: LaunchOp, program: Compiled) -> list[str]:
    name = f"kernel {program.source.name}_{number}{_at(launch.operation)}"
    if launch.emitter is not None:
        return [f"{name}: a matrix product, {_MULTIPLIES[launch.emitter]}", f"{_INDENT}{launch.schedule}"]
    lines = [f"{name}: {launch.grid} blocks of {launch.block}"]
    for op in walk(launch.operation, PAR, post_order=False):
        par = cast(ParOp, op.opview)
        if par.map is not None:
            names = ", ".join(loop.called for loop in band_at(op))
            depth = _INDENT * (1 + sum("map" in each.attributes for each in ancestors(op) if each.name == PAR))
            lines.append(f"{depth}par {names}{_at(op)}: by {_runners(par)}, independence {par.independent}")
            lines.append(f"{depth}{_INDENT}{par.map}")
    for op in walk(launch.operation, NewOp.OPERATION_NAME):
        new = cast(NewOp, op.opview)
        pad = f", rows longer by {new.pad}" if new.pad else ""
        place = f", at byte {new.offset}" if new.offset is not None else ""
        type_ = ir.MemRefType(new.buffer.type)
        lines.append(f"{_INDENT}new {new.called}{_at(op)}: {type_} in {new.memory}{place}{pad}")
    if taken := shared_bytes(launch):
        whole = sum(map(bytes_of, shared_buffers(launch)))
        lines.append(f"{_INDENT}shared memory: {taken} bytes" + (f", for buffers of {whole}" if whole != taken else ""))
    barriers = walk(launch.operation, BarrierOp.OPERATION_NAME)
    of_warps = [op for op in barriers if cast(BarrierOp, op.opview).scope == WARP_SCOPE]
    kinds = f" ({len(of_warps)} of warps)" if of_warps else ""
    places = (f"{_at(op)}{' of warps' * (op in of_warps)}" for op in barriers)
    lines.append(f"{_INDENT}barriers: {len(barriers)}{kinds}" + "".join(places))
    return lines


_MULTIPLIES = {
    "product": "which warp groups multiply (wgmma), sums in registers",
    "warp_product": "which warps multiply (mma.sync), sums in registers",
}
_BY = {"grid": "the threads of all blocks", "block": "blocks", "thread": "the threads of a block"}


def _runners(par: ParOp) -> str:
    """Return who runs the iterations of a band."""
    runners = _BY[par.band or "grid"]
    return runners if par.group is None else f"{runners}, in groups of {par.group} for each {par.called}"


def _at(op: ir.Operation) -> str:
    location = source_of(op)
    return f" at {location}" if location is not None else ""
