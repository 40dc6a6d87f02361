// RUN: xgpu-opt %s -p find-chains --split-input-file | FileCheck %s

// Keys and values in pages are gathered in the chain, which reads the pages and their numbers.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[R:.*]] = "xgpu.chain"(%arg0, %arg1, %arg3, %arg2) ({
// CHECK-NEXT:    ^bb0(%[[Q:.*]]: tensor<64x64xbf16>, %[[K:.*]]: tensor<9x16x64xbf16>, %[[T:.*]]: tensor<8xi32>, %[[V:.*]]: tensor<9x16x64xbf16>):
// CHECK:           "stablehlo.gather"(%[[K]], %{{.*}})
// CHECK:           "stablehlo.gather"(%[[V]], %{{.*}})
// CHECK:         return %[[R]]
func.func @main(%q: tensor<64x64xbf16>, %k: tensor<9x16x64xbf16>, %v: tensor<9x16x64xbf16>, %table: tensor<8xi32>) -> tensor<64x64xbf16> {
  %at = stablehlo.broadcast_in_dim %table, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
  %pages = "stablehlo.gather"(%k, %at) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16, 64>}> : (tensor<9x16x64xbf16>, tensor<8x1xi32>) -> tensor<8x16x64xbf16>
  %keys = stablehlo.reshape %pages : (tensor<8x16x64xbf16>) -> tensor<128x64xbf16>
  %s = stablehlo.dot_general %q, %keys, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<128x64xbf16>) -> tensor<64x128xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %max = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>
  %above = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<64xf32>) -> tensor<64x128xf32>
  %relative = stablehlo.subtract %s, %above : tensor<64x128xf32>
  %e = stablehlo.exponential %relative : tensor<64x128xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>
  %all = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<64xf32>) -> tensor<64x128xf32>
  %p = stablehlo.divide %e, %all : tensor<64x128xf32>
  %w = stablehlo.convert %p : (tensor<64x128xf32>) -> tensor<64x128xbf16>
  %others = "stablehlo.gather"(%v, %at) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16, 64>}> : (tensor<9x16x64xbf16>, tensor<8x1xi32>) -> tensor<8x16x64xbf16>
  %values = stablehlo.reshape %others : (tensor<8x16x64xbf16>) -> tensor<128x64xbf16>
  %r = stablehlo.dot_general %w, %values, contracting_dims = [1] x [0] : (tensor<64x128xbf16>, tensor<128x64xbf16>) -> tensor<64x64xbf16>
  return %r : tensor<64x64xbf16>
}

// -----

// No eight keys are in one page for sure: the chain reads what is gathered before.

// CHECK-LABEL: func.func @main
// CHECK:         %[[K:.*]] = "stablehlo.gather"
// CHECK:         %[[V:.*]] = "stablehlo.gather"
// CHECK:         "xgpu.chain"(%arg0, %[[K]], %[[V]]) ({
func.func @main(%q: tensor<64x64xbf16>, %k: tensor<300x64xbf16>, %v: tensor<300x64xbf16>, %table: tensor<128xi32>) -> tensor<64x64xbf16> {
  %at = stablehlo.broadcast_in_dim %table, dims = [0] : (tensor<128xi32>) -> tensor<128x1xi32>
  %keys = "stablehlo.gather"(%k, %at) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>}> : (tensor<300x64xbf16>, tensor<128x1xi32>) -> tensor<128x64xbf16>
  %s = stablehlo.dot_general %q, %keys, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<128x64xbf16>) -> tensor<64x128xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %max = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>
  %above = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<64xf32>) -> tensor<64x128xf32>
  %relative = stablehlo.subtract %s, %above : tensor<64x128xf32>
  %e = stablehlo.exponential %relative : tensor<64x128xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>
  %all = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<64xf32>) -> tensor<64x128xf32>
  %p = stablehlo.divide %e, %all : tensor<64x128xf32>
  %w = stablehlo.convert %p : (tensor<64x128xf32>) -> tensor<64x128xbf16>
  %values = "stablehlo.gather"(%v, %at) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>}> : (tensor<300x64xbf16>, tensor<128x1xi32>) -> tensor<128x64xbf16>
  %r = stablehlo.dot_general %w, %values, contracting_dims = [1] x [0] : (tensor<64x128xbf16>, tensor<128x64xbf16>) -> tensor<64x64xbf16>
  return %r : tensor<64x64xbf16>
}
