"""The driver around a host kernel, and what the host cannot run."""

import pytest

from xgpu import ir
from xgpu.errors import CompilerError, InvalidInput
from xgpu.target.host.block_driver import DRIVER_IR, DriverLaunch, coroutine_driver, entry_point, loop_driver
from xgpu.target.host.context import SHARED, place_tiles
from xgpu.target.host.machine_code import compile_host
from xgpu.target.llvm.module import parse_llvm_ir

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


def test_drivers_are_valid_llvm_ir() -> None:
    launch = DriverLaunch("a kernel", 3, (5, 3, 2), (32, 4, 1), has_context=True, frames=4096)
    arguments = ", ".join(["ptr"] * 3 + ["i32"] * 6 + ["ptr"])
    for triple in ("x86_64-unknown-linux-gnu", "arm64-apple-darwin", "riscv64-unknown-linux-gnu"):
        entry = entry_point(launch, triple)
        parse_llvm_ir(f'declare void @"a kernel"({arguments})\n{loop_driver(launch)}\n{entry}')
        parse_llvm_ir(f'declare ptr @"a kernel"({arguments}, ptr)\n{coroutine_driver(launch, 2)}\n{entry}')
    parse_llvm_ir(DRIVER_IR)


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
def test_barrier_of_the_gpu(context: ir.Context, body: str) -> None:
    assert "exists on NVIDIA GPUs only" in refusal(kernel(body))


def test_barrier_in_another_function(context: ir.Context) -> None:
    wait = "llvm.call @xgpu_host_barrier() : () -> ()"
    module = f"llvm.func @xgpu_host_barrier()\nllvm.func @f() {{\n{wait}\nllvm.return\n}}\n"
    assert "the function 'f' has a barrier or shuffle: on the host only kernels may" in refusal(module + kernel(wait))


def test_shuffle_in_part_of_a_warp(context: ir.Context) -> None:
    declaration = "llvm.func @xgpu_host_shuffle_xor(i32, i32) -> i32\n"
    text = declaration + kernel("%s = llvm.call @xgpu_host_shuffle_xor(%tx, %tx) : (i32, i32) -> i32")
    text = text.replace("block = array<i64: 1,", "block = array<i64: 48,")
    assert "all 32 threads of a warp take part, and blocks of 48 threads, which are not whole warps" in refusal(text)


def test_tile_with_a_value(context: ir.Context) -> None:
    text = f"llvm.mlir.global internal @tile(1 : i32) : i32\n{kernel()}"
    assert "the global 'tile' is written and has an initial value" in refusal(text)


def test_tile_of_too_large_an_alignment(context: ir.Context) -> None:
    text = f"llvm.mlir.global internal @tile() {{alignment = 2048 : i64}} : i32\n{kernel()}"
    assert "the tile 'tile' is aligned to 2048 bytes, on the host at most to 1024" in refusal(text)


def test_tile_of_unknown_size(context: ir.Context) -> None:
    text = f"llvm.mlir.global internal @tile() : !llvm.struct<(i32, f32)>\n{kernel()}"
    assert "the size of !llvm.struct<(i32, f32)> is not known" in refusal(text)


def test_tiles_that_no_device_has_memory_for(context: ir.Context) -> None:
    text = f"llvm.mlir.global internal @tile() : !llvm.array<2147483647 x i8>\n{kernel()}"
    assert "the tiles take 2147483647 bytes of shared memory, no device has over" in refusal(text)


def test_tiles_are_aligned_and_apart(context: ir.Context) -> None:
    module = ir.Module.parse(f"""
      llvm.mlir.global external @dynamic() {{alignment = 128 : i64}} : !llvm.array<0 x i8>
      llvm.mlir.global internal @a() {{alignment = 1024 : i64}} : !llvm.array<3 x vector<4xi4>>
      llvm.mlir.global internal @b() : !llvm.array<2 x array<5 x f64>>
      llvm.mlir.global internal constant @table(7 : i32) : i32
      {kernel(attributes=ONE_THREAD + ", xgpu.shared_bytes = 96 : i64")}""")
    entry = next(op.operation for op in module.body.operations if op.operation.name == "llvm.func")
    tiles = [(tile.name, tile.offset - SHARED, tile.size) for tile in place_tiles(module, entry)]
    assert tiles == [("a", 0, 6), ("b", 16, 80), ("dynamic", 128, 96)]


def test_the_module_is_left_as_it_was(context: ir.Context) -> None:
    wait = "llvm.call @xgpu_host_barrier() : () -> ()"
    tile = "llvm.mlir.global internal @tile() : i32\nllvm.func @xgpu_host_barrier()\n"
    module = ir.Module.parse(tile + kernel(wait))
    before = str(module)
    code = compile_host(module, sanitize=True)
    assert str(module) == before
    assert code.context_bytes > SHARED and code.checks is not None


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
