// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    %0:2 = "xgpu.steps"(%arg0, %arg1) ({
// CHECK-NEXT:    ^bb0(%arg2: index, %arg3: tensor<8xf32>, %arg4: f32):
// CHECK-NEXT:      "xgpu.yield"(%arg3, %arg4) : (tensor<8xf32>, f32) -> ()
// CHECK-NEXT:    }) {count = 12 : i64} : (tensor<8xf32>, f32) -> (tensor<8xf32>, f32)
func.func @f(%x: tensor<8xf32>, %y: f32) -> tensor<8xf32> {
  %0:2 = "xgpu.steps"(%x, %y) ({
  ^bb0(%step: index, %a: tensor<8xf32>, %b: f32):
    "xgpu.yield"(%a, %b) : (tensor<8xf32>, f32) -> ()
  }) {count = 12 : i64} : (tensor<8xf32>, f32) -> (tensor<8xf32>, f32)
  return %0#0 : tensor<8xf32>
}
