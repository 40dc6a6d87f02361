// RUN: xgpu-opt %s -p 'find-chains{gradients=true}' --split-input-file | FileCheck %s

// Logits that are capped: what the hyperbolic tangent leaves, and what divides for it, need be exact beside 1 alone.
// CHECK-LABEL: func.func @main
// CHECK:         "xgpu.chain"
// CHECK:           %[[D:.*]] = stablehlo.divide %{{.*}}, %{{.*}} {xgpu.weight}
// CHECK-NEXT:      stablehlo.tanh %[[D]] {xgpu.weight}
func.func @main(%q: tensor<4x64x64xbf16>, %k: tensor<4x64x64xbf16>, %v: tensor<4x64x64xbf16>) -> tensor<4x64x64xbf16> {
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x64x64xbf16>, tensor<4x64x64xbf16>) -> tensor<4x64x64xf32>
  %cap = stablehlo.constant dense<30.0> : tensor<4x64x64xf32>
  %a = stablehlo.divide %s, %cap : tensor<4x64x64xf32>
  %b = stablehlo.tanh %a : tensor<4x64x64xf32>
  %x = stablehlo.multiply %b, %cap : tensor<4x64x64xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [2] : (tensor<4x64x64xf32>, tensor<f32>) -> tensor<4x64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<4x64xf32>) -> tensor<4x64x64xf32>
  %d = stablehlo.subtract %x, %mb : tensor<4x64x64xf32>
  %e = stablehlo.exponential %d : tensor<4x64x64xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x64x64xf32>, tensor<f32>) -> tensor<4x64xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<4x64xf32>) -> tensor<4x64x64xf32>
  %p = stablehlo.divide %e, %tb : tensor<4x64x64xf32>
  %w = stablehlo.convert %p : (tensor<4x64x64xf32>) -> tensor<4x64x64xbf16>
  %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x64x64xbf16>, tensor<4x64x64xbf16>) -> tensor<4x64x64xbf16>
  return %o : tensor<4x64x64xbf16>
}

// -----

// A cap of 1,000 would be in error by as much as weights are rounded.
// CHECK-LABEL: func.func @main
// CHECK:         "xgpu.chain"
// CHECK-NOT:       xgpu.weight
// CHECK:           return
func.func @main(%q: tensor<4x64x64xbf16>, %k: tensor<4x64x64xbf16>, %v: tensor<4x64x64xbf16>) -> tensor<4x64x64xbf16> {
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x64x64xbf16>, tensor<4x64x64xbf16>) -> tensor<4x64x64xf32>
  %cap = stablehlo.constant dense<1000.0> : tensor<4x64x64xf32>
  %a = stablehlo.divide %s, %cap : tensor<4x64x64xf32>
  %b = stablehlo.tanh %a : tensor<4x64x64xf32>
  %x = stablehlo.multiply %b, %cap : tensor<4x64x64xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [2] : (tensor<4x64x64xf32>, tensor<f32>) -> tensor<4x64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<4x64xf32>) -> tensor<4x64x64xf32>
  %d = stablehlo.subtract %x, %mb : tensor<4x64x64xf32>
  %e = stablehlo.exponential %d : tensor<4x64x64xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x64x64xf32>, tensor<f32>) -> tensor<4x64xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<4x64xf32>) -> tensor<4x64x64xf32>
  %p = stablehlo.divide %e, %tb : tensor<4x64x64xf32>
  %w = stablehlo.convert %p : (tensor<4x64x64xf32>) -> tensor<4x64x64xbf16>
  %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x64x64xbf16>, tensor<4x64x64xbf16>) -> tensor<4x64x64xbf16>
  return %o : tensor<4x64x64xbf16>
}

// -----

// Nor may logits need what a cap leaves for something else.
// CHECK-LABEL: func.func @main
// CHECK:         "xgpu.chain"
// CHECK-NOT:       xgpu.weight
// CHECK:           return
func.func @main(%q: tensor<4x64x64xbf16>, %k: tensor<4x64x64xbf16>, %v: tensor<4x64x64xbf16>) -> tensor<4x64x64xbf16> {
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x64x64xbf16>, tensor<4x64x64xbf16>) -> tensor<4x64x64xf32>
  %cap = stablehlo.constant dense<30.0> : tensor<4x64x64xf32>
  %a = stablehlo.divide %s, %cap : tensor<4x64x64xf32>
  %b = stablehlo.tanh %a : tensor<4x64x64xf32>
  %large = stablehlo.constant dense<1000.0> : tensor<4x64x64xf32>
  %y = stablehlo.multiply %b, %large : tensor<4x64x64xf32>
  %z = stablehlo.multiply %b, %cap : tensor<4x64x64xf32>
  %x = stablehlo.add %y, %z : tensor<4x64x64xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [2] : (tensor<4x64x64xf32>, tensor<f32>) -> tensor<4x64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<4x64xf32>) -> tensor<4x64x64xf32>
  %d = stablehlo.subtract %x, %mb : tensor<4x64x64xf32>
  %e = stablehlo.exponential %d : tensor<4x64x64xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x64x64xf32>, tensor<f32>) -> tensor<4x64xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<4x64xf32>) -> tensor<4x64x64xf32>
  %p = stablehlo.divide %e, %tb : tensor<4x64x64xf32>
  %w = stablehlo.convert %p : (tensor<4x64x64xf32>) -> tensor<4x64x64xbf16>
  %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x64x64xbf16>, tensor<4x64x64xbf16>) -> tensor<4x64x64xbf16>
  return %o : tensor<4x64x64xbf16>
}

// -----

// Nor may what is capped be multiplied again: its errors would be.
// CHECK-LABEL: func.func @main
// CHECK:         "xgpu.chain"
// CHECK-NOT:       xgpu.weight
// CHECK:           return
func.func @main(%q: tensor<4x64x64xbf16>, %k: tensor<4x64x64xbf16>, %v: tensor<4x64x64xbf16>) -> tensor<4x64x64xbf16> {
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x64x64xbf16>, tensor<4x64x64xbf16>) -> tensor<4x64x64xf32>
  %cap = stablehlo.constant dense<30.0> : tensor<4x64x64xf32>
  %a = stablehlo.divide %s, %cap : tensor<4x64x64xf32>
  %b = stablehlo.tanh %a : tensor<4x64x64xf32>
  %large = stablehlo.constant dense<1000.0> : tensor<4x64x64xf32>
  %z = stablehlo.multiply %b, %cap : tensor<4x64x64xf32>
  %x = stablehlo.multiply %z, %large : tensor<4x64x64xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [2] : (tensor<4x64x64xf32>, tensor<f32>) -> tensor<4x64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<4x64xf32>) -> tensor<4x64x64xf32>
  %d = stablehlo.subtract %x, %mb : tensor<4x64x64xf32>
  %e = stablehlo.exponential %d : tensor<4x64x64xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x64x64xf32>, tensor<f32>) -> tensor<4x64xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<4x64xf32>) -> tensor<4x64x64xf32>
  %p = stablehlo.divide %e, %tb : tensor<4x64x64xf32>
  %w = stablehlo.convert %p : (tensor<4x64x64xf32>) -> tensor<4x64x64xbf16>
  %o = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x64x64xbf16>, tensor<4x64x64xbf16>) -> tensor<4x64x64xbf16>
  return %o : tensor<4x64x64xbf16>
}

// -----

// A factor of 1,000 that makes 50 of it with the next one is no more than 50, also above a mask and a bias.
// CHECK-LABEL: func.func @main
// CHECK:         "xgpu.chain"
// CHECK:           stablehlo.divide {{.*}} {xgpu.weight}
// CHECK-NEXT:      stablehlo.tanh {{.*}} {xgpu.weight}
// CHECK:           return
func.func @main(%q: tensor<64x64xbf16>, %k: tensor<64x64xbf16>, %v: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  %cap = stablehlo.constant dense<1000.0> : tensor<64x64xf32>
  %a = stablehlo.divide %s, %cap : tensor<64x64xf32>
  %b = stablehlo.tanh %a : tensor<64x64xf32>
  %y = stablehlo.multiply %b, %cap : tensor<64x64xf32>
  %less = stablehlo.constant dense<0.05> : tensor<64x64xf32>
  %z = stablehlo.multiply %y, %less : tensor<64x64xf32>
  %i = stablehlo.iota dim = 0 : tensor<64x64xf32>
  %j = stablehlo.iota dim = 1 : tensor<64x64xf32>
  %c = stablehlo.compare GE, %i, %j : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xi1>
  %low = stablehlo.constant dense<0xFF800000> : tensor<64x64xf32>
  %zi = stablehlo.add %z, %i : tensor<64x64xf32>
  %x = stablehlo.select %c, %zi, %low : tensor<64x64xi1>, tensor<64x64xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.subtract %x, %mb : tensor<64x64xf32>
  %e = stablehlo.exponential %d : tensor<64x64xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %p = stablehlo.divide %e, %tb : tensor<64x64xf32>
  %w = stablehlo.convert %p : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %o : tensor<64x64xbf16>
}

// -----

// Functions of what is capped may be as steep as they are: exponentials,
// CHECK-LABEL: func.func @main
// CHECK:         "xgpu.chain"
// CHECK-NOT:       xgpu.weight
// CHECK:           return
func.func @main(%q: tensor<64x64xbf16>, %k: tensor<64x64xbf16>, %v: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  %cap = stablehlo.constant dense<30.0> : tensor<64x64xf32>
  %a = stablehlo.divide %s, %cap : tensor<64x64xf32>
  %b = stablehlo.tanh %a : tensor<64x64xf32>
  %z = stablehlo.multiply %b, %cap : tensor<64x64xf32>
  %x = stablehlo.exponential %z : tensor<64x64xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.subtract %x, %mb : tensor<64x64xf32>
  %e = stablehlo.exponential %d : tensor<64x64xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %p = stablehlo.divide %e, %tb : tensor<64x64xf32>
  %w = stablehlo.convert %p : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %o : tensor<64x64xbf16>
}

// -----

// or comparisons, of what is near 0 in this one.
// CHECK-LABEL: func.func @main
// CHECK:         "xgpu.chain"
// CHECK-NOT:       xgpu.weight
// CHECK:           return
func.func @main(%q: tensor<64x64xbf16>, %k: tensor<64x64xbf16>, %v: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  %cap = stablehlo.constant dense<30.0> : tensor<64x64xf32>
  %a = stablehlo.divide %s, %cap : tensor<64x64xf32>
  %b = stablehlo.tanh %a : tensor<64x64xf32>
  %z = stablehlo.multiply %b, %cap : tensor<64x64xf32>
  %none = stablehlo.constant dense<0.0> : tensor<64x64xf32>
  %c = stablehlo.compare EQ, %z, %none : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xi1>
  %low = stablehlo.constant dense<0xFF800000> : tensor<64x64xf32>
  %x = stablehlo.select %c, %low, %z : tensor<64x64xi1>, tensor<64x64xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.subtract %x, %mb : tensor<64x64xf32>
  %e = stablehlo.exponential %d : tensor<64x64xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %p = stablehlo.divide %e, %tb : tensor<64x64xf32>
  %w = stablehlo.convert %p : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %o : tensor<64x64xbf16>
}

// -----

// Nothing is multiplied by the inverse of 0.
// CHECK-LABEL: func.func @main
// CHECK:         "xgpu.chain"
// CHECK:           %[[D:.*]] = stablehlo.divide %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} :
// CHECK-NEXT:      stablehlo.tanh %[[D]] {xgpu.weight}
func.func @main(%q: tensor<64x64xbf16>, %k: tensor<64x64xbf16>, %v: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  %none = stablehlo.constant dense<0.0> : tensor<64x64xf32>
  %cap = stablehlo.constant dense<30.0> : tensor<64x64xf32>
  %a = stablehlo.divide %s, %none : tensor<64x64xf32>
  %b = stablehlo.tanh %a : tensor<64x64xf32>
  %x = stablehlo.multiply %b, %cap : tensor<64x64xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.subtract %x, %mb : tensor<64x64xf32>
  %e = stablehlo.exponential %d : tensor<64x64xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %p = stablehlo.divide %e, %tb : tensor<64x64xf32>
  %w = stablehlo.convert %p : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %o : tensor<64x64xbf16>
}
