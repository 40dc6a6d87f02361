// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.atomic_add"(%arg0, %arg1, %arg2) : (vector<4xf32>, tensor<8xf32>, index) -> tensor<8xf32>
func.func @f(%x: vector<4xf32>, %t: tensor<8xf32>, %i: index) -> tensor<8xf32> {
  %0 = "xgpu.atomic_add"(%x, %t, %i) : (vector<4xf32>, tensor<8xf32>, index) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
