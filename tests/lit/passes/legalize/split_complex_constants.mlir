// RUN: xgpu-opt %s -p split-complex-constants | FileCheck %s

// The parts of a constant are constants, in regions too; real ones stay.

// CHECK-LABEL: func.func @main(%arg0: tensor<i1>) -> (tensor<2xcomplex<f32>>, tensor<2xf32>) {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<[1.000000e+00, 3.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<[2.000000e+00, -0.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.complex %[[A]], %[[B]] : tensor<2xcomplex<f32>>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.constant dense<5.000000e+00> : tensor<2xf32>
// CHECK-NEXT:    %[[E:.*]] = "stablehlo.if"(%arg0) ({
// CHECK-NEXT:      stablehlo.return %[[C]] : tensor<2xcomplex<f32>>
// CHECK-NEXT:    }, {
// CHECK-NEXT:      %[[F:.*]] = stablehlo.constant dense<6.000000e+00> : tensor<2xf32>
// CHECK-NEXT:      %[[G:.*]] = stablehlo.constant dense<7.000000e+00> : tensor<2xf32>
// CHECK-NEXT:      %[[H:.*]] = stablehlo.complex %[[F]], %[[G]] : tensor<2xcomplex<f32>>
// CHECK-NEXT:      stablehlo.return %[[H]] : tensor<2xcomplex<f32>>
// CHECK-NEXT:    }) : (tensor<i1>) -> tensor<2xcomplex<f32>>
// CHECK-NEXT:    return %[[E]], %[[D]] : tensor<2xcomplex<f32>>, tensor<2xf32>
func.func @main(%p: tensor<i1>) -> (tensor<2xcomplex<f32>>, tensor<2xf32>) {
  %0 = stablehlo.constant dense<[(1.0, 2.0), (3.0, -0.0)]> : tensor<2xcomplex<f32>>
  %1 = stablehlo.constant dense<5.0> : tensor<2xf32>
  %2 = "stablehlo.if"(%p) ({
    stablehlo.return %0 : tensor<2xcomplex<f32>>
  }, {
    %3 = stablehlo.constant dense<(6.0, 7.0)> : tensor<2xcomplex<f32>>
    stablehlo.return %3 : tensor<2xcomplex<f32>>
  }) : (tensor<i1>) -> tensor<2xcomplex<f32>>
  return %2, %1 : tensor<2xcomplex<f32>>, tensor<2xf32>
}
