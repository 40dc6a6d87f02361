// RUN: xgpu compile %s --emit fusions | FileCheck %s --check-prefix=PLAN
// RUN: xgpu compile %s --emit emitted | FileCheck %s

// The sums read a number for each row, which they overwrite, and the kernel has another one for each row, which follows
// from no sum: it is computed by the thread that has the row's sum.
// PLAN: func.func private @fusion_0(
// PLAN-SAME: xgpu.aliases = array<i64: {{[01]}}, {{[12]}}>, xgpu.emitter = "reduce_row"

// CHECK-LABEL: func.func @fusion_0
// CHECK: "xgpu.loop"
// CHECK: "xgpu.pure_call"({{.*}}) {callee = @fusion_0__prologue__root}
// CHECK: xgpu.shuffle_reduce
// CHECK: %[[NEW:.*]]:2 = "xgpu.pure_call"({{.*}}) {callee = @fusion_0__epilogue__root}
// CHECK-DAG: tensor.insert %[[NEW]]#0
// CHECK-DAG: tensor.insert %[[NEW]]#1
func.func @main(%x: tensor<100x33xf32>, %low: tensor<100xf32>, %found: tensor<100xf32>, %n: tensor<i32>) -> (tensor<100xf32>, tensor<100xf32>) {
  %0:3 = stablehlo.while(%a = %low, %b = %found, %i = %n) : tensor<100xf32>, tensor<100xf32>, tensor<i32>
  cond {
    %end = stablehlo.constant dense<1000> : tensor<i32>
    %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<100xf32>) -> tensor<100x33xf32>
    %2 = stablehlo.subtract %x, %1 : tensor<100x33xf32>
    %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<100x33xf32>, tensor<f32>) -> tensor<100xf32>
    %4 = stablehlo.add %a, %3 : tensor<100xf32>
    %5 = stablehlo.maximum %a, %b : tensor<100xf32>
    %6 = stablehlo.multiply %i, %i : tensor<i32>
    stablehlo.return %4, %5, %6 : tensor<100xf32>, tensor<100xf32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<100xf32>, tensor<100xf32>
}
