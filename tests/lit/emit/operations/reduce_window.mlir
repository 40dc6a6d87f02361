// RUN: xgpu compile %s --emit emitted | FileCheck %s

// A loop over the window that skips what lies in the padding or between elements; initial values come from outside.
// CHECK-LABEL: func.func private @fusion_0__root
// CHECK-SAME: %[[I:[a-z0-9]+]]: index
// CHECK: %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[MAX:.*]] = "xgpu.loop"(%[[I]], %[[LOWEST]])
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[E:[a-z0-9]+]]: index, %[[PARTIAL:[a-z0-9]+]]: f32):
// CHECK: %[[X:.*]] = tensor.extract %arg0[%[[E]]]
// CHECK: %[[NEXT:.*]] = arith.maximumf %[[PARTIAL]], %[[X]]
// CHECK: "xgpu.yield"(%[[NEXT]])
// CHECK{LITERAL}: #xgpu.map<(d0)[s0] -> ((d0 * 3 + s0 * 4 - 2) floordiv 2), d0 in [0, 4], s0 in [0, 2], d0 * 3 + s0 * 4 - 2 in [0, 16], (d0 * 3 + s0 * 4 - 2) mod 2 in [0, 0]>
// CHECK: return %[[MAX]]
func.func @main(%x: tensor<9xf32>) -> tensor<5xf32> {
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %lowest) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {window_dimensions = array<i64: 3>, window_strides = array<i64: 3>, base_dilations = array<i64: 2>,
      window_dilations = array<i64: 4>, padding = dense<[[2, 2]]> : tensor<1x2xi64>} : (tensor<9xf32>, tensor<f32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
