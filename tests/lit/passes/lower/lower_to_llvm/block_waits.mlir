// Waits of blocks: what PTX they become.

// RUN: xgpu-opt %s -p lower-to-llvm | FileCheck %s

// CHECK-LABEL: @mbarrier_init(
// CHECK:         llvm.inline_asm has_side_effects "mbarrier.init.shared.b64 [$0], 1;", "r,~{memory}"
func.func @mbarrier_init(%0: !llvm.ptr<3>) {
  "xgpu.mbarrier_init"(%0) {count = 1 : i64} : (!llvm.ptr<3>) -> ()
  return
}

// CHECK-LABEL: @mbarrier_expect(
// CHECK:         llvm.inline_asm has_side_effects "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}"
func.func @mbarrier_expect(%0: !llvm.ptr<3>, %1: i32) {
  "xgpu.mbarrier_expect"(%0, %1) : (!llvm.ptr<3>, i32) -> ()
  return
}

// CHECK-LABEL: @mbarrier_arrive(
// CHECK:         llvm.inline_asm has_side_effects "{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [$0]; }", "r,~{memory}"
func.func @mbarrier_arrive(%0: !llvm.ptr<3>) {
  "xgpu.mbarrier_arrive"(%0) : (!llvm.ptr<3>) -> ()
  return
}

// CHECK-LABEL: @mbarrier_arrive_remote(
// CHECK:         llvm.inline_asm has_side_effects "{ .reg .b32 there; mapa.shared::cluster.u32 there, $0, $1; mbarrier.arrive.shared::cluster.b64 _, [there]; }", "r,r,~{memory}"
func.func @mbarrier_arrive_remote(%0: !llvm.ptr<3>, %1: i32) {
  "xgpu.mbarrier_arrive_remote"(%0, %1) : (!llvm.ptr<3>, i32) -> ()
  return
}

// CHECK-LABEL: @mbarrier_arrive_copies(
// CHECK:         llvm.inline_asm has_side_effects "cp.async.mbarrier.arrive.noinc.shared.b64 [$0];", "r,~{memory}"
func.func @mbarrier_arrive_copies(%0: !llvm.ptr<3>) {
  "xgpu.mbarrier_arrive_copies"(%0) : (!llvm.ptr<3>) -> ()
  return
}

// CHECK-LABEL: @mbarrier_wait(
// CHECK:         llvm.inline_asm has_side_effects "{ .reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [$0], $1; @done bra complete; bra again; complete: }", "r,r,~{memory}"
func.func @mbarrier_wait(%0: !llvm.ptr<3>, %1: i32) {
  "xgpu.mbarrier_wait"(%0, %1) : (!llvm.ptr<3>, i32) -> ()
  return
}

// CHECK-LABEL: @fence(
// CHECK:         llvm.inline_asm has_side_effects "fence.proxy.async.shared::cta;", "~{memory}"
// CHECK:         llvm.inline_asm has_side_effects "fence.mbarrier_init.release.cluster;", "~{memory}"
// CHECK:         llvm.inline_asm has_side_effects "fence.acq_rel.cluster;", "~{memory}"
func.func @fence() {
  "xgpu.fence"() {kind = "async"} : () -> ()
  "xgpu.fence"() {kind = "mbarrier_init"} : () -> ()
  "xgpu.fence"() {kind = "cluster"} : () -> ()
  return
}

// CHECK-LABEL: @named_barrier(
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "bar.sync $0, 128;", "r,~{memory}"
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "bar.arrive $0, 256;", "r,~{memory}"
func.func @named_barrier(%0: i32, %1: i32) {
  "xgpu.named_barrier"(%0) {threads = 128 : i64, wait = true} : (i32) -> ()
  "xgpu.named_barrier"(%1) {threads = 256 : i64, wait = false} : (i32) -> ()
  return
}

// CHECK-LABEL: @elect(
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "{ .reg .pred is; elect.sync _|is, 0xFFFFFFFF; selp.b32 $0, 1, 0, is; }", "=r,~{memory}"
func.func @elect() -> i1 {
  %r0 = "xgpu.elect"() : () -> i1
  return %r0 : i1
}

// CHECK-LABEL: @set_registers(
// CHECK-SAME:    xgpu.resident = 1 : i64
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "setmaxnreg.inc.sync.aligned.u32 232;", "~{memory}"
func.func @set_registers() attributes {xgpu.kernel} {
  "xgpu.set_registers"() {count = 232 : i64, more = true} : () -> ()
  return
}

// CHECK-LABEL: @cluster_rank(
// CHECK:         nvvm.read.ptx.sreg.cluster.ctarank : i32
func.func @cluster_rank() -> i32 {
  %r0 = "xgpu.cluster_rank"() : () -> i32
  return %r0 : i32
}

// CHECK-LABEL: @cluster_arrive(
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "barrier.cluster.arrive;", "~{memory}"
func.func @cluster_arrive() {
  "xgpu.cluster_arrive"() : () -> ()
  return
}

// CHECK-LABEL: @cluster_wait(
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "barrier.cluster.wait;", "~{memory}"
func.func @cluster_wait() {
  "xgpu.cluster_wait"() : () -> ()
  return
}

// CHECK-LABEL: @cluster_pointer(
// CHECK:         llvm.call_intrinsic "llvm.nvvm.mapa.shared.cluster"(%arg0, %arg1) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
func.func @cluster_pointer(%0: !llvm.ptr<3>, %1: i32) -> !llvm.ptr<7> {
  %r0 = "xgpu.cluster_pointer"(%0, %1) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
  return %r0 : !llvm.ptr<7>
}
