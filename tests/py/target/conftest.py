"""Fixtures that export hand-written modules of the LLVM dialect and run them on the host.

Modules are written in the generic form where an operation has attributes: the custom forms of jaxlib 0.11 and 0.12
spell those differently, the generic form is one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from xgpu import ir
from xgpu.runtime.host_executor import HostKernel
from xgpu.target.llvm.export import export_llvm_ir
from xgpu.target.llvm.module import parse_llvm_ir

LLVM_TYPES = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "int8": "i8",
    "uint8": "i8",
    "bool": "i8",
    "int16": "i16",
    "uint16": "i16",
    "int32": "i32",
    "uint32": "i32",
    "int64": "i64",
    "uint64": "i64",
}
INDICES = "%tx: i32, %ty: i32, %tz: i32, %bx: i32, %by: i32, %bz: i32"

type Array = np.ndarray[Any, Any]


@pytest.fixture
def context() -> Iterator[ir.Context]:
    with ir.make_context() as context, ir.Location.unknown():
        yield context


@pytest.fixture
def export(context: ir.Context) -> Callable[..., str]:
    """Export a module's text for the GPU and have LLVM check the result."""

    def run(text: str) -> str:
        exported = export_llvm_ir(ir.Module.parse(text))
        parse_llvm_ir(exported)
        return exported

    return run


@pytest.fixture
def export_body(export: Callable[..., str]) -> Callable[..., str]:
    """Export a function of the given body, which may use one argument of each common type."""

    def run(body: str, declarations: str = "") -> str:
        return export(f"""{declarations}
            llvm.func @f(%p: !llvm.ptr<1>, %q: !llvm.ptr, %i: i32, %l: i64, %c: i1, %b: i8, %f: f32, %d: f64, %h: f16,
                         %g: bf16, %v: vector<4xf32>, %w: vector<4xi32>, %s: !llvm.struct<(i32, f32)>,
                         %a: !llvm.array<2 x f32>) {{
              {body}
              llvm.return
            }}""")

    return run


@pytest.fixture
def elementwise() -> Callable[..., Array]:
    """Run ``body``, which makes ``%r`` from ``%x0``, ``%x1``... (and ``%i``, the index), on arrays on the host."""

    def run(body: str, inputs: Sequence[Array], dtype: Any, declarations: str = "") -> Array:
        output = np.zeros(inputs[0].shape, dtype)
        arrays = [*inputs, output]
        names = [f"%p{number}" for number in range(len(arrays))]
        types = [LLVM_TYPES[array.dtype.name] for array in arrays]
        lines = []
        for number, (name, type_) in enumerate(zip(names, types, strict=True)):
            lines.append(f"%e{number} = llvm.getelementptr {name}[%i] : (!llvm.ptr, i64) -> !llvm.ptr, {type_}")
            if number < len(inputs):
                lines.append(f"%x{number} = llvm.load %e{number} : !llvm.ptr -> {type_}")
        code = "\n".join(lines)
        parameters = ", ".join(f"{name}: !llvm.ptr" for name in names)
        kernel = HostKernel(f"""{declarations}
            llvm.func @k({parameters}, {INDICES}) attributes {{xgpu.kernel,
                xgpu.grid = array<i64: 1, 1, 1>, xgpu.block = array<i64: {output.size}, 1, 1>}} {{
              %i = llvm.zext %tx : i32 to i64
              {code}
              {body}
              llvm.store %r, %e{len(inputs)} : {types[-1]}, !llvm.ptr
              llvm.return
            }}""")
        kernel.launch(arrays)
        return output

    return run
