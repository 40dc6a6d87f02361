// RUN: xgpu-opt %s -p expand-small-solves --split-input-file | FileCheck %s

// A row of the solution is what the rows before leave, divided by the diagonal.

// CHECK-LABEL: func.func @main(%arg0: tensor<2x2xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK:         %[[A00:.*]] = stablehlo.reshape %{{.*}} : (tensor<1x1xf32>) -> tensor<f32>
// CHECK:         %[[B0:.*]] = stablehlo.reshape %{{.*}} : (tensor<1x3xf32>) -> tensor<3xf32>
// CHECK:         %[[X0:.*]] = stablehlo.divide %[[B0]], %{{.*}} : tensor<3xf32>
// CHECK:         %[[B1:.*]] = stablehlo.reshape %{{.*}} : (tensor<1x3xf32>) -> tensor<3xf32>
// CHECK:         %[[P:.*]] = stablehlo.multiply %{{.*}}, %[[X0]] : tensor<3xf32>
// CHECK-NEXT:    %[[R:.*]] = stablehlo.subtract %[[B1]], %[[P]] : tensor<3xf32>
// CHECK:         %[[X1:.*]] = stablehlo.divide %[[R]], %{{.*}} : tensor<3xf32>
// CHECK:         stablehlo.concatenate %{{.*}}, %{{.*}}, dim = 0 : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
// CHECK-NOT:     triangular_solve
func.func @main(%a: tensor<2x2xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// A larger matrix is a library's, and so are other calls.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    "stablehlo.triangular_solve"
// CHECK-NEXT:    stablehlo.custom_call @cusolver_getrf_ffi
// CHECK-NEXT:    return
func.func @main(%a: tensor<9x9xf32>, %b: tensor<9x3xf32>, %c: tensor<5x5xf32>) -> (tensor<9x3xf32>, tensor<5x5xf32>) {
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<9x9xf32>, tensor<9x3xf32>) -> tensor<9x3xf32>
  %1:3 = stablehlo.custom_call @cusolver_getrf_ffi(%c) {mhlo.backend_config = {}} : (tensor<5x5xf32>) -> (tensor<5x5xf32>, tensor<5xi32>, tensor<i32>)
  return %0, %1#0 : tensor<9x3xf32>, tensor<5x5xf32>
}
