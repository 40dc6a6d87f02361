// RUN: xgpu compile %s --emit emitted | FileCheck %s --check-prefixes=CHECK,EMITTED
// RUN: xgpu compile %s --emit lowered | FileCheck %s --check-prefixes=CHECK,LOWERED

// Functions of CHLO that stay are one operation on scalars, up to expand-math. 8-bit floats have none.

// EMITTED-LABEL: func.func private @fusion_0__root
// LOWERED-LABEL: func.func @fusion_0
// CHECK:           %[[A:.*]] = math.asin %{{.*}} : f32
// CHECK:           %[[B:.*]] = math.erfc %[[A]] : f32
// CHECK:           "xgpu.erf_inv"(%[[B]]) : (f32) -> f32
func.func @main(%x: tensor<7xf32>) -> tensor<7xf32> {
  %0 = chlo.asin %x : tensor<7xf32> -> tensor<7xf32>
  %1 = chlo.erfc %0 : tensor<7xf32> -> tensor<7xf32>
  %2 = chlo.erf_inv %1 : tensor<7xf32> -> tensor<7xf32>
  return %2 : tensor<7xf32>
}
