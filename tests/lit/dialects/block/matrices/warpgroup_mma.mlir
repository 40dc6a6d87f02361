// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f0(
// CHECK: "xgpu.warpgroup_mma"(%arg0, %arg1, %arg2, %arg3) {a_element = bf16, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = bf16, b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}} : (vector<64xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<64xf32>
func.func @f0(%0: vector<64xf32>, %1: !llvm.ptr<3>, %2: !llvm.ptr<3>, %3: i1) {
  %r = "xgpu.warpgroup_mma"(%0, %1, %2, %3) {a_element = bf16, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = bf16, b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}} : (vector<64xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<64xf32>
  return
}

// CHECK-LABEL: func.func @f1(
// CHECK: "xgpu.warpgroup_mma"(%arg0, %arg1, %arg2, %arg3) {a_element = bf16, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = bf16, b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}} : (vector<64xf32>, vector<4xi32>, !llvm.ptr<3>, i1) -> vector<64xf32>
func.func @f1(%0: vector<64xf32>, %1: vector<4xi32>, %2: !llvm.ptr<3>, %3: i1) {
  %r = "xgpu.warpgroup_mma"(%0, %1, %2, %3) {a_element = bf16, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = bf16, b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}} : (vector<64xf32>, vector<4xi32>, !llvm.ptr<3>, i1) -> vector<64xf32>
  return
}

// CHECK-LABEL: func.func @f2(
// CHECK: "xgpu.warpgroup_mma"(%arg0, %arg1, %arg2, %arg3) {a_element = si8, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = ui8, b_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}} : (vector<4xi32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<4xi32>
func.func @f2(%0: vector<4xi32>, %1: !llvm.ptr<3>, %2: !llvm.ptr<3>, %3: i1) {
  %r = "xgpu.warpgroup_mma"(%0, %1, %2, %3) {a_element = si8, a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}, b_element = ui8, b_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}} : (vector<4xi32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<4xi32>
  return
}
