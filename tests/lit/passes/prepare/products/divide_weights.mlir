// RUN: xgpu-opt %s -p divide-weights --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p divide-weights{find=false} --split-input-file | FileCheck %s --check-prefix=LEFT

// The sums of rows are divided after the product; of a sum that comes after it, and is added to.
// CHECK-LABEL: func.func @main
// CHECK:         %[[E:.*]] = stablehlo.exponential
// CHECK:         %[[T:.*]] = stablehlo.add %{{.*}}, %{{.*}} : tensor<8xf32>
// CHECK:         %[[B:.*]] = stablehlo.broadcast_in_dim %[[T]], dims = [0] : (tensor<8xf32>) -> tensor<8x32xf32>
// CHECK:         %[[W:.*]] = stablehlo.divide %[[E]], %[[B]] : tensor<8x32xf32>
// CHECK:         %[[O:.*]] = stablehlo.dot_general %[[W]], %arg2
// CHECK:         return %[[O]]
// LEFT-LABEL: func.func @main
// LEFT:         %[[O:.*]] = stablehlo.divide %{{.*}}, %{{.*}} : tensor<8x16xf32>
// LEFT:         return %[[O]]
func.func @main(%q: tensor<8x16xf32>, %k: tensor<32x16xf32>, %v: tensor<32x16xf32>) -> tensor<8x16xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<1.0e-6> : tensor<8xf32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<8xf32>) -> tensor<8x32xf32>
  %d = stablehlo.subtract %s, %mb : tensor<8x32xf32>
  %e = stablehlo.exponential %d : tensor<8x32xf32>
  %o = stablehlo.dot_general %e, %v, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
  %tt = stablehlo.add %t, %least : tensor<8xf32>
  %tb = stablehlo.broadcast_in_dim %tt, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
  %r = stablehlo.divide %o, %tb : tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}

// -----

// Heads in a batch, powers rounded for the product, and results that are turned and widened before they are divided.
// CHECK-LABEL: func.func @main
// CHECK:         %[[E:.*]] = stablehlo.exponential
// CHECK-NOT:     stablehlo.divide
// CHECK:         %[[T:.*]] = stablehlo.reduce(%[[E]]
// CHECK:         %[[B:.*]] = stablehlo.broadcast_in_dim %[[T]], dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8x32xf32>
// CHECK:         %[[W:.*]] = stablehlo.divide %[[E]], %[[B]] : tensor<4x8x32xf32>
// CHECK:         %[[N:.*]] = stablehlo.convert %[[W]] : (tensor<4x8x32xf32>) -> tensor<4x8x32xbf16>
// CHECK:         %[[O:.*]] = stablehlo.dot_general %[[N]], %arg2
// CHECK:         %[[C:.*]] = stablehlo.convert %[[O]]
// CHECK:         %[[R:.*]] = stablehlo.transpose %[[C]], dims = [1, 0, 2]
// CHECK:         return %[[R]]
// LEFT-LABEL: func.func @main
// LEFT:         stablehlo.divide %{{.*}}, %{{.*}} : tensor<8x4x16xf32>
func.func @main(%q: tensor<4x8x16xbf16>, %k: tensor<4x32x16xbf16>, %v: tensor<4x32x16xbf16>) -> tensor<8x4x16xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x8x16xbf16>, tensor<4x32x16xbf16>) -> tensor<4x8x32xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<4x8x32xf32>, tensor<f32>) -> tensor<4x8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8x32xf32>
  %d = stablehlo.subtract %s, %mb : tensor<4x8x32xf32>
  %e = stablehlo.exponential %d : tensor<4x8x32xf32>
  %n = stablehlo.convert %e : (tensor<4x8x32xf32>) -> tensor<4x8x32xbf16>
  %o = stablehlo.dot_general %n, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x8x32xbf16>, tensor<4x32x16xbf16>) -> tensor<4x8x16xbf16>
  %c = stablehlo.convert %o : (tensor<4x8x16xbf16>) -> tensor<4x8x16xf32>
  %p = stablehlo.transpose %c, dims = [1, 0, 2] : (tensor<4x8x16xf32>) -> tensor<8x4x16xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x8x32xf32>, tensor<f32>) -> tensor<4x8xf32>
  %u = stablehlo.transpose %t, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %tb = stablehlo.broadcast_in_dim %u, dims = [0, 1] : (tensor<8x4xf32>) -> tensor<8x4x16xf32>
  %r = stablehlo.divide %p, %tb : tensor<8x4x16xf32>
  return %r : tensor<8x4x16xf32>
}

// -----

// Powers that something else reads, and a divisor of each column, stay.
// CHECK-LABEL: func.func @main
// CHECK:         stablehlo.divide %{{.*}}, %{{.*}} : tensor<8x16xf32>
// CHECK-NEXT:    stablehlo.divide %{{.*}}, %arg3 : tensor<8x16xf32>
// CHECK-NEXT:    return
// LEFT-LABEL: func.func @main
func.func @main(%q: tensor<8x16xf32>, %k: tensor<32x16xf32>, %v: tensor<32x16xf32>, %g: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x32xf32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<8xf32>) -> tensor<8x32xf32>
  %d = stablehlo.subtract %s, %mb : tensor<8x32xf32>
  %e = stablehlo.exponential %d : tensor<8x32xf32>
  %o = stablehlo.dot_general %e, %v, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %o2 = stablehlo.dot_general %e, %v, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
  %r = stablehlo.divide %o, %tb : tensor<8x16xf32>
  %r2 = stablehlo.divide %o2, %g : tensor<8x16xf32>
  return %r, %r2, %e : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x32xf32>
}

// -----

// Powers of what the logarithm of a softmax is: there are powers already, whose sum that was.
// CHECK-LABEL: func.func @main
// CHECK:         %[[E:.*]] = stablehlo.exponential
// CHECK:         %[[T:.*]] = stablehlo.reduce(%[[E]]
// CHECK-NOT:     stablehlo.log
// CHECK-NOT:     stablehlo.exponential
// CHECK:         %[[B:.*]] = stablehlo.broadcast_in_dim %[[T]], dims = [0] : (tensor<8xf32>) -> tensor<8x32xf32>
// CHECK:         %[[W:.*]] = stablehlo.divide %[[E]], %[[B]] : tensor<8x32xf32>
// CHECK:         stablehlo.dot_general %[[W]], %arg2
// LEFT-LABEL: func.func @main
// LEFT:         stablehlo.log
func.func @main(%q: tensor<8x16xf32>, %k: tensor<32x16xf32>, %v: tensor<32x16xf32>) -> tensor<8x16xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<8xf32>) -> tensor<8x32xf32>
  %d = stablehlo.subtract %s, %mb : tensor<8x32xf32>
  %e = stablehlo.exponential %d : tensor<8x32xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
  %l = stablehlo.log %t : tensor<8xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<8xf32>) -> tensor<8x32xf32>
  %x = stablehlo.subtract %d, %lb : tensor<8x32xf32>
  %w = stablehlo.exponential %x : tensor<8x32xf32>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  return %o : tensor<8x16xf32>
}

// -----

// Relative to the logarithm of a sum, which is a result, too; and, not known, to that of another row.
// CHECK-LABEL: func.func @main
// CHECK:         %[[E:.*]] = stablehlo.exponential
// CHECK:         %[[T:.*]] = stablehlo.reduce(%[[E]]
// CHECK:         %[[L:.*]] = stablehlo.log %[[T]]
// CHECK:         %[[A:.*]] = stablehlo.add %[[L]], %{{.*}} : tensor<8xf32>
// CHECK:         %[[W:.*]] = stablehlo.divide %[[E]], %{{.*}} : tensor<8x32xf32>
// CHECK:         %[[O:.*]] = stablehlo.dot_general %[[W]], %arg2
// CHECK:         %[[Y:.*]] = stablehlo.exponential
// CHECK:         %[[P:.*]] = stablehlo.dot_general %[[Y]], %arg2
// CHECK:         return %[[O]], %[[P]], %[[A]]
// LEFT-LABEL: func.func @main
func.func @main(%q: tensor<8x16xf32>, %k: tensor<32x16xf32>, %v: tensor<32x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8xf32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<8xf32>) -> tensor<8x32xf32>
  %d = stablehlo.subtract %s, %mb : tensor<8x32xf32>
  %e = stablehlo.exponential %d : tensor<8x32xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
  %l = stablehlo.log %t : tensor<8xf32>
  %a = stablehlo.add %l, %m : tensor<8xf32>
  %ab = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<8xf32>) -> tensor<8x32xf32>
  %x = stablehlo.subtract %s, %ab : tensor<8x32xf32>
  %w = stablehlo.exponential %x : tensor<8x32xf32>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %r = stablehlo.reverse %a, dims = [0] : tensor<8xf32>
  %rb = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<8xf32>) -> tensor<8x32xf32>
  %z = stablehlo.subtract %s, %rb : tensor<8x32xf32>
  %y = stablehlo.exponential %z : tensor<8x32xf32>
  %p = stablehlo.dot_general %y, %v, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  return %o, %p, %a : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8xf32>
}
