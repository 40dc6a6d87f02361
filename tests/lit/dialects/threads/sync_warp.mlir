// RUN: xgpu-opt %s | FileCheck %s

// CHECK-LABEL: func.func @wait
// CHECK: "xgpu.sync_warp"(%{{.*}}) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK: "xgpu.sync_warp"() : () -> ()
func.func @wait(%t: tensor<8xf32>) -> tensor<8xf32> {
  %s = "xgpu.sync_warp"(%t) : (tensor<8xf32>) -> tensor<8xf32>
  "xgpu.sync_warp"() : () -> ()
  return %s : tensor<8xf32>
}
