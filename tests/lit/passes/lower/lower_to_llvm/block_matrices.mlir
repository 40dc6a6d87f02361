// Products of warps and warp groups: what PTX they become.

// RUN: xgpu-opt %s -p lower-to-llvm | FileCheck %s

// CHECK-LABEL: @load_matrix(
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}"
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {$0}, [$1];", "=r,r,~{memory}"
func.func @load_matrix(%0: !llvm.ptr<3>, %1: !llvm.ptr<3>) -> (vector<4xi32>, vector<1xi32>) {
  %r0 = "xgpu.load_matrix"(%0) {transposed = false} : (!llvm.ptr<3>) -> vector<4xi32>
  %r1 = "xgpu.load_matrix"(%1) {transposed = true} : (!llvm.ptr<3>) -> vector<1xi32>
  return %r0, %r1 : vector<4xi32>, vector<1xi32>
}

// CHECK-LABEL: @store_matrix(
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};", "r,r,r,r,r,~{memory}"
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [$0], {$1, $2};", "r,r,r,~{memory}"
func.func @store_matrix(%0: vector<4xi32>, %1: !llvm.ptr<3>, %2: vector<2xi32>, %3: !llvm.ptr<3>) {
  "xgpu.store_matrix"(%0, %1) {transposed = false} : (vector<4xi32>, !llvm.ptr<3>) -> ()
  "xgpu.store_matrix"(%2, %3) {transposed = true} : (vector<2xi32>, !llvm.ptr<3>) -> ()
  return
}

// CHECK-LABEL: @mma(
// CHECK:         llvm.inline_asm {xgpu.convergent} "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"
// CHECK:         llvm.inline_asm {xgpu.convergent} "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {$0, $1}, {$2}, {$3}, {$4, $5};", "=d,=d,d,d,d,d"
// CHECK:         llvm.inline_asm {xgpu.convergent} "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=r,=r,=r,=r,r,r,r,r,r,r,r,r,r,r"
// CHECK:         llvm.inline_asm {xgpu.convergent} "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"
// CHECK:         llvm.inline_asm {xgpu.convergent} "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"
func.func @mma(%0: vector<4xi32>, %1: vector<2xi32>, %2: vector<4xf32>, %3: vector<1xf64>, %4: vector<1xf64>, %5: vector<2xf64>, %6: vector<4xi32>, %7: vector<2xi32>, %8: vector<4xi32>, %9: vector<4xi32>, %10: vector<2xi32>, %11: vector<4xf32>, %12: vector<4xi32>, %13: vector<2xi32>, %14: vector<4xf32>) -> (vector<4xf32>, vector<2xf64>, vector<4xi32>, vector<4xf32>, vector<4xf32>) {
  %r0 = "xgpu.mma"(%0, %1, %2) {a_element = bf16, b_element = bf16} : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
  %r1 = "xgpu.mma"(%3, %4, %5) {a_element = f64, b_element = f64} : (vector<1xf64>, vector<1xf64>, vector<2xf64>) -> vector<2xf64>
  %r2 = "xgpu.mma"(%6, %7, %8) {a_element = si8, b_element = ui8} : (vector<4xi32>, vector<2xi32>, vector<4xi32>) -> vector<4xi32>
  %r3 = "xgpu.mma"(%9, %10, %11) {a_element = tf32, b_element = tf32} : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
  %r4 = "xgpu.mma"(%12, %13, %14) {a_element = f8E5M2, b_element = f8E4M3FN} : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
  return %r0, %r1, %r2, %r3, %r4 : vector<4xf32>, vector<2xf64>, vector<4xi32>, vector<4xf32>, vector<4xf32>
}

// CHECK-LABEL: @warpgroup_mma(
// CHECK:         llvm.mlir.constant(4611686293305294848 : i64) : i64
// CHECK:         llvm.mlir.constant(33554432 : i32) : i32
// CHECK:         llvm.mlir.constant(4611686293305294848 : i64) : i64
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, $4, $5, $6, 1, 1, 0, 1;", "=f,=f,=f,=f,l,l,b,0,1,2,3,~{memory}"
// CHECK:         llvm.mlir.constant(33554432 : i32) : i32
// CHECK:         llvm.mlir.constant(4611686293305294848 : i64) : i64
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, {$4, $5, $6, $7}, $8, $9, 1, 1, 1;", "=f,=f,=f,=f,r,r,r,r,l,b,0,1,2,3,~{memory}"
// CHECK:         llvm.mlir.constant(4611686293305294848 : i64) : i64
// CHECK:         llvm.mlir.constant(4611686293305294848 : i64) : i64
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8 {$0, $1, $2, $3}, $4, $5, $6;", "=r,=r,=r,=r,l,l,b,0,1,2,3,~{memory}"
// CHECK:         llvm.mlir.constant(524288 : i32) : i32
// CHECK:         llvm.mlir.constant(68719476736 : i64) : i64
// CHECK:         llvm.mlir.constant(-4611685949707911168 : i64) : i64
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {$0, $1, $2, $3}, $4, $5, $6, 1, 1;", "=f,=f,=f,=f,l,l,b,0,1,2,3,~{memory}"
// CHECK:         llvm.mlir.constant(1048576 : i32) : i32
// CHECK:         llvm.mlir.constant(34359738368 : i64) : i64
// CHECK:         llvm.mlir.constant(16777216 : i32) : i32
// CHECK:         llvm.mlir.constant(-9223371899415822336 : i64) : i64
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, $4, $5, $6, 1, 1, 1, 1;", "=f,=f,=f,=f,l,l,b,0,1,2,3,~{memory}"
// CHECK:         llvm.mlir.constant(4611686293305294848 : i64) : i64
// CHECK:         llvm.mlir.constant(4611686293305294848 : i64) : i64
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {$0, $1, $2, $3}, $4, $5, $6, 1, 1;", "=f,=f,=f,=f,l,l,b,0,1,2,3,~{memory}"
func.func @warpgroup_mma(%0: vector<4xf32>, %1: !llvm.ptr<3>, %2: !llvm.ptr<3>, %3: i1, %4: vector<4xf32>, %5: vector<4xi32>, %6: !llvm.ptr<3>, %7: i1, %8: vector<4xi32>, %9: !llvm.ptr<3>, %10: !llvm.ptr<3>, %11: i1, %12: vector<4xf32>, %13: !llvm.ptr<3>, %14: !llvm.ptr<3>, %15: i1, %16: vector<4xf32>, %17: !llvm.ptr<3>, %18: !llvm.ptr<3>, %19: i1, %20: vector<4xf32>, %21: !llvm.ptr<3>, %22: !llvm.ptr<3>, %23: i1) -> (vector<4xf32>, vector<4xf32>, vector<4xi32>, vector<4xf32>, vector<4xf32>, vector<4xf32>) {
  %r0 = "xgpu.warpgroup_mma"(%0, %1, %2, %3) {a_element = bf16, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = bf16, b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}} : (vector<4xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<4xf32>
  %r1 = "xgpu.warpgroup_mma"(%4, %5, %6, %7) {a_element = bf16, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = bf16, b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}} : (vector<4xf32>, vector<4xi32>, !llvm.ptr<3>, i1) -> vector<4xf32>
  %r2 = "xgpu.warpgroup_mma"(%8, %9, %10, %11) {a_element = si8, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = ui8, b_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}} : (vector<4xi32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<4xi32>
  %r3 = "xgpu.warpgroup_mma"(%12, %13, %14, %15) {a_element = f8E4M3FN, a_layout = {group = 256 : i64, panel = 128 : i64, swizzle = 0 : i64, transposed = false}, b_element = f8E5M2, b_layout = {group = 256 : i64, panel = 0 : i64, swizzle = 32 : i64, transposed = false}} : (vector<4xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<4xf32>
  %r4 = "xgpu.warpgroup_mma"(%16, %17, %18, %19) {a_element = f16, a_layout = {group = 256 : i64, panel = 128 : i64, swizzle = 0 : i64, transposed = true}, b_element = f16, b_layout = {group = 512 : i64, panel = 4096 : i64, swizzle = 64 : i64, transposed = true}} : (vector<4xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<4xf32>
  %r5 = "xgpu.warpgroup_mma"(%20, %21, %22, %23) {a_element = tf32, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = tf32, b_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}} : (vector<4xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<4xf32>
  return %r0, %r1, %r2, %r3, %r4, %r5 : vector<4xf32>, vector<4xf32>, vector<4xi32>, vector<4xf32>, vector<4xf32>, vector<4xf32>
}

// What lies a known number of bytes after another place is that in the descriptor, too.
// CHECK-LABEL: @warpgroup_mma_after(
// CHECK:         %[[B:.*]] = llvm.ptrtoint %arg2 : !llvm.ptr<3> to i32
// CHECK:         %[[CHUNK:.*]] = llvm.and
// CHECK:         %[[LEADING:.*]] = llvm.or %[[CHUNK]]
// CHECK-NEXT:    %[[AFTER:.*]] = llvm.mlir.constant(6 : i32) : i32
// CHECK-NEXT:    %[[LOW:.*]] = llvm.add %[[LEADING]], %[[AFTER]] : i32
// CHECK-NEXT:    llvm.zext %[[LOW]] : i32 to i64
func.func @warpgroup_mma_after(%0: vector<4xf32>, %1: !llvm.ptr<3>, %first: !llvm.ptr<3>, %3: i1) -> vector<4xf32> {
  %near = llvm.getelementptr %first[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  %2 = llvm.getelementptr %near[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  %r0 = "xgpu.warpgroup_mma"(%0, %1, %2, %3) {a_element = bf16, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = bf16, b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}} : (vector<4xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<4xf32>
  return %r0 : vector<4xf32>
}

// CHECK-LABEL: @warpgroup_fence(
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "wgmma.fence.sync.aligned;", "~{memory}"
func.func @warpgroup_fence() {
  "xgpu.warpgroup_fence"() : () -> ()
  return
}

// CHECK-LABEL: @warpgroup_commit(
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "wgmma.commit_group.sync.aligned;", "~{memory}"
func.func @warpgroup_commit() {
  "xgpu.warpgroup_commit"() : () -> ()
  return
}

// CHECK-LABEL: @warpgroup_wait(
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "wgmma.wait_group.sync.aligned 0;", "~{memory}"
// CHECK:         llvm.inline_asm has_side_effects {xgpu.convergent} "wgmma.wait_group.sync.aligned 1;", "=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,~{memory}"
func.func @warpgroup_wait(%0: vector<4xf32>, %1: vector<4xf32>) -> (vector<4xf32>, vector<4xf32>) {
  "xgpu.warpgroup_wait"() {pending = 0 : i64} : () -> ()
  %r0, %r1 = "xgpu.warpgroup_wait"(%0, %1) {pending = 1 : i64} : (vector<4xf32>, vector<4xf32>) -> (vector<4xf32>, vector<4xf32>)
  return %r0, %r1 : vector<4xf32>, vector<4xf32>
}
