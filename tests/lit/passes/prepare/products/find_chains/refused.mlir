// RUN: xgpu-opt %s -p find-chains{gradients=false} --remarks 2>&1 | FileCheck %s

// Attention whose columns are more than one kernel has, and no parts of one length, stays; remarks say why.
// CHECK: find-chains: attention is left in parts: 521 columns are not {{[0-9]+}} parts of one length
// CHECK: func.func @main
// CHECK-NOT: xgpu.chain
func.func @main(%q: tensor<256x64xbf16>, %k: tensor<256x64xbf16>, %v: tensor<256x521xbf16>) -> tensor<256x521xbf16> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<256x64xbf16>, tensor<256x64xbf16>) -> tensor<256x256xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<256x256xf32>, tensor<f32>) -> tensor<256xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<256xf32>) -> tensor<256x256xf32>
  %d = stablehlo.subtract %s, %mb : tensor<256x256xf32>
  %e = stablehlo.exponential %d : tensor<256x256xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<256x256xf32>, tensor<f32>) -> tensor<256xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<256xf32>) -> tensor<256x256xf32>
  %w = stablehlo.divide %e, %tb : tensor<256x256xf32>
  %n = stablehlo.convert %w : (tensor<256x256xf32>) -> tensor<256x256xbf16>
  %o = stablehlo.dot_general %n, %v, contracting_dims = [1] x [0] : (tensor<256x256xbf16>, tensor<256x521xbf16>) -> tensor<256x521xbf16>
  return %o : tensor<256x521xbf16>
}
