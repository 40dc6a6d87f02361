// RUN: xgpu compile %s --emit fusions | FileCheck %s --check-prefix=FUSIONS
// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Slices of different shapes of one value are one kernel.
// FUSIONS-LABEL: func.func private @fusion_0
// FUSIONS-SAME: xgpu.emitter = "input_slices"
// FUSIONS: stablehlo.slice {{.*}} {xgpu.hero}
// FUSIONS: stablehlo.slice {{.*}} {xgpu.hero}
// FUSIONS: call @fusion_0
// FUSIONS-NOT: call

// A loop for each shape, over its own elements; one function computes what is sliced.
// CHECK-LABEL: func.func @fusion_0(
// CHECK: %[[A:[0-9]+]] = "xgpu.loop"({{.*}}, %arg1)
// CHECK: "xgpu.pure_call"(%arg0, %[[I:[a-z0-9]+]], %[[J:[a-z0-9]+]]) {callee = @fusion_0__input__root}
// CHECK: callee = @fusion_0__part_0__root
// CHECK: d0 + d1 * 128 in [0, 329]
// CHECK: %[[B:[0-9]+]] = "xgpu.loop"({{.*}}, %arg2)
// CHECK: "xgpu.apply_indexing"({{.*}}) {map = #xgpu.map<(d0, d1) -> (d1 + 10)
// CHECK: callee = @fusion_0__input__root
// CHECK: callee = @fusion_0__part_1__root
// CHECK: return %[[A]], %[[B]]
// CHECK-COUNT-1: arith.mulf
// CHECK-NOT: arith.mulf
// CHECK: arith.negf
func.func @main(%x: tensor<33x30xf32>) -> (tensor<33x10xf32>, tensor<33x20xf32>) {
  %0 = stablehlo.multiply %x, %x : tensor<33x30xf32>
  %1 = stablehlo.slice %0 [0:33, 0:10] : (tensor<33x30xf32>) -> tensor<33x10xf32>
  %2 = stablehlo.slice %0 [0:33, 10:30] : (tensor<33x30xf32>) -> tensor<33x20xf32>
  %3 = stablehlo.negate %2 : tensor<33x20xf32>
  return %1, %3 : tensor<33x10xf32>, tensor<33x20xf32>
}
