// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    %[[T:.*]]:2 = "xgpu.sync_threads"(%arg0, %arg1) : (tensor<4xf32>, tensor<4x5xi8>) -> (tensor<4xf32>, tensor<4x5xi8>)
// CHECK-NEXT:    "xgpu.sync_threads"(%[[T]]#1) : (tensor<4x5xi8>) -> tensor<4x5xi8>
// CHECK-NEXT:    "xgpu.sync_threads"() : () -> ()
func.func @f(%a: tensor<4xf32>, %b: tensor<4x5xi8>) {
  %0:2 = "xgpu.sync_threads"(%a, %b) : (tensor<4xf32>, tensor<4x5xi8>) -> (tensor<4xf32>, tensor<4x5xi8>)
  %1 = "xgpu.sync_threads"(%0#1) : (tensor<4x5xi8>) -> tensor<4x5xi8>
  "xgpu.sync_threads"() : () -> ()
  return
}
