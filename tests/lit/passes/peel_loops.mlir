// RUN: xgpu-opt %s -p peel-loops --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'peel-loops{max-splits=0}' --split-input-file | FileCheck %s --check-prefix=NONE

// A partial vector at the end: whole vectors in the first loop, its values carried into the rest, which stays rolled.

// CHECK-LABEL: func.func @partial_vector
// CHECK-SAME:    (%[[X:.*]]: f32)
// CHECK:         %[[TID:.*]] = gpu.thread_id
// CHECK-NEXT:    %[[MAIN:.*]] = "xgpu.loop"(%[[TID]], %[[X]]) ({
// CHECK:         }) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 99], s0 in [0, 3]>} : (index, f32) -> f32
// CHECK-NEXT:    %[[REST:.*]] = "xgpu.loop"(%[[TID]], %[[MAIN]]) ({
// CHECK:         }) {map = #xgpu.map<(d0)[s0] -> (s0 + 400), d0 in [100, 100], s0 in [0, 1]>, xgpu.unroll = "none"}
// CHECK-NEXT:    return %[[REST]]
// NONE-LABEL:  func.func @partial_vector
// NONE:          d0 * 4 + s0 in [0, 401]
func.func @partial_vector(%x: f32) -> f32 {
  %tid = gpu.thread_id x upper_bound 128
  %r = "xgpu.loop"(%tid, %x) ({
  ^bb0(%s0: index, %i: index, %a: f32):
    %n = arith.negf %a : f32
    "xgpu.yield"(%n) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 127], s0 in [0, 3], d0 * 4 + s0 in [0, 401]>}
    : (index, f32) -> f32
  return %r : f32
}

// -----

// A partial vector at the beginning: the rest comes first, which keeps the order of the points. The iterations after the
// first one need no check.

// CHECK-LABEL: func.func @partial_vector_first
// CHECK:         %[[REST:.*]] = "xgpu.loop"
// CHECK:         }) {map = #xgpu.map<(d0)[s0, s1] -> (s1 - 2), d0 in [0, 0], s0 in [0, 0], s1 in [2, 3]>, xgpu.unroll = "none"}
// CHECK-NEXT:    %[[FIRST:.*]] = "xgpu.loop"(%{{.*}}, %[[REST]]) ({
// CHECK:         }) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s1 - 2), d0 in [1, 127], s0 in [0, 0], s1 in [0, 3]>}
// CHECK-NEXT:    "xgpu.loop"(%{{.*}}, %[[FIRST]]) ({
// CHECK:         }) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s1 + 510), d0 in [0, 127], s0 in [1, 1], s1 in [0, 3]>}
func.func @partial_vector_first(%x: f32) -> f32 {
  %tid = gpu.thread_id x upper_bound 128
  %r = "xgpu.loop"(%tid, %x) ({
  ^bb0(%s0: index, %s1: index, %i: index, %a: f32):
    %n = arith.negf %a : f32
    "xgpu.yield"(%n) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0, s1] -> (s0 * 512 + d0 * 4 + s1 - 2), d0 in [0, 127], s0 in [0, 1], s1 in [0, 3],
      s0 * 512 + d0 * 4 + s1 - 2 in [0, 2000]>} : (index, f32) -> f32
  return %r : f32
}

// -----

// Partial vectors at both ends, as those of a row that starts anywhere: the iterations between need no check.

// CHECK-LABEL: func.func @partial_vectors_at_both_ends
// CHECK:         d0 in [0, 0], s0 in [0, 0], s1 in [2, 3]>, xgpu.unroll = "none"}
// CHECK:         d0 in [1, 127], s0 in [0, 0], s1 in [0, 3]>}
// CHECK:         d0 in [0, 127], s0 in [1, 2], s1 in [0, 3]>}
// CHECK:         d0 in [0, 115], s0 in [3, 3], s1 in [0, 3]>}
// CHECK:         d0 in [116, 116], s0 in [3, 3], s1 in [0, 2]>, xgpu.unroll = "none"}
// CHECK-NOT:     xgpu.loop
func.func @partial_vectors_at_both_ends(%x: f32) -> f32 {
  %tid = gpu.thread_id x upper_bound 128
  %r = "xgpu.loop"(%tid, %x) ({
  ^bb0(%s0: index, %s1: index, %i: index, %a: f32):
    %n = arith.negf %a : f32
    "xgpu.yield"(%n) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0, s1] -> (s0 * 512 + d0 * 4 + s1 - 2), d0 in [0, 127], s0 in [0, 3], s1 in [0, 3],
      s0 * 512 + d0 * 4 + s1 - 2 in [0, 2000]>} : (index, f32) -> f32
  return %r : f32
}

// -----

// The last iteration of the outermost variable first, then the partial vector of that iteration.

// CHECK-LABEL: func.func @last_iteration_and_vector
// CHECK:         }) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s0 * 512 + s1), d0 in [0, 127], s0 in [0, 2], s1 in [0, 3]>}
// CHECK:         }) {map = #xgpu.map<(d0)[s0, s1] -> (d0 * 4 + s1 + 1536), d0 in [0, 115], s0 in [3, 3], s1 in [0, 3]>}
// CHECK:         }) {map = #xgpu.map<(d0)[s0, s1] -> (2000), d0 in [116, 116], s0 in [3, 3], s1 in [0, 0]>, xgpu.unroll = "none"}
// CHECK-NOT:     xgpu.loop
func.func @last_iteration_and_vector(%x: f32) -> f32 {
  %tid = gpu.thread_id x upper_bound 128
  %r = "xgpu.loop"(%tid, %x) ({
  ^bb0(%s0: index, %s1: index, %i: index, %a: f32):
    %n = arith.negf %a : f32
    "xgpu.yield"(%n) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0, s1] -> (s0 * 512 + d0 * 4 + s1), d0 in [0, 127], s0 in [0, 3], s1 in [0, 3],
      s0 * 512 + d0 * 4 + s1 in [0, 2000]>} : (index, f32) -> f32
  return %r : f32
}

// -----

// A strided loop: most threads would be in the rest of a split by thread, so its last iteration is split off.

// CHECK-LABEL: func.func @strided
// CHECK:         }) {map = #xgpu.map<(d0)[s0] -> (d0 + s0 * 32), d0 in [0, 31], s0 in [0, 30]>} : (index, f32) -> f32
// CHECK:         }) {map = #xgpu.map<(d0)[s0] -> (d0 + 992), d0 in [0, 7], s0 in [31, 31]>} : (index, f32) -> f32
func.func @strided(%x: f32) -> f32 {
  %tid = gpu.thread_id x upper_bound 32
  %r = "xgpu.loop"(%tid, %x) ({
  ^bb0(%s0: index, %i: index, %a: f32):
    %n = arith.negf %a : f32
    "xgpu.yield"(%n) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (s0 * 32 + d0), d0 in [0, 31], s0 in [0, 31], s0 * 32 + d0 in [0, 999]>}
    : (index, f32) -> f32
  return %r : f32
}

// -----

// Left alone: a constraint that does not depend on the loop; one that can fail on both sides; a split that would change
// the order of the points, since s1 runs through both parts for every s0; a loop marked to stay rolled.

// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-4: "xgpu.loop"
// CHECK-NOT:     "xgpu.loop"
func.func @left_alone(%x: f32) -> (f32, f32, f32, f32) {
  %tid = gpu.thread_id x upper_bound 128
  %a = "xgpu.loop"(%tid, %x) ({
  ^bb0(%s0: index, %c: f32):
    "xgpu.yield"(%c) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (), d0 in [0, 127], s0 in [0, 3], d0 * 4 + s0 in [0, 399]>} : (index, f32) -> f32
  %b = "xgpu.loop"(%tid, %x) ({
  ^bb0(%s0: index, %c: f32):
    "xgpu.yield"(%c) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (), d0 in [0, 127], s0 in [0, 3], d0 * 4 + s0 in [9, 401]>} : (index, f32) -> f32
  %d = "xgpu.loop"(%tid, %x) ({
  ^bb0(%s0: index, %s1: index, %s2: index, %c: f32):
    "xgpu.yield"(%c) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0, s1, s2] -> (), d0 in [0, 127], s0 in [0, 1], s1 in [0, 3], s2 in [0, 3],
      s1 * 512 + d0 * 4 + s2 in [0, 2000]>} : (index, f32) -> f32
  %e = "xgpu.loop"(%tid, %x) ({
  ^bb0(%s0: index, %c: f32):
    "xgpu.yield"(%c) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (), d0 in [0, 127], s0 in [0, 3], d0 * 4 + s0 in [0, 401]>, xgpu.unroll = "none"}
    : (index, f32) -> f32
  return %a, %b, %d, %e : f32, f32, f32, f32
}

// -----

// Loops without points go away.

// CHECK-LABEL: func.func @empty
// CHECK-SAME:    (%[[X:.*]]: f32)
// CHECK-NOT:     xgpu.loop
// CHECK:         return %[[X]]
func.func @empty(%x: f32) -> f32 {
  %tid = gpu.thread_id x upper_bound 128
  %r = "xgpu.loop"(%tid, %x) ({
  ^bb0(%s0: index, %a: f32):
    %n = arith.negf %a : f32
    "xgpu.yield"(%n) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (), d0 in [0, 127], s0 in [0, 3], d0 * 4 + s0 in [-9, -1]>} : (index, f32) -> f32
  return %r : f32
}

// -----

// A loop with a barrier stays one: which of two a thread executes could differ.

// CHECK-LABEL: func.func @barrier
// CHECK-COUNT-1: "xgpu.loop"
// CHECK-NOT:     "xgpu.loop"
// CHECK:         return
func.func @barrier(%thread: index, %t: tensor<8xf32>) -> tensor<8xf32> {
  %r = "xgpu.loop"(%thread, %t) ({
  ^bb0(%s: index, %i: index, %a: tensor<8xf32>):
    %b = "xgpu.sync_threads"(%a) : (tensor<8xf32>) -> tensor<8xf32>
    "xgpu.yield"(%b) : (tensor<8xf32>) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 127], s0 in [0, 3], d0 * 4 + s0 in [0, 401]>}
      : (index, tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// A loop that is written out in any case is split as well, and so is what it leaves.

// CHECK-LABEL: func.func @written_out
// CHECK:         }) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 99], s0 in [0, 3]>, xgpu.many_rests, xgpu.unroll = "early"}
// CHECK:         }) {map = #xgpu.map<(d0)[s0] -> (s0 + 400), d0 in [100, 100], s0 in [0, 1]>, xgpu.unroll = "early"}
// CHECK-NOT:     xgpu.loop
func.func @written_out(%x: f32) -> f32 {
  %tid = gpu.thread_id x upper_bound 128
  %r = "xgpu.loop"(%tid, %x) ({
  ^bb0(%s0: index, %i: index, %a: f32):
    %n = arith.negf %a : f32
    "xgpu.yield"(%n) : (f32) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 127], s0 in [0, 3], d0 * 4 + s0 in [0, 401]>,
      xgpu.many_rests, xgpu.unroll = "early"} : (index, f32) -> f32
  return %r : f32
}

// -----

// Points of a window are written out: the first row of it may lie outside, the first element of each row is checked.

// CHECK-LABEL: func.func @window
// CHECK:         map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 2 - 1, d1 * 2 + s1 - 1), d0 in [1, 7], d1 in [0, 7], s0 in [0, 0], s1 in [0, 2], d1 * 2 + s1 in [1, 16]>, xgpu.unroll = "full"}
// CHECK:         map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 2 + s0 - 1, d1 * 2 + s1 - 1), d0 in [0, 7], d1 in [0, 7], s0 in [1, 2], s1 in [0, 2], d1 * 2 + s1 in [1, 16]>, xgpu.unroll = "full"}
// CHECK-NOT:     xgpu.loop
// NONE-LABEL:  func.func @window
func.func @window(%x: f32) -> f32 {
  %tid = gpu.thread_id x upper_bound 8
  %bid = gpu.block_id x upper_bound 8
  %r = "xgpu.loop"(%bid, %tid, %x) ({
  ^bb0(%s0: index, %s1: index, %i: index, %j: index, %a: f32):
    %n = arith.negf %a : f32
    "xgpu.yield"(%n) : (f32) -> ()
  }) {xgpu.unroll = "full", map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 2 + s0 - 1, d1 * 2 + s1 - 1), d0 in [0, 7], d1 in [0, 7], s0 in [0, 2], s1 in [0, 2],
      d0 * 2 + s0 - 1 in [0, 15], d1 * 2 + s1 - 1 in [0, 15]>} : (index, index, f32) -> f32
  return %r : f32
}
