"""lower-to-llvm for products of warps and warp groups on NVIDIA GPUs (PTX ISA, "Matrix multiply-accumulate")."""

from collections.abc import Sequence
from itertools import chain
from typing import cast

from xgpu import ir
from xgpu.dialects.block.matrices import (
    ELEMENT_BITS,
    FLOATS_OF_8_BITS,
    INTEGERS_OF_8_BITS,
    LoadMatrixOp,
    MatrixLayout,
    MmaOp,
    StoreMatrixOp,
    WarpgroupMmaOp,
    WarpgroupWaitOp,
    accumulator_of,
    contracted,
)
from xgpu.passes.llvm.builder import LlvmBuilder, Lowering
from xgpu.passes.llvm.gpu_ptx import elements, fixed, names, ptx, require, requiring, vector_of
from xgpu.structure import is_result_of, producer

_PTX_TYPES = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2", "si8": "s8", "ui8": "u8", "i32": "s32"}
"""PTX's names of types that have other names here."""
_SWIZZLE_MODES = {0: 0, 128: 1, 64: 2, 32: 3}
_FIELD = 0x3FFF
_LOW = (1 << 32) - 1


def _ptx_type(element: str) -> str:
    return _PTX_TYPES.get(element, element)


def _matrix_text(name: str, count: int, transposed: bool) -> str:
    return f"{name}.sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}.shared.b16"


def _load_matrix(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    count = ir.VectorType(op.results[0].type).shape[0]
    text = _matrix_text("ldmatrix", count, cast(LoadMatrixOp, op.opview).transposed)
    text += f" {{{names(0, count)}}}, [${count}];"
    return [vector_of(b, ptx(b, text, list(op.operands), [b.i32] * count, together=True))]


def _store_matrix(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    fragment, row = op.operands
    registers = elements(b, fragment)
    text = _matrix_text("stmatrix", len(registers), cast(StoreMatrixOp, op.opview).transposed)
    text += f" [$0], {{{names(1, len(registers))}}};"
    return ptx(b, text, [row, *registers], together=True)


def _mma(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    view = cast(MmaOp, op.opview)
    a, right = str(view.a_element), str(view.b_element)
    if a in FLOATS_OF_8_BITS:
        require(b, op, "mma.f8")
    sums = _ptx_type(accumulator_of(a))
    shape = f"m{8 if a == 'f64' else 16}n8k{contracted(a)}"
    groups = [elements(b, value) for value in op.operands]
    count = len(groups[2])
    registers, first = [f"{{{names(0, count)}}}"], count
    for group in groups:
        registers.append(f"{{{names(first, len(group))}}}")
        first += len(group)
    text = f"mma.sync.aligned.{shape}.row.col.{sums}.{_ptx_type(a)}.{_ptx_type(right)}.{sums} {', '.join(registers)};"
    types = [value.type for value in groups[2]]
    return [vector_of(b, ptx(b, text, list(chain(*groups)), types, together=True, pure=True))]


def _descriptor(b: LlvmBuilder, pointer: ir.Value, layout: MatrixLayout) -> ir.Value:
    """Return the number that tells a product of a warp group where an operand lies (PTX ISA, "Matrix descriptor").

    Without a swizzle, the leading stride is that between chunks along the contracted dimension: groups of a transposed
    matrix, panels of another. With one, it is that between panels, and not used where rows go along the contracted
    dimension. What is known to lie some bytes after another place is an addition to the number of that.
    """
    leading, stride = layout.panel, layout.group
    if layout.transposed and not layout.swizzle:
        leading, stride = stride, leading
    fields = leading >> 4 << 16 | stride >> 4 << 32 | _SWIZZLE_MODES[layout.swizzle] << 62
    i64 = ir.IntegerType.get_signless(64)
    place, after = _known_distance(pointer)
    low = b.binary("lshr", b.op("ptrtoint", [place], b.i32), b.constant(4, b.i32))
    low = b.binary("and", low, b.constant(_FIELD, b.i32))
    if fields & _LOW:
        low = b.binary("or", low, b.constant(fields & _LOW, b.i32))
    if after:
        low = b.binary("add", low, b.constant(after >> 4, b.i32))
    return b.binary("or", b.op("zext", [low], i64), b.constant(fields & ~_LOW, i64))


def _known_distance(pointer: ir.Value) -> tuple[ir.Value, int]:
    """Return another place in memory, and by how many bytes, a multiple of 16, ``pointer`` lies after it."""
    after = 0
    while is_result_of(pointer, "llvm.getelementptr"):
        op = producer(pointer)
        (by,) = ir.DenseI32ArrayAttr(op.attributes["rawConstantIndices"])
        if len(op.operands) != 1 or by < 0 or by % 16 or str(op.attributes["elem_type"]) != "i8":
            break
        pointer, after = op.operands[0], after + by
    return pointer, after


def _warpgroup_mma(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    view = cast(WarpgroupMmaOp, op.opview)
    c, a, right, accumulate = op.operands
    sums = elements(b, c)
    element = str(view.a_element)
    in_registers = isinstance(a.type, ir.VectorType)
    left = elements(b, a) if in_registers else [_descriptor(b, a, view.a_layout)]
    count, given = len(sums), len(left)
    types = ".".join(_ptx_type(each) for each in (accumulator_of(element), element, str(view.b_element)))
    texts = [
        f"{{{names(0, count)}}}",
        f"{{{names(count, given)}}}" if in_registers else f"${count}",
        f"${count + given}",
        f"${count + given + 1}",
    ]
    if element not in INTEGERS_OF_8_BITS:
        # The operands are not negated.
        texts += ["1", "1"]
    if ELEMENT_BITS[element] == 16:
        layouts = [view.b_layout] if in_registers else [view.a_layout, view.b_layout]
        texts += [str(int(layout.transposed)) for layout in layouts]
    text = f"wgmma.mma_async.sync.aligned.m64n{view.columns}k{contracted(element)}.{types} {', '.join(texts)};"
    operands = [*left, _descriptor(b, right, view.b_layout), accumulate]
    if _is_false(accumulate):
        # Accumulators that are not read need no code that makes their value.
        return [vector_of(b, ptx(b, text, operands, [value.type for value in sums], together=True))]
    return [vector_of(b, ptx(b, text, operands, together=True, changed=sums))]


def _is_false(value: ir.Value) -> bool:
    is_constant = is_result_of(value, "llvm.mlir.constant")
    return is_constant and not ir.IntegerAttr(producer(value).attributes["value"]).value


def _warpgroup_wait(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    """The accumulators go through the text, so that nothing that reads them moves before it."""
    groups = [elements(b, value) for value in op.operands]
    text = f"wgmma.wait_group.sync.aligned {cast(WarpgroupWaitOp, op.opview).pending};"
    values = iter(ptx(b, text, together=True, changed=list(chain(*groups))))
    return [vector_of(b, [next(values) for _ in group]) for group in groups]


GPU_MATRIX_LOWERINGS: dict[str, Lowering] = {
    "xgpu.load_matrix": requiring("ldmatrix", _load_matrix),
    "xgpu.store_matrix": requiring("stmatrix", _store_matrix),
    "xgpu.mma": requiring("mma", _mma),
    "xgpu.warpgroup_mma": requiring("wgmma", _warpgroup_mma),
    "xgpu.warpgroup_fence": requiring("wgmma", fixed("wgmma.fence.sync.aligned;", together=True)),
    "xgpu.warpgroup_commit": requiring("wgmma", fixed("wgmma.commit_group.sync.aligned;", together=True)),
    "xgpu.warpgroup_wait": requiring("wgmma", _warpgroup_wait),
}
"""The lowerings by operation name."""
