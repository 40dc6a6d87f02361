// RUN: xgpu-opt %s -p expand-solves --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'expand-solves{runs=xla}' --split-input-file | FileCheck %s --check-prefix=XLA

// Row k of what is left, by the diagonal, times column k is subtracted from the rows below.

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.while(%{{.*}} = %{{.*}}, %[[X:.*]] = %{{.*}}) : tensor<i32>, tensor<1x20x3xf32>
// CHECK:         dense<20> : tensor<i32>
// CHECK:         %[[ROW:.*]] = stablehlo.dynamic_slice %[[X]]{{.*}} sizes = [1, 1, 3]
// CHECK:         %[[D:.*]] = stablehlo.dynamic_slice %{{.*}} sizes = [1, 1, 1]
// CHECK:         stablehlo.divide %[[ROW]]
// CHECK:         stablehlo.dynamic_slice %{{.*}} sizes = [1, 20, 1]
// CHECK:         stablehlo.multiply
// CHECK:         stablehlo.subtract %[[X]]
// CHECK:         stablehlo.compare GT
// CHECK-NOT:     stablehlo.triangular_solve
// XLA:           stablehlo.triangular_solve
func.func @main(%a: tensor<20x20xf32>, %b: tensor<20x3xf32>) -> tensor<20x3xf32> {
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<20x20xf32>, tensor<20x3xf32>) -> tensor<20x3xf32>
  return %0 : tensor<20x3xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.while
// CHECK:         stablehlo.sqrt
// CHECK-NOT:     stablehlo.cholesky
// XLA:           stablehlo.cholesky
func.func @main(%a: tensor<20x20xf32>) -> tensor<20x20xf32> {
  %0 = stablehlo.cholesky %a, lower = true : tensor<20x20xf32>
  return %0 : tensor<20x20xf32>
}

// -----

// Calls of code that is not known stay, and complex systems.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    stablehlo.custom_call @mine
// CHECK-NEXT:    "stablehlo.triangular_solve"
// CHECK-NEXT:    return
func.func @main(%a: tensor<20x20xf32>, %b: tensor<20x20xcomplex<f32>>) -> (tensor<20x20xf32>, tensor<20x20xcomplex<f32>>) {
  %0 = stablehlo.custom_call @mine(%a) : (tensor<20x20xf32>) -> tensor<20x20xf32>
  %1 = "stablehlo.triangular_solve"(%b, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<20x20xcomplex<f32>>, tensor<20x20xcomplex<f32>>) -> tensor<20x20xcomplex<f32>>
  return %0, %1 : tensor<20x20xf32>, tensor<20x20xcomplex<f32>>
}
