"""The driver around a host kernel, and what the host cannot run."""

import pytest

from xgpu import ir
from xgpu.errors import CompilerError, InvalidInput
from xgpu.target.host import compile_host, entry_point, has_barrier, loop_driver
from xgpu.target.llvm_module import parse_llvm_ir

INDICES = "%tx: i32, %ty: i32, %tz: i32, %bx: i32, %by: i32, %bz: i32"
ONE_THREAD = ", xgpu.grid = array<i64: 1, 1, 1>, xgpu.block = array<i64: 1, 1, 1>"


def kernel(body: str = "", parameters: str = f"%p: !llvm.ptr, {INDICES}", attributes: str = ONE_THREAD) -> str:
    return f"""llvm.func @k({parameters}) attributes {{xgpu.kernel{attributes}}} {{
      {body}
      llvm.return
    }}"""


def refusal(text: str) -> str:
    with pytest.raises(CompilerError) as caught:
        compile_host(ir.Module.parse(text))
    return str(caught.value)


def test_driver_is_valid_llvm_ir() -> None:
    arguments = ", ".join(["ptr"] * 3 + ["i32"] * 6)
    driver = loop_driver("a kernel", 3, (5, 3, 2), (32, 4, 1))
    for triple in ("x86_64-unknown-linux-gnu", "arm64-apple-darwin", "riscv64-unknown-linux-gnu"):
        entry = entry_point("a kernel", triple)
        parse_llvm_ir(f'declare void @"a kernel"({arguments})\n{driver}\n{entry}')


def test_kernels_without_buffers(context: ir.Context) -> None:
    assert compile_host(ir.Module.parse(kernel(parameters=INDICES))).parameters == ()


def test_equal_kernels_are_compiled_once(context: ir.Context) -> None:
    first, second = (compile_host(ir.Module.parse(kernel())) for _ in range(2))
    assert first.address == second.address


def test_parameters(context: ir.Context) -> None:
    described = f"%p: !llvm.ptr {{llvm.readonly, llvm.align = 32 : i64, llvm.dereferenceable = 8 : i64}}, {INDICES}"
    (parameter,) = compile_host(ir.Module.parse(kernel(parameters=described))).parameters
    assert (parameter.alignment, parameter.size, parameter.is_readonly) == (32, 8, True)


@pytest.mark.parametrize("body", ["nvvm.barrier", "%s = nvvm.shfl.sync bfly %tx, %tx, %tx, %tx : i32 -> i32"])
def test_kernel_whose_threads_wait(context: ir.Context, body: str) -> None:
    assert has_barrier(ir.Module.parse(kernel(body)))
    assert "kernel 'k' has a barrier or shuffle" in refusal(kernel(body))


def test_kernel_with_shared_memory(context: ir.Context) -> None:
    assert "writes the global 'tile'" in refusal(f"llvm.mlir.global internal @tile() : i32\n{kernel()}")


def test_kernel_lowered_for_the_gpu(context: ir.Context) -> None:
    assert "'k' is not lowered for the host: expected pointers and six i32" in refusal(kernel(parameters="%i: i32"))
    assert "is not lowered for the host" in refusal(kernel(parameters=f"%p: !llvm.ptr<1>, {INDICES}"))


def test_gpu_register(context: ir.Context) -> None:
    assert "exists on NVIDIA GPUs only" in refusal(kernel("%t = nvvm.read.ptx.sreg.tid.x : i32"))


def test_no_kernel(context: ir.Context) -> None:
    assert "one llvm.func with xgpu.kernel, found 0" in refusal("llvm.func @f() { llvm.return }")


def test_unknown_name(context: ir.Context) -> None:
    with pytest.raises(CompilerError, match="one kernel 'other', found 0"):
        compile_host(ir.Module.parse(kernel()), "other")


def test_missing_launch_dimensions(context: ir.Context) -> None:
    assert "kernel 'k' has no xgpu.grid of three numbers" in refusal(kernel(attributes=""))
    module = ir.Module.parse(kernel(attributes=""))
    assert compile_host(module, grid=(2, 1, 1), block=(32, 1, 1)).grid == (2, 1, 1)


def test_other_launch_dimensions_than_the_kernel_has(context: ir.Context) -> None:
    with pytest.raises(InvalidInput, match=r"xgpu.grid of the kernel is \[1, 1, 1\], but \[2, 1, 1\] was given"):
        compile_host(ir.Module.parse(kernel()), grid=(2, 1, 1))


def test_impossible_launch_dimensions(context: ir.Context) -> None:
    attributes = ", xgpu.grid = array<i64: 1, 1, 1>, xgpu.block = array<i64: 0, 1, 1>"
    assert "xgpu.block = [0, 1, 1] of kernel 'k' is not possible" in refusal(kernel(attributes=attributes))


def test_unknown_function(context: ir.Context, capfd: pytest.CaptureFixture[str]) -> None:
    call = "llvm.func @no_such_function()\n" + kernel("llvm.call @no_such_function() : () -> ()")
    assert "the host cannot link 'k__blocks'" in refusal(call)
