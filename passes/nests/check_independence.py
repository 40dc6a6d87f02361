"""The pass `check-independence`."""

from typing import ClassVar, cast

from xgpu import ir
from xgpu.dialects.nests.loops import ParOp
from xgpu.errors import InvalidInput
from xgpu.hlo.source_location import source_of
from xgpu.nests.independence import Checker, Clash
from xgpu.nests.structure import PAR, BufferAccess, name_of_buffer
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import walk


@dataclass(frozen=True)
class CheckIndependence(Pass):
    """Refuses par loops whose iterations conflict, and marks those that are proved independent.

    Iterations conflict if both access one element and one of them changes it. Buffers that an iteration makes itself
    are its own, and atomic updates of one element (``#atomic``) do not conflict with each other. Accesses at indices
    that are values stay open; the sanitizer checks them.
    Needs: nothing; first, as later passes take iterations to be independent.

    ```mlir
    "xgpu.par"() ({ ... "xgpu.write"(%x, %b, %i) ... }) {called = "i", extent = 64 : i64} : () -> ()
    // becomes
    "xgpu.par"() ({ ... "xgpu.write"(%x, %b, %i) ... }) {called = "i", extent = 64 : i64, independent = "proved"}
    ```
    """

    NAME: ClassVar[str] = "check-independence"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((PAR,))

    def apply(self, module: ir.Module) -> None:
        """Check every par loop of ``module``."""
        checker = Checker()
        for op in walk(module.operation, PAR):
            par = cast(ParOp, op.opview)
            answer = checker.independence(op, par.variable)
            if isinstance(answer, Clash):
                raise InvalidInput(_message(par, answer), source_of(answer.first.op))
            op.attributes["independent"] = ir.StringAttr.get(answer)


def _message(par: ParOp, clash: Clash) -> str:
    element = f"{name_of_buffer(clash.first.buffer)}[{', '.join(map(str, clash.element))}]"
    one, other = clash.iterations
    at = source_of(clash.second.op)
    where = f" at {at}" if at is not None else ""
    return (
        f"iterations of par '{par.called}' are not independent: {par.called} = {one} {_does(clash.first)} {element},"
        f" which {par.called} = {other} {_does(clash.second)}{where}"
    )


def _does(access: BufferAccess) -> str:
    return "changes" if access.writes else "reads"
