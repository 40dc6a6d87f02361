// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.chain"(%arg0, %arg1) ({
// CHECK-NEXT:    ^bb0(%arg2: tensor<8x8xbf16>, %arg3: tensor<8x8xbf16>):
// CHECK-NEXT:      stablehlo.dot_general %arg2, %arg3
// CHECK:           stablehlo.return
// CHECK-NEXT:    }) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
func.func @f(%x: tensor<8x8xbf16>, %y: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  %0 = "xgpu.chain"(%x, %y) ({
  ^bb0(%a: tensor<8x8xbf16>, %b: tensor<8x8xbf16>):
    %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
    %2 = stablehlo.dot_general %1, %b, contracting_dims = [1] x [0] : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
    stablehlo.return %2 : tensor<8x8xbf16>
  }) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %0 : tensor<8x8xbf16>
}

// What the region returns may be several values.
// CHECK-LABEL: func.func @g
// CHECK-NEXT:    %0:2 = "xgpu.chain"(%arg0) ({
// CHECK:           stablehlo.return %{{.*}}, %{{.*}} : tensor<8x8xbf16>, tensor<8xbf16>
// CHECK-NEXT:    }) : (tensor<8x8xbf16>) -> (tensor<8x8xbf16>, tensor<8xbf16>)
func.func @g(%x: tensor<8x8xbf16>) -> (tensor<8x8xbf16>, tensor<8xbf16>) {
  %0:2 = "xgpu.chain"(%x) ({
  ^bb0(%a: tensor<8x8xbf16>):
    %1 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
    %2 = stablehlo.constant dense<0.0> : tensor<bf16>
    %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [1] : (tensor<8x8xbf16>, tensor<bf16>) -> tensor<8xbf16>
    stablehlo.return %1, %3 : tensor<8x8xbf16>, tensor<8xbf16>
  }) : (tensor<8x8xbf16>) -> (tensor<8x8xbf16>, tensor<8xbf16>)
  return %0#0, %0#1 : tensor<8x8xbf16>, tensor<8xbf16>
}
