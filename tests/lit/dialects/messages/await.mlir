// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.await"(%arg0, %arg1) : (tensor<12xi64>, index) -> (f32, i1)
func.func @f(%board: tensor<12xi64>, %i: index) -> (f32, i1) {
  %0:2 = "xgpu.await"(%board, %i) : (tensor<12xi64>, index) -> (f32, i1)
  return %0#0, %0#1 : f32, i1
}
