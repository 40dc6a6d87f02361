// RUN: xgpu compile %s --emit tiles | FileCheck %s
// RUN: xgpu compile %s --emit emitted | FileCheck %s --check-prefix=EMITTED

// Keys up to a length that is read: the steps end there, after the last of its tiles of 128.
// CHECK: %[[LENGTH:.*]] = "xgpu.tile"(%{{.*}}) {map = #xgpu.map<(d0, d1, d2) -> (d0), {{.*}}>} : (tensor<2xi32>, index, index, index) -> tensor<i32>
// CHECK: "xgpu.steps"({{.*}}, %[[LENGTH]]) ({
// CHECK: }) {count = 3 : i64, xgpu.visible = #xgpu.map<(d0, d1, d2, d3) -> (0, 3, (d3 + 127) floordiv 128), {{.*}} d3 in [0, 300]>}

// Each role reads it, and clamps it to the keys that there are.
// EMITTED: %[[READ:.*]] = tensor.extract %arg{{[0-9]+}}[%{{.*}}] : tensor<2xi32>
// EMITTED: arith.maxsi %[[READ]]
func.func @main(%q: tensor<2x64x64xbf16>, %k: tensor<2x300x64xbf16>, %v: tensor<2x300x64xbf16>, %lengths: tensor<2xi32>) -> tensor<2x64x64xbf16> {
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x64x64xbf16>, tensor<2x300x64xbf16>) -> tensor<2x64x300xf32>
  %numbers = stablehlo.iota dim = 2 : tensor<2x64x300xi32>
  %ends = stablehlo.broadcast_in_dim %lengths, dims = [0] : (tensor<2xi32>) -> tensor<2x64x300xi32>
  %seen = stablehlo.compare LT, %numbers, %ends : (tensor<2x64x300xi32>, tensor<2x64x300xi32>) -> tensor<2x64x300xi1>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %hidden = stablehlo.broadcast_in_dim %low, dims = [] : (tensor<f32>) -> tensor<2x64x300xf32>
  %l = stablehlo.select %seen, %s, %hidden : tensor<2x64x300xi1>, tensor<2x64x300xf32>
  %max = stablehlo.reduce(%l init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<2x64x300xf32>, tensor<f32>) -> tensor<2x64xf32>
  %above = stablehlo.broadcast_in_dim %max, dims = [0, 1] : (tensor<2x64xf32>) -> tensor<2x64x300xf32>
  %relative = stablehlo.subtract %l, %above : tensor<2x64x300xf32>
  %e = stablehlo.exponential %relative : tensor<2x64x300xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x64x300xf32>, tensor<f32>) -> tensor<2x64xf32>
  %all = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<2x64xf32>) -> tensor<2x64x300xf32>
  %p = stablehlo.divide %e, %all : tensor<2x64x300xf32>
  %w = stablehlo.convert %p : (tensor<2x64x300xf32>) -> tensor<2x64x300xbf16>
  %r = stablehlo.dot_general %w, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x64x300xbf16>, tensor<2x300x64xbf16>) -> tensor<2x64x64xbf16>
  return %r : tensor<2x64x64xbf16>
}
