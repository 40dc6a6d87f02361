"""LLVM IR to PTX: launch bounds, 16-byte accesses, every target, and errors that do not end the process."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from xgpu.device import DEVICES
from xgpu.errors import CompilerError, InvalidInput
from xgpu.target.nvptx.cubin import assemble, find_ptxas
from xgpu.target.nvptx.ptx import compile_to_ptx

needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")


def copy_kernel(type_: str, parameter: str = "llvm.readonly, llvm.noalias", load: str = "") -> str:
    """A kernel where each thread copies one vector, scaled by itself if it is of floats."""
    operation = "llvm.fadd" if "f" in type_ else "llvm.add"
    return f"""llvm.func @k(%in: !llvm.ptr<1> {{{parameter}, llvm.align = 16 : i64}},
                           %out: !llvm.ptr<1> {{llvm.noalias, llvm.align = 16 : i64}})
        attributes {{xgpu.kernel, xgpu.block = array<i64: 128, 1, 1>}} {{
      %t = "nvvm.read.ptx.sreg.tid.x"() <{{range = #llvm.constant_range<i32, 0, 128>}}> : () -> i32
      %i = llvm.zext nneg %t : i32 to i64
      %p = llvm.getelementptr inbounds|nuw %in[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {type_}
      %q = llvm.getelementptr inbounds|nuw %out[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {type_}
      %v = "llvm.load"(%p) <{{alignment = 16 : i64, ordering = 0 : i64{load}}}> : (!llvm.ptr<1>) -> {type_}
      %w = {operation} %v, %v : {type_}
      "llvm.store"(%w, %q) <{{alignment = 16 : i64, ordering = 0 : i64}}> : ({type_}, !llvm.ptr<1>) -> ()
      llvm.return
    }}"""


def accesses(ptx: str) -> list[str]:
    return [line.split()[0] for line in ptx.splitlines() if line.strip().startswith(("ld.global", "st.global"))]


@pytest.mark.parametrize(
    ("type_", "access"),
    [
        ("vector<4xf32>", "v4.b32"),
        ("vector<4xi32>", "v4.b32"),
        ("vector<2xf64>", "v2.b64"),
        ("vector<2xi64>", "v2.b64"),
        ("vector<8xbf16>", "v4.b32"),
        ("vector<8xf16>", "v4.b32"),
        ("vector<8xi16>", "v4.b32"),
        ("vector<16xi8>", "v4.b32"),
        ("vector<4xbf16>", "v2.b32"),
        ("vector<4xi8>", "b32"),
    ],
)
def test_vectors_are_one_access(export: Callable[..., str], type_: str, access: str) -> None:
    ptx = compile_to_ptx(export(copy_kernel(type_)))
    assert accesses(ptx) == [f"ld.global.nc.{access}", f"st.global.{access}"]


def test_invariant_load_is_read_only(export: Callable[..., str]) -> None:
    ptx = compile_to_ptx(export(copy_kernel("f32", "xgpu.note", ", invariant")))
    assert accesses(ptx) == ["ld.global.nc.b32", "st.global.b32"]


def test_load_of_what_may_be_written_is_not_read_only(export: Callable[..., str]) -> None:
    ptx = compile_to_ptx(export(copy_kernel("f32", "xgpu.note")))
    assert accesses(ptx) == ["ld.global.b32", "st.global.b32"]


def test_block_size_is_required_of_the_launch(export: Callable[..., str]) -> None:
    assert ".reqntid 128, 1, 1" in compile_to_ptx(export(copy_kernel("f32")))


def test_multiplication_and_addition_are_not_contracted(export: Callable[..., str]) -> None:
    ptx = compile_to_ptx(
        export("""llvm.func @k(%o: !llvm.ptr<1>, %a: f32, %b: f32) attributes {xgpu.kernel} {
        %0 = llvm.fmul %a, %b : f32
        %1 = llvm.fadd %0, %a : f32
        llvm.store %1, %o : f32, !llvm.ptr<1>
        llvm.return
      }""")
    )
    assert "mul.rn.f32" in ptx and "add.rn.f32" in ptx and "fma" not in ptx


def test_shared_memory_and_barrier(export: Callable[..., str]) -> None:
    ptx = compile_to_ptx(
        export("""llvm.mlir.global internal @tile() {addr_space = 3 : i32} : !llvm.array<128 x f32>
      llvm.func @k(%o: !llvm.ptr<1>, %a: f32) attributes {xgpu.kernel, xgpu.block = array<i64: 128, 1, 1>} {
        %t = nvvm.read.ptx.sreg.tid.x : i32
        %s = llvm.mlir.addressof @tile : !llvm.ptr<3>
        %p = llvm.getelementptr %s[0, %t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<128 x f32>
        llvm.store %a, %p : f32, !llvm.ptr<3>
        nvvm.barrier
        %v = llvm.load %s : !llvm.ptr<3> -> f32
        llvm.store %v, %o : f32, !llvm.ptr<1>
        llvm.return
      }""")
    )
    assert "bar.sync" in ptx or "barrier.sync" in ptx
    assert ".shared" in ptx and "[512]" in ptx


@pytest.mark.parametrize("target", DEVICES)
def test_target(export: Callable[..., str], target: str) -> None:
    ptx = compile_to_ptx(export(copy_kernel("vector<8xbf16>")), target)
    version = DEVICES[target].ptx_version
    assert f".target {target}\n" in ptx and f".version {version // 10}.{version % 10}\n" in ptx
    assert accesses(ptx) == ["ld.global.nc.v4.b32", "st.global.v4.b32"]


@needs_ptxas
@pytest.mark.parametrize("target", DEVICES)
def test_ptxas_accepts_every_target(export: Callable[..., str], target: str) -> None:
    kernel = assemble(compile_to_ptx(export(copy_kernel("vector<8xbf16>")), target), target)
    assert kernel.cubin[:4] == b"\x7fELF" and kernel.spill_bytes == 0


def test_unknown_target() -> None:
    with pytest.raises(InvalidInput, match="unknown target 'sm_42'; known targets are sm_80, sm_86"):
        compile_to_ptx("", "sm_42")


def test_it_is_optimized(export: Callable[..., str]) -> None:
    text = """llvm.func @f(%a: i32) -> i32 {
      %one = llvm.mlir.constant(1 : i32) : i32
      %memory = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
      llvm.store %a, %memory : i32, !llvm.ptr
      %0 = llvm.load %memory : !llvm.ptr -> i32
      llvm.return %0 : i32
    }"""
    assert [".local" in compile_to_ptx(export(text), opt_level=level) for level in (0, 3)] == [True, False]


@pytest.mark.parametrize("level", range(4))
def test_optimization_level(export: Callable[..., str], level: int) -> None:
    assert "add.rn.f32" in compile_to_ptx(export(copy_kernel("f32")), opt_level=level)


def test_compiling_in_several_threads(export: Callable[..., str]) -> None:
    texts = [export(copy_kernel(f"vector<{size}xf32>")) for size in (1, 2, 4)] * 4
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(compile_to_ptx, texts)) == [compile_to_ptx(text) for text in texts]


def test_parse_error_shows_the_line() -> None:
    with pytest.raises(CompilerError, match=r"at line 2, column 21: .*invalid for type\n  %x = add i32 1, 2.0"):
        compile_to_ptx("define void @f() {\n    %x = add i32 1, 2.0\n ret void\n}")


def test_invalid_ir_is_refused() -> None:
    with pytest.raises(CompilerError, match=r"PHI node entries do not match predecessors!\n  %x = phi"):
        compile_to_ptx("define void @f() {\n br label %a\na:\n %x = phi i32 [0, %b]\n ret void\nb:\n ret void\n}")


def call_of(name: str, type_: str, flags: str = "") -> str:
    return f"""define ptx_kernel void @k(ptr %p, {type_} %a) {{
      %r = call {flags} {type_} @{name}({type_} %a)
      store {type_} %r, ptr %p
      ret void
    }}
    declare {type_} @{name}({type_})"""


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("llvm.exp.f32", "float"),
        ("llvm.log2.f64", "double"),
        ("llvm.exp2.f64", "double"),
        ("llvm.tanh.f64", "double"),
        ("llvm.sin.f32", "float"),
    ],
)
def test_functions_without_code_are_refused(name: str, type_: str) -> None:
    """LLVM would end the process."""
    with pytest.raises(CompilerError, match=f"'{name}' has.* code on NVPTX"):
        compile_to_ptx(call_of(name, type_))


@pytest.mark.parametrize("name", ["sin", "cos", "tanh"])
def test_approximate_functions(name: str) -> None:
    assert f"{name}.approx" in compile_to_ptx(call_of(f"llvm.{name}.f32", "float", "afn"))


@pytest.mark.parametrize("name", ["expf", "llvm.nothing.f32"])
def test_undefined_functions_are_refused(name: str) -> None:
    with pytest.raises(CompilerError, match=f"calls '{name}'"):
        compile_to_ptx(call_of(name, "float"))


def test_ptx_does_not_depend_on_what_was_compiled_before():
    """Calls are numbered from 0 in every kernel: the text is a part of the key by which JAX keeps programs."""
    text = """
    define internal float @f(float %x) noinline { %y = fadd float %x, 1.0 ret float %y }
    define ptx_kernel void @k(ptr %p) {
      %x = load float, ptr %p
      %y = call float @f(float %x)
      %z = call float @f(float %y)
      store float %z, ptr %p
      ret void
    }"""
    first, second = compile_to_ptx(text), compile_to_ptx(text)
    assert first == second
    assert "callseq 0" in first
    assert "callseq 1" in first


def test_sums_are_not_made_of_each_other() -> None:
    """The pass that does so takes long to look for them, and would have the second sum wait for the first."""
    ptx = compile_to_ptx("""
        define ptx_kernel void @k(ptr addrspace(1) %out, i32 %a, i32 %b) {
            %five = mul i32 %a, 5
            %first = add i32 %five, %b
            %six = mul i32 %a, 6
            %second = add i32 %six, %b
            store i32 %first, ptr addrspace(1) %out
            %next = getelementptr i8, ptr addrspace(1) %out, i64 4
            store i32 %second, ptr addrspace(1) %next
            ret void
        }""")
    assert ptx.count("mad.lo.s32") == 2
    assert "add.s32" not in ptx
