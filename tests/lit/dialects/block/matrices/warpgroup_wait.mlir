// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f0(
// CHECK: "xgpu.warpgroup_wait"() {pending = 0 : i64} : () -> ()
func.func @f0() {
  "xgpu.warpgroup_wait"() {pending = 0 : i64} : () -> ()
  return
}

// CHECK-LABEL: func.func @f1(
// CHECK: "xgpu.warpgroup_wait"(%arg0, %arg1) {pending = 1 : i64} : (vector<64xf32>, vector<64xf32>) -> (vector<64xf32>, vector<64xf32>)
func.func @f1(%0: vector<64xf32>, %1: vector<64xf32>) {
  %r:2 = "xgpu.warpgroup_wait"(%0, %1) {pending = 1 : i64} : (vector<64xf32>, vector<64xf32>) -> (vector<64xf32>, vector<64xf32>)
  return
}
