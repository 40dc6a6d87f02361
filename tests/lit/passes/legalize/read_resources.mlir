// RUN: xgpu-opt %s -p read-resources | FileCheck %s

// The elements of a resource are written where they are used.

// CHECK-LABEL: func.func @main() -> (tensor<2xf32>, tensor<2xf32>) {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<[3.000000e+00, 4.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:    return %[[A]], %[[B]] : tensor<2xf32>, tensor<2xf32>
module {
  func.func @main() -> (tensor<2xf32>, tensor<2xf32>) {
    %0 = stablehlo.constant dense_resource<weights> : tensor<2xf32>
    %1 = stablehlo.constant dense<[3.0, 4.0]> : tensor<2xf32>
    return %0, %1 : tensor<2xf32>, tensor<2xf32>
  }
}
{-#
  dialect_resources: {
    builtin: {
      weights: "0x040000000000803F00000040"
    }
  }
#-}
