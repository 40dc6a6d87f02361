// RUN: xgpu compile %s --emit fusions | FileCheck %s

// Too long for one block: what chunks are combined to, in the order of the scan, the scan of that, and the scan itself,
// which goes on from there. What follows it is part of its kernel.
// CHECK-LABEL: func.func private @fusion_0
// CHECK-SAME: (%arg0: tensor<1000000xf32>) -> tensor<[[#COUNT:]]xf32> attributes {xgpu.emitter = "reduce_row",
// CHECK: stablehlo.slice
// CHECK: stablehlo.reduce
// CHECK-LABEL: func.func private @fusion_1
// CHECK-SAME: (%arg0: tensor<[[#COUNT]]xf32>) -> tensor<[[#COUNT]]xf32> attributes {xgpu.emitter = "scan_row", xgpu.schedule = #xgpu.schedule<vector = 
// CHECK-LABEL: func.func private @fusion_2
// CHECK-SAME: (%arg0: tensor<1000000xf32>, %arg1: tensor<[[#COUNT]]xf32>) -> tensor<1000000xf32> attributes {xgpu.emitter = "scan_row", xgpu.schedule = #xgpu.schedule<vector = 
// CHECK: "xgpu.scan"(%arg0, %arg1)
// CHECK: chunk = 2048 : i64
// CHECK: stablehlo.sine
// CHECK-NOT: stablehlo.reduce
func.func @main(%x: tensor<1000000xf32>) -> tensor<1000000xf32> {
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<1000000xf32>) -> tensor<1000000xf32>
  %1 = stablehlo.sine %0 : tensor<1000000xf32>
  return %1 : tensor<1000000xf32>
}
