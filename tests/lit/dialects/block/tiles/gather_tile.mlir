// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// Pages of 64 rows, two of them a tile.

// CHECK-LABEL: func.func @pages
// CHECK:         "xgpu.gather_tile"(%arg0, %{{.*}}, %arg2, %arg3) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d2, s0 mod 64, s1), d0 in [0, 7], d1 in [0, 31], d2 in [0, 4095], s0 in [0, 127], s1 in [0, 63]>} : (tensor<4096x64x64xbf16>, tensor<128x64xi32>, index, index) -> tensor<128x64xbf16>
func.func @pages(%pages: tensor<4096x64x64xbf16>, %table: tensor<8x64xi32>, %i: index, %step: index) -> tensor<128x64xbf16> {
  %0 = "xgpu.tile"(%table, %i, %step) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0, d1 * 2 + s0 floordiv 64), d0 in [0, 7], d1 in [0, 31], s0 in [0, 127], s1 in [0, 63]>} : (tensor<8x64xi32>, index, index) -> tensor<128x64xi32>
  %1 = "xgpu.gather_tile"(%pages, %0, %i, %step) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d2, s0 mod 64, s1), d0 in [0, 7], d1 in [0, 31], d2 in [0, 4095], s0 in [0, 127], s1 in [0, 63]>} : (tensor<4096x64x64xbf16>, tensor<128x64xi32>, index, index) -> tensor<128x64xbf16>
  return %1 : tensor<128x64xbf16>
}

// A layer, and the first of its rows: two numbers of each element, of other types, one without a sign.

// CHECK-LABEL: func.func @slice
// CHECK:         "xgpu.gather_tile"(%arg0, %arg1, %arg2, %arg3)
// CHECK-SAME:      -> (d1, d2 + d0 * 8 + s0), d0 in [0, 1], d1 in [0, 3], d2 in [0, 16], s0 in [0, 7]>
func.func @slice(%array: tensor<4x32xf32>, %layer: tensor<8xi32>, %first: tensor<8xui64>, %i: index) -> tensor<8xf32> {
  %0 = "xgpu.gather_tile"(%array, %layer, %first, %i) {map = #xgpu.map<(d0, d1, d2)[s0] -> (d1, d2 + d0 * 8 + s0), d0 in [0, 1], d1 in [0, 3], d2 in [0, 16], s0 in [0, 7]>} : (tensor<4x32xf32>, tensor<8xi32>, tensor<8xui64>, index) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
