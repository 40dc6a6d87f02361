// Copies of blocks: what PTX they become. A tensor map's dimensions and a box's coordinates are the other way round there.

// RUN: xgpu-opt %s -p lower-to-llvm | FileCheck %s

// CHECK-LABEL: @async_copy(
// CHECK:         llvm.inline_asm has_side_effects "cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,r,~{memory}"
// CHECK:         llvm.inline_asm has_side_effects "cp.async.ca.shared.global [$0], [$1], 4, $2;", "r,l,r,~{memory}"
func.func @async_copy(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: i32, %3: !llvm.ptr<3>, %4: !llvm.ptr<1>, %5: i32) {
  "xgpu.async_copy"(%0, %1, %2) {bytes = 16 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  "xgpu.async_copy"(%3, %4, %5) {bytes = 4 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  return
}

// CHECK-LABEL: @async_commit(
// CHECK:         llvm.inline_asm has_side_effects "cp.async.commit_group;", "~{memory}"
func.func @async_commit() {
  "xgpu.async_commit"() : () -> ()
  return
}

// CHECK-LABEL: @async_wait(
// CHECK:         llvm.inline_asm has_side_effects "cp.async.wait_group 2;", "~{memory}"
func.func @async_wait() {
  "xgpu.async_wait"() {pending = 2 : i64} : () -> ()
  return
}

// CHECK-LABEL: @encode_tensor_map(
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "{ .reg .pred first;
// CHECK-SAME:    .reg .b32 lane, word;
// CHECK-SAME:    mov.u32 lane, %laneid;
// CHECK-SAME:    setp.eq.u32 first, lane, 0;
// CHECK-SAME:    mad.lo.u32 word, lane, 4, $1;
// CHECK-SAME:    st.shared.b32 [word], 0;
// CHECK-SAME:    bar.warp.sync 0xFFFFFFFF;
// CHECK-SAME:    @first tensormap.replace.tile.global_address.shared::cta.b1024.b64 [$1], $2;
// CHECK-SAME:    @first tensormap.replace.tile.rank.shared::cta.b1024.b32 [$1], 1;
// CHECK-SAME:    @first tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [$1], 0, 1024;
// CHECK-SAME:    @first tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [$1], 0, 64;
// CHECK-SAME:    @first tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [$1], 0, 1;
// CHECK-SAME:    @first tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [$1], 1, 4096;
// CHECK-SAME:    @first tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [$1], 1, 128;
// CHECK-SAME:    @first tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [$1], 1, 1;
// CHECK-SAME:    @first tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [$1], 0, 2048;
// CHECK-SAME:    @first tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [$1], 10;
// CHECK-SAME:    @first tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [$1], 0;
// CHECK-SAME:    @first tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [$1], 3;
// CHECK-SAME:    @first tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [$1], 0;
// CHECK-SAME:    bar.warp.sync 0xFFFFFFFF;
// CHECK-SAME:    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 128; }", "l,r,l,~{memory}"
func.func @encode_tensor_map(%0: !llvm.ptr<1>, %1: !llvm.ptr<3>, %2: !llvm.ptr<1>) {
  "xgpu.encode_tensor_map"(%0, %1, %2) {box = array<i64: 128, 64>, element = bf16, shape = array<i64: 4096, 1024>, strides = array<i64: 2048>, swizzle = "128"} : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
  return
}

// CHECK-LABEL: @acquire_tensor_map(
// CHECK:         llvm.addrspacecast %arg0 : !llvm.ptr<1> to !llvm.ptr
// CHECK:         llvm.inline_asm has_side_effects "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", "l,~{memory}"
func.func @acquire_tensor_map(%0: !llvm.ptr<1>) {
  "xgpu.acquire_tensor_map"(%0) : (!llvm.ptr<1>) -> ()
  return
}

// CHECK-LABEL: @tensor_load(
// CHECK:         llvm.addrspacecast %arg1 : !llvm.ptr<1> to !llvm.ptr
// CHECK:         llvm.inline_asm has_side_effects "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$3}], [$2];", "r,l,r,r,~{memory}"
// CHECK:         llvm.addrspacecast %arg5 : !llvm.ptr<1> to !llvm.ptr
// CHECK:         llvm.inline_asm has_side_effects "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$7, $6, $5, $4, $3}], [$2];", "r,l,r,r,r,r,r,r,~{memory}"
func.func @tensor_load(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: !llvm.ptr<3>, %3: i32, %4: !llvm.ptr<3>, %5: !llvm.ptr<1>, %6: !llvm.ptr<3>, %7: i32, %8: i32, %9: i32, %10: i32, %11: i32) {
  "xgpu.tensor_load"(%0, %1, %2, %3) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()
  "xgpu.tensor_load"(%4, %5, %6, %7, %8, %9, %10, %11) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32, i32, i32, i32) -> ()
  return
}

// CHECK-LABEL: @tensor_load_multicast(
// CHECK:         llvm.trunc %arg3 : i32 to i16
// CHECK:         llvm.addrspacecast %arg1 : !llvm.ptr<1> to !llvm.ptr
// CHECK:         llvm.inline_asm has_side_effects "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [$0], [$1, {$5, $4}], [$2], $3;", "r,l,r,h,r,r,~{memory}"
func.func @tensor_load_multicast(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: !llvm.ptr<3>, %3: i32, %4: i32, %5: i32) {
  "xgpu.tensor_load_multicast"(%0, %1, %2, %3, %4, %5) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32, i32) -> ()
  return
}

// CHECK-LABEL: @tensor_store(
// CHECK:         llvm.addrspacecast %arg0 : !llvm.ptr<1> to !llvm.ptr
// CHECK:         llvm.inline_asm has_side_effects "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [$0, {$3, $2}], [$1];", "l,r,r,r,~{memory}"
func.func @tensor_store(%0: !llvm.ptr<1>, %1: !llvm.ptr<3>, %2: i32, %3: i32) {
  "xgpu.tensor_store"(%0, %1, %2, %3) : (!llvm.ptr<1>, !llvm.ptr<3>, i32, i32) -> ()
  return
}

// CHECK-LABEL: @bulk_load(
// CHECK:         llvm.inline_asm has_side_effects "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,l,r,r,~{memory}"
func.func @bulk_load(%0: !llvm.ptr<3>, %1: !llvm.ptr<1>, %2: i32, %3: !llvm.ptr<3>) {
  "xgpu.bulk_load"(%0, %1, %2, %3) : (!llvm.ptr<3>, !llvm.ptr<1>, i32, !llvm.ptr<3>) -> ()
  return
}

// CHECK-LABEL: @bulk_store(
// CHECK:         llvm.inline_asm has_side_effects "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;", "l,r,r,~{memory}"
func.func @bulk_store(%0: !llvm.ptr<1>, %1: !llvm.ptr<3>, %2: i32) {
  "xgpu.bulk_store"(%0, %1, %2) : (!llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()
  return
}

// CHECK-LABEL: @bulk_commit(
// CHECK:         llvm.inline_asm has_side_effects "cp.async.bulk.commit_group;", "~{memory}"
func.func @bulk_commit() {
  "xgpu.bulk_commit"() : () -> ()
  return
}

// CHECK-LABEL: @bulk_wait(
// CHECK:         llvm.inline_asm has_side_effects "cp.async.bulk.wait_group.read 0;", "~{memory}"
// CHECK:         llvm.inline_asm has_side_effects "cp.async.bulk.wait_group 1;", "~{memory}"
func.func @bulk_wait() {
  "xgpu.bulk_wait"() {pending = 0 : i64, until = "read"} : () -> ()
  "xgpu.bulk_wait"() {pending = 1 : i64, until = "done"} : () -> ()
  return
}
