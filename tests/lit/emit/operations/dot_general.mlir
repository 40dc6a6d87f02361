// RUN: xgpu compile %s --emit emitted | FileCheck %s

// One loop gives the indices of both operands. Sums of 16-bit products are f32 and are rounded at their end.
// CHECK-LABEL: func.func private @fusion_0__root
// CHECK-SAME: %[[B:[a-z0-9]+]]: index {{.*}}, %[[I:[a-z0-9]+]]: index {{.*}}, %[[J:[a-z0-9]+]]: index
// CHECK: %[[ZERO:.*]] = arith.constant 0.0{{.*}} : f32
// CHECK: %[[SUM:.*]] = "xgpu.loop"(%[[B]], %[[I]], %[[J]], %[[ZERO]])
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[L0:[a-z0-9]+]]: index, %[[L1:[a-z0-9]+]]: index, %[[L2:[a-z0-9]+]]: index, %[[R0:[a-z0-9]+]]: index, %[[R1:[a-z0-9]+]]: index, %[[R2:[a-z0-9]+]]: index, %[[PARTIAL:[a-z0-9]+]]: f32):
// CHECK-DAG: %[[LEFT:.*]] = tensor.extract %arg0[%[[L0]], %[[L1]], %[[L2]]]
// CHECK-DAG: %[[RIGHT:.*]] = tensor.extract %arg1[%[[R0]], %[[R1]], %[[R2]]]
// CHECK-DAG: %[[WIDE_LEFT:.*]] = arith.extf %[[LEFT]] : bf16 to f32
// CHECK-DAG: %[[WIDE_RIGHT:.*]] = arith.extf %[[RIGHT]] : bf16 to f32
// CHECK: %[[PRODUCT:.*]] = arith.mulf %[[WIDE_LEFT]], %[[WIDE_RIGHT]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[PARTIAL]], %[[PRODUCT]]
// CHECK: "xgpu.yield"(%[[NEXT]])
// CHECK{LITERAL}: #xgpu.map<(d0, d1, d2)[s0] -> (d0, d1, s0, s0, d2, d0), d0 in [0, 1], d1 in [0, 2], d2 in [0, 3], s0 in [0, 16]>
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[SUM]] : f32 to bf16
// CHECK: return %[[ROUNDED]]
func.func @main(%x: tensor<2x3x17xbf16>, %y: tensor<17x4x2xbf16>) -> tensor<2x3x4xbf16> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [2], contracting_dims = [2] x [0] : (tensor<2x3x17xbf16>, tensor<17x4x2xbf16>) -> tensor<2x3x4xbf16>
  return %0 : tensor<2x3x4xbf16>
}
