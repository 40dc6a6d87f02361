// RUN: xgpu-opt %s -p lower-tiles | FileCheck %s

// Two blocks of a cluster compute a tile, each four of its eight steps. Then each adds up its share of the tile: of
// eight columns four, in which threads take eight neighbours down a column.

// CHECK-LABEL: func.func @fusion_0
// CHECK-SAME:    xgpu.cluster = array<i64: 2, 1, 1>

// Parts of sums go where tiles were, so that there is no more memory.
// CHECK:         %[[RANK:.*]] = "xgpu.apply_indexing"(%block_id_x) {map = #xgpu.map<(d0) -> (d0 mod 2), d0 in [0, 3]>}
// CHECK:         "xgpu.shared_memory"() {bytes = 74112 : i64}
// CHECK:         "xgpu.sync_threads"()
// CHECK-NOT:     "xgpu.cluster_arrive"
// CHECK:         scf.if %{{.*}} -> (tensor<5x96xf32>)
// CHECK:           %[[FIRST:.*]] = "xgpu.apply_indexing"(%[[RANK]]) {map = #xgpu.map<(d0) -> (d0 * 4), d0 in [0, 1]>}
// CHECK:           %[[END:.*]] = "xgpu.apply_indexing"(%[[RANK]]) {map = #xgpu.map<(d0) -> (d0 * 4 + 4), d0 in [0, 1]>}
// CHECK:           scf.for %[[STEP:.*]] = %[[FIRST]] to %[[END]]
// CHECK:             %[[BEGIN:.*]] = "xgpu.apply_indexing"(%[[RANK]]) {map = #xgpu.map<(d0) -> (d0 * 4), d0 in [0, 1]>}
// CHECK:             arith.cmpi ne, %[[STEP]], %[[BEGIN]]
// CHECK:             "xgpu.warpgroup_mma"

// All have multiplied, when the first writes its sums; all of the cluster have, when the first adds up.
// CHECK:           "xgpu.warpgroup_wait"({{.*}}) {pending = 0 : i64}
// CHECK:           "xgpu.named_barrier"(%c2_i32) {threads = 128 : i64, wait = true}
// CHECK:           "xgpu.loop"
// CHECK:             llvm.store {{.*}} : vector<1xf32>, !llvm.ptr<3>
// CHECK:           "xgpu.cluster_arrive"()
// CHECK-NEXT:      "xgpu.cluster_wait"()

// Its own part a block reads where it is, and the other's in that block.
// CHECK:           scf.if
// CHECK:             %[[OWN:.*]] = llvm.load %[[PLACE:.*]] {{[<{]alignment = 16( : i64)?[>}]}} : !llvm.ptr<3> -> vector<4xf32>
// CHECK-NEXT:        %[[NEXT:.*]] = "xgpu.apply_indexing"(%[[RANK]]) {map = #xgpu.map<(d0) -> ((d0 + 1) mod 2), d0 in [0, 1]>}
// CHECK-NEXT:        %[[OTHER:.*]] = arith.index_cast %[[NEXT]]
// CHECK-NEXT:        %[[THERE:.*]] = "xgpu.cluster_pointer"(%[[PLACE]], %[[OTHER]])
// CHECK-NEXT:        %[[PART:.*]] = llvm.load %[[THERE]] {{[<{]alignment = 16( : i64)?[>}]}} : !llvm.ptr<7> -> vector<4xf32>
// CHECK-NEXT:        %[[SUM:.*]] = arith.addf %[[OWN]], %[[PART]]
// CHECK-NEXT:        llvm.store %[[SUM]], %[[PLACE]] {{[<{]alignment = 16( : i64)?[>}]}}
// CHECK:           "xgpu.cluster_arrive"()
// CHECK:           "xgpu.named_barrier"({{.*}}) {threads = 128 : i64, wait = true}

// What follows is computed from the share.
// CHECK:           "xgpu.loop"(%thread_id_x, %[[RANK]],
// CHECK:             llvm.load {{.*}} : !llvm.ptr<3> -> vector<8xf32>
// CHECK:             tensor.extract %arg2
// CHECK:             tensor.insert

// Those that copy meet the others too, and nobody leaves before all have read.
// CHECK:         } else {
// CHECK:           "xgpu.tensor_load"
// CHECK:           "xgpu.cluster_arrive"()
// CHECK-NEXT:      "xgpu.cluster_wait"()
// CHECK-NEXT:      "xgpu.cluster_arrive"()
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    "xgpu.cluster_wait"()
// CHECK-NEXT:    return
module attributes {xgpu.level = "tiles"} {
  func.func @fusion_0(%arg0: tensor<5x512xbf16>, %arg1: tensor<512x96xbf16>, %arg2: tensor<96xf32>, %arg3: tensor<5x96xf32>) -> tensor<5x96xf32> attributes {xgpu.block = array<i64: 256, 1, 1>, xgpu.emitter = "product", xgpu.grid = array<i64: 4, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<tile_m = 64, tile_n = 8, tile_k = 64, stages = 8, groups = 1, blocks = 4, cluster = 1, staged = false, band = 2, split = 2, swapped = true>} {
    %0 = "xgpu.blocks"(%arg3) ({
    ^bb0(%arg4: index, %arg5: index, %arg6: index, %arg7: tensor<5x96xf32>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<64x8xf32>
      %1 = "xgpu.steps"(%cst) ({
      ^bb0(%arg8: index, %arg9: tensor<64x8xf32>):
        %5 = "xgpu.tile"(%arg1, %arg4, %arg5, %arg6, %arg8) {map = #xgpu.map<(d0, d1, d2, d3)[s0, s1] -> (d3 * 64 + s1, d1 * 64 + s0), d0 in [0, 0], d1 in [0, 1], d2 in [0, 0], d3 in [0, 7], s0 in [0, 63], s1 in [0, 63], d1 * 64 + s0 in [0, 95]>} : (tensor<512x96xbf16>, index, index, index, index) -> tensor<64x64xbf16>
        %6 = "xgpu.tile"(%arg0, %arg4, %arg5, %arg6, %arg8) {map = #xgpu.map<(d0, d1, d2, d3)[s0, s1] -> (s1, d3 * 64 + s0), d0 in [0, 0], d1 in [0, 1], d2 in [0, 0], d3 in [0, 7], s0 in [0, 63], s1 in [0, 7], d2 * 8 + s1 in [0, 4]>} : (tensor<5x512xbf16>, index, index, index, index) -> tensor<64x8xbf16>
        %7 = stablehlo.dot_general %5, %6, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT] : (tensor<64x64xbf16>, tensor<64x8xbf16>) -> tensor<64x8xf32>
        %8 = stablehlo.add %arg9, %7 : tensor<64x8xf32>
        "xgpu.yield"(%8) : (tensor<64x8xf32>) -> ()
      }) {count = 8 : i64} : (tensor<64x8xf32>) -> tensor<64x8xf32>
      %2 = "xgpu.tile"(%arg2, %arg4, %arg5, %arg6) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d1 * 64 + s0), d0 in [0, 0], d1 in [0, 1], d2 in [0, 0], s0 in [0, 63], s1 in [0, 7], d1 * 64 + s0 in [0, 95], d2 * 8 + s1 in [0, 4]>} : (tensor<96xf32>, index, index, index) -> tensor<64x8xf32>
      %3 = stablehlo.add %1, %2 : tensor<64x8xf32>
      %4 = "xgpu.insert_tile"(%3, %arg7, %arg4, %arg5, %arg6) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (s1, d1 * 64 + s0), d0 in [0, 0], d1 in [0, 1], d2 in [0, 0], s0 in [0, 63], s1 in [0, 7], d1 * 64 + s0 in [0, 95], d2 * 8 + s1 in [0, 4]>} : (tensor<64x8xf32>, tensor<5x96xf32>, index, index, index) -> tensor<5x96xf32>
      "xgpu.yield"(%4) : (tensor<5x96xf32>) -> ()
    }) {grid = array<i64: 1, 2, 1>} : (tensor<5x96xf32>) -> tensor<5x96xf32>
    return %0 : tensor<5x96xf32>
  }
}
