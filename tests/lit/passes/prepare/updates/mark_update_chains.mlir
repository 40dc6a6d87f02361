// RUN: xgpu-opt %s -p mark-update-chains --split-input-file | FileCheck %s

// Two updates of one array, one after the other.

// CHECK-LABEL: func.func @main(%arg0: tensor<512x64xf32>
// CHECK:         %[[A:.*]] = stablehlo.dynamic_update_slice %arg0, %arg1, {{.*}} {xgpu.elementwise}
// CHECK-NEXT:    stablehlo.dynamic_update_slice %[[A]], %arg2, {{.*}} {xgpu.elementwise}
func.func @main(%x: tensor<512x64xf32>, %a: tensor<8x64xf32>, %b: tensor<8x64xf32>) -> tensor<512x64xf32> {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %8 = stablehlo.constant dense<8> : tensor<i32>
  %1 = stablehlo.dynamic_update_slice %x, %a, %0, %0 : (tensor<512x64xf32>, tensor<8x64xf32>, tensor<i32>, tensor<i32>) -> tensor<512x64xf32>
  %2 = stablehlo.dynamic_update_slice %1, %b, %8, %0 : (tensor<512x64xf32>, tensor<8x64xf32>, tensor<i32>, tensor<i32>) -> tensor<512x64xf32>
  return %2 : tensor<512x64xf32>
}

// -----

// One by itself, two in an array that takes longer to move than a launch, and one at a place that is not known.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     xgpu.elementwise
func.func @main(%x: tensor<512x64xf32>, %y: tensor<32768x64xf32>, %a: tensor<8x64xf32>, %at: tensor<i32>) -> (tensor<512x64xf32>, tensor<32768x64xf32>, tensor<512x64xf32>) {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %8 = stablehlo.constant dense<8> : tensor<i32>
  %1 = stablehlo.dynamic_update_slice %x, %a, %8, %0 : (tensor<512x64xf32>, tensor<8x64xf32>, tensor<i32>, tensor<i32>) -> tensor<512x64xf32>
  %2 = stablehlo.dynamic_update_slice %y, %a, %0, %0 : (tensor<32768x64xf32>, tensor<8x64xf32>, tensor<i32>, tensor<i32>) -> tensor<32768x64xf32>
  %3 = stablehlo.dynamic_update_slice %2, %a, %8, %0 : (tensor<32768x64xf32>, tensor<8x64xf32>, tensor<i32>, tensor<i32>) -> tensor<32768x64xf32>
  %4 = stablehlo.dynamic_update_slice %1, %a, %at, %0 : (tensor<512x64xf32>, tensor<8x64xf32>, tensor<i32>, tensor<i32>) -> tensor<512x64xf32>
  return %1, %3, %4 : tensor<512x64xf32>, tensor<32768x64xf32>, tensor<512x64xf32>
}

// -----

// What an update is computed from is the array that the one before updates: they stay in place, one after the other.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     xgpu.elementwise
func.func @main(%x: tensor<512x64xf32>, %a: tensor<8x64xf32>) -> tensor<512x64xf32> {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %8 = stablehlo.constant dense<8> : tensor<i32>
  %1 = stablehlo.dynamic_update_slice %x, %a, %0, %0 : (tensor<512x64xf32>, tensor<8x64xf32>, tensor<i32>, tensor<i32>) -> tensor<512x64xf32>
  %s = stablehlo.slice %1 [4:12, 0:64] : (tensor<512x64xf32>) -> tensor<8x64xf32>
  %2 = stablehlo.dynamic_update_slice %1, %s, %8, %0 : (tensor<512x64xf32>, tensor<8x64xf32>, tensor<i32>, tensor<i32>) -> tensor<512x64xf32>
  return %2 : tensor<512x64xf32>
}
