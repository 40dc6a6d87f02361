"""The LLVM IR text of each operation; LLVM parses and verifies every export."""

from collections.abc import Callable

import pytest

FUNCTION = "llvm.func @callee(i32, f32) -> f32"

CASES = [
    # Integers and their flags.
    ("%r = llvm.add %i, %i : i32", "add i32 %arg2, %arg2"),
    ("%r = llvm.add %i, %i overflow<nsw> : i32", "add nsw i32"),
    ("%r = llvm.sub %i, %i overflow<nuw> : i32", "sub nuw i32"),
    ("%r = llvm.mul %l, %l overflow<nsw, nuw> : i64", "mul nuw nsw i64 %arg3, %arg3"),
    ("%r = llvm.shl %b, %b overflow<nuw> : i8", "shl nuw i8"),
    ('%r = llvm.add %i, %i {xgpu.flags = "nsw nuw"} : i32', "add nsw nuw i32"),
    ("%r = llvm.udiv %i, %i : i32", "udiv i32"),
    ("%r = llvm.sdiv exact %i, %i : i32", "sdiv exact i32"),
    ("%r = llvm.urem %w, %w : vector<4xi32>", "urem <4 x i32> %arg11, %arg11"),
    ("%r = llvm.srem %i, %i : i32", "srem i32"),
    ("%r = llvm.lshr exact %i, %i : i32", "lshr exact i32"),
    ("%r = llvm.ashr %i, %i : i32", "ashr i32"),
    ("%r = llvm.and %c, %c : i1", "and i1"),
    ("%r = llvm.or disjoint %i, %i : i32", "or disjoint i32"),
    ("%r = llvm.xor %i, %i : i32", "xor i32"),
    # Floats and fast-math flags.
    ("%r = llvm.fadd %f, %f : f32", "fadd float"),
    ("%r = llvm.fsub %h, %h : f16", "fsub half"),
    ("%r = llvm.fmul %g, %g : bf16", "fmul bfloat"),
    ("%r = llvm.fdiv %v, %v : vector<4xf32>", "fdiv <4 x float>"),
    ("%r = llvm.frem %d, %d : f64", "frem double"),
    (
        '%r = "llvm.fadd"(%f, %f) <{fastmathFlags = #llvm.fastmath<nnan, contract>}> : (f32, f32) -> f32',
        "fadd nnan contract float",
    ),
    ('%r = "llvm.fneg"(%f) <{fastmathFlags = #llvm.fastmath<fast>}> : (f32) -> f32', "fneg fast float"),
    # Casts.
    ("%r = llvm.zext nneg %i : i32 to i64", "zext nneg i32 %arg2 to i64"),
    ("%r = llvm.sext %c : i1 to i32", "sext i1 %arg4 to i32"),
    ("%r = llvm.trunc %l : i64 to i32", "trunc i64 %arg3 to i32"),
    ("%r = llvm.trunc %l overflow<nuw> : i64 to i32", "trunc nuw i64"),
    ("%r = llvm.uitofp nneg %i : i32 to f32", "uitofp nneg i32"),
    ("%r = llvm.sitofp %i : i32 to f64", "sitofp i32 %arg2 to double"),
    ("%r = llvm.fptosi %f : f32 to i8", "fptosi float %arg6 to i8"),
    ("%r = llvm.fptoui %f : f32 to i8", "fptoui float %arg6 to i8"),
    ("%r = llvm.fpext %g : bf16 to f32", "fpext bfloat %arg9 to float"),
    ("%r = llvm.fptrunc %f : f32 to f16", "fptrunc float %arg6 to half"),
    ("%r = llvm.bitcast %f : f32 to i32", "bitcast float %arg6 to i32"),
    ("%r = llvm.ptrtoint %p : !llvm.ptr<1> to i64", "ptrtoint ptr addrspace(1) %arg0 to i64"),
    ("%r = llvm.inttoptr %l : i64 to !llvm.ptr<3>", "inttoptr i64 %arg3 to ptr addrspace(3)"),
    ("%r = llvm.addrspacecast %p : !llvm.ptr<1> to !llvm.ptr", "addrspacecast ptr addrspace(1) %arg0 to ptr"),
    # Comparison and choice.
    ('%r = llvm.icmp "slt" %i, %i : i32', "icmp slt i32"),
    ('%r = llvm.icmp "uge" %p, %p : !llvm.ptr<1>', "icmp uge ptr addrspace(1)"),
    ('%r = llvm.fcmp "une" %f, %f : f32', "fcmp une float"),
    ('%r = llvm.fcmp "_true" %v, %v : vector<4xf32>', "fcmp true <4 x float>"),
    ("%r = llvm.select %c, %f, %f : i1, f32", "select i1 %arg4, float %arg6, float %arg6"),
    ("%r = llvm.freeze %i : i32", "freeze i32 %arg2"),
    # Memory.
    (
        "%r = llvm.getelementptr %p[%l] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32",
        "getelementptr float, ptr addrspace(1) %arg0, i64 %arg3",
    ),
    (
        "%r = llvm.getelementptr inbounds|nuw %p[0, 1, %i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, "
        "!llvm.array<4 x array<3 x f32>>",
        "getelementptr inbounds nuw [4 x [3 x float]], ptr addrspace(1) %arg0, i32 0, i32 1, i32 %arg2",
    ),
    (
        "%r = llvm.getelementptr nusw %p[%l] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8",
        "getelementptr nusw i8, ptr addrspace(1)",
    ),
    (
        '%r = llvm.getelementptr %p[%l] {xgpu.flags = "inbounds"} : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8',
        "getelementptr inbounds i8, ptr addrspace(1)",
    ),
    ("%r = llvm.load %p : !llvm.ptr<1> -> vector<4xf32>", "load <4 x float>, ptr addrspace(1) %arg0"),
    (
        '%r = "llvm.load"(%p) <{alignment = 16 : i64, invariant, ordering = 0 : i64}> : (!llvm.ptr<1>) -> f32',
        "load float, ptr addrspace(1) %arg0, align 16, !invariant.load !0",
    ),
    (
        '%r = "llvm.load"(%p) <{volatile_, nontemporal, ordering = 0 : i64}> : (!llvm.ptr<1>) -> f32',
        "load volatile float, ptr addrspace(1) %arg0, !nontemporal !0",
    ),
    (
        '%r = "llvm.load"(%p) <{alignment = 4 : i64, ordering = 4 : i64, syncscope = "device"}> '
        ": (!llvm.ptr<1>) -> i32",
        'load atomic i32, ptr addrspace(1) %arg0 syncscope("device") acquire, align 4',
    ),
    ("llvm.store %f, %p : f32, !llvm.ptr<1>", "store float %arg6, ptr addrspace(1) %arg0"),
    (
        '"llvm.store"(%i, %q) <{alignment = 4 : i64, ordering = 5 : i64}> : (i32, !llvm.ptr) -> ()',
        "store atomic i32 %arg2, ptr %arg1 release, align 4",
    ),
    (
        '%r = llvm.atomicrmw fadd %p, %f syncscope("device") monotonic : !llvm.ptr<1>, f32',
        'atomicrmw fadd ptr addrspace(1) %arg0, float %arg6 syncscope("device") monotonic',
    ),
    ("%r = llvm.atomicrmw umax %p, %i seq_cst : !llvm.ptr<1>, i32", "atomicrmw umax ptr addrspace(1) %arg0, i32 %arg2"),
    ("%r = llvm.atomicrmw _xor %p, %i acq_rel : !llvm.ptr<1>, i32", "atomicrmw xor ptr addrspace(1)"),
    (
        "%r = llvm.cmpxchg %p, %i, %i acq_rel monotonic : !llvm.ptr<1>, i32",
        "cmpxchg ptr addrspace(1) %arg0, i32 %arg2, i32 %arg2 acq_rel monotonic",
    ),
    ('llvm.fence syncscope("block") acq_rel', 'fence syncscope("block") acq_rel'),
    ("%r = llvm.alloca %i x f32 : (i32) -> !llvm.ptr", "alloca float, i32 %arg2"),
    # Aggregates and vectors.
    ("%r = llvm.extractvalue %s[1] : !llvm.struct<(i32, f32)>", "extractvalue { i32, float } %arg12, 1"),
    ("%r = llvm.insertvalue %f, %a[1] : !llvm.array<2 x f32>", "insertvalue [2 x float] %arg13, float %arg6, 1"),
    ("%r = llvm.extractelement %v[%i : i32] : vector<4xf32>", "extractelement <4 x float> %arg10, i32 %arg2"),
    (
        "%r = llvm.insertelement %f, %v[%i : i32] : vector<4xf32>",
        "insertelement <4 x float> %arg10, float %arg6, i32 %arg2",
    ),
    (
        "%r = llvm.shufflevector %v, %v [0, -1, 4, 5] : vector<4xf32>",
        "shufflevector <4 x float> %arg10, <4 x float> %arg10, <4 x i32> <i32 0, i32 poison, i32 4, i32 5>",
    ),
    # Calls.
    ("%r = llvm.call @callee(%i, %f) : (i32, f32) -> f32", "call float @callee(i32 %arg2, float %arg6)"),
    ("%r = llvm.call %q(%i) : !llvm.ptr, (i32) -> f32", "call float %arg1(i32 %arg2)"),
    (
        '%r = llvm.call_intrinsic "llvm.nvvm.ex2.approx.f"(%f) : (f32) -> f32',
        "call float @llvm.nvvm.ex2.approx.f(float %arg6)",
    ),
    (
        '%r = llvm.call_intrinsic "llvm.fptosi.sat"(%f) : (f32) -> i32',
        "call i32 @llvm.fptosi.sat.i32.f32(float %arg6)",
    ),
    ('llvm.call_intrinsic "llvm.trap"() : () -> ()', "call void @llvm.trap()"),
    (
        '%r = llvm.inline_asm has_side_effects asm_dialect = att "mov.b32 $0, \\"$1\\";", "=r,r" %i : (i32) -> i32',
        'call i32 asm sideeffect "mov.b32 $0, \\22$1\\22;", "=r,r"(i32 %arg2)',
    ),
    # Intrinsics and their overloads.
    ("%r = llvm.intr.fma(%f, %f, %f) : (f32, f32, f32) -> f32", "call float @llvm.fma.f32("),
    ("%r = llvm.intr.fma(%v, %v, %v) : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>", "fma.v4f32("),
    ("%r = llvm.intr.fabs(%g) : (bf16) -> bf16", "call bfloat @llvm.fabs.bf16("),
    ("%r = llvm.intr.maximum(%h, %h) : (f16, f16) -> f16", "call half @llvm.maximum.f16("),
    ("%r = llvm.intr.smin(%l, %l) : (i64, i64) -> i64", "call i64 @llvm.smin.i64("),
    ('%r = "llvm.intr.ctlz"(%i) <{is_zero_poison = false}> : (i32) -> i32', "@llvm.ctlz.i32(i32 %arg2, i1 0)"),
    ('%r = "llvm.intr.abs"(%i) <{is_int_min_poison = true}> : (i32) -> i32', "@llvm.abs.i32(i32 %arg2, i1 1)"),
    ("%r = llvm.intr.fshl(%i, %i, %i) : (i32, i32, i32) -> i32", "@llvm.fshl.i32("),
    (
        '%r = "llvm.intr.uadd.with.overflow"(%i, %i) : (i32, i32) -> !llvm.struct<(i32, i1)>',
        "call { i32, i1 } @llvm.uadd.with.overflow.i32(",
    ),
    ('%r = "llvm.intr.is.fpclass"(%f) <{bit = 3 : i32}> : (f32) -> i1', "@llvm.is.fpclass.f32(float %arg6, i32 3)"),
    ('%r = "llvm.intr.vector.reduce.add"(%w) : (vector<4xi32>) -> i32', "@llvm.vector.reduce.add.v4i32(<4 x i32>"),
    (
        '%r = "llvm.intr.vector.reduce.fadd"(%f, %v) <{fastmathFlags = #llvm.fastmath<reassoc>}> '
        ": (f32, vector<4xf32>) -> f32",
        "call reassoc float @llvm.vector.reduce.fadd.v4f32(",
    ),
    ('"llvm.intr.assume"(%c) <{op_bundle_sizes = array<i32>}> : (i1) -> ()', "call void @llvm.assume(i1 %arg4)"),
    # NVVM.
    ("%r = nvvm.read.ptx.sreg.tid.x : i32", "call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"),
    (
        '%r = "nvvm.read.ptx.sreg.ctaid.y"() <{range = #llvm.constant_range<i32, 0, 7>}> : () -> i32',
        "call range(i32 0, 7) i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()",
    ),
    ("nvvm.barrier", "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"),
    (
        "nvvm.barrier id = %i number_of_threads = %i",
        "call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 %arg2, i32 %arg2)",
    ),
    ("nvvm.bar.warp.sync %i : i32", "call void @llvm.nvvm.bar.warp.sync(i32 %arg2)"),
    (
        "%r = nvvm.shfl.sync down %i, %f, %i, %i : f32 -> f32",
        "call float @llvm.nvvm.shfl.sync.down.f32(i32 %arg2, float %arg6, i32 %arg2, i32 %arg2)",
    ),
    ("%r = nvvm.vote.sync ballot %i, %c -> i32", "call i32 @llvm.nvvm.vote.ballot.sync(i32 %arg2, i1 %arg4)"),
    ("%r = nvvm.redux.sync add %i, %i : i32 -> i32", "call i32 @llvm.nvvm.redux.sync.add(i32 %arg2, i32 %arg2)"),
]


@pytest.mark.parametrize(("operation", "expected"), CASES, ids=[expected for _, expected in CASES])
def test_operation(export_body: Callable[..., str], operation: str, expected: str) -> None:
    assert expected in export_body(operation, FUNCTION)
