// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// The region takes the old element and yields the new one; it may use values from outside.
// CHECK-LABEL: func.func @f
// CHECK-NEXT:    %[[R:.*]] = "xgpu.atomic_rmw"(%arg0, %arg1) ({
// CHECK-NEXT:    ^bb0(%[[OLD:.*]]: f32):
// CHECK-NEXT:      %[[NEW:.*]] = arith.addf %[[OLD]], %arg2 : f32
// CHECK-NEXT:      "xgpu.yield"(%[[NEW]]) : (f32) -> ()
// CHECK-NEXT:    }) : (tensor<8xf32>, index) -> tensor<8xf32>
// CHECK-NEXT:    return %[[R]]
func.func @f(%t: tensor<8xf32>, %i: index, %x: f32) -> tensor<8xf32> {
  %0 = "xgpu.atomic_rmw"(%t, %i) ({
  ^bb0(%old: f32):
    %new = arith.addf %old, %x : f32
    "xgpu.yield"(%new) : (f32) -> ()
  }) : (tensor<8xf32>, index) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
