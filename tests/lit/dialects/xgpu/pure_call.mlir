// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @caller
func.func @caller(%t: tensor<8xf32>, %i: index) -> f32 {
  // CHECK: "xgpu.pure_call"(%arg0, %arg1) {callee = @element} : (tensor<8xf32>, index) -> f32
  %0 = "xgpu.pure_call"(%t, %i) {callee = @element} : (tensor<8xf32>, index) -> f32
  return %0 : f32
}

func.func private @element(%t: tensor<8xf32>, %i: index) -> f32 {
  %0 = tensor.extract %t[%i] : tensor<8xf32>
  return %0 : f32
}
