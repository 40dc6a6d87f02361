// RUN: xgpu-opt %s -p merge-rows --split-input-file | FileCheck %s

// Heads 0 to 3 have the first head of the keys, 4 to 7 the second: a dimension of two groups of four rows each. Logits
// are those of the program; of the values, which are repeated, the first member's are those of all.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[C:.*]] = "xgpu.chain"(%arg0, %arg1, %arg2) ({
// CHECK:           %[[S:.*]] = stablehlo.dot_general {{.*}} -> tensor<8x1x256xf32>
// CHECK-NEXT:      %[[X:.*]] = stablehlo.reshape %[[S]] : (tensor<8x1x256xf32>) -> tensor<2x4x256xf32>
// CHECK:           stablehlo.reduce(%[[X]] init: %{{.*}}) applies stablehlo.maximum across dimensions = [2]
// CHECK:           %[[V:.*]] = stablehlo.reshape %{{.*}} : (tensor<256x8x64xbf16>) -> tensor<256x2x4x64xbf16>
// CHECK-NEXT:      %[[F:.*]] = stablehlo.slice %[[V]] [0:256, 0:2, 0:1, 0:64]
// CHECK:           %[[O:.*]] = stablehlo.dot_general %{{.*}}, %{{.*}}, batching_dims = [0] x [0], contracting_dims = [2] x [1] : {{.*}} -> tensor<2x4x64xbf16>
// CHECK-NEXT:      %[[M:.*]] = stablehlo.reshape %[[O]] : (tensor<2x4x64xbf16>) -> tensor<8x1x64xbf16>
// CHECK-NEXT:      %[[R:.*]] = stablehlo.reshape %[[M]] : (tensor<8x1x64xbf16>) -> tensor<8x64xbf16>
// CHECK-NEXT:      stablehlo.return %[[R]]
// CHECK:         return %[[C]]
func.func @main(%q: tensor<8x64xbf16>, %k: tensor<256x2x64xbf16>, %v: tensor<256x2x64xbf16>) -> tensor<8x64xbf16> {
  %r = "xgpu.chain"(%q, %k, %v) ({
  ^bb0(%0: tensor<8x64xbf16>, %1: tensor<256x2x64xbf16>, %2: tensor<256x2x64xbf16>):
    %kb = stablehlo.broadcast_in_dim %1, dims = [0, 1, 3] : (tensor<256x2x64xbf16>) -> tensor<256x2x4x64xbf16>
    %kr = stablehlo.reshape %kb : (tensor<256x2x4x64xbf16>) -> tensor<256x8x64xbf16>
    %vb = stablehlo.broadcast_in_dim %2, dims = [0, 1, 3] : (tensor<256x2x64xbf16>) -> tensor<256x2x4x64xbf16>
    %vr = stablehlo.reshape %vb : (tensor<256x2x4x64xbf16>) -> tensor<256x8x64xbf16>
    %qr = stablehlo.reshape %0 : (tensor<8x64xbf16>) -> tensor<1x8x64xbf16>
    %y = stablehlo.dot_general %qr, %kr, batching_dims = [1] x [1], contracting_dims = [2] x [2] : (tensor<1x8x64xbf16>, tensor<256x8x64xbf16>) -> tensor<8x1x256xf32>
    %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %m = stablehlo.reduce(%y init: %neg) applies stablehlo.maximum across dimensions = [2] : (tensor<8x1x256xf32>, tensor<f32>) -> tensor<8x1xf32>
    %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x1x256xf32>
    %d = stablehlo.subtract %y, %mb : tensor<8x1x256xf32>
    %e = stablehlo.exponential %d : tensor<8x1x256xf32>
    %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<8x1x256xf32>, tensor<f32>) -> tensor<8x1xf32>
    %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x1x256xf32>
    %p = stablehlo.divide %e, %tb : tensor<8x1x256xf32>
    %w = stablehlo.convert %p : (tensor<8x1x256xf32>) -> tensor<8x1x256xbf16>
    %o = stablehlo.dot_general %w, %vr, batching_dims = [0] x [1], contracting_dims = [2] x [0] : (tensor<8x1x256xbf16>, tensor<256x8x64xbf16>) -> tensor<8x1x64xbf16>
    %or = stablehlo.reshape %o : (tensor<8x1x64xbf16>) -> tensor<8x64xbf16>
    stablehlo.return %or : tensor<8x64xbf16>
  }) : (tensor<8x64xbf16>, tensor<256x2x64xbf16>, tensor<256x2x64xbf16>) -> tensor<8x64xbf16>
  return %r : tensor<8x64xbf16>
}

// -----

// Eight queries of each of four heads that share keys, for 200 heads of keys: 32 rows, gathered before. In the chain they
// are again what they were.
// CHECK-LABEL: func.func @main
// CHECK:         %[[T:.*]] = stablehlo.transpose %arg0, dims = [1, 0, 2, 3] : (tensor<8x200x4x64xbf16>) -> tensor<200x8x4x64xbf16>
// CHECK-NEXT:    %[[Q:.*]] = stablehlo.reshape %[[T]] : (tensor<200x8x4x64xbf16>) -> tensor<200x32x64xbf16>
// CHECK-NEXT:    %[[R:.*]] = "xgpu.chain"(%arg1, %[[Q]]) ({
// CHECK:           stablehlo.transpose %{{.*}}, dims = [1, 0, 2, 3] : (tensor<200x8x4x64xbf16>) -> tensor<8x200x4x64xbf16>
// CHECK:         }) : (tensor<200x2048x64xbf16>, tensor<200x32x64xbf16>) -> tensor<200x32x64xbf16>
// CHECK-NEXT:    stablehlo.reshape %[[R]] : (tensor<200x32x64xbf16>) -> tensor<200x8x4x64xbf16>
func.func @main(%q: tensor<8x200x4x64xbf16>, %k: tensor<200x2048x64xbf16>) -> tensor<200x8x4x64xbf16> {
  %r = "xgpu.chain"(%q, %k) ({
  ^bb0(%0: tensor<8x200x4x64xbf16>, %1: tensor<200x2048x64xbf16>):
    %y = stablehlo.dot_general %0, %1, batching_dims = [1] x [0], contracting_dims = [3] x [2] : (tensor<8x200x4x64xbf16>, tensor<200x2048x64xbf16>) -> tensor<200x8x4x2048xf32>
    %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %m = stablehlo.reduce(%y init: %neg) applies stablehlo.maximum across dimensions = [3] : (tensor<200x8x4x2048xf32>, tensor<f32>) -> tensor<200x8x4xf32>
    %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2] : (tensor<200x8x4xf32>) -> tensor<200x8x4x2048xf32>
    %d = stablehlo.subtract %y, %mb : tensor<200x8x4x2048xf32>
    %e = stablehlo.exponential %d : tensor<200x8x4x2048xf32>
    %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<200x8x4x2048xf32>, tensor<f32>) -> tensor<200x8x4xf32>
    %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1, 2] : (tensor<200x8x4xf32>) -> tensor<200x8x4x2048xf32>
    %p = stablehlo.divide %e, %tb : tensor<200x8x4x2048xf32>
    %w = stablehlo.convert %p : (tensor<200x8x4x2048xf32>) -> tensor<200x8x4x2048xbf16>
    %o = stablehlo.dot_general %w, %1, batching_dims = [0] x [0], contracting_dims = [3] x [1] : (tensor<200x8x4x2048xbf16>, tensor<200x2048x64xbf16>) -> tensor<200x8x4x64xbf16>
    stablehlo.return %o : tensor<200x8x4x64xbf16>
  }) : (tensor<8x200x4x64xbf16>, tensor<200x2048x64xbf16>) -> tensor<200x8x4x64xbf16>
  return %r : tensor<200x8x4x64xbf16>
}

// -----

// Rows of one head fill tiles: of all heads' rows there are no fewer.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[R:.*]] = "xgpu.chain"(%arg0, %arg1) ({
// CHECK-NOT:       stablehlo.reshape
// CHECK:         return %[[R]]
func.func @main(%q: tensor<128x200x4x64xbf16>, %k: tensor<200x2048x64xbf16>) -> tensor<200x128x4x64xbf16> {
  %r = "xgpu.chain"(%q, %k) ({
  ^bb0(%0: tensor<128x200x4x64xbf16>, %1: tensor<200x2048x64xbf16>):
    %y = stablehlo.dot_general %0, %1, batching_dims = [1] x [0], contracting_dims = [3] x [2] : (tensor<128x200x4x64xbf16>, tensor<200x2048x64xbf16>) -> tensor<200x128x4x2048xf32>
    %neg = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %m = stablehlo.reduce(%y init: %neg) applies stablehlo.maximum across dimensions = [3] : (tensor<200x128x4x2048xf32>, tensor<f32>) -> tensor<200x128x4xf32>
    %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2] : (tensor<200x128x4xf32>) -> tensor<200x128x4x2048xf32>
    %d = stablehlo.subtract %y, %mb : tensor<200x128x4x2048xf32>
    %e = stablehlo.exponential %d : tensor<200x128x4x2048xf32>
    %t = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<200x128x4x2048xf32>, tensor<f32>) -> tensor<200x128x4xf32>
    %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1, 2] : (tensor<200x128x4xf32>) -> tensor<200x128x4x2048xf32>
    %p = stablehlo.divide %e, %tb : tensor<200x128x4x2048xf32>
    %w = stablehlo.convert %p : (tensor<200x128x4x2048xf32>) -> tensor<200x128x4x2048xbf16>
    %o = stablehlo.dot_general %w, %1, batching_dims = [0] x [0], contracting_dims = [3] x [1] : (tensor<200x128x4x2048xbf16>, tensor<200x2048x64xbf16>) -> tensor<200x128x4x64xbf16>
    stablehlo.return %o : tensor<200x128x4x64xbf16>
  }) : (tensor<128x200x4x64xbf16>, tensor<200x2048x64xbf16>) -> tensor<200x128x4x64xbf16>
  return %r : tensor<200x128x4x64xbf16>
}

