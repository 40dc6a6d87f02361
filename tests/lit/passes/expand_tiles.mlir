// RUN: xgpu-opt %s -p expand-tiles --split-input-file | FileCheck %s

// Blocks and steps become loops that count, a tile a gather with zeros where a constraint fails, and a tile that is
// written a scatter with indices outside there. Outputs begin as zeros.

// CHECK-NOT:     xgpu
// CHECK-LABEL:   func.func @main(%arg0: tensor<42xf32>, %arg1: tensor<f32>) -> tensor<42xf32> {
// CHECK:         %[[OUT:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<42xf32>
// CHECK:         %[[ALL:.*]]:2 = stablehlo.while(%[[N:.*]] = %{{.*}}, %[[ARRAY:.*]] = %[[OUT]]) : tensor<i64>, tensor<42xf32>
// CHECK:           stablehlo.constant dense<6> : tensor<i64>
// CHECK-NEXT:      stablehlo.compare LT
// CHECK:         do {
// CHECK:           %[[TWO:.*]] = stablehlo.constant dense<2> : tensor<i64>
// CHECK:           stablehlo.remainder %[[N]]
// CHECK:           stablehlo.while
// CHECK:             stablehlo.constant dense<4> : tensor<i64>
// CHECK:           do {
// CHECK:             %[[PLACES:.*]] = stablehlo.iota dim = 0 : tensor<8xi64>
// CHECK:             %[[LOW:.*]] = stablehlo.compare GE
// CHECK:             %[[HIGH:.*]] = stablehlo.compare LE
// CHECK:             %[[HOLDS:.*]] = stablehlo.and %[[LOW]], %[[HIGH]]
// CHECK:             %[[FOUND:.*]] = "stablehlo.gather"(%arg0, %{{.*}}) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>
// CHECK:             stablehlo.select %[[HOLDS]], %[[FOUND]]
// CHECK:             stablehlo.broadcast_in_dim %arg1, dims = []
// CHECK:           }
// CHECK:           %[[OUTSIDE:.*]] = stablehlo.constant dense<-1> : tensor<8x1xi64>
// CHECK:           %[[WHERE:.*]] = stablehlo.select %{{.*}}, %{{.*}}, %[[OUTSIDE]]
// CHECK:           "stablehlo.scatter"(%[[ARRAY]], %[[WHERE]], %{{.*}}) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}>
// CHECK:         return %[[ALL]]#1 : tensor<42xf32>
module attributes {xgpu.level = "tiles"} {
  func.func @kernel(%x: tensor<42xf32>, %one: tensor<f32>, %out: tensor<42xf32>) -> tensor<42xf32> attributes {xgpu.kernel, xgpu.inputs = 2 : i64} {
    %all = "xgpu.blocks"(%out) ({
    ^bb0(%i: index, %j: index, %array: tensor<42xf32>):
      %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
      %sum = "xgpu.steps"(%zero) ({
      ^bb0(%step: index, %partial: tensor<8xf32>):
        %tile = "xgpu.tile"(%x, %i, %j) {map = #xgpu.map<(d0, d1)[s0] -> (d0 * 16 + d1 * 8 + s0), d0 in [0, 2], d1 in [0, 1], s0 in [0, 7], d0 * 16 + d1 * 8 + s0 in [0, 41]>} : (tensor<42xf32>, index, index) -> tensor<8xf32>
        %same = "xgpu.tile"(%one) {map = #xgpu.map<()[s0] -> (), s0 in [0, 7]>} : (tensor<f32>) -> tensor<8xf32>
        %product = stablehlo.multiply %tile, %same : tensor<8xf32>
        %next = stablehlo.add %partial, %product : tensor<8xf32>
        "xgpu.yield"(%next) : (tensor<8xf32>) -> ()
      }) {count = 4 : i64} : (tensor<8xf32>) -> tensor<8xf32>
      %new = "xgpu.insert_tile"(%sum, %array, %i, %j) {map = #xgpu.map<(d0, d1)[s0] -> (d0 * 16 + d1 * 8 + s0), d0 in [0, 2], d1 in [0, 1], s0 in [0, 7], d0 * 16 + d1 * 8 + s0 in [0, 41]>} : (tensor<8xf32>, tensor<42xf32>, index, index) -> tensor<42xf32>
      "xgpu.yield"(%new) : (tensor<42xf32>) -> ()
    }) {grid = array<i64: 3, 2>} : (tensor<42xf32>) -> tensor<42xf32>
    return %all : tensor<42xf32>
  }
}

// -----

// Operands of f32 are rounded to tf32, and signless bytes are taken for what the tile says.

// CHECK-LABEL: func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xi8>) -> (tensor<8x8xf32>, tensor<8x8xi32>)
// CHECK:         %[[BYTES:.*]] = "stablehlo.gather"(%arg1,
// CHECK:         %[[UNSIGNED:.*]] = stablehlo.bitcast_convert %[[BYTES]] : (tensor<8x8xi8>) -> tensor<8x8xui8>
// CHECK:         %[[LEFT:.*]] = stablehlo.reduce_precision %{{.*}}, format = e8m10 : tensor<8x8xf32>
// CHECK-NEXT:    %[[RIGHT:.*]] = stablehlo.reduce_precision %{{.*}}, format = e8m10 : tensor<8x8xf32>
// CHECK-NEXT:    stablehlo.dot_general %[[LEFT]], %[[RIGHT]]
// CHECK:         stablehlo.dot_general %[[UNSIGNED]], %[[UNSIGNED]]
module attributes {xgpu.level = "tiles"} {
  func.func @kernel(%x: tensor<8x8xf32>, %y: tensor<8x8xi8>, %out: tensor<8x8xf32>, %other: tensor<8x8xi32>) -> (tensor<8x8xf32>, tensor<8x8xi32>) attributes {xgpu.kernel, xgpu.inputs = 2 : i64} {
    %all:2 = "xgpu.blocks"(%out, %other) ({
    ^bb0(%i: index, %array: tensor<8x8xf32>, %second: tensor<8x8xi32>):
      %tile = "xgpu.tile"(%x, %i) {map = #xgpu.map<(d0)[s0, s1] -> (s0, s1), d0 in [0, 0], s0 in [0, 7], s1 in [0, 7]>} : (tensor<8x8xf32>, index) -> tensor<8x8xf32>
      %bytes = "xgpu.tile"(%y, %i) {map = #xgpu.map<(d0)[s0, s1] -> (s0, s1), d0 in [0, 0], s0 in [0, 7], s1 in [0, 7]>} : (tensor<8x8xi8>, index) -> tensor<8x8xui8>
      %product = stablehlo.dot_general %tile, %tile, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %sum = stablehlo.dot_general %bytes, %bytes, contracting_dims = [1] x [0] : (tensor<8x8xui8>, tensor<8x8xui8>) -> tensor<8x8xi32>
      %new = "xgpu.insert_tile"(%product, %array, %i) {map = #xgpu.map<(d0)[s0, s1] -> (s0, s1), d0 in [0, 0], s0 in [0, 7], s1 in [0, 7]>} : (tensor<8x8xf32>, tensor<8x8xf32>, index) -> tensor<8x8xf32>
      %last = "xgpu.insert_tile"(%sum, %second, %i) {map = #xgpu.map<(d0)[s0, s1] -> (s0, s1), d0 in [0, 0], s0 in [0, 7], s1 in [0, 7]>} : (tensor<8x8xi32>, tensor<8x8xi32>, index) -> tensor<8x8xi32>
      "xgpu.yield"(%new, %last) : (tensor<8x8xf32>, tensor<8x8xi32>) -> ()
    }) {grid = array<i64: 1>} : (tensor<8x8xf32>, tensor<8x8xi32>) -> (tensor<8x8xf32>, tensor<8x8xi32>)
    return %all#0, %all#1 : tensor<8x8xf32>, tensor<8x8xi32>
  }
}

// -----

// Numbers are clamped, those without signs before they are of a type that has one.

// CHECK-LABEL: func.func @main(%arg0: tensor<5x4xf32>, %arg1: tensor<4xi32>, %arg2: tensor<i64>) -> tensor<16xf32>
// CHECK:         %[[READ:.*]] = "stablehlo.gather"(%arg1,
// CHECK:         %[[FIRST:.*]] = stablehlo.bitcast_convert %{{.*}} : (tensor<8xi64>) -> tensor<8xui64>
// CHECK:         %[[LONG:.*]] = stablehlo.convert %[[READ]] : (tensor<8xi32>) -> tensor<8xi64>
// CHECK:         stablehlo.clamp %{{.*}}, %[[LONG]], %{{.*}} : (tensor<i64>, tensor<8xi64>, tensor<i64>) -> tensor<8xi64>
// CHECK:         %[[LEAST:.*]] = stablehlo.minimum %[[FIRST]], %{{.*}} : tensor<8xui64>
// CHECK:         %[[SIGNED:.*]] = stablehlo.convert %[[LEAST]] : (tensor<8xui64>) -> tensor<8xi64>
// CHECK:         stablehlo.clamp %{{.*}}, %[[SIGNED]], %{{.*}}
// CHECK:         "stablehlo.gather"(%arg0,
module attributes {xgpu.level = "tiles"} {
  func.func @kernel(%x: tensor<5x4xf32>, %table: tensor<4xi32>, %first: tensor<i64>, %out: tensor<16xf32>) -> tensor<16xf32> attributes {xgpu.kernel, xgpu.inputs = 3 : i64} {
    %all = "xgpu.blocks"(%out) ({
    ^bb0(%i: index, %array: tensor<16xf32>):
      %row = "xgpu.tile"(%table, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 2 + s0 floordiv 4), d0 in [0, 1], s0 in [0, 7]>} : (tensor<4xi32>, index) -> tensor<8xi32>
      %column = "xgpu.tile"(%first, %i) {map = #xgpu.map<(d0)[s0] -> (), d0 in [0, 1], s0 in [0, 7]>} : (tensor<i64>, index) -> tensor<8xui64>
      %tile = "xgpu.gather_tile"(%x, %row, %column, %i) {map = #xgpu.map<(d0, d1, d2)[s0] -> (d1, s0 mod 2 + d2), d0 in [0, 1], d1 in [0, 4], d2 in [0, 2], s0 in [0, 7]>} : (tensor<5x4xf32>, tensor<8xi32>, tensor<8xui64>, index) -> tensor<8xf32>
      %new = "xgpu.insert_tile"(%tile, %array, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 8 + s0), d0 in [0, 1], s0 in [0, 7]>} : (tensor<8xf32>, tensor<16xf32>, index) -> tensor<16xf32>
      "xgpu.yield"(%new) : (tensor<16xf32>) -> ()
    }) {grid = array<i64: 2>} : (tensor<16xf32>) -> tensor<16xf32>
    return %all : tensor<16xf32>
  }
}
