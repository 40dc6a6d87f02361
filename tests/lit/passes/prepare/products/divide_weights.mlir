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

// -----

// Powers that a mask chooses, whose sums are kept from being zero: rows without keys stay zeros.
// CHECK-LABEL: func.func @main
// CHECK:         %[[S:.*]] = stablehlo.dot_general %arg0, %arg1
// CHECK:         %[[I:.*]] = stablehlo.constant dense<0xFF800000> : tensor<8x32xf32>
// CHECK:         %[[L:.*]] = stablehlo.select %arg3, %[[S]], %[[I]]
// CHECK:         stablehlo.reduce(%[[L]] init: %{{.*}}) applies stablehlo.maximum
// CHECK:         %[[E:.*]] = stablehlo.exponential
// CHECK:         stablehlo.reduce(%[[E]] init: %{{.*}}) applies stablehlo.add
// CHECK:         %[[D:.*]] = stablehlo.divide %[[E]], %{{.*}} : tensor<8x32xf32>
// CHECK:         %[[Z:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<8x32xf32>
// CHECK:         %[[W:.*]] = stablehlo.select %arg3, %[[D]], %[[Z]]
// CHECK:         stablehlo.dot_general %[[W]], %arg2
// LEFT-LABEL: func.func @main
// LEFT:         stablehlo.reduce(%{{.*}} init: %{{.*}}) applies stablehlo.maximum
func.func @main(%q: tensor<8x16xf32>, %k: tensor<32x16xf32>, %v: tensor<32x16xf32>, %mask: tensor<8x32xi1>) -> tensor<8x16xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<1.0e-6> : tensor<8xf32>
  %hidden = stablehlo.constant dense<-1.0e30> : tensor<8x32xf32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8x32xf32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
  %h = stablehlo.select %mask, %s, %hidden : tensor<8x32xi1>, tensor<8x32xf32>
  %m = stablehlo.reduce(%h init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<8xf32>) -> tensor<8x32xf32>
  %d = stablehlo.subtract %h, %mb : tensor<8x32xf32>
  %p = stablehlo.exponential %d : tensor<8x32xf32>
  %e = stablehlo.select %mask, %p, %zeros : tensor<8x32xi1>, tensor<8x32xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
  %tt = stablehlo.maximum %t, %least : tensor<8xf32>
  %tb = stablehlo.broadcast_in_dim %tt, dims = [0] : (tensor<8xf32>) -> tensor<8x32xf32>
  %w = stablehlo.divide %e, %tb : tensor<8x32xf32>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  return %o : tensor<8x16xf32>
}

// -----

// A divisor of which is not known what it is of nothing, and logits of which some are -inf already, stay.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: stablehlo.divide %{{.*}}, %{{.*}} : tensor<8x32xf32>
// CHECK-NOT:     stablehlo.select {{.*}} tensor<8x16xf32>
// CHECK:         return
// LEFT-LABEL: func.func @main
func.func @main(%q: tensor<8x16xf32>, %k: tensor<32x16xf32>, %v: tensor<32x16xf32>, %mask: tensor<8x32xi1>, %more: tensor<8x32xi1>, %g: tensor<8xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %hidden = stablehlo.constant dense<-1.0e30> : tensor<8x32xf32>
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<8x32xf32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8x32xf32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
  %h = stablehlo.select %mask, %s, %hidden : tensor<8x32xi1>, tensor<8x32xf32>
  %m = stablehlo.reduce(%h init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<8xf32>) -> tensor<8x32xf32>
  %d = stablehlo.subtract %h, %mb : tensor<8x32xf32>
  %p = stablehlo.exponential %d : tensor<8x32xf32>
  %e = stablehlo.select %mask, %p, %zeros : tensor<8x32xi1>, tensor<8x32xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
  %tt = stablehlo.maximum %t, %g : tensor<8xf32>
  %tb = stablehlo.broadcast_in_dim %tt, dims = [0] : (tensor<8xf32>) -> tensor<8x32xf32>
  %w = stablehlo.divide %e, %tb : tensor<8x32xf32>
  %o = stablehlo.dot_general %w, %v, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %s2 = stablehlo.dot_general %k, %q, contracting_dims = [1] x [1] : (tensor<32x16xf32>, tensor<8x16xf32>) -> tensor<32x8xf32>
  %st = stablehlo.transpose %s2, dims = [1, 0] : (tensor<32x8xf32>) -> tensor<8x32xf32>
  %i2 = stablehlo.select %more, %st, %lowest : tensor<8x32xi1>, tensor<8x32xf32>
  %h2 = stablehlo.select %mask, %i2, %hidden : tensor<8x32xi1>, tensor<8x32xf32>
  %m2 = stablehlo.reduce(%h2 init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
  %mb2 = stablehlo.broadcast_in_dim %m2, dims = [0] : (tensor<8xf32>) -> tensor<8x32xf32>
  %d2 = stablehlo.subtract %h2, %mb2 : tensor<8x32xf32>
  %p2 = stablehlo.exponential %d2 : tensor<8x32xf32>
  %e2 = stablehlo.select %mask, %p2, %zeros : tensor<8x32xi1>, tensor<8x32xf32>
  %t2 = stablehlo.reduce(%e2 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
  %tb2 = stablehlo.broadcast_in_dim %t2, dims = [0] : (tensor<8xf32>) -> tensor<8x32xf32>
  %w2 = stablehlo.divide %e2, %tb2 : tensor<8x32xf32>
  %o2 = stablehlo.dot_general %w2, %v, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  return %o, %o2 : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// More columns than one kernel has are attention in parts, which may not be faster: these are divided after the product.
// CHECK-LABEL: func.func @main
// CHECK:         %[[O:.*]] = stablehlo.divide %{{.*}}, %{{.*}} : tensor<128x520xf32>
// CHECK:         return %[[O]]
// LEFT-LABEL: func.func @main
func.func @main(%q: tensor<128x64xf32>, %k: tensor<256x64xf32>, %v: tensor<256x520xf32>) -> tensor<128x520xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<128x64xf32>, tensor<256x64xf32>) -> tensor<128x256xf32>
  %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<128x256xf32>, tensor<f32>) -> tensor<128xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<128xf32>) -> tensor<128x256xf32>
  %d = stablehlo.subtract %s, %mb : tensor<128x256xf32>
  %e = stablehlo.exponential %d : tensor<128x256xf32>
  %o = stablehlo.dot_general %e, %v, contracting_dims = [1] x [0] : (tensor<128x256xf32>, tensor<256x520xf32>) -> tensor<128x520xf32>
  %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<128x256xf32>, tensor<f32>) -> tensor<128xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<128xf32>) -> tensor<128x520xf32>
  %r = stablehlo.divide %o, %tb : tensor<128x520xf32>
  return %r : tensor<128x520xf32>
}
