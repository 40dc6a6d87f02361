"""lower-to-llvm for PTX instructions that a person wrote: unchanged on a GPU, refused elsewhere."""

from collections.abc import Sequence
from typing import cast

from xgpu import ir
from xgpu.dialects.nests.assembly import PtxOp
from xgpu.errors import Unsupported
from xgpu.hlo.source_location import source_of
from xgpu.passes.llvm.builder import LlvmBuilder, Lowering
from xgpu.passes.llvm.gpu_ptx import ptx


def _on_gpu(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    types = [result.type for result in op.results]
    return ptx(b, cast(PtxOp, op.opview).text, list(op.operands), types, together=True)


def _on_host(b: LlvmBuilder, op: ir.Operation) -> Sequence[ir.Value]:
    text = cast(PtxOp, op.opview).text
    raise Unsupported(f"the host does not know the instructions '{text}'; a GPU runs them", source_of(op))


GPU_ASSEMBLY_LOWERINGS: dict[str, Lowering] = {PtxOp.OPERATION_NAME: _on_gpu}
HOST_ASSEMBLY_LOWERINGS: dict[str, Lowering] = {PtxOp.OPERATION_NAME: _on_host}
"""The lowerings by operation name."""
