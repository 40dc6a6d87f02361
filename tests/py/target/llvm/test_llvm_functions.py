"""Functions, globals and the attributes on them."""

from collections.abc import Callable

import pytest

from xgpu import ir
from xgpu.target.llvm.export import export_llvm_ir

KERNEL = """llvm.func @k(%a: !llvm.ptr<1> {llvm.noalias, llvm.readonly, llvm.align = 16 : i64,
                          llvm.dereferenceable = 64 : i64, llvm.noundef, xgpu.note = "x"},
                      %b: !llvm.ptr<1> {llvm.writeonly, llvm.nocapture})
    attributes {xgpu.kernel, xgpu.block = array<i64: 128, 2, 1>} { llvm.return }"""


def test_kernel(export: Callable[..., str]) -> None:
    header = next(line for line in export(KERNEL).splitlines() if line.startswith("define"))
    assert header.startswith("define ptx_kernel void @k(ptr addrspace(1) ")
    assert header.endswith(' %arg1) "nvvm.reqntid"="128,2,1" {')
    first, second = header.split(", ptr")
    assert {"noalias", "readonly", "noundef", "dereferenceable(64)"} <= set(first.split())
    assert "align 16" in first and "note" not in header
    assert {"writeonly", "captures(none)"} <= set(second.split())


def test_kernel_for_another_target_is_inlined_into_its_driver(context: ir.Context) -> None:
    text = export_llvm_ir(ir.Module.parse(KERNEL), "x86_64-unknown-linux-gnu", None)
    assert "define internal void @k(" in text
    assert text.rstrip().endswith("}") and "alwaysinline" in text
    assert "ptx" not in text and "nvvm" not in text and "datalayout" not in text


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("llvm.func private @f(%a: i32) { llvm.return }", "define private void @f(i32 %arg0) {"),
        ("llvm.func internal fastcc @f() { llvm.return }", "define internal fastcc void @f() {"),
        ("llvm.func @f(i32, !llvm.ptr<3>) -> f32", "declare float @f(i32, ptr addrspace(3))"),
        ('llvm.func @"a b"() { llvm.return }', 'define void @"a b"() {'),
        (
            'llvm.func @f() attributes {passthrough = ["noinline", ["key", "value"]]} { llvm.return }',
            'define void @f() noinline "key"="value" {',
        ),
        ("llvm.func @f() attributes {no_unwind, convergent} { llvm.return }", "@f() nounwind convergent {"),
        (
            "llvm.func @f(%a: i32) -> !llvm.struct<(i32, f32)> { llvm.unreachable }",
            "define { i32, float } @f(i32 %arg0) {",
        ),
        (
            "llvm.func @f() attributes {nvvm.cluster_dim = array<i32: 2, 1, 1>, nvvm.maxnreg = 64 : i32} "
            "{ llvm.return }",
            '@f() "nvvm.cluster_dim"="2,1,1" "nvvm.maxnreg"="64" {',
        ),
        (
            '"llvm.func"() <{sym_name = "f", function_type = !llvm.func<void ()>, always_inline, '
            "memory_effects = #llvm.memory_effects<other = none, argMem = read, inaccessibleMem = none, "
            "errnoMem = none, targetMem0 = none, targetMem1 = none>}> ({ llvm.return }) : () -> ()",
            "@f() alwaysinline memory(none, argmem: read) {",
        ),
    ],
)
def test_function(export: Callable[..., str], function: str, expected: str) -> None:
    assert expected in export(function)


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        (
            "llvm.mlir.global internal @s() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<32 x f32>",
            "@s = internal addrspace(3) global [32 x float] poison, align 16",
        ),
        (
            "llvm.mlir.global external @d() {addr_space = 3 : i32} : !llvm.array<0 x i8>",
            "@d = external addrspace(3) global [0 x i8]",
        ),
        ("llvm.mlir.global private constant @c(7 : i32) : i32", "@c = private constant i32 7"),
        ("llvm.mlir.global @g(1.5 : f32) : f32", "@g = global float 1.500000e+00"),
        (
            'llvm.mlir.global private constant @t("a\\22\\00") : !llvm.array<3 x i8>',
            '@t = private constant [3 x i8] c"a\\22\\00"',
        ),
        (
            "llvm.mlir.global internal @z() : !llvm.array<2 x f32> "
            "{ %0 = llvm.mlir.zero : !llvm.array<2 x f32>\n llvm.return %0 : !llvm.array<2 x f32> }",
            "@z = internal global [2 x float] zeroinitializer",
        ),
    ],
)
def test_global(export: Callable[..., str], declaration: str, expected: str) -> None:
    assert expected in export(declaration)


def test_an_intrinsic_the_module_declares_is_declared_once(export: Callable[..., str]) -> None:
    text = export("""llvm.func @llvm.fabs.f32(f32) -> f32
      llvm.func @f(%a: f32) -> f32 {
        %0 = llvm.intr.fabs(%a) : (f32) -> f32
        llvm.return %0 : f32
      }""")
    assert text.count("declare float @llvm.fabs.f32") == 1


def test_equal_modules_export_equal_text(export: Callable[..., str]) -> None:
    assert export(KERNEL) == export(KERNEL)
