// What the passes on loops did not do, and why.

// RUN: xgpu-opt %s -p peel-loops,unswitch-loops,vectorize-accesses,unroll-loops --remarks --split-input-file \
// RUN:   --verify-diagnostics

// An odd index, and one that is a multiple of two only.

func.func @multiples(%a: tensor<1280xf32>, %zero: f32) -> (f32, f32) {
  %tid = gpu.thread_id x upper_bound 128
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r:2 = scf.for %s = %c0 to %c4 step %c1 iter_args(%x = %zero, %y = %zero) -> (f32, f32) {
    %i, %j = "xgpu.apply_indexing"(%tid, %s)
      {map = #xgpu.map<(d0, d1) -> (d0 * 5 + d1 + 7, d0 * 6 + d1), d0 in [0, 127], d1 in [0, 3]>}
      : (index, index) -> (index, index)
    // expected-remark @below {{vectorize-accesses: load of %arg0: 4 scalars, its index is a multiple of 1 only (d0 * 5 + 7)}}
    %v = tensor.extract %a[%i] : tensor<1280xf32>
    // expected-remark @below {{vectorize-accesses: load of %arg0: 2 vectors of 2, its index is a multiple of 2 only (d0 * 6)}}
    %w = tensor.extract %a[%j] : tensor<1280xf32>
    scf.yield %v, %w : f32, f32
  }
  return %r#0, %r#1 : f32, f32
}

// -----

// A stride, an index that is read from memory, an array that the loop reads and writes, a condition, steps that are no
// power of two, and a type of which vectors are not added.

func.func @others(%a: tensor<64xf32>, %n: tensor<4xindex>, %out: tensor<64xf32>, %sums: tensor<64xi32>, %c: i1, %x: f32,
                  %one: i32) -> (tensor<64xf32>, tensor<64xi32>, f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %r:3 = scf.for %s = %c0 to %c4 step %c1 iter_args(%o = %out, %t = %sums, %y = %x) -> (tensor<64xf32>, tensor<64xi32>, f32) {
    %i = "xgpu.apply_indexing"(%s) {map = #xgpu.map<(d0) -> (d0 * 3), d0 in [0, 3]>} : (index) -> index
    // expected-remark @below {{load of %arg0: 4 scalars, its index does not move by 1 from step to step (d0 * 3)}}
    %v = tensor.extract %a[%i] : tensor<64xf32>
    // expected-remark @below {{load of %arg1: 4 scalars, its index does not move by 1}}
    %k = tensor.extract %n[%i] : tensor<4xindex>
    // expected-remark @below {{load of %arg0: 4 scalars, its index is a result of 'tensor.extract'}}
    %w = tensor.extract %a[%k] : tensor<64xf32>
    // expected-remark @below {{load of %arg2: 4 scalars, the loop writes to it}}
    %p = tensor.extract %o[%k] : tensor<64xf32>
    // expected-remark @below {{store to %arg2: 4 scalars, the loop reads it as well}}
    %q = tensor.insert %v into %o[%s] : tensor<64xf32>
    // expected-remark @below {{store to %arg3: 4 scalars, atomic updates of i32 are not made as vectors}}
    %u = "xgpu.atomic_rmw"(%t, %s) ({
    ^bb0(%old: i32):
      %sum = arith.addi %old, %one : i32
      "xgpu.yield"(%sum) : (i32) -> ()
    }) : (tensor<64xi32>, index) -> tensor<64xi32>
    %d = arith.cmpf olt, %v, %w : f32
    // expected-remark @below {{unswitch-loops: the conditional stays in the loop: its condition changes in the loop}}
    %z = scf.if %d -> (f32) {
      // expected-remark @below {{load of %arg0: 4 scalars, it is inside a condition that stays in the loop}}
      %m = tensor.extract %a[%s] : tensor<64xf32>
      scf.yield %m : f32
    } else {
      scf.yield %p : f32
    }
    scf.yield %q, %u, %z : tensor<64xf32>, tensor<64xi32>, f32
  }
  %e = scf.for %s = %c0 to %c5 step %c1 iter_args(%y = %x) -> (f32) {
    // expected-remark @below {{load of %arg0: a scalar in each step, the loop has 5 steps, not 2, 4, 8 or 16}}
    %v = tensor.extract %a[%s] : tensor<64xf32>
    scf.yield %v : f32
  }
  return %r#0, %r#1, %r#2, %e : tensor<64xf32>, tensor<64xi32>, f32, f32
}

// -----

// Loops that are long, of unknown bounds, around one that stays, or for few threads.

func.func @rolled(%n: index, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c40 = arith.constant 40 : index
  // expected-remark @below {{unroll-loops: the loop stays: a loop inside it stays}}
  %a = scf.for %i = %c0 to %c2 step %c1 iter_args(%y = %x) -> (f32) {
    // expected-remark @below {{unroll-loops: the loop stays: its bounds are not constants}}
    %b = scf.for %j = %c0 to %n step %c1 iter_args(%z = %y) -> (f32) {
      %d = arith.negf %z : f32
      scf.yield %d : f32
    }
    scf.yield %b : f32
  }
  // expected-remark @below {{unroll-loops: the loop stays: it has 40 iterations, more than max-trip=32}}
  %e = scf.for %j = %c0 to %c40 step %c1 iter_args(%z = %a) -> (f32) {
    %d = arith.negf %z : f32
    scf.yield %d : f32
  }
  // expected-remark @below {{unroll-loops: the loop stays: few threads execute it (xgpu.unroll = "none")}}
  %f = scf.for %j = %c0 to %c2 step %c1 iter_args(%z = %e) -> (f32) {
    %d = arith.negf %z : f32
    scf.yield %d : f32
  } {xgpu.unroll = "none"}
  return %f : f32
}

// -----

// A loop in which threads meet keeps its conditionals and its bounds check.

func.func @threads(%tile: tensor<8xf32>, %c: i1, %x: f32) -> f32 {
  %tid = gpu.thread_id x upper_bound 128
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  // expected-remark @below {{unroll-loops: the loop stays: it has 40}}
  %r = scf.for %i = %c0 to %c40 step %c1 iter_args(%y = %x) -> (f32) {
    %s = "xgpu.sync_threads"(%tile) : (tensor<8xf32>) -> tensor<8xf32>
    // expected-remark @below {{unswitch-loops: the conditional stays in the loop: threads of a block meet in the loop}}
    %z = scf.if %c -> (f32) {
      %n = math.exp %y : f32
      scf.yield %n : f32
    } else {
      scf.yield %y : f32
    }
    scf.yield %z : f32
  }
  // expected-remark @below {{peel-loops: the check that d0 * 4 + s0 is in [0, 401] stays in the loop: threads of a block meet}}
  %q = "xgpu.loop"(%tid, %r) ({
  ^bb0(%s0: index, %i: index, %a: f32):
    %s = "xgpu.sync_threads"(%tile) : (tensor<8xf32>) -> tensor<8xf32>
    "xgpu.yield"(%a) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 127], s0 in [0, 3], d0 * 4 + s0 in [0, 401]>}
    : (index, f32) -> f32
  return %q : f32
}

// -----

// A check that fails for many threads, and one that knows the innermost variable in a remainder only.

func.func @checks(%x: f32) -> f32 {
  %tid = gpu.thread_id x upper_bound 128
  // expected-remark @below {{the check that d0 + s0 is in [0, 60] stays in the loop: it fails too often}}
  // expected-remark @below {{the check that (s0 * 3) mod 8 is in [0, 4] stays in the loop: s0 is no term of its own in it}}
  %r = "xgpu.loop"(%tid, %x) ({
  ^bb0(%s0: index, %i: index, %a: f32):
    "xgpu.yield"(%a) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (d0 + s0), d0 in [0, 127], s0 in [0, 30], d0 + s0 in [0, 60], (s0 * 3) mod 8 in [0, 4]>}
    : (index, f32) -> f32
  return %r : f32
}
