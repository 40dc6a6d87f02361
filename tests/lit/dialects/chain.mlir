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
