// RUN: xgpu-opt %s -p leave-constants --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p leave-constants{products=all} --split-input-file | FileCheck %s --check-prefix=ALL

// The indices of a scatter are read in memory, where XLA has them; kernels make the array of one number.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    stablehlo.constant {xgpu.fallback = "its reader reads it in memory, where XLA has it before the program runs"} dense<{{.*}}> : tensor<2x1xi32>
// CHECK-NEXT:    stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
// CHECK-NEXT:    stablehlo.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// ALL-LABEL: func.func @main
// ALL-NOT:     xgpu.fallback
func.func @main(%x: tensor<8xf32>, %y: tensor<2xf32>) -> (tensor<8xf32>, tensor<2xf32>) {
  %0 = stablehlo.constant dense<[[3], [1]]> : tensor<2x1xi32>
  %1 = stablehlo.constant dense<1.0> : tensor<2xf32>
  %2 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %3 = "stablehlo.scatter"(%x, %0, %1) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<8xf32>
  %4 = stablehlo.add %y, %2 : tensor<2xf32>
  return %3, %4 : tensor<8xf32>, tensor<2xf32>
}

// -----

// An array without elements needs no memory that a kernel could read it in.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    stablehlo.constant dense<> : tensor<2x0xi32>
func.func @main(%x: tensor<8xf32>, %y: tensor<2x8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.constant dense<> : tensor<2x0xi32>
  %1 = "stablehlo.scatter"(%x, %0, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8xf32>, tensor<2x0xi32>, tensor<2x8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
