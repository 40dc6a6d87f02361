"""Operations that cannot be exported are refused by a CompilerError that names the operation and its place."""

from collections.abc import Callable

import pytest

from xgpu import ir
from xgpu.errors import CompilerError
from xgpu.target.llvm.export import export_llvm_ir


def refusal(text: str, triple: str = "nvptx64-nvidia-cuda") -> str:
    with pytest.raises(CompilerError) as caught:
        export_llvm_ir(ir.Module.parse(text), triple, None)
    return str(caught.value)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%r = arith.addi %i, %i : i32", "in 'arith.addi': no LLVM IR form is known"),
        ('%r = "llvm.intr.vscale"() : () -> i32', "in 'llvm.intr.vscale': no LLVM IR form is known"),
        ("nvvm.wgmma.fence.aligned", "in 'nvvm.wgmma.fence.aligned': no LLVM IR form is known"),
        ("%t = llvm.mlir.undef : f80\n%r = llvm.fadd %t, %t : f80", "no LLVM IR type for f80"),
        ("%t = llvm.mlir.undef : vector<[4]xf32>\n%r = llvm.fneg %t : vector<[4]xf32>", "only vectors of one fixed"),
        ('%r = llvm.add %i, %i {xgpu.flags = "nsw fast"} : i32', "unknown word in xgpu.flags"),
        (
            "llvm.br ^a\n^a:\n"
            '"llvm.br"()[^a] <{loop_annotation = #llvm.loop_annotation<distribute = <disable = true>>}> : () -> ()',
            "loop annotation 'disable = true'",
        ),
    ],
)
def test_operation(context: ir.Context, body: str, expected: str) -> None:
    terminator = "" if "^a" in body else "llvm.return"
    message = refusal(f"llvm.func @f(%i: i32) {{ {body}\n {terminator} }}")
    assert expected in message
    assert message.startswith("-:")


def test_parameter_type(context: ir.Context) -> None:
    message = refusal("llvm.func @f(%i: i32, %q: vector<[4]xf32>) { llvm.return }")
    assert "in 'llvm.func': LLVM IR has no type for vector<[4]xf32>" in message


def test_parameter_attribute(context: ir.Context) -> None:
    message = refusal("llvm.func @f(%a: !llvm.ptr {llvm.preallocated = i32}) { llvm.return }")
    assert "parameter attribute 'llvm.preallocated' is not supported" in message


def test_operation_of_an_earlier_level(context: ir.Context) -> None:
    assert "in 'func.func': expected llvm.func or llvm.mlir.global in a module of level 'llvm'" in refusal(
        "func.func @f() { return }"
    )


def test_global_with_a_computed_initializer(context: ir.Context) -> None:
    message = refusal("""llvm.mlir.global internal @g() : i32 {
        %0 = llvm.mlir.constant(1 : i32) : i32
        %1 = llvm.add %0, %0 : i32
        llvm.return %1 : i32
      }""")
    assert "in 'llvm.mlir.global': 'llvm.add' in a global's initializer" in message


def test_variadic_function(context: ir.Context) -> None:
    assert "a variadic function is not supported" in refusal("llvm.func @printf(!llvm.ptr, ...) -> i32")


def test_gpu_operation_on_another_target(context: ir.Context) -> None:
    text = "llvm.func @f() { %0 = nvvm.read.ptx.sreg.tid.x : i32\n llvm.return }"
    assert "exists on NVIDIA GPUs only" in refusal(text, "x86_64-unknown-linux-gnu")


def test_flags_do_not_shift_when_text_looks_like_them(export_body: Callable[..., str]) -> None:
    """Flags are read from a printed function, where strings may look like operations with flags."""
    text = export_body("""llvm.inline_asm has_side_effects asm_dialect = att "add overflowFlags = 3", "" : () -> ()
        %r = llvm.add %i, %i : i32
        %t = llvm.sub %i, %i overflow<nuw> : i32""")
    assert " = add i32" in text and " = sub nuw i32" in text
