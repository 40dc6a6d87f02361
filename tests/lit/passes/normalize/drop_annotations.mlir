// RUN: xgpu-opt %s -p drop-annotations | FileCheck %s

// Only names of the program and of its results are kept.

// CHECK: module @jit_f {
// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>) -> (tensor<4xf32> {jax.result_info = "result"}) {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.negate %arg0 : tensor<4xf32>
// CHECK-NEXT:    return %[[A]] : tensor<4xf32>
module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%x: tensor<4xf32> {mhlo.sharding = "{replicated}"}) -> (tensor<4xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.negate %x {mhlo.frontend_attributes = {a = "b"}, mhlo.sharding = "{replicated}"} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
