"""The pass `find-scan-gradients`."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xgpu import ir
from xgpu.hlo.scan_op import SCAN
from xgpu.hlo.stablehlo_builder import Value, shape_of
from xgpu.passes.framework.base import Pass
from xgpu.passes.normalize.scans.finder import Finder, GradientGroup
from xgpu.passes.normalize.scans.parts import unreversed
from xgpu.passes.normalize.scans.polynomials import number_of
from xgpu.passes.normalize.scans.program_order import ProgramOrder
from xgpu.passes.normalize.scans.recurrence import Given
from xgpu.passes.normalize.scans.scan import Scan
from xgpu.passes.normalize.scans.sums import ScanSum
from xgpu.passes.normalize.scans.tensors import Tensors
from xgpu.records import dataclass
from xgpu.structure import defining_op, users_of


@dataclass(frozen=True)
class FindScanGradients(Pass):
    """Converts gradients of scans that were written out by halves to scans; JAX differentiates the halves.

    The gradient of ``s[i] = c(s[i-1], e[i])`` is a linear recurrence from the end, whose matrices are derivatives of
    ``c``. What JAX makes of the halves is again a recursion, of slices, pads and sums, in a form that depends on which
    cotangents and gradients there are, and on what ``c`` is. So nothing is matched here: a sum of padded arrays that
    is a polynomial of a scan's arrays and of up to as many others is compared with the gradient that the scan would
    have if those others were its results' cotangents. Both are computed at random points of finite fields, with all
    elements along the scan, so that they are the same there only if they are the same polynomials. They differ in
    rounding, as a scan's own results do from those by halves.

    A truth value counts as 0 or 1, and ``select`` as a polynomial of it, so restarting scans are among these. Scans
    whose elements are combined by other functions stay as they are.

    Needs: scans found. What only the old gradients needed is erased.

    ```mlir
    %s = "xgpu.scan"(%e) ({ ... multiply ... }) {dimension = 0, reverse = false} : (tensor<4xf32>) -> tensor<4xf32>
    %g = stablehlo.add %sums, %padded : tensor<4xf32>      // of slices of %e and of %t, level by level
    ```
    becomes
    ```mlir
    %before = stablehlo.slice %s [0:3] : (tensor<4xf32>) -> tensor<3xf32>
    %next = stablehlo.slice %e [1:4] : (tensor<4xf32>) -> tensor<3xf32>
    %m = stablehlo.pad %next, %zero, low = [0], high = [1], interior = [0] : ... -> tensor<4xf32>
    %_, %u = "xgpu.scan"(%m, %t) ({ ... u * m + t ... }) {dimension = 0, reverse = true} : ...
    %rest = stablehlo.slice %u [1:4] : (tensor<4xf32>) -> tensor<3xf32>
    %product = stablehlo.multiply %before, %rest : tensor<3xf32>
    %first = stablehlo.slice %u [0:1] : (tensor<4xf32>) -> tensor<1xf32>
    %g = stablehlo.concatenate %first, %product, dim = 0 : (tensor<1xf32>, tensor<3xf32>) -> tensor<4xf32>
    ```
    """

    NAME: ClassVar[str] = "find-scan-gradients"
    OPERATIONS: ClassVar[frozenset[str]] = frozenset((SCAN,))

    def apply(self, module: ir.Module) -> None:
        """Replace all gradients that are found."""
        order = ProgramOrder(module)
        finder = Finder([scan for op in order.operations if op.name == SCAN for scan in Scan.all_of(op)])
        groups: list[GradientGroup] = []
        # Outer levels come after inner ones.
        for op in reversed(order.operations):
            for found in finder.gradients(op) if op.name == "stablehlo.add" else ():
                if not any(group.take(found) for group in groups):
                    groups.append(GradientGroup(found.cotangents, {found.number: found}))
        replaced: dict[ScanSum, None] = {}
        for group in groups:
            replaced |= dict.fromkeys(_emit(group, order))
        for each in replaced:
            each.replace()
        order.erase_unused([each.value for each in replaced])


def _emit(group: GradientGroup, order: ProgramOrder) -> list[ScanSum]:
    """Emit a group's gradients where all that they need is there; return the sums to which they were given."""
    scan, cotangents = group.cotangents.scan, dict(group.cotangents.values)
    block = next(iter(group.gradients.values())).sum.op.block
    sources = [*scan.elements, *cotangents.values()]
    makers = [defining_op(value) for value in sources]
    is_reversed = all(unreversed(maker, scan.dimension) is not None for maker in makers)
    known = scan.op if scan.op is not None and scan.op.block == block and scan.is_reversed == is_reversed else None
    results = [] if known is None else [_used(result, block) for result in known.results]
    last = order.last([*makers, *map(defining_op, results)], block)
    found = {
        i: each
        for i, each in group.gradients.items()
        if each.sum.op.block == block and (last is None or order.place(last) < order.place(each.sum.op))
    }
    if not found:
        return []
    place = ir.InsertionPoint.at_block_begin(block) if last is None else ir.InsertionPoint.after(last)
    with next(iter(found.values())).sum.op.location, place:
        tensors = Tensors(scan.dimension, scan.element, is_reversed)
        emitted = _emit_gradients(tensors, scan, results, cotangents, frozenset(found))
        for i, each in found.items():
            each.sum.known |= each.padded
            each.sum.gradients.append((emitted[i], is_reversed))
    return [each.sum for each in found.values()]


def _used(result: Value, block: ir.Block) -> Value:
    """Return what the program uses of a scan's result: the sum with zero, if there is one, so that one is stored."""
    for op in users_of(result):
        zero = defining_op(op.operands[1]) if op.name == "stablehlo.add" and op.block == block else None
        if zero is not None and number_of(zero) == 0:
            return op.results[0]
    return result


def _emit_gradients(
    tensors: Tensors, scan: Scan, results: Sequence[Value], cotangents: Mapping[int, Value], wanted: frozenset[int]
) -> dict[int, Value]:
    """Return the gradients by the wanted arrays. What the scan comes to is in ``results``, if that is known."""

    def straight(value: Value) -> Value:
        maker = defining_op(value)
        return maker.operands[0] if tensors.is_reversed and maker is not None else value

    elements = [straight(value) for value in scan.elements]
    made = list(results)

    def prefixes() -> list[Value]:
        made.extend([] if made else scan.recurrence.scans(tensors, elements))
        return made

    given = Given(tensors, shape_of(elements[0])[scan.dimension], elements, prefixes)
    straightened = {i: straight(value) for i, value in cotangents.items()}
    found = scan.recurrence.gradients(given, straightened, wanted)
    # Zeros of the padded arrays make 0 of -0.
    return {i: tensors.apply("add", [value, 0]) for i, value in found.items()}
