// RUN: xgpu-opt %s -p 'find-chains{gradients=true}' --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'find-chains{target=sm_90 gradients=true}' --split-input-file | FileCheck %s --check-prefix=OTHER

// OTHER-NOT: xgpu.chain

// Attention, whose weights are rounded: its mask by numbers is taken in, its bias is an array that it reads, and what it
// returns is transposed in it.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[R:.*]] = "xgpu.chain"(%arg0, %arg1, %arg3, %arg2) ({
// CHECK-NEXT:    ^bb0(%[[Q:.*]]: tensor<4x32x64xbf16>, %[[K:.*]]: tensor<4x32x64xbf16>, %[[B:.*]]: tensor<32x32xf32>, %[[V:.*]]: tensor<4x32x64xbf16>):
// CHECK:           stablehlo.iota
// CHECK:           stablehlo.dot_general %[[Q]], %[[K]]
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

// The weights are a result, too.
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

// -----

// A gradient. Attention stores the largest logit and the sum of weights of each row; sums of gradients times weights are
// made of the result. One chain has the gradients of keys and values, one that of queries; both compute weights again.
// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.*]]:3 = "xgpu.chain"(%arg0, %arg1, %arg2) ({
// CHECK:           stablehlo.return %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>
// CHECK:         %[[G:.*]] = stablehlo.convert %arg3
// CHECK-NEXT:    %[[O:.*]] = stablehlo.convert %[[A]]#0
// CHECK-NEXT:    %[[GO:.*]] = stablehlo.multiply %[[G]], %[[O]]
// CHECK:         %[[D:.*]] = stablehlo.reduce(%[[GO]] init: %{{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK:         %[[R:.*]] = stablehlo.divide %{{.*}}, %[[A]]#2
// CHECK:         %[[N:.*]] = stablehlo.negate
// CHECK-NEXT:    %[[T:.*]] = stablehlo.multiply %[[N]], %[[A]]#2
// CHECK-NEXT:    %[[K:.*]]:2 = "xgpu.chain"(%arg0, %arg1, %[[A]]#1, %[[R]], %arg3, %arg2, %[[T]]) ({
// CHECK:           stablehlo.exponential %{{.*}} {xgpu.weight}
// CHECK:           %[[P:.*]] = stablehlo.multiply
// CHECK:           stablehlo.dot_general {{.*}}, contracting_dims = [0] x [0]
// CHECK:           %[[DP:.*]] = stablehlo.add
// CHECK-NEXT:      stablehlo.multiply %[[DP]], %[[P]]
// CHECK:           stablehlo.dot_general {{.*}}, contracting_dims = [0] x [0]
// CHECK-NEXT:      stablehlo.return
// CHECK:         %[[Q:.*]] = "xgpu.chain"(
// CHECK:           stablehlo.dot_general {{.*}}, contracting_dims = [1] x [0]
// CHECK-NEXT:      stablehlo.return
// CHECK:         return %[[A]]#0, %[[Q]], %[[K]]#1, %[[K]]#0
func.func @main(%q: tensor<64x64xbf16>, %k: tensor<64x64xbf16>, %v: tensor<64x64xbf16>, %g: tensor<64x64xbf16>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>) {
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<64xf32>
  %x = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.subtract %x, %mb : tensor<64x64xf32>
  %e = stablehlo.exponential %d : tensor<64x64xf32>
  %z = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %zb = stablehlo.broadcast_in_dim %z, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %p = stablehlo.divide %e, %zb : tensor<64x64xf32>
  %w = stablehlo.convert %p : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dv = stablehlo.dot_general %w, %g, contracting_dims = [0] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dp = stablehlo.dot_general %g, %v, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dpf = stablehlo.convert %dp : (tensor<64x64xbf16>) -> tensor<64x64xf32>
  %zz = stablehlo.multiply %z, %z : tensor<64xf32>
  %r = stablehlo.divide %one, %zz : tensor<64xf32>
  %rb = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %a = stablehlo.multiply %dpf, %rb : tensor<64x64xf32>
  %b = stablehlo.multiply %a, %e : tensor<64x64xf32>
  %t = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %n = stablehlo.negate %t : tensor<64xf32>
  %nb = stablehlo.broadcast_in_dim %n, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %f = stablehlo.divide %dpf, %zb : tensor<64x64xf32>
  %h = stablehlo.add %f, %nb : tensor<64x64xf32>
  %dx = stablehlo.multiply %h, %e : tensor<64x64xf32>
  %ds = stablehlo.convert %dx : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %dk = stablehlo.dot_general %ds, %q, contracting_dims = [0] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dq = stablehlo.dot_general %ds, %k, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %o, %dq, %dk, %dv : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>
}

// -----

// The gradient of the logits is a result, as that of a bias would be: the chain that goes along rows of it returns it.
// CHECK-LABEL: func.func @main
// CHECK:         "xgpu.chain"
// CHECK:         %[[K:.*]]:2 = "xgpu.chain"(
// CHECK:           stablehlo.return %{{.*}}, %{{.*}} : tensor<64x64xbf16>, tensor<64x64xbf16>
// CHECK:         %[[Q:.*]]:2 = "xgpu.chain"(
// CHECK:           %[[DP:.*]] = stablehlo.add
// CHECK:           %[[DX:.*]] = stablehlo.multiply %[[DP]]
// CHECK-NEXT:      %[[DS:.*]] = stablehlo.convert %[[DX]]
// CHECK-NEXT:      %[[DQ:.*]] = stablehlo.dot_general %[[DS]]
// CHECK-NEXT:      stablehlo.return %[[DQ]], %[[DX]] : tensor<64x64xbf16>, tensor<64x64xf32>
// CHECK:         return %{{.*}}, %[[Q]]#0, %[[K]]#{{[01]}}, %[[K]]#{{[01]}}, %[[Q]]#1
func.func @main(%q: tensor<64x64xbf16>, %k: tensor<64x64xbf16>, %v: tensor<64x64xbf16>, %g: tensor<64x64xbf16>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>) {
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<64xf32>
  %x = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.subtract %x, %mb : tensor<64x64xf32>
  %e = stablehlo.exponential %d : tensor<64x64xf32>
  %z = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %zb = stablehlo.broadcast_in_dim %z, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %p = stablehlo.divide %e, %zb : tensor<64x64xf32>
  %w = stablehlo.convert %p : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dv = stablehlo.dot_general %w, %g, contracting_dims = [0] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dp = stablehlo.dot_general %g, %v, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dpf = stablehlo.convert %dp : (tensor<64x64xbf16>) -> tensor<64x64xf32>
  %zz = stablehlo.multiply %z, %z : tensor<64xf32>
  %r = stablehlo.divide %one, %zz : tensor<64xf32>
  %rb = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %a = stablehlo.multiply %dpf, %rb : tensor<64x64xf32>
  %b = stablehlo.multiply %a, %e : tensor<64x64xf32>
  %t = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %n = stablehlo.negate %t : tensor<64xf32>
  %nb = stablehlo.broadcast_in_dim %n, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %f = stablehlo.divide %dpf, %zb : tensor<64x64xf32>
  %h = stablehlo.add %f, %nb : tensor<64x64xf32>
  %dx = stablehlo.multiply %h, %e : tensor<64x64xf32>
  %ds = stablehlo.convert %dx : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %dk = stablehlo.dot_general %ds, %q, contracting_dims = [0] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dq = stablehlo.dot_general %ds, %k, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %o, %dq, %dk, %dv, %dx : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
}

// -----

// The weights are a result beside their gradient: nothing of it can stay in a kernel.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   xgpu.chain
func.func @main(%q: tensor<64x64xbf16>, %k: tensor<64x64xbf16>, %v: tensor<64x64xbf16>, %g: tensor<64x64xbf16>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>) {
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<64xf32>
  %x = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.subtract %x, %mb : tensor<64x64xf32>
  %e = stablehlo.exponential %d : tensor<64x64xf32>
  %z = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %zb = stablehlo.broadcast_in_dim %z, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %p = stablehlo.divide %e, %zb : tensor<64x64xf32>
  %w = stablehlo.convert %p : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dv = stablehlo.dot_general %w, %g, contracting_dims = [0] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dp = stablehlo.dot_general %g, %v, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dpf = stablehlo.convert %dp : (tensor<64x64xbf16>) -> tensor<64x64xf32>
  %zz = stablehlo.multiply %z, %z : tensor<64xf32>
  %r = stablehlo.divide %one, %zz : tensor<64xf32>
  %rb = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %a = stablehlo.multiply %dpf, %rb : tensor<64x64xf32>
  %b = stablehlo.multiply %a, %e : tensor<64x64xf32>
  %t = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %n = stablehlo.negate %t : tensor<64xf32>
  %nb = stablehlo.broadcast_in_dim %n, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %f = stablehlo.divide %dpf, %zb : tensor<64x64xf32>
  %h = stablehlo.add %f, %nb : tensor<64x64xf32>
  %dx = stablehlo.multiply %h, %e : tensor<64x64xf32>
  %ds = stablehlo.convert %dx : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %dk = stablehlo.dot_general %ds, %q, contracting_dims = [0] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dq = stablehlo.dot_general %ds, %k, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %o, %dq, %dk, %dv, %p : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
}

// -----

// The sum is not one of weights times their gradients: it is known only when all keys have been seen.
// CHECK-LABEL: func.func @main
// CHECK-NOT:   xgpu.chain
func.func @main(%q: tensor<64x64xbf16>, %k: tensor<64x64xbf16>, %v: tensor<64x64xbf16>, %g: tensor<64x64xbf16>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>) {
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<64xf32>
  %x = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.subtract %x, %mb : tensor<64x64xf32>
  %e = stablehlo.exponential %d : tensor<64x64xf32>
  %z = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %zb = stablehlo.broadcast_in_dim %z, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %p = stablehlo.divide %e, %zb : tensor<64x64xf32>
  %w = stablehlo.convert %p : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dv = stablehlo.dot_general %w, %g, contracting_dims = [0] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dp = stablehlo.dot_general %g, %v, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dpf = stablehlo.convert %dp : (tensor<64x64xbf16>) -> tensor<64x64xf32>
  %zz = stablehlo.multiply %z, %z : tensor<64xf32>
  %r = stablehlo.divide %one, %zz : tensor<64xf32>
  %rb = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %a = stablehlo.multiply %dpf, %rb : tensor<64x64xf32>
  %b = stablehlo.multiply %a, %x : tensor<64x64xf32>
  %t = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %n = stablehlo.negate %t : tensor<64xf32>
  %nb = stablehlo.broadcast_in_dim %n, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %f = stablehlo.divide %dpf, %zb : tensor<64x64xf32>
  %h = stablehlo.add %f, %nb : tensor<64x64xf32>
  %dx = stablehlo.multiply %h, %e : tensor<64x64xf32>
  %ds = stablehlo.convert %dx : (tensor<64x64xf32>) -> tensor<64x64xbf16>
  %dk = stablehlo.dot_general %ds, %q, contracting_dims = [0] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %dq = stablehlo.dot_general %ds, %k, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %o, %dq, %dk, %dv : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>
}

// -----

// Attention of f32: tensor cores read neighbours in memory of one sum, so values are copied by columns; their rows end
// where boxes may begin.
// CHECK-LABEL: func.func @main
// CHECK:         %[[T:.*]] = stablehlo.transpose %arg2, dims = [0, 2, 1]
// CHECK:         %[[C:.*]] = stablehlo.pad %[[T]], %{{.*}}, low = [0, 0, 0], high = [0, 0, 3], interior = [0, 0, 0] : (tensor<8x64x1021xf32>, tensor<f32>) -> tensor<8x64x1024xf32>
// CHECK:         "xgpu.chain"(%arg0, %arg1, %[[C]]) ({
// CHECK:           %[[S:.*]] = stablehlo.slice %{{.*}} [0:8, 0:64, 0:1021]
// CHECK:           %[[V:.*]] = stablehlo.transpose %[[S]], dims = [0, 2, 1]
// CHECK:           stablehlo.dot_general %{{.*}}, %[[V]]
func.func @main(%q: tensor<8x512x64xf32>, %k: tensor<8x1021x64xf32>, %v: tensor<8x1021x64xf32>) -> tensor<8x512x64xf32> {
  %x = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<8x512x64xf32>, tensor<8x1021x64xf32>) -> tensor<8x512x1021xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [2] : (tensor<8x512x1021xf32>, tensor<f32>) -> tensor<8x512xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<8x512xf32>) -> tensor<8x512x1021xf32>
  %d = stablehlo.subtract %x, %mb : tensor<8x512x1021xf32>
  %e = stablehlo.exponential %d : tensor<8x512x1021xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<8x512x1021xf32>, tensor<f32>) -> tensor<8x512xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<8x512xf32>) -> tensor<8x512x1021xf32>
  %p = stablehlo.divide %e, %tb : tensor<8x512x1021xf32>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x512x1021xf32>, tensor<8x1021x64xf32>) -> tensor<8x512x64xf32>
  return %o : tensor<8x512x64xf32>
}

// -----

// Products that are asked to be as exact as f32 are XLA's; nothing is copied for them.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     stablehlo.transpose
// CHECK-NOT:     xgpu.chain
// CHECK:         return
func.func @main(%q: tensor<8x512x64xf32>, %k: tensor<8x1024x64xf32>, %v: tensor<8x1024x64xf32>) -> tensor<8x512x64xf32> {
  %x = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [HIGHEST, HIGHEST] : (tensor<8x512x64xf32>, tensor<8x1024x64xf32>) -> tensor<8x512x1024xf32>
  %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %neg) applies stablehlo.maximum across dimensions = [2] : (tensor<8x512x1024xf32>, tensor<f32>) -> tensor<8x512xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<8x512xf32>) -> tensor<8x512x1024xf32>
  %d = stablehlo.subtract %x, %mb : tensor<8x512x1024xf32>
  %e = stablehlo.exponential %d : tensor<8x512x1024xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<8x512x1024xf32>, tensor<f32>) -> tensor<8x512xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<8x512xf32>) -> tensor<8x512x1024xf32>
  %p = stablehlo.divide %e, %tb : tensor<8x512x1024xf32>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<8x512x1024xf32>, tensor<8x1024x64xf32>) -> tensor<8x512x64xf32>
  return %o : tensor<8x512x64xf32>
}
