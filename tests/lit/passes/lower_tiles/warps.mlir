// RUN: xgpu-opt %s -p 'lower-tiles{target=sm_80}' --split-input-file | FileCheck %s

// Two warps, one below the other, of which each copies and multiplies. Rows of the left operand are 8 bytes aligned:
// they are copied asynchronously, two steps ahead. Those of the right operand are odd: their elements are loaded during
// the step before.

// CHECK-LABEL: func.func @by_warps
// CHECK-SAME:    xgpu.resident = 2 : i64
// CHECK:         %[[MEMORY:.*]] = "xgpu.shared_memory"() {bytes = 12288 : i64}
// CHECK-NEXT:    %[[RIGHT:.*]] = llvm.getelementptr %[[MEMORY]][6144]
// CHECK:         scf.for {{.*}} -> (tensor<64x37xbf16>)

// The first two steps of the left operand; four units for each thread.
// CHECK:           "xgpu.loop"(%thread_id_x)
// CHECK:             %[[POSITION:.*]] = "xgpu.apply_indexing"({{.*}}) {map = #xgpu.map<{{.*}} -> (d1 * 2432 + d3 * 32 + d4 * 76 + d5 floordiv 2)
// CHECK:             %[[AT:.*]] = arith.index_cast %[[POSITION]] : index to i64
// CHECK-NEXT:        %[[SOURCE:.*]] = llvm.getelementptr %{{.*}}[%[[AT]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
// CHECK-NEXT:        %[[INSIDE:.*]] = "xgpu.in_domain"({{.*}}d3 * 32 + d5 floordiv 2 in [0, 75]>
// CHECK:             %[[VALID:.*]] = arith.select %[[INSIDE]], %c8_i32, %{{.*}} : i32
// CHECK:             arith.xori
// CHECK:             "xgpu.async_copy"(%{{.*}}, %[[SOURCE]], %[[VALID]]) {bytes = 8 : i64}
// CHECK:           s0 in [0, 3], s1 in [0, 0]>, xgpu.unroll = "early"
// CHECK:           "xgpu.async_commit"()
// CHECK:           "xgpu.async_copy"
// CHECK:           "xgpu.async_commit"()

// The first step of the right one: eight pairs for each thread.
// CHECK:           %[[LOADED:.*]] = "xgpu.loop"
// CHECK:             %[[IS_THERE:.*]] = "xgpu.in_domain"({{.*}}d2 * 32 + d5 floordiv 2 in [0, 36], d3 * 32 + d4 in [0, 75]>
// CHECK:             "xgpu.predicated_extract"(%[[IS_THERE]], %{{.*}}, %arg1
// CHECK:           -> vector<16xbf16>
// CHECK:           vector.extract %[[LOADED]]
// CHECK:           llvm.store {{.*}}alignment = 4{{.*}} : vector<2xbf16>, !llvm.ptr<3>

// CHECK:           %[[STEPS:.*]]:5 = scf.for %[[STEP:[a-z0-9]+]] = {{.*}} -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, i32)
// CHECK-NEXT:        "xgpu.async_wait"() {pending = 1 : i64}
// CHECK-NEXT:        "xgpu.sync_threads"()
// CHECK:             arith.cmpi ult, %[[STEP]], %c1
// CHECK-NEXT:        scf.if
// CHECK:               "xgpu.async_copy"
// CHECK:             "xgpu.async_commit"()
// CHECK:             arith.minui
// CHECK:             %[[AHEAD:.*]] = "xgpu.loop"
// CHECK:               "xgpu.predicated_extract"

// Fragments: rows of the left operand go along the contracted dimension, those of the right one do not.
// CHECK:             %[[A:.*]] = "xgpu.load_matrix"({{.*}}) {transposed = false} : (!llvm.ptr<3>) -> vector<4xi32>
// CHECK:             %[[B:.*]] = "xgpu.load_matrix"({{.*}}) {transposed = true} : (!llvm.ptr<3>) -> vector<4xi32>
// CHECK:             "xgpu.load_matrix"({{.*}}) {transposed = true}
// CHECK:             %[[FIRST:.*]] = vector.extract_strided_slice %[[B]] offsets = [0]
// CHECK-NEXT:        "xgpu.mma"(%[[A]], %[[FIRST]], %{{.*}}) {a_element = bf16, b_element = bf16}
// CHECK:             %[[SECOND:.*]] = vector.extract_strided_slice %[[B]] offsets = [2]
// CHECK-NEXT:        "xgpu.mma"(%[[A]], %[[SECOND]], %{{.*}}) {a_element = bf16, b_element = bf16}
// CHECK-COUNT-6:     "xgpu.mma"
// CHECK:             vector.extract %[[AHEAD]]
// CHECK:             llvm.store {{.*}} : vector<2xbf16>, !llvm.ptr<3>
// CHECK:           } {xgpu.unroll = "none"}

// The sums go from lane to lane, in the memory that tiles no longer need; then each computes one at a time.
// CHECK:           vector.insert_strided_slice
// CHECK:           "xgpu.sync_threads"()
// CHECK-NOT:       "xgpu.named_barrier"
// CHECK:           llvm.store {{.*}}alignment = 8{{.*}} : vector<2xf32>, !llvm.ptr<3>
// CHECK:           "xgpu.named_barrier"({{.*}}) {threads = 32 : i64, wait = true}
// CHECK:           llvm.load {{.*}}alignment = 4{{.*}} -> vector<1xf32>
// CHECK:           arith.addf
// CHECK:           arith.maximumf
// CHECK:           tensor.insert
// CHECK:           "xgpu.sync_threads"()
// CHECK:         } {xgpu.unroll = "none"}
func.func @by_warps(%arg0: tensor<64x76xbf16>, %arg1: tensor<76x37xbf16>, %arg2: tensor<37xf32>, %arg3: tensor<64x37xbf16>) -> tensor<64x37xbf16> attributes {xgpu.block = array<i64: 64, 1, 1>, xgpu.emitter = "warp_product", xgpu.grid = array<i64: 4, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<tile_m = 32, tile_n = 32, tile_k = 32, stages = 3, down = 2, across = 1, resident = 2, blocks = 4, left_bytes = 8, right_bytes = 2, ahead = false, neighbours = 1, band = 2>} {
  %0 = "xgpu.blocks"(%arg3) ({
  ^bb0(%arg4: index, %arg5: index, %arg6: index, %arg7: tensor<64x37xbf16>):
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<32x32xf32>
    %1 = "xgpu.steps"(%cst) ({
    ^bb0(%arg8: index, %arg9: tensor<32x32xf32>):
      %7 = "xgpu.tile"(%arg0, %arg4, %arg5, %arg6, %arg8) {map = #xgpu.map<(d0, d1, d2, d3)[s0, s1] -> (d1 * 32 + s0, d3 * 32 + s1), d0 in [0, 0], d1 in [0, 1], d2 in [0, 1], d3 in [0, 2], s0 in [0, 31], s1 in [0, 31], d3 * 32 + s1 in [0, 75]>} : (tensor<64x76xbf16>, index, index, index, index) -> tensor<32x32xbf16>
      %8 = "xgpu.tile"(%arg1, %arg4, %arg5, %arg6, %arg8) {map = #xgpu.map<(d0, d1, d2, d3)[s0, s1] -> (d3 * 32 + s0, d2 * 32 + s1), d0 in [0, 0], d1 in [0, 1], d2 in [0, 1], d3 in [0, 2], s0 in [0, 31], s1 in [0, 31], d2 * 32 + s1 in [0, 36], d3 * 32 + s0 in [0, 75]>} : (tensor<76x37xbf16>, index, index, index, index) -> tensor<32x32xbf16>
      %9 = stablehlo.dot_general %7, %8, contracting_dims = [1] x [0] : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xf32>
      %10 = stablehlo.add %arg9, %9 : tensor<32x32xf32>
      "xgpu.yield"(%10) : (tensor<32x32xf32>) -> ()
    }) {count = 3 : i64} : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %2 = "xgpu.tile"(%arg2, %arg4, %arg5, %arg6) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d2 * 32 + s1), d0 in [0, 0], d1 in [0, 1], d2 in [0, 1], s0 in [0, 31], s1 in [0, 31], d2 * 32 + s1 in [0, 36]>} : (tensor<37xf32>, index, index, index) -> tensor<32x32xf32>
    %3 = stablehlo.add %1, %2 : tensor<32x32xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<32x32xf32>
    %4 = stablehlo.maximum %3, %cst_0 : tensor<32x32xf32>
    %5 = stablehlo.convert %4 : (tensor<32x32xf32>) -> tensor<32x32xbf16>
    %6 = "xgpu.insert_tile"(%5, %arg7, %arg4, %arg5, %arg6) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (d1 * 32 + s0, d2 * 32 + s1), d0 in [0, 0], d1 in [0, 1], d2 in [0, 1], s0 in [0, 31], s1 in [0, 31], d2 * 32 + s1 in [0, 36]>} : (tensor<32x32xbf16>, tensor<64x37xbf16>, index, index, index) -> tensor<64x37xbf16>
    "xgpu.yield"(%6) : (tensor<64x37xbf16>) -> ()
  }) {grid = array<i64: 1, 2, 2>} : (tensor<64x37xbf16>) -> tensor<64x37xbf16>
  return %0 : tensor<64x37xbf16>
}

// -----

// One warp, which waits for a step, and reads its first fragments, before the last products of the step before. The last
// step reads its own again.

// CHECK-LABEL: func.func @ahead
// CHECK-COUNT-2:   "xgpu.async_commit"()
// CHECK-NEXT:      %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<4xf32>
// CHECK-NEXT:      "xgpu.async_wait"() {pending = 1 : i64}
// CHECK-NEXT:      "xgpu.sync_threads"()
// CHECK:           %[[A:.*]] = "xgpu.load_matrix"({{.*}}) {transposed = false}
// CHECK:           %[[B:.*]] = "xgpu.load_matrix"({{.*}}) {transposed = true}
// CHECK:           scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO]], %{{.*}} = %[[ZERO]], %[[FIRST_A:[a-z0-9]+]] = %[[A]], %[[FIRST_B:[a-z0-9]+]] = %[[B]], %{{.*}} = %{{.*}}) ->
// CHECK:             "xgpu.async_copy"
// CHECK:             "xgpu.async_commit"()
// CHECK:             %[[NEXT_A:.*]] = "xgpu.load_matrix"
// CHECK:             %[[NEXT_B:.*]] = "xgpu.load_matrix"
// CHECK:             "xgpu.mma"(%[[FIRST_A]],
// CHECK:             "xgpu.mma"(%[[FIRST_A]],
// CHECK:             "xgpu.async_wait"() {pending = 1 : i64}
// CHECK-NEXT:        "xgpu.sync_threads"()
// CHECK:             arith.cmpi ult
// CHECK:             arith.select
// CHECK:             "xgpu.load_matrix"
// CHECK:             "xgpu.load_matrix"
// CHECK:             "xgpu.mma"(%[[NEXT_A]],
// CHECK:             "xgpu.mma"(%[[NEXT_A]],
// CHECK:           } {xgpu.unroll = "none"}
func.func @ahead(%arg0: tensor<16x128xf16>, %arg1: tensor<128x16xf16>, %arg2: tensor<16x16xf16>) -> tensor<16x16xf16> attributes {xgpu.block = array<i64: 32, 1, 1>, xgpu.emitter = "warp_product", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 2 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<tile_m = 16, tile_n = 16, tile_k = 32, stages = 3, down = 1, across = 1, resident = 1, blocks = 1, left_bytes = 16, right_bytes = 16, ahead = true, neighbours = 8, band = 1>} {
  %0 = "xgpu.blocks"(%arg2) ({
  ^bb0(%arg3: index, %arg4: index, %arg5: index, %arg6: tensor<16x16xf16>):
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<16x16xf32>
    %1 = "xgpu.steps"(%cst) ({
    ^bb0(%arg7: index, %arg8: tensor<16x16xf32>):
      %4 = "xgpu.tile"(%arg0, %arg3, %arg4, %arg5, %arg7) {map = #xgpu.map<(d0, d1, d2, d3)[s0, s1] -> (s0, d3 * 32 + s1), d0 in [0, 0], d1 in [0, 0], d2 in [0, 0], d3 in [0, 3], s0 in [0, 15], s1 in [0, 31]>} : (tensor<16x128xf16>, index, index, index, index) -> tensor<16x32xf16>
      %5 = "xgpu.tile"(%arg1, %arg3, %arg4, %arg5, %arg7) {map = #xgpu.map<(d0, d1, d2, d3)[s0, s1] -> (d3 * 32 + s0, s1), d0 in [0, 0], d1 in [0, 0], d2 in [0, 0], d3 in [0, 3], s0 in [0, 31], s1 in [0, 15]>} : (tensor<128x16xf16>, index, index, index, index) -> tensor<32x16xf16>
      %6 = stablehlo.dot_general %4, %5, contracting_dims = [1] x [0] : (tensor<16x32xf16>, tensor<32x16xf16>) -> tensor<16x16xf32>
      %7 = stablehlo.add %arg8, %6 : tensor<16x16xf32>
      "xgpu.yield"(%7) : (tensor<16x16xf32>) -> ()
    }) {count = 4 : i64} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %2 = stablehlo.convert %1 : (tensor<16x16xf32>) -> tensor<16x16xf16>
    %3 = "xgpu.insert_tile"(%2, %arg6, %arg3, %arg4, %arg5) {map = #xgpu.map<(d0, d1, d2)[s0, s1] -> (s0, s1), d0 in [0, 0], d1 in [0, 0], d2 in [0, 0], s0 in [0, 15], s1 in [0, 15]>} : (tensor<16x16xf16>, tensor<16x16xf16>, index, index, index) -> tensor<16x16xf16>
    "xgpu.yield"(%3) : (tensor<16x16xf16>) -> ()
  }) {grid = array<i64: 1, 1, 1>} : (tensor<16x16xf16>) -> tensor<16x16xf16>
  return %0 : tensor<16x16xf16>
}
