// RUN: xgpu compile %s --emit emitted | FileCheck %s

// The input is read where the kernel lies on it; a group of output features reads its own features of the input.
// CHECK-LABEL: func.func private @fusion_0__root
// CHECK: "xgpu.loop"
// CHECK: tensor.extract %arg0
// CHECK: tensor.extract %arg1
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK{LITERAL}: #xgpu.map<(d0, d1, d2)[s0, s1] -> (d0, s1 + (d1 floordiv 2) * 3, d2 * 2 + s0 - 1, d1, s1, -s0 + 2), d0 in [0, 1], d1 in [0, 3], d2 in [0, 4], s0 in [0, 2], s1 in [0, 2], d2 * 2 + s0 - 1 in [0, 8]>
func.func @main(%x: tensor<2x6x9xf32>, %k: tensor<4x3x3xf32>) -> tensor<2x4x5xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
    window = {stride = [2], pad = [[1, 1]], reverse = [true]}
    {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x6x9xf32>, tensor<4x3x3xf32>) -> tensor<2x4x5xf32>
  return %0 : tensor<2x4x5xf32>
}
