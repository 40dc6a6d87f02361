// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.predicated_insert"(%arg0, %arg1, %arg2, %arg3) : (i1, i4, tensor<8xi4>, index) -> tensor<8xi4>
func.func @f(%inside: i1, %x: i4, %t: tensor<8xi4>, %i: index) -> tensor<8xi4> {
  %0 = "xgpu.predicated_insert"(%inside, %x, %t, %i) : (i1, i4, tensor<8xi4>, index) -> tensor<8xi4>
  return %0 : tensor<8xi4>
}
