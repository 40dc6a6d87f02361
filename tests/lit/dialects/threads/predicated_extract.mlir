// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.predicated_extract"(%arg0, %arg1, %arg2, %arg3, %arg3) : (i1, f32, tensor<4x5xf32>, index, index) -> f32
func.func @f(%inside: i1, %zero: f32, %t: tensor<4x5xf32>, %i: index) -> f32 {
  %0 = "xgpu.predicated_extract"(%inside, %zero, %t, %i, %i) : (i1, f32, tensor<4x5xf32>, index, index) -> f32
  return %0 : f32
}
