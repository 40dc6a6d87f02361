"""The pass `find-matrix-products`."""

from typing import ClassVar, cast

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, Device, DeviceName, device
from xgpu.dialects.nests.loops import LaunchOp, ParOp, SeqOp
from xgpu.emit.nests.products import ProductNest
from xgpu.errors import InvalidInput
from xgpu.hlo.source_location import source_of
from xgpu.nests.products import NoProductError, product_loops
from xgpu.nests.structure import LAUNCH, PAR, SEQ, launches_of
from xgpu.options import Options
from xgpu.passes.framework.base import Pass
from xgpu.passes.framework.remarks import remark
from xgpu.records import dataclass
from xgpu.structure import walk


@dataclass(frozen=True)
class FindMatrixProducts(Pass):
    """Converts matrix products of 16-bit elements to kernels by tensor cores (``wgmma``, ``mma.sync``).

    Such a kernel has blocks, each with a buffer of sums of f32, set to zero; a seq loop over steps, which may copy
    tiles of the two arrays and adds their product; and results, computed from the sums element by element. The emitters
    of products take these tiles: ``product``, by warp groups, if they can multiply such tiles, else ``warp_product``,
    by warps. Sums then stay in registers, tiles are copied ahead by as many steps as the program says (``#stages(n)``)
    or memory has room for, and products are added in the order of the instructions. ``#mma`` makes it an error, with
    the reason, if a product is not converted; ``#no_mma`` keeps the loops as they are.
    Needs form-launches.

    ```mlir
    "xgpu.launch"() ({ ... }) : () -> ()
    // becomes
    "xgpu.launch"() ({ ... }) {emitter = "product", schedule = #xgpu.schedule<tile_m = 128, ...>} : () -> ()
    ```
    """

    NAME: ClassVar[str] = "find-matrix-products"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((LAUNCH,))
    target: DeviceName = DEFAULT_DEVICE
    """The GPU, whose instructions multiply."""

    def apply(self, module: ir.Module) -> None:
        """Write the emitter and the schedule of every kernel of ``module`` that is such a product."""
        for launch in launches_of(module):
            self._look_at(launch, device(self.target))

    def _look_at(self, launch: LaunchOp, target: Device) -> None:
        loops = [cast(ParOp, op.opview) for op in walk(launch.operation, PAR)]
        asked = next((loop for loop in loops if loop.mma is not None), None)
        staged = [cast(SeqOp, op.opview) for op in walk(launch.operation, SEQ)]
        staged = [loop for loop in staged if loop.stages is not None]
        candidates = product_loops(launch)
        if asked is not None and not asked.mma:
            reason = "'#no_mma' asks for loops"
        elif candidates or asked is not None:
            reason = _decide(launch, target)
        else:
            reason = "it has no sum of products of 16-bit elements"
        if not reason:
            return
        if staged and asked is not None and asked.mma:
            raise InvalidInput(
                f"'#stages({staged[0].stages})' stands on the steps of a matrix product by tensor cores: {reason}",
                source_of(staged[0].operation),
            )
        if asked is not None and asked.mma:
            raise InvalidInput(f"'#mma': {reason}", source_of(asked.operation))
        if candidates and asked is None:
            remark(self.NAME, candidates[0].operation, "threads multiply by themselves: {}", reason)


def _decide(launch: LaunchOp, target: Device) -> str:
    """Write how a kernel multiplies; return why it does not, "" if it does."""
    try:
        nest = ProductNest.of("product", launch)
    except NoProductError as error:
        return str(error)
    rows, columns, step = nest.product.tile
    given = {"tile_m": rows, "tile_n": columns, "tile_k": step}
    if nest.product.seq.stages is not None:
        given["stages"] = nest.product.seq.stages
    reasons: list[str] = []
    for emitter, own in _WAYS:
        try:
            schedule = nest.schedule(emitter, given | own, target, Options())
        except InvalidInput as error:
            reasons.append(f"{emitter}: {error.message}")
            continue
        if emitter != _WAYS[0][0]:
            remark(FindMatrixProducts.NAME, launch.operation, "warps multiply, and not warp groups: {}", reasons[0])
        launch.operation.attributes["emitter"] = ir.StringAttr.get(emitter)
        launch.operation.attributes["schedule"] = schedule
        return ""
    return "; ".join(dict.fromkeys(reasons))


_ALONE: dict[str, int] = {"split": 1, "swapped": False}
"""Blocks of the program are those of the kernel, and so are the rows of their tiles."""
_WAYS: tuple[tuple[str, dict[str, int]], ...] = (
    ("product", _ALONE),
    ("product", {**_ALONE, "staged": False}),
    ("warp_product", {}),
)
"""The emitters in the order in which they are asked, with numbers of their schedules: results that are not staged leave
room for more steps."""
