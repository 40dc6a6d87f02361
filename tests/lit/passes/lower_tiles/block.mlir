// RUN: xgpu-opt %s -p lower-tiles | FileCheck %s

// A product by steps, copied a step ahead, and a bias; then the sum of each row. Attributes say where tiles are.

// CHECK-LABEL: func.func @rows
// CHECK:         %[[MEMORY:.*]] = "xgpu.shared_memory"() {bytes = 6256 : i64}

// The first step's copies: 16 bytes of each operand for each thread.
// CHECK:         "xgpu.loop"
// CHECK:           "xgpu.async_copy"(%{{.*}}) {bytes = 16 : i64}
// CHECK:         "xgpu.loop"
// CHECK:           "xgpu.async_copy"
// CHECK:         "xgpu.async_commit"()

// A step waits for its copies; then all meet, and start those of the next one.
// CHECK:         %[[STEPS:.*]]:5 = scf.for
// CHECK:           "xgpu.async_wait"() {pending = 0 : i64}
// CHECK-NEXT:      "xgpu.sync_threads"()
// CHECK:           arith.cmpi ult
// CHECK:           scf.if
// CHECK:             "xgpu.async_copy"
// CHECK:           scf.if
// CHECK:             "xgpu.async_copy"
// CHECK:           "xgpu.async_commit"()

// Fragments of a warp: the rows of the right operand do not go along the contraction. Sums begin with those before.
// CHECK:           %[[LEFT:.*]] = "xgpu.load_matrix"({{.*}}) {transposed = false} : (!llvm.ptr<3>) -> vector<4xi32>
// CHECK:           %[[RIGHT:.*]] = "xgpu.load_matrix"({{.*}}) {transposed = true} : (!llvm.ptr<3>) -> vector<4xi32>
// CHECK:           "xgpu.mma"(%[[LEFT]], %{{.*}}, %{{.*}}) {a_element = bf16, b_element = bf16}
// CHECK-COUNT-3:   "xgpu.mma"
// CHECK-NOT:       arith.addf
// CHECK:           scf.yield

// The bias is read where accumulators are; two of these go side by side to shared memory.
// CHECK:         llvm.load {{.*}}invariant{{.*}} : !llvm.ptr<1> -> vector<2xf32>
// CHECK:         arith.addf
// CHECK:         llvm.store {{.*}} : vector<2xf32>, !llvm.ptr<3>

// Two lanes share a row, and exchange what they have of it.
// CHECK:         "xgpu.sync_threads"()
// CHECK:         "xgpu.loop"
// CHECK:           llvm.load {{.*}} : !llvm.ptr<3> -> vector<4xf32>
// CHECK:           "xgpu.shuffle"
// CHECK-NOT:       "xgpu.shuffle"
// CHECK:           llvm.store {{.*}} : f32, !llvm.ptr<3>
// CHECK:         "xgpu.sync_threads"()
// CHECK:         llvm.store {{.*}} : vector<4xf32>, !llvm.ptr<1>
module attributes {xgpu.level = "tiles"} {
  func.func @rows(%x: tensor<64x40xbf16>, %w: tensor<40x32xbf16>, %bias: tensor<32xf32>, %out: tensor<64xf32>) -> tensor<64xf32> attributes {xgpu.block = array<i64: 64, 1, 1>, xgpu.emitter = "block", xgpu.grid = array<i64: 2, 1, 1>, xgpu.inputs = 3 : i64, xgpu.kernel, xgpu.schedule = #xgpu.schedule<threads = 64>} {
    %r = "xgpu.blocks"(%out) ({
    ^bb0(%i: index, %array: tensor<64xf32>):
      %zeros = stablehlo.constant {xgpu.place = "computed"} dense<0.0> : tensor<32x32xf32>
      %zero = stablehlo.constant {xgpu.place = "computed"} dense<0.0> : tensor<f32>
      %sum = "xgpu.steps"(%zeros) ({
      ^bb0(%step: index, %partial: tensor<32x32xf32>):
        %a = "xgpu.tile"(%x, %i, %step) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 32 + s0, d1 * 16 + s1), d0 in [0, 1], d1 in [0, 2], s0 in [0, 31], s1 in [0, 15], d1 * 16 + s1 in [0, 39]>, xgpu.barrier, xgpu.copy = "async", xgpu.layout = array<i64: 16, 1>, xgpu.offset = 0 : i64, xgpu.place = "shared"} : (tensor<64x40xbf16>, index, index) -> tensor<32x16xbf16>
        %b = "xgpu.tile"(%w, %step) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 16 + s0, s1), d0 in [0, 2], s0 in [0, 15], s1 in [0, 31], d0 * 16 + s0 in [0, 39]>, xgpu.copy = "async", xgpu.layout = array<i64: 32, 1>, xgpu.offset = 2048 : i64, xgpu.place = "shared"} : (tensor<40x32xbf16>, index) -> tensor<16x32xbf16>
        %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] {xgpu.place = "fragments", xgpu.warps = array<i64: 2, 1>} : (tensor<32x16xbf16>, tensor<16x32xbf16>) -> tensor<32x32xf32>
        %next = stablehlo.add %partial, %p {xgpu.place = "fragments"} : tensor<32x32xf32>
        "xgpu.yield"(%next) : (tensor<32x32xf32>) -> ()
      }) {count = 3 : i64, xgpu.layout = [array<i64>], xgpu.offset = array<i64: -1>, xgpu.place = ["fragments"], xgpu.stages = 2 : i64} : (tensor<32x32xf32>) -> tensor<32x32xf32>
      %row = "xgpu.tile"(%bias) {map = #xgpu.map<()[s0] -> (s0), s0 in [0, 31]>, xgpu.place = "computed"} : (tensor<32xf32>) -> tensor<32xf32>
      %rows = stablehlo.broadcast_in_dim %row, dims = [1] {xgpu.place = "computed"} : (tensor<32xf32>) -> tensor<32x32xf32>
      %biased = stablehlo.add %sum, %rows {xgpu.barrier, xgpu.layout = array<i64: 36, 1>, xgpu.offset = 1664 : i64, xgpu.place = "shared"} : tensor<32x32xf32>
      %totals = stablehlo.reduce(%biased init: %zero) applies stablehlo.add across dimensions = [1] {xgpu.barrier, xgpu.layout = array<i64: 1>, xgpu.offset = 0 : i64, xgpu.place = "shared"} : (tensor<32x32xf32>, tensor<f32>) -> tensor<32xf32>
      %u = "xgpu.insert_tile"(%totals, %array, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 32 + s0), d0 in [0, 1], s0 in [0, 31]>, xgpu.barrier} : (tensor<32xf32>, tensor<64xf32>, index) -> tensor<64xf32>
      "xgpu.yield"(%u) : (tensor<64xf32>) -> ()
    }) {grid = array<i64: 2>} : (tensor<64xf32>) -> tensor<64xf32>
    return %r : tensor<64xf32>
  }
}
