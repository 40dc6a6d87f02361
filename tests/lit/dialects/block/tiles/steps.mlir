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

// Visible steps may depend on numbers that are read, which are no part of what is carried.

// CHECK-LABEL: func.func @limits
// CHECK:         "xgpu.steps"(%arg0, %arg1, %arg2) ({
// CHECK-NEXT:    ^bb0(%{{.*}}: index, %[[CARRIED:.*]]: tensor<8xf32>):
// CHECK-NEXT:      "xgpu.yield"(%[[CARRIED]]) : (tensor<8xf32>) -> ()
// CHECK-NEXT:    }) {count = 4 : i64, xgpu.visible = #xgpu.map<(d0, d1, d2) -> (0, 4, d1 floordiv 8, d2), d0 in [0, 3], d1 in [0, 32], d2 in [0, 4]>} : (tensor<8xf32>, tensor<i32>, tensor<ui8>) -> tensor<8xf32>
func.func @limits(%start: tensor<8xf32>, %length: tensor<i32>, %end: tensor<ui8>) -> tensor<8xf32> {
  %0 = "xgpu.steps"(%start, %length, %end) ({
  ^bb0(%step: index, %carried: tensor<8xf32>):
    "xgpu.yield"(%carried) : (tensor<8xf32>) -> ()
  }) {count = 4 : i64, xgpu.visible = #xgpu.map<(d0, d1, d2) -> (0, 4, d1 floordiv 8, d2), d0 in [0, 3], d1 in [0, 32], d2 in [0, 4]>} : (tensor<8xf32>, tensor<i32>, tensor<ui8>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
