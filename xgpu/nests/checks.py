"""Checks of a module of loops that a person gives as text, beyond the verifiers of single operations."""

from collections.abc import Iterator
from typing import cast

from xgpu import ir
from xgpu.dialects import attributes
from xgpu.dialects.base import DeclaredOp, Problem
from xgpu.dialects.nests.accesses import ACCESS_OPS, magnitude_problems
from xgpu.dialects.nests.assembly import AsmOp
from xgpu.dialects.nests.loops import LOOP_OPS, LaunchOp, NewOp, ParOp
from xgpu.hlo.operations import elementwise, without_code
from xgpu.nests.assembly import place_problem
from xgpu.nests.held_buffers import held_problems
from xgpu.nests.maps.boxes import box_problems, boxed
from xgpu.nests.maps.mapping import runs_at_once
from xgpu.nests.products import NoProductError, tile_product
from xgpu.nests.structure import LAUNCH, PAR, access_of, ancestors, band_at, has_par, operations_of
from xgpu.structure import walk

_OWN: tuple[type[DeclaredOp], ...] = (*LOOP_OPS, *ACCESS_OPS, AsmOp)
_OPS = frozenset(op.OPERATION_NAME for op in _OWN) | {"xgpu.yield", "func.return", "func.func"}
_CONSTANT = "stablehlo.constant"
_COMPUTES = frozenset((*elementwise("real"), *elementwise("complex"), _CONSTANT))
_OUTSIDE = frozenset((LAUNCH, NewOp.OPERATION_NAME, "func.return"))


def nest_problems(function: ir.func.FuncOp, is_mapped: bool) -> Iterator[Problem]:
    """Yield what is wrong with a program of level ``loops``, or of ``mapped``, where all decisions are made."""
    yield from _signature_problems(function)
    for op in walk(function.operation):
        if op.name not in _OPS:
            yield from _element_problems(op)
        elif op.name == AsmOp.OPERATION_NAME and (problem := place_problem(op)) is not None:
            yield Problem(op, f"'{op.name}': {problem}")
    if not is_mapped:
        return
    for view in function.entry_block.operations:
        if view.operation.name not in _OUTSIDE:
            yield Problem(view.operation, f"'{view.operation.name}': expected to be inside of an xgpu.launch")
    for op in walk(function.operation):
        if _is_of_product(op):
            yield from _product_problems(op)
            continue
        if isinstance(op.opview, LaunchOp) and (op.opview.grid is None or op.opview.block is None):
            yield Problem(op, "'xgpu.launch': expected the attributes 'grid' and 'block'")
        elif isinstance(op.opview, NewOp) and op.opview.memory is None:
            yield Problem(op, "'xgpu.new': expected the attribute 'memory'")
        elif isinstance(op.opview, NewOp) and op.opview.memory == "threads":
            uses = [access_of(use.owner.operation) for use in op.opview.buffer.uses]
            for problem in held_problems(uses):
                yield Problem(op, f"attribute 'memory': {problem}")
        elif isinstance(op.opview, ParOp):
            yield from _band_problems(op)


def _is_of_product(op: ir.Operation) -> bool:
    """Whether an operation is a kernel that an emitter of products writes, or is inside of one."""
    around = (each.opview for each in (op, *ancestors(op)) if each.name == LAUNCH)
    return any(cast(LaunchOp, launch).emitter is not None for launch in around)


def _product_problems(op: ir.Operation) -> Iterator[Problem]:
    """Yield why a kernel that an emitter of products is to write is no product."""
    if isinstance(op.opview, LaunchOp):
        try:
            tile_product(op.opview)
        except NoProductError as error:
            yield Problem(op, f"attribute 'emitter': expected a matrix product: {error}")


def _signature_problems(function: ir.func.FuncOp) -> Iterator[Problem]:
    op = function.operation
    described = list(ir.ArrayAttr(op.attributes["arg_attrs"])) if "arg_attrs" in op.attributes else []
    named = [ir.DictAttr(each) for each in described]
    arguments = list(function.entry_block.arguments)
    if any(not isinstance(argument.type, ir.MemRefType) for argument in arguments):
        yield Problem(op, "expected arguments that are buffers, of type memref")
    elif len(named) != len(arguments) or any(attributes.ACCESS not in each for each in named):
        yield Problem(op, f"expected the attribute '{attributes.ACCESS}' on each argument")


def _element_problems(op: ir.Operation) -> Iterator[Problem]:
    """Yield that an operation is none of elements, which are arrays of no dimensions."""
    values = [*op.operands, *op.results]
    if any(not isinstance(v.type, ir.RankedTensorType) or ir.RankedTensorType(v.type).rank for v in values):
        yield Problem(op, f"'{op.name}': expected an operation on elements, of type tensor without dimensions")
    elif op.name not in _COMPUTES or len(op.results) != 1 or len(op.regions):
        yield Problem(op, f"'{op.name}' computes no element: it is no operation of programs of loops")
    elif op.name != _CONSTANT and (reason := without_code(op)):
        yield Problem(op, f"'{op.name}': {reason}")


def _band_problems(op: ir.Operation) -> Iterator[Problem]:
    """Yield what is wrong with who runs a par loop."""
    par = cast(ParOp, op.opview)
    parent = cast(ParOp, op.parent.opview) if op.parent is not None and op.parent.name == PAR else None
    if par.band is None:
        yield Problem(op, "'xgpu.par': expected the attribute 'band'")
    elif par.map is None:
        if parent is None or parent.band != par.band or par not in band_at(_first(op)):
            yield Problem(op, "'xgpu.par': expected the attribute 'map' on the first loop of its band")
    else:
        yield from _map_problems(op, par)


def _first(op: ir.Operation) -> ir.Operation:
    """Return the outermost loop of the band that a loop is of."""
    band = cast(ParOp, op.opview).band
    while op.parent is not None and op.parent.name == PAR and cast(ParOp, op.parent.opview).band == band:
        op = op.parent.operation
    return op


def _map_problems(op: ir.Operation, par: ParOp) -> Iterator[Problem]:
    launch = next((cast(LaunchOp, each.opview) for each in ancestors(op) if each.name == LAUNCH), None)
    if launch is None or launch.grid is None or launch.block is None or par.map is None:
        return
    threads, blocks = launch.block, launch.grid
    expected = {"grid": [threads, blocks], "block": [blocks], "thread": [threads]}[par.band or "grid"]
    got = [interval.size for interval in par.map.dims]
    extents = [loop.extent for loop in band_at(op)]
    for problem in magnitude_problems(par.map):
        yield Problem(op, problem)
        return
    if got != expected or any(interval.lower for interval in par.map.dims):
        yield Problem(op, f"attribute 'map': expected dimensions of {expected} numbers, got {par.map}")
    elif len(par.map.results) != len(extents):
        yield Problem(op, f"attribute 'map': expected {len(extents)} results, one for each loop, got {par.map}")
    elif par.map.is_bijection(extents) is False:
        yield Problem(op, f"attribute 'map': expected each of {extents} iterations once, got {par.map}")
    elif wrong := list(box_problems(par.map, band_at(op))):
        yield Problem(op, wrong[0])
    elif boxed(band_at(op)) and (par.band == "block" or has_par(*operations_of(band_at(op)[-1].body))):
        yield Problem(op, "attribute 'together': expected no par loop inside of what a thread goes through together")
    else:
        last = band_at(op)[-1]
        if last.side is not None and not runs_at_once(par.map, last.extent, last.side):
            yield Problem(
                op,
                f"attribute 'map': expected iterations of '{last.called}' on {last.extent} threads side by side, the"
                f" first a multiple of {last.side}, and the same of all others on all of them, got {par.map}",
            )
