// RUN: xgpu-opt %s -p 'find-chains{gradients=true}' --split-input-file | FileCheck %s

// Weights are dropped after the softmax. The condition takes many operations: it is read, and nothing that it is made of.
// CHECK-LABEL: func.func @main
// CHECK:         %[[KEEP:.*]] = stablehlo.compare LT, %{{.*}} : (tensor<8x512x512xui32>, tensor<8x512x512xui32>) -> tensor<8x512x512xi1>
// CHECK-NEXT:    %[[R:.*]] = "xgpu.chain"(%[[KEEP]], %arg0, %arg1, %arg2) ({
// CHECK:           %[[P:.*]] = stablehlo.divide
// CHECK:           %[[D:.*]] = stablehlo.divide %[[P]]
// CHECK:           stablehlo.select %{{.*}}, %[[D]], %{{.*}} : tensor<8x512x512xi1>, tensor<8x512x512xf32>
// CHECK:         return %[[R]]
func.func @main(%q: tensor<8x512x64xbf16>, %k: tensor<8x512x64xbf16>, %v: tensor<8x512x64xbf16>) -> tensor<8x512x64xbf16> {
  %x = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<8x512x64xbf16>, tensor<8x512x64xbf16>) -> tensor<8x512x512xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [2] : (tensor<8x512x512xf32>, tensor<f32>) -> tensor<8x512xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<8x512xf32>) -> tensor<8x512x512xf32>
  %d = stablehlo.subtract %x, %mb : tensor<8x512x512xf32>
  %e = stablehlo.exponential %d : tensor<8x512x512xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<8x512x512xf32>, tensor<f32>) -> tensor<8x512xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<8x512xf32>) -> tensor<8x512x512xf32>
  %p = stablehlo.divide %e, %tb : tensor<8x512x512xf32>
  %i = stablehlo.iota dim = 0 : tensor<8x512x512xui32>
  %j = stablehlo.iota dim = 1 : tensor<8x512x512xui32>
  %l = stablehlo.iota dim = 2 : tensor<8x512x512xui32>
  %b0 = stablehlo.add %i, %j : tensor<8x512x512xui32>
  %b1 = stablehlo.xor %b0, %l : tensor<8x512x512xui32>
  %b2 = stablehlo.multiply %b1, %j : tensor<8x512x512xui32>
  %b3 = stablehlo.add %b2, %l : tensor<8x512x512xui32>
  %b4 = stablehlo.xor %b3, %j : tensor<8x512x512xui32>
  %b5 = stablehlo.multiply %b4, %l : tensor<8x512x512xui32>
  %b6 = stablehlo.add %b5, %j : tensor<8x512x512xui32>
  %b7 = stablehlo.xor %b6, %l : tensor<8x512x512xui32>
  %b8 = stablehlo.multiply %b7, %j : tensor<8x512x512xui32>
  %b9 = stablehlo.add %b8, %l : tensor<8x512x512xui32>
  %b10 = stablehlo.xor %b9, %j : tensor<8x512x512xui32>
  %b11 = stablehlo.multiply %b10, %l : tensor<8x512x512xui32>
  %b12 = stablehlo.add %b11, %j : tensor<8x512x512xui32>
  %b13 = stablehlo.xor %b12, %l : tensor<8x512x512xui32>
  %b14 = stablehlo.multiply %b13, %j : tensor<8x512x512xui32>
  %b15 = stablehlo.add %b14, %l : tensor<8x512x512xui32>
  %b16 = stablehlo.xor %b15, %j : tensor<8x512x512xui32>
  %b17 = stablehlo.multiply %b16, %l : tensor<8x512x512xui32>
  %b18 = stablehlo.add %b17, %j : tensor<8x512x512xui32>
  %b19 = stablehlo.xor %b18, %l : tensor<8x512x512xui32>
  %b20 = stablehlo.multiply %b19, %j : tensor<8x512x512xui32>
  %b21 = stablehlo.add %b20, %l : tensor<8x512x512xui32>
  %b22 = stablehlo.xor %b21, %j : tensor<8x512x512xui32>
  %b23 = stablehlo.multiply %b22, %l : tensor<8x512x512xui32>
  %b24 = stablehlo.add %b23, %j : tensor<8x512x512xui32>
  %b25 = stablehlo.xor %b24, %l : tensor<8x512x512xui32>
  %b26 = stablehlo.multiply %b25, %j : tensor<8x512x512xui32>
  %b27 = stablehlo.add %b26, %l : tensor<8x512x512xui32>
  %b28 = stablehlo.xor %b27, %j : tensor<8x512x512xui32>
  %b29 = stablehlo.multiply %b28, %l : tensor<8x512x512xui32>
  %b30 = stablehlo.add %b29, %j : tensor<8x512x512xui32>
  %b31 = stablehlo.xor %b30, %l : tensor<8x512x512xui32>
  %b32 = stablehlo.multiply %b31, %j : tensor<8x512x512xui32>
  %b33 = stablehlo.add %b32, %l : tensor<8x512x512xui32>
  %limit = stablehlo.constant dense<3865470566> : tensor<8x512x512xui32>
  %keep = stablehlo.compare LT, %b33, %limit : (tensor<8x512x512xui32>, tensor<8x512x512xui32>) -> tensor<8x512x512xi1>
  %share = stablehlo.constant dense<0.9> : tensor<8x512x512xf32>
  %none = stablehlo.constant dense<0.0> : tensor<8x512x512xf32>
  %s = stablehlo.divide %p, %share : tensor<8x512x512xf32>
  %f = stablehlo.select %keep, %s, %none : tensor<8x512x512xi1>, tensor<8x512x512xf32>
  %w = stablehlo.convert %f : (tensor<8x512x512xf32>) -> tensor<8x512x512xbf16>
  %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x512x512xbf16>, tensor<8x512x64xbf16>) -> tensor<8x512x64xbf16>
  return %o : tensor<8x512x64xbf16>
}

// -----

// The weights are multiplied by what is computed from the logits: these would be needed twice.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     xgpu.chain
// CHECK:         return
func.func @main(%q: tensor<8x512x64xbf16>, %k: tensor<8x512x64xbf16>, %v: tensor<8x512x64xbf16>) -> tensor<8x512x64xbf16> {
  %x = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<8x512x64xbf16>, tensor<8x512x64xbf16>) -> tensor<8x512x512xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [2] : (tensor<8x512x512xf32>, tensor<f32>) -> tensor<8x512xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<8x512xf32>) -> tensor<8x512x512xf32>
  %d = stablehlo.subtract %x, %mb : tensor<8x512x512xf32>
  %e = stablehlo.exponential %d : tensor<8x512x512xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<8x512x512xf32>, tensor<f32>) -> tensor<8x512xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<8x512xf32>) -> tensor<8x512x512xf32>
  %p = stablehlo.divide %e, %tb : tensor<8x512x512xf32>
  %f = stablehlo.multiply %p, %x : tensor<8x512x512xf32>
  %w = stablehlo.convert %f : (tensor<8x512x512xf32>) -> tensor<8x512x512xbf16>
  %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x512x512xbf16>, tensor<8x512x64xbf16>) -> tensor<8x512x64xbf16>
  return %o : tensor<8x512x64xbf16>
}
