"""The pass `assign-bands`."""

from collections.abc import Sequence
from typing import ClassVar, cast

from xgpu import ir
from xgpu.dialects.nests.loops import LaunchOp, ParOp
from xgpu.errors import InvalidInput
from xgpu.hlo.source_location import source_of
from xgpu.nests.structure import PAR, has_par, launches_of, operations_of, perfect_nest
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import walk

_BAND = "band"


@dataclass(frozen=True)
class AssignBands(Pass):
    """Chooses who runs the iterations of each par loop: the threads of all blocks, blocks, or threads of a block.

    The outermost loops of a kernel, each the only thing in the one before, are run by blocks if there are par loops
    inside them, which are then run by the block's threads; if there are none, by the threads of all blocks. Loops that
    say themselves who runs them (``#grid``, ``#block``, ``#thread``) have the ones around and inside them follow. In a
    kernel that is no such nest the threads of its only block run all. Loops whose iterations groups of threads have
    (``#group(n)``) are run by threads, of all blocks if they are outermost.
    Needs form-launches.

    ```mlir
    "xgpu.par"() ({ ... "xgpu.par"() ({ ... }) ... "xgpu.par"() ({ ... }) ... }) {called = "b", extent = 64 : i64}
    // becomes
    "xgpu.par"() ({
      ... "xgpu.par"() ({ ... }) {band = "thread", ...} ... "xgpu.par"() ({ ... }) {band = "thread", ...}
    }) {band = "block", called = "b", extent = 64 : i64}
    ```
    """

    NAME: ClassVar[str] = "assign-bands"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((PAR,))

    def apply(self, module: ir.Module) -> None:
        """Write the band of every par loop of ``module``."""
        for launch in launches_of(module):
            _assign(launch)


def _assign(launch: LaunchOp) -> None:
    top = operations_of(launch.body)
    outer = perfect_nest(top[0]) if len(top) == 1 and top[0].name == PAR else []
    inner = has_par(*operations_of(outer[-1].body)) if outer else True
    bands = _outer_bands(outer, inner)
    for loop, band in zip(outer, bands, strict=True):
        _set(loop, band)
    for op in walk(launch.operation, PAR):
        par = cast(ParOp, op.opview)
        if par not in outer:
            _set(par, "thread")


def _outer_bands(loops: Sequence[ParOp], inner: bool) -> list[str]:
    """Return the bands of the outermost loops; ``inner``: there are more par loops inside them."""
    given = [loop.band for loop in loops]
    grouped = next((number for number, loop in enumerate(loops) if loop.group is not None), None)
    if not any(given):
        if grouped:
            return ["block"] * grouped + ["thread"] * (len(loops) - grouped)
        return ["block" if inner and grouped is None else "grid"] * len(loops)
    if "grid" in given:
        if inner and grouped is None:
            loop = loops[given.index("grid")]
            raise InvalidInput("'#grid' stands on loops without par loops inside them", source_of(loop.operation))
        return ["grid"] * len(loops)
    blocks = max((number + 1 for number, band in enumerate(given) if band == "block"), default=0)
    if not blocks:
        blocks = given.index("thread")
    return ["block"] * blocks + ["thread"] * (len(loops) - blocks)


def _set(loop: ParOp, band: str) -> None:
    if loop.band not in (None, band):
        raise InvalidInput(
            f"'#{loop.band}' does not stand where loops of '#{band}' do: blocks are outside of threads",
            source_of(loop.operation),
        )
    loop.operation.attributes[_BAND] = ir.StringAttr.get(band)
