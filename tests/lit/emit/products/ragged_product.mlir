// RUN: xgpu compile %s --emit tiles | FileCheck %s
// RUN: xgpu compile %s --emit emitted | FileCheck %s --check-prefix=EMITTED

// Which rows a tile has, and of which group, is known when the kernel runs. What is read beyond an array is zero: rows
// of no group are read after the last, and their matrix, too. What is written ends where the group does.
// CHECK-LABEL: func.func @product(
// CHECK: "xgpu.blocks"(%arg3) ({
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[ROW:.*]]: index, %{{.*}}: index,
// CHECK-NEXT: %[[SIZES:.*]] = "xgpu.tile"(%arg2,
// CHECK-NEXT: %[[AT:.*]]:4 = "xgpu.group_rows"(%[[SIZES]], %[[ROW]]) {rows = 64 : i64, total = 200 : i64}
// CHECK: "xgpu.tile"(%arg0, {{.*}}(d3 + s0, d7 * 64 + s1), {{.*}}d3 + s0 in [0, 199]
// CHECK: "xgpu.tile"(%arg1, {{.*}}(d4, d7 * 64 + s0, d2 * 64 + s1), {{.*}}d4 in [0, 2]
// CHECK: "xgpu.insert_tile"({{.*}}(d5 + s0, d2 * 64 + s1), {{.*}}-d6 + s0 in [-64, -1]
// CHECK: {grid = array<i64: 1, 7, 2>}

// One thread writes down where groups begin; of that each thread finds the group of a tile, in three steps of 3 groups,
// the rest and the end. Steps along a matrix of 72 rows do not go on in the next one, so groups are a dimension.
// EMITTED-LABEL: func.func @product(
// EMITTED: "xgpu.encode_tensor_map"({{.*}} shape = array<i64: 200, 72>
// EMITTED: "xgpu.encode_tensor_map"({{.*}} shape = array<i64: 3, 72, 72>
// EMITTED: %[[ONE:.*]] = arith.cmpi eq, %thread_id_x, %c255
// EMITTED-NEXT: scf.if %[[ONE]] {
// EMITTED: scf.for
// EMITTED: llvm.store
// EMITTED: tensor.extract %arg2
// EMITTED: "xgpu.sync_threads"
// EMITTED-NOT: tensor.extract %arg2
// EMITTED: scf.for
// EMITTED-COUNT-3: arith.cmpi sle,
// EMITTED: scf.for
// EMITTED: "xgpu.warpgroup_mma"
module attributes {xgpu.level = "fusions"} {
  func.func @main(%x: tensor<200x72xbf16>, %w: tensor<3x72x72xbf16>, %sizes: tensor<3xi32>) -> tensor<200x72xbf16> {
    %0 = call @product(%x, %w, %sizes) : (tensor<200x72xbf16>, tensor<3x72x72xbf16>, tensor<3xi32>) -> tensor<200x72xbf16>
    return %0 : tensor<200x72xbf16>
  }
  func.func private @product(%x: tensor<200x72xbf16>, %w: tensor<3x72x72xbf16>, %sizes: tensor<3xi32>) -> tensor<200x72xbf16> attributes {xgpu.emitter = "product", xgpu.schedule = #xgpu.schedule<tile_m = 64, tile_n = 64, tile_k = 64, stages = 2, groups = 1, blocks = 4, cluster = 1, staged = false, band = 1, split = 1, swapped = false>} {
    %0 = "chlo.ragged_dot"(%x, %w, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> {xgpu.hero} : (tensor<200x72xbf16>, tensor<3x72x72xbf16>, tensor<3xi32>) -> tensor<200x72xbf16>
    return %0 : tensor<200x72xbf16>
  }
}
