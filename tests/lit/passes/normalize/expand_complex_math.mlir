// RUN: xgpu-opt %s -p expand-complex-math --split-input-file | FileCheck %s

// The logarithm of a complex number is made of functions of its parts.

// CHECK-LABEL: func.func @main(%arg0: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
// CHECK-NOT:     stablehlo.log %arg0
// CHECK:         %[[A:.*]] = stablehlo.real %arg0 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.imag %arg0 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
// CHECK:         %[[C:.*]] = stablehlo.atan2 %[[B]], %[[A]] : tensor<4xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.complex %{{.*}}, %[[C]] : tensor<4xcomplex<f32>>
// CHECK-NEXT:    return %[[D]] : tensor<4xcomplex<f32>>
func.func @main(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = stablehlo.log %x : tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

// -----

// Functions of real numbers stay.

// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.log %arg0 : tensor<4xf32>
// CHECK-NEXT:    return %[[A]] : tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.log %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
