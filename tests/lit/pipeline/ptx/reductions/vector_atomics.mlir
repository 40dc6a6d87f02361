// RUN: xgpu compile %s | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: xgpu compile %s --target sm_80 | FileCheck %s --check-prefixes=CHECK,SM80

// Rows of a matrix that are added to the rows an index names: sixteen bytes at a time where the GPU can.

// CHECK-LABEL: .entry rows(
// CHECK:         ld.global.nc.v4.b32
// SM90:          red.relaxed.gpu.global.add.noftz.v4.bf16x2 [{{%rd[0-9]+}}], {{[{]%r[0-9]+, %r[0-9]+, %r[0-9]+, %r[0-9]+[}]}};
// SM90-NOT:      {{atom|red\.}}
// SM80-COUNT-4:  atom.relaxed.gpu.global.cas.b32
// SM80-NOT:      atom
// CHECK:         ret;
module attributes {xgpu.level = "emitted"} {
  func.func @rows(%at: tensor<64xi32>, %x: tensor<64x64xbf16>, %out: tensor<10x64xbf16>) -> tensor<10x64xbf16>
      attributes {xgpu.kernel, xgpu.emitter = "by hand", xgpu.inputs = 2 : i64, xgpu.block = array<i64: 8, 1, 1>,
      xgpu.grid = array<i64: 64, 1, 1>} {
    %tid = gpu.thread_id x upper_bound 8
    %bid = gpu.block_id x upper_bound 64
    %n = tensor.extract %at[%bid] : tensor<64xi32>
    %row = arith.index_castui %n : i32 to index
    %r = "xgpu.loop"(%tid, %bid, %out) ({
    ^bb0(%s: index, %i: index, %j: index, %acc: tensor<10x64xbf16>):
      %e = tensor.extract %x[%i, %j] : tensor<64x64xbf16>
      %u = "xgpu.atomic_rmw"(%acc, %row, %j) ({
      ^bb0(%old: bf16):
        %new = arith.addf %old, %e : bf16
        "xgpu.yield"(%new) : (bf16) -> ()
      }) : (tensor<10x64xbf16>, index, index) -> tensor<10x64xbf16>
      "xgpu.yield"(%u) : (tensor<10x64xbf16>) -> ()
    }) {map = #xgpu.map<(d0, d1)[s0] -> (d1, d0 * 8 + s0), d0 in [0, 7], d1 in [0, 63], s0 in [0, 7]>}
        : (index, index, tensor<10x64xbf16>) -> tensor<10x64xbf16>
    return %r : tensor<10x64xbf16>
  }
}
