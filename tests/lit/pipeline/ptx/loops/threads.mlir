// RUN: xgpu compile %s | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: xgpu compile %s --target sm_80 | FileCheck %s --check-prefixes=CHECK,SM80

// A tile, a barrier, a shuffle and atomic updates of every kind, from a kernel at level emitted.

// CHECK-LABEL: .entry threads(
// CHECK:         .shared .align 16 .b8 threads__tile_0[4352];
// CHECK:         ld.global.nc.b32
// CHECK:         shfl.sync.bfly.b32 {{.*}}, 16, 31, -1;
// CHECK:         st.shared.b32
// CHECK:         bar.sync {{\s*}}0;
// CHECK:         ld.shared.b32
// What the GPU adds itself.
// CHECK-DAG:     atom.global.add.f32
// CHECK-DAG:     atom.global.add.u32
// CHECK-DAG:     atom.global.max.s64
// Several elements of one byte: the word around them.
// CHECK-DAG:     atom.global.or.b32
// One bf16 is added as one of a pair, or in a loop.
// SM90-DAG:      red.relaxed.gpu.global.add.noftz.bf16x2
// SM80-DAG:      atom.relaxed.gpu.global.cas.b32
// The maximum of floats as that of integers, by the sign.
// CHECK-DAG:     atom.global.max.s32
// CHECK-DAG:     atom.global.min.u32
// What no instruction does.
// CHECK-DAG:     atom.relaxed.gpu.global.cas.b64
// CHECK-DAG:     st.relaxed.gpu.global.b16
// CHECK:         ret;
module attributes {xgpu.level = "emitted"} {
  func.func @threads(%in: tensor<4096xf32>, %sums: tensor<1024xf32>, %counts: tensor<1024xi32>, %most: tensor<1024xi64>,
      %flags: tensor<1024xi1>, %small: tensor<1024xbf16>, %largest: tensor<1024xf32>, %product: tensor<1024xf64>,
      %last: tensor<1024xf16>) -> (tensor<1024xf32>, tensor<1024xi32>, tensor<1024xi64>, tensor<1024xi1>,
      tensor<1024xbf16>, tensor<1024xf32>, tensor<1024xf64>, tensor<1024xf16>)
      attributes {xgpu.kernel, xgpu.emitter = "by hand", xgpu.inputs = 1 : i64, xgpu.block = array<i64: 1024, 1, 1>,
      xgpu.grid = array<i64: 4, 1, 1>} {
    %tid = gpu.thread_id x upper_bound 1024
    %bid = gpu.block_id x upper_bound 4
    %i, %r, %c = "xgpu.apply_indexing"(%tid, %bid) {map = #xgpu.map<(d0, d1) -> (d1 * 1024 + d0, d0 floordiv 32, d0 mod 32), d0 in [0, 1023], d1 in [0, 3]>} : (index, index) -> (index, index, index)
    %x = tensor.extract %in[%i] : tensor<4096xf32>
    %sum = "xgpu.shuffle_reduce"(%x) {combiner = @add, distance = 16 : i64} : (f32) -> f32
    %tile = "xgpu.allocate_shared"() : () -> tensor<32x34xf32>
    %filled = tensor.insert %sum into %tile[%r, %c] : tensor<32x34xf32>
    %synced = "xgpu.sync_threads"(%filled) : (tensor<32x34xf32>) -> tensor<32x34xf32>
    %y = tensor.extract %synced[%c, %r] : tensor<32x34xf32>

    %0 = "xgpu.atomic_rmw"(%sums, %tid) ({
    ^bb0(%old: f32):
      %new = arith.addf %old, %y : f32
      "xgpu.yield"(%new) : (f32) -> ()
    }) : (tensor<1024xf32>, index) -> tensor<1024xf32>
    %n = arith.fptosi %y : f32 to i32
    %1 = "xgpu.atomic_rmw"(%counts, %tid) ({
    ^bb0(%old: i32):
      %new = arith.subi %old, %n : i32
      "xgpu.yield"(%new) : (i32) -> ()
    }) : (tensor<1024xi32>, index) -> tensor<1024xi32>
    %wide = arith.extsi %n : i32 to i64
    %2 = "xgpu.atomic_rmw"(%most, %tid) ({
    ^bb0(%old: i64):
      %new = arith.maxsi %old, %wide : i64
      "xgpu.yield"(%new) : (i64) -> ()
    }) : (tensor<1024xi64>, index) -> tensor<1024xi64>
    %flag = arith.trunci %n : i32 to i1
    %3 = "xgpu.atomic_rmw"(%flags, %tid) ({
    ^bb0(%old: i1):
      %new = arith.ori %flag, %old : i1
      "xgpu.yield"(%new) : (i1) -> ()
    }) : (tensor<1024xi1>, index) -> tensor<1024xi1>
    %b = arith.truncf %y : f32 to bf16
    %4 = "xgpu.atomic_rmw"(%small, %tid) ({
    ^bb0(%old: bf16):
      %new = arith.addf %old, %b : bf16
      "xgpu.yield"(%new) : (bf16) -> ()
    }) : (tensor<1024xbf16>, index) -> tensor<1024xbf16>
    %5 = "xgpu.atomic_rmw"(%largest, %tid) ({
    ^bb0(%old: f32):
      %new = arith.maximumf %old, %y : f32
      "xgpu.yield"(%new) : (f32) -> ()
    }) : (tensor<1024xf32>, index) -> tensor<1024xf32>
    %d = arith.extf %y : f32 to f64
    %6 = "xgpu.atomic_rmw"(%product, %tid) ({
    ^bb0(%old: f64):
      %new = arith.mulf %old, %d : f64
      "xgpu.yield"(%new) : (f64) -> ()
    }) : (tensor<1024xf64>, index) -> tensor<1024xf64>
    %h = arith.truncf %y : f32 to f16
    %7 = "xgpu.atomic_rmw"(%last, %tid) ({
    ^bb0(%old: f16):
      "xgpu.yield"(%h) : (f16) -> ()
    }) : (tensor<1024xf16>, index) -> tensor<1024xf16>
    return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<1024xf32>, tensor<1024xi32>, tensor<1024xi64>, tensor<1024xi1>, tensor<1024xbf16>, tensor<1024xf32>, tensor<1024xf64>, tensor<1024xf16>
  }

  func.func private @add(%x: f32, %y: f32) -> f32 {
    %0 = arith.addf %x, %y : f32
    return %0 : f32
  }
}
