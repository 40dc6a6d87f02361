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

// Calls of code that is not known stay. Of the adjoint of a complex matrix the conjugates are taken first.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    stablehlo.custom_call @mine
// CHECK:         stablehlo.imag %[[B:.*]] :
// CHECK:         stablehlo.negate
// CHECK:         stablehlo.while
// CHECK:         stablehlo.divide %{{.*}} : tensor<1x1x20xcomplex<f32>>
// CHECK-NOT:     triangular_solve
// CHECK:         return
func.func @main(%a: tensor<20x20xf32>, %b: tensor<20x20xcomplex<f32>>) -> (tensor<20x20xf32>, tensor<20x20xcomplex<f32>>) {
  %0 = stablehlo.custom_call @mine(%a) : (tensor<20x20xf32>) -> tensor<20x20xf32>
  %1 = "stablehlo.triangular_solve"(%b, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}> : (tensor<20x20xcomplex<f32>>, tensor<20x20xcomplex<f32>>) -> tensor<20x20xcomplex<f32>>
  return %0, %1 : tensor<20x20xf32>, tensor<20x20xcomplex<f32>>
}

// -----

// QR factors: a column's length and its reflection, which changes those after it; then the product of all reflections.
// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.while
// CHECK:         stablehlo.sqrt
// CHECK:         stablehlo.while
// CHECK-NOT:     cusolver
// XLA:           cusolver_geqrf_ffi
// XLA:           cusolver_orgqr_ffi
func.func @main(%a: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>) {
  %0:2 = stablehlo.custom_call @cusolver_geqrf_ffi(%a) {mhlo.backend_config = {}} : (tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<4xf32>)
  %1 = stablehlo.custom_call @cusolver_orgqr_ffi(%0#0, %0#1) {mhlo.backend_config = {}} : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  return %0#0, %1 : tensor<6x4xf32>, tensor<6x4xf32>
}

// -----

// Eigenvalues: 7 sweeps of 7 rounds, in which columns meet all others; seven columns get an eighth.
// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.while(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : tensor<i32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>
// CHECK:         dense<49> : tensor<i32>
// CHECK-NOT:     cusolver
// XLA:           cusolver_syevd_ffi
func.func @main(%a: tensor<7x7xf32>) -> (tensor<7x7xf32>, tensor<7xf32>, tensor<i32>) {
  %0:3 = stablehlo.custom_call @cusolver_syevd_ffi(%a) {mhlo.backend_config = {algorithm = 0 : ui8, lower = true}} : (tensor<7x7xf32>) -> (tensor<7x7xf32>, tensor<7xf32>, tensor<i32>)
  return %0#0, %0#1, %0#2 : tensor<7x7xf32>, tensor<7xf32>, tensor<i32>
}

// -----

// Singular values of a wide matrix are those of the transpose. Vectors of its rows are a product of reflections.
// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.transpose
// CHECK:         stablehlo.while(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : tensor<i32>, tensor<1x6x4xf32>, tensor<1x4x4xf32>
// CHECK:         dense<18> : tensor<i32>
// CHECK:         stablehlo.while
// CHECK-NOT:     cusolver
// XLA:           cusolver_gesvdj_ffi
func.func @main(%a: tensor<4x6xf32>) -> (tensor<4xf32>, tensor<4x4xf32>, tensor<6x6xf32>) {
  %0:5 = stablehlo.custom_call @cusolver_gesvdj_ffi(%a) {mhlo.backend_config = {compute_uv = true, full_matrices = true}} : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<6x6xf32>, tensor<i32>)
  return %0#1, %0#2, %0#3 : tensor<4xf32>, tensor<4x4xf32>, tensor<6x6xf32>
}

// -----

// Pairs of complex columns are first turned, so that what they are apart from orthogonal is real.
// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.while(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : tensor<i32>, tensor<1x8x8xcomplex<f32>>, tensor<1x8x8xcomplex<f32>>
// CHECK:         dense<49> : tensor<i32>
// CHECK:         stablehlo.multiply {{.*}} : tensor<1x8x4xcomplex<f32>>
// CHECK:         stablehlo.abs {{.*}} : (tensor<1x4xcomplex<f32>>) -> tensor<1x4xf32>
// CHECK-NOT:     cusolver
// XLA:           cusolver_syevd_ffi
func.func @main(%a: tensor<7x7xcomplex<f32>>) -> (tensor<7x7xcomplex<f32>>, tensor<7xf32>, tensor<i32>) {
  %0:3 = stablehlo.custom_call @cusolver_syevd_ffi(%a) {mhlo.backend_config = {algorithm = 0 : ui8, lower = true}} : (tensor<7x7xcomplex<f32>>) -> (tensor<7x7xcomplex<f32>>, tensor<7xf32>, tensor<i32>)
  return %0#0, %0#1, %0#2 : tensor<7x7xcomplex<f32>>, tensor<7xf32>, tensor<i32>
}
