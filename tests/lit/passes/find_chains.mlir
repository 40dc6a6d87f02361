// RUN: xgpu-opt %s -p find-chains --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'find-chains{target=sm_90}' --split-input-file | FileCheck %s --check-prefix=OTHER

// OTHER-NOT: xgpu.chain

// Attention, whose weights are rounded: its mask by numbers is taken in, its bias is an array that it reads, and what it
// returns is transposed in it.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[R:.*]] = "xgpu.chain"(%arg0, %arg1, %arg3, %arg2) ({
// CHECK-NEXT:    ^bb0(%[[Q:.*]]: tensor<4x32x64xbf16>, %[[K:.*]]: tensor<4x32x64xbf16>, %[[B:.*]]: tensor<32x32xf32>, %[[V:.*]]: tensor<4x32x64xbf16>):
// CHECK:           stablehlo.dot_general %[[Q]], %[[K]]
// CHECK:           stablehlo.iota
// CHECK:           stablehlo.dot_general %{{.*}}, %[[V]]
// CHECK-NEXT:      %[[T:.*]] = stablehlo.transpose
// CHECK-NEXT:      stablehlo.return %[[T]]
// CHECK-NEXT:    }) :
// CHECK-NEXT:    return %[[R]]
func.func @main(%q: tensor<4x32x64xbf16>, %k: tensor<4x32x64xbf16>, %v: tensor<4x32x64xbf16>, %bias: tensor<32x32xf32>) -> tensor<32x4x64xbf16> {
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x32x64xbf16>, tensor<4x32x64xbf16>) -> tensor<4x32x32xf32>
  %b = stablehlo.broadcast_in_dim %bias, dims = [1, 2] : (tensor<32x32xf32>) -> tensor<4x32x32xf32>
  %sb = stablehlo.add %s, %b : tensor<4x32x32xf32>
  %i = stablehlo.iota dim = 1 : tensor<4x32x32xi32>
  %j = stablehlo.iota dim = 2 : tensor<4x32x32xi32>
  %c = stablehlo.compare GE, %i, %j : (tensor<4x32x32xi32>, tensor<4x32x32xi32>) -> tensor<4x32x32xi1>
  %low = stablehlo.constant dense<0xFF800000> : tensor<4x32x32xf32>
  %x = stablehlo.select %c, %sb, %low : tensor<4x32x32xi1>, tensor<4x32x32xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x32xf32>
  %d = stablehlo.subtract %x, %mb : tensor<4x32x32xf32>
  %e = stablehlo.exponential %d : tensor<4x32x32xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x32x32xf32>, tensor<f32>) -> tensor<4x32xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<4x32xf32>) -> tensor<4x32x32xf32>
  %p = stablehlo.divide %e, %tb : tensor<4x32x32xf32>
  %w = stablehlo.convert %p : (tensor<4x32x32xf32>) -> tensor<4x32x32xbf16>
  %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x32x32xbf16>, tensor<4x32x64xbf16>) -> tensor<4x32x64xbf16>
  %r = stablehlo.transpose %o, dims = [1, 0, 2] : (tensor<4x32x64xbf16>) -> tensor<32x4x64xbf16>
  return %r : tensor<32x4x64xbf16>
}

// -----

// The weights are a result, too, as they are where a gradient needs them.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   xgpu.chain
func.func @main(%q: tensor<32x64xbf16>, %k: tensor<32x64xbf16>, %v: tensor<32x64xbf16>) -> (tensor<32x64xbf16>, tensor<32x32xbf16>) {
  %x = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x32xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [1] : (tensor<32x32xf32>, tensor<f32>) -> tensor<32xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<32xf32>) -> tensor<32x32xf32>
  %d = stablehlo.subtract %x, %mb : tensor<32x32xf32>
  %e = stablehlo.exponential %d : tensor<32x32xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<32x32xf32>, tensor<f32>) -> tensor<32xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<32xf32>) -> tensor<32x32xf32>
  %p = stablehlo.divide %e, %tb : tensor<32x32xf32>
  %w = stablehlo.convert %p : (tensor<32x32xf32>) -> tensor<32x32xbf16>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<32x32xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %o, %w : tensor<32x64xbf16>, tensor<32x32xbf16>
}

// -----

// The sum is along the rows, not along the keys: no softmax of the keys.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   xgpu.chain
func.func @main(%q: tensor<32x64xbf16>, %k: tensor<32x64xbf16>, %v: tensor<32x64xbf16>) -> tensor<32x64xbf16> {
  %x = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x32xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [1] : (tensor<32x32xf32>, tensor<f32>) -> tensor<32xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<32xf32>) -> tensor<32x32xf32>
  %d = stablehlo.subtract %x, %mb : tensor<32x32xf32>
  %e = stablehlo.exponential %d : tensor<32x32xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<32x32xf32>, tensor<f32>) -> tensor<32xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<32xf32>) -> tensor<32x32xf32>
  %p = stablehlo.divide %e, %tb : tensor<32x32xf32>
  %w = stablehlo.convert %p : (tensor<32x32xf32>) -> tensor<32x32xbf16>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<32x32xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %o : tensor<32x64xbf16>
}
