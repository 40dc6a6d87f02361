// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.publish"(%arg0, %arg1, %arg2, %arg3) : (tensor<12xi64>, index, f32, complex<f32>) -> tensor<12xi64>
func.func @f(%board: tensor<12xi64>, %i: index, %x: f32, %z: complex<f32>) -> tensor<12xi64> {
  %0 = "xgpu.publish"(%board, %i, %x, %z) : (tensor<12xi64>, index, f32, complex<f32>) -> tensor<12xi64>
  return %0 : tensor<12xi64>
}
