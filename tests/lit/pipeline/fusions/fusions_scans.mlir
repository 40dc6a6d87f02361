// RUN: xgpu compile %s --emit fusions | FileCheck %s

// Too long for one block: several share the scan. What comes before and after it is part of their kernel.
// CHECK-LABEL: func.func private @fusion_0
// CHECK-SAME: (%arg0: tensor<1000000xf32>) -> tensor<1000000xf32> attributes {xgpu.emitter = "scan_row",
// CHECK-SAME: xgpu.schedule = #xgpu.schedule<vector = 4, lanes = 512, groups = 1, steps = 4, spread = true>
// CHECK: stablehlo.exponential
// CHECK: "xgpu.scan"
// CHECK: stablehlo.sine
// CHECK-NOT: func.func private
// CHECK: func.func @main
func.func @main(%x: tensor<1000000xf32>) -> tensor<1000000xf32> {
  %0 = stablehlo.exponential %x : tensor<1000000xf32>
  %1 = "xgpu.scan"(%0) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<1000000xf32>) -> tensor<1000000xf32>
  %2 = stablehlo.sine %1 : tensor<1000000xf32>
  return %2 : tensor<1000000xf32>
}
