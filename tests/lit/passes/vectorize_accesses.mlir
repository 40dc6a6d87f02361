// RUN: xgpu-opt %s -p vectorize-accesses --split-input-file | FileCheck %s

// A row of 33 elements that is read from the last multiple of four before it on: 33 * d1 and d1 mod 4 are congruent, so
// their difference is a multiple of four.

// CHECK-LABEL: func.func @congruent
// CHECK:         vector.transfer_read %{{.*}} {in_bounds = [true]} : tensor<1056xf32>, vector<4xf32>
// CHECK-NOT:     tensor.extract
func.func @congruent(%a: tensor<1056xf32>, %zero: f32) -> f32 {
  %tid = gpu.thread_id x upper_bound 8
  %row = gpu.block_id x upper_bound 32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> f32 {
    %k = "xgpu.apply_indexing"(%tid, %row, %s)
      {map = #xgpu.map<(d0, d1, d2) -> (d0 * 4 + d1 * 33 + d2 - d1 mod 4), d0 in [0, 7], d1 in [0, 31], d2 in [0, 3]>}
      : (index, index, index) -> index
    %x = tensor.extract %a[%k] : tensor<1056xf32>
    %y = arith.addf %sum, %x : f32
    scf.yield %y : f32
  }
  return %r : f32
}

// -----

// Reads and writes of four consecutive elements; the same base is read once.

// CHECK-LABEL: func.func @elementwise
// CHECK-SAME:    (%[[A:.*]]: tensor<128xf32>, %[[OUT:.*]]: tensor<128xf32>)
// CHECK:         %[[TID:.*]] = gpu.thread_id
// CHECK:         %[[BASE:.*]] = "xgpu.apply_indexing"(%[[TID]]) {map = #xgpu.map<(d0) -> (d0 * 4), d0 in [0, 31]>}
// CHECK-NEXT:    %[[V:.*]] = vector.transfer_read %[[A]][%[[BASE]]], %{{.*}} {in_bounds = [true]}
// CHECK-SAME:      tensor<128xf32>, vector<4xf32>
// CHECK-NOT:     transfer_read
// CHECK:         %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : vector<4xf32>
// CHECK-NEXT:    %[[FILLED:.*]] = scf.for %[[S:[a-z0-9]+]] = {{.*}} iter_args(%[[W:.*]] = %[[ZEROS]]) -> (vector<4xf32>)
// CHECK-NEXT:      %[[X:.*]] = vector.extract %[[V]][%[[S]]]
// CHECK-NEXT:      %[[Y:.*]] = vector.extract %[[V]][%[[S]]]
// CHECK-NEXT:      %[[Z:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK-NEXT:      %[[N:.*]] = vector.insert %[[Z]], %[[W]] [%[[S]]]
// CHECK-NEXT:      scf.yield %[[N]]
// CHECK:         %[[TO:.*]] = "xgpu.apply_indexing"(%[[TID]]) {map = #xgpu.map<(d0) -> (d0 * 4), d0 in [0, 31]>}
// CHECK-NEXT:    %[[R:.*]] = vector.transfer_write %[[FILLED]], %[[OUT]][%[[TO]]] {in_bounds = [true]}
// CHECK-NEXT:    return %[[R]]
func.func @elementwise(%a: tensor<128xf32>, %out: tensor<128xf32>) -> tensor<128xf32> {
  %tid = gpu.thread_id x upper_bound 32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%acc = %out) -> tensor<128xf32> {
    %k = "xgpu.apply_indexing"(%tid, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1), d0 in [0, 31], d1 in [0, 3]>}
      : (index, index) -> index
    %x = tensor.extract %a[%k] : tensor<128xf32>
    %y = tensor.extract %a[%k] : tensor<128xf32>
    %z = arith.addf %x, %y : f32
    %t = tensor.insert %z into %acc[%k] : tensor<128xf32>
    scf.yield %t : tensor<128xf32>
  }
  return %r : tensor<128xf32>
}

// -----

// A base that is a multiple of two only: accesses of two elements each.

// CHECK-LABEL: func.func @halves
// CHECK-SAME:    (%[[A:.*]]: tensor<128xi1>, %[[OUT:.*]]: tensor<128xi1>)
// CHECK:         %[[B0:.*]] = "xgpu.apply_indexing"(%{{.*}}) {map = #xgpu.map<(d0) -> (d0 * 4 + 2),
// CHECK-NEXT:    %[[V0:.*]] = vector.transfer_read %[[A]][%[[B0]]]
// CHECK-NEXT:    %[[B1:.*]] = "xgpu.apply_indexing"(%{{.*}}) {map = #xgpu.map<(d0) -> (d0 * 4 + 4),
// CHECK-NEXT:    %[[V1:.*]] = vector.transfer_read %[[A]][%[[B1]]]
// CHECK:         %[[I0:.*]] = vector.insert_strided_slice %[[V0]], %{{.*}}[0]
// CHECK-NEXT:    %[[I1:.*]] = vector.insert_strided_slice %[[V1]], %[[I0]]{{.*}}[2]
// CHECK:         %[[FILLED:.*]] = scf.for
// CHECK:           vector.extract %[[I1]]
// CHECK:         %[[S0:.*]] = vector.extract_strided_slice %[[FILLED]]
// CHECK:         %[[W0:.*]] = vector.transfer_write %[[S0]], %[[OUT]][%[[B2:.*]]] {in_bounds = [true]} : vector<2xi1>
// CHECK-NEXT:    %[[S1:.*]] = vector.extract_strided_slice %[[FILLED]]
// CHECK:         %[[W1:.*]] = vector.transfer_write %[[S1]], %[[W0]][%[[B3:.*]]] {in_bounds = [true]} : vector<2xi1>
// CHECK-NEXT:    return %[[W1]]
func.func @halves(%a: tensor<128xi1>, %out: tensor<128xi1>) -> tensor<128xi1> {
  %tid = gpu.thread_id x upper_bound 31
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%acc = %out) -> tensor<128xi1> {
    %k = "xgpu.apply_indexing"(%tid, %s) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0 + 2), d0 in [0, 30], s0 in [0, 3]>}
      : (index, index) -> index
    %x = tensor.extract %a[%k] : tensor<128xi1>
    %t = tensor.insert %x into %acc[%k] : tensor<128xi1>
    scf.yield %t : tensor<128xi1>
  }
  return %r : tensor<128xi1>
}

// -----

// Counting down: the last element of the vector comes first. The loop's own variable is an index too.

// CHECK-LABEL: func.func @backwards
// CHECK-SAME:    (%[[A:.*]]: tensor<64xf32>, %[[OUT:.*]]: tensor<2xf32>)
// CHECK:         %[[BASE:.*]] = "xgpu.apply_indexing"(%{{.*}}) {map = #xgpu.map<(d0) -> (-d0 * 2 + 62),
// CHECK-NEXT:    %[[V:.*]] = vector.transfer_read %[[A]][%[[BASE]]]
// CHECK:         %[[FILLED:.*]] = scf.for %[[S:[a-z0-9]+]] =
// CHECK:           %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT:      %[[AT:.*]] = arith.subi %[[ONE]], %[[S]]
// CHECK-NEXT:      vector.extract %[[V]][%[[AT]]]
// CHECK-NEXT:      vector.insert {{.*}}[%[[S]]]
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    vector.transfer_write %[[FILLED]], %[[OUT]][%[[ZERO]]]
func.func @backwards(%a: tensor<64xf32>, %out: tensor<2xf32>) -> tensor<2xf32> {
  %tid = gpu.thread_id x upper_bound 32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r = scf.for %s = %c0 to %c2 step %c1 iter_args(%acc = %out) -> tensor<2xf32> {
    %k = "xgpu.apply_indexing"(%tid, %s) {map = #xgpu.map<(d0, d1) -> (-d0 * 2 - d1 + 63), d0 in [0, 31], d1 in [0, 1]>}
      : (index, index) -> index
    %x = tensor.extract %a[%k] : tensor<64xf32>
    %t = tensor.insert %x into %acc[%s] : tensor<2xf32>
    scf.yield %t : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}

// -----

// Not consecutive, not aligned, in a remainder, changing with the loop, or conditional: these stay.

// CHECK-LABEL: func.func @others
// CHECK-NOT:     vector
// CHECK:         return
func.func @others(%a: tensor<512xf32>, %p: i1) -> f32 {
  %tid = gpu.thread_id x upper_bound 32
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r, %last = scf.for %s = %c0 to %c4 step %c1 iter_args(%acc = %zero, %n = %tid) -> (f32, index) {
    %stride = "xgpu.apply_indexing"(%tid, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 8 + d1 * 2), d0 in [0, 31], d1 in [0, 3]>}
      : (index, index) -> index
    %odd = "xgpu.apply_indexing"(%tid, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1 + 1), d0 in [0, 31], d1 in [0, 3]>}
      : (index, index) -> index
    %mod = "xgpu.apply_indexing"(%tid, %s) {map = #xgpu.map<(d0, d1) -> ((d0 * 4 + d1) mod 7 + d1), d0 in [0, 31], d1 in [0, 3]>}
      : (index, index) -> index
    %changes = "xgpu.apply_indexing"(%n, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1), d0 in [0, 31], d1 in [0, 3]>}
      : (index, index) -> index
    %good = "xgpu.apply_indexing"(%tid, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1), d0 in [0, 31], d1 in [0, 3]>}
      : (index, index) -> index
    %x0 = tensor.extract %a[%stride] : tensor<512xf32>
    %x1 = tensor.extract %a[%odd] : tensor<512xf32>
    %x2 = tensor.extract %a[%mod] : tensor<512xf32>
    %x3 = tensor.extract %a[%changes] : tensor<512xf32>
    %x4 = scf.if %p -> f32 {
      %x = tensor.extract %a[%good] : tensor<512xf32>
      scf.yield %x : f32
    } else {
      scf.yield %zero : f32
    }
    %s1 = arith.addf %x0, %x1 : f32
    %s2 = arith.addf %x2, %x3 : f32
    %s3 = arith.addf %s1, %s2 : f32
    %s4 = arith.addf %s3, %x4 : f32
    %s5 = arith.addf %s4, %acc : f32
    %m = arith.addi %n, %c1 : index
    scf.yield %s5, %m : f32, index
  }
  return %r : f32
}

// -----

// Three steps, 32 steps, steps of two: no vector has that many elements.

// CHECK-LABEL: func.func @trips
// CHECK-NOT:     vector
// CHECK:         return
func.func @trips(%a: tensor<512xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %q = scf.for %s = %c0 to %c3 step %c1 iter_args(%acc = %zero) -> f32 {
    %x = tensor.extract %a[%s] : tensor<512xf32>
    %y = arith.addf %acc, %x : f32
    scf.yield %y : f32
  }
  %r = scf.for %s = %c0 to %c32 step %c1 iter_args(%acc = %q) -> f32 {
    %x = tensor.extract %a[%s] : tensor<512xf32>
    %y = arith.addf %acc, %x : f32
    scf.yield %y : f32
  }
  %t = scf.for %s = %c0 to %c8 step %c2 iter_args(%acc = %r) -> f32 {
    %x = tensor.extract %a[%s] : tensor<512xf32>
    %y = arith.addf %acc, %x : f32
    scf.yield %y : f32
  }
  return %t : f32
}

// -----

// The carried tensor is read as well, or its element is inserted under a condition: it stays a tensor.

// CHECK-LABEL: func.func @read_back
// CHECK:         scf.for {{.*}} -> (tensor<4xf32>)
// CHECK-NEXT:      tensor.extract
// CHECK:         scf.for {{.*}} -> (tensor<4xf32>)
// CHECK-NEXT:      scf.if
// CHECK-NOT:     vector
func.func @read_back(%out: tensor<4xf32>, %v: f32, %p: i1) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%acc = %out) -> tensor<4xf32> {
    %x = tensor.extract %acc[%c0] : tensor<4xf32>
    %t = tensor.insert %x into %acc[%s] : tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  }
  %q = scf.for %s = %c0 to %c4 step %c1 iter_args(%acc = %r) -> tensor<4xf32> {
    %new = scf.if %p -> tensor<4xf32> {
      %t = tensor.insert %v into %acc[%s] : tensor<4xf32>
      scf.yield %t : tensor<4xf32>
    } else {
      scf.yield %acc : tensor<4xf32>
    }
    scf.yield %new : tensor<4xf32>
  }
  return %q : tensor<4xf32>
}

// -----

// A whole tensor that is read stays: MLIR's canonicalize would take it for the one that it is written over.

// CHECK-LABEL: func.func @whole
// CHECK-NOT:     vector.transfer_read
// CHECK:         tensor.extract
// CHECK:         vector.transfer_write
func.func @whole(%a: tensor<4xi2>, %out: tensor<4xi2>) -> tensor<4xi2> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%acc = %out) -> tensor<4xi2> {
    %x = tensor.extract %a[%s] : tensor<4xi2>
    %t = tensor.insert %x into %acc[%s] : tensor<4xi2>
    scf.yield %t : tensor<4xi2>
  }
  return %r : tensor<4xi2>
}

// -----

// Atomic additions become one of a vector; the added values are computed in the loop. Another update stays.

// CHECK-LABEL: func.func @atomic_additions
// CHECK:         %[[R:.*]]:2 = scf.for %{{.*}} iter_args(%[[V:.*]] = %{{.*}}, %[[T:.*]] = %{{.*}}) -> (vector<4xf32>, tensor<64xf32>) {
// CHECK:           %[[N:.*]] = arith.negf %{{.*}} : f32
// CHECK-NEXT:      %[[W:.*]] = vector.insert %[[N]], %[[V]] [%{{.*}}] : f32 into vector<4xf32>
// CHECK:           %[[U:.*]] = "xgpu.atomic_rmw"(%[[T]],
// CHECK:           scf.yield %[[W]], %[[U]]
// CHECK:         %[[K:.*]] = "xgpu.apply_indexing"
// CHECK-NEXT:    "xgpu.atomic_add"(%[[R]]#0, %{{.*}}, %[[K]]) : (vector<4xf32>, tensor<64xf32>, index) -> tensor<64xf32>
func.func @atomic_additions(%a: tensor<64xf32>, %b: tensor<64xf32>, %x: f32, %n: index {xgpu.range = array<i64: 0, 15>}) -> (tensor<64xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r:2 = scf.for %s = %c0 to %c4 step %c1 iter_args(%t = %a, %u = %b) -> (tensor<64xf32>, tensor<64xf32>) {
    %k = "xgpu.apply_indexing"(%n, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1), d0 in [0, 15], d1 in [0, 3]>} : (index, index) -> index
    %v = "xgpu.atomic_rmw"(%t, %k) ({
    ^bb0(%old: f32):
      %new = arith.subf %old, %x : f32
      "xgpu.yield"(%new) : (f32) -> ()
    }) : (tensor<64xf32>, index) -> tensor<64xf32>
    %w = "xgpu.atomic_rmw"(%u, %k) ({
    ^bb0(%old: f32):
      %new = arith.mulf %old, %x : f32
      "xgpu.yield"(%new) : (f32) -> ()
    }) : (tensor<64xf32>, index) -> tensor<64xf32>
    scf.yield %v, %w : tensor<64xf32>, tensor<64xf32>
  }
  return %r#0, %r#1 : tensor<64xf32>, tensor<64xf32>
}

// -----

// f64 has no vectors to add.

// CHECK-LABEL: func.func @atomic_f64
// CHECK-NOT:     xgpu.atomic_add
func.func @atomic_f64(%a: tensor<64xf64>, %x: f64, %n: index {xgpu.range = array<i64: 0, 15>}) -> tensor<64xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%t = %a) -> (tensor<64xf64>) {
    %k = "xgpu.apply_indexing"(%n, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1), d0 in [0, 15], d1 in [0, 3]>} : (index, index) -> index
    %v = "xgpu.atomic_rmw"(%t, %k) ({
    ^bb0(%old: f64):
      %new = arith.addf %old, %x : f64
      "xgpu.yield"(%new) : (f64) -> ()
    }) : (tensor<64xf64>, index) -> tensor<64xf64>
    scf.yield %v : tensor<64xf64>
  }
  return %r : tensor<64xf64>
}

// -----

// A step reads of a carried tensor the element that it then writes: none that an earlier step has written.

// CHECK-LABEL: func.func @updated_in_place
// CHECK:         %[[V:.*]] = vector.transfer_read %arg0[%{{.*}}]
// CHECK-NOT:     tensor.extract
// CHECK:         vector.transfer_write %{{.*}}, %arg0[
func.func @updated_in_place(%a: tensor<64xf32>, %n: index {xgpu.range = array<i64: 0, 15>}) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%t = %a) -> (tensor<64xf32>) {
    %k = "xgpu.apply_indexing"(%n, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1), d0 in [0, 15], d1 in [0, 3]>} : (index, index) -> index
    %x = tensor.extract %t[%k] : tensor<64xf32>
    %y = arith.addf %x, %x : f32
    %u = tensor.insert %y into %t[%k] : tensor<64xf32>
    scf.yield %u : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// -----

// Tensors that change places, and an element that the step before has written.

// CHECK-LABEL: func.func @updated_elsewhere
// CHECK-NOT:     vector.transfer_read
func.func @updated_elsewhere(%a: tensor<64xf32>, %b: tensor<64xf32>, %d: tensor<65xf32>,
    %n: index {xgpu.range = array<i64: 0, 15>}) -> (tensor<64xf32>, tensor<64xf32>, tensor<65xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r:3 = scf.for %s = %c0 to %c4 step %c1 iter_args(%t = %a, %o = %b, %f = %d) -> (tensor<64xf32>, tensor<64xf32>, tensor<65xf32>) {
    %k:2 = "xgpu.apply_indexing"(%n, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1, d0 * 4 + d1 + 1), d0 in [0, 15], d1 in [0, 3]>} : (index, index) -> (index, index)
    %x = tensor.extract %t[%k#0] : tensor<64xf32>
    %y = arith.addf %x, %x : f32
    %u = tensor.insert %y into %t[%k#0] : tensor<64xf32>
    %z = tensor.extract %f[%k#0] : tensor<65xf32>
    %g = tensor.insert %z into %f[%k#1] : tensor<65xf32>
    scf.yield %o, %u, %g : tensor<64xf32>, tensor<64xf32>, tensor<65xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<64xf32>, tensor<64xf32>, tensor<65xf32>
}

// -----

// A loop that stays a loop: positions in a vector would be known at run time alone.

// CHECK-LABEL: func.func @stays_a_loop
// CHECK-NOT:     vector
// CHECK:         tensor.extract
func.func @stays_a_loop(%t: tensor<64xf32>, %n: index {xgpu.range = array<i64: 0, 15>}, %init: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%a = %init) -> (f32) {
    %k = "xgpu.apply_indexing"(%n, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1), d0 in [0, 15], d1 in [0, 3]>} : (index, index) -> index
    %x = tensor.extract %t[%k] : tensor<64xf32>
    %b = arith.addf %a, %x : f32
    scf.yield %b : f32
  } {xgpu.unroll = "none"}
  return %r : f32
}

// -----

// A step that inserts into two halves of a row fills a part of the vector for each, written where it belongs.

// CHECK-LABEL: func.func @both_halves
// CHECK-SAME:    (%{{[^,]*}}: f32, %[[OUT:.*]]: tensor<256xf32>)
// CHECK:         %[[FILLED:.*]] = scf.for %[[S:[a-z0-9]+]] = {{.*}} iter_args(%[[W:.*]] = %{{.*}}) -> (vector<8xf32>)
// CHECK:           %[[ONE:.*]] = vector.insert %{{.*}}, %[[W]] [%[[S]]]
// CHECK:           %[[FOUR:.*]] = arith.constant 4 : index
// CHECK-NEXT:      %[[PLACE:.*]] = arith.addi %[[FOUR]], %[[S]]
// CHECK-NEXT:      %[[BOTH:.*]] = vector.insert %{{.*}}, %[[ONE]] [%[[PLACE]]]
// CHECK-NEXT:      scf.yield %[[BOTH]]
// CHECK:         %[[LOW:.*]] = vector.extract_strided_slice %[[FILLED]] offsets = [0], sizes = [4]
// CHECK:         %[[FIRST:.*]] = vector.transfer_write %[[LOW]], %[[OUT]]
// CHECK:         %[[HIGH:.*]] = vector.extract_strided_slice %[[FILLED]] offsets = [4], sizes = [4]
// CHECK:         vector.transfer_write %[[HIGH]], %[[FIRST]]
func.func @both_halves(%x: f32, %out: tensor<256xf32>) -> tensor<256xf32> {
  %tid = gpu.thread_id x upper_bound 32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%o = %out) -> tensor<256xf32> {
    %k = "xgpu.apply_indexing"(%tid, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + (d0 floordiv 2) * 8 + d1), d0 in [0, 31], d1 in [0, 3]>} : (index, index) -> index
    %l = "xgpu.apply_indexing"(%tid, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + (d0 floordiv 2) * 8 + d1 + 8), d0 in [0, 31], d1 in [0, 3]>} : (index, index) -> index
    %y = arith.addf %x, %x : f32
    %p = tensor.insert %x into %o[%k] : tensor<256xf32>
    %q = tensor.insert %y into %p[%l] : tensor<256xf32>
    scf.yield %q : tensor<256xf32>
  }
  return %r : tensor<256xf32>
}

// -----

// Where one step may insert what another did, their order counts.

// CHECK-LABEL: func.func @meeting
// CHECK-NOT:     vector<
// CHECK:         tensor.insert
// CHECK:         tensor.insert
// CHECK:         return
func.func @meeting(%x: f32, %out: tensor<256xf32>, %n: index {xgpu.range = array<i64: 0, 7>}) -> tensor<256xf32> {
  %tid = gpu.thread_id x upper_bound 32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%o = %out) -> tensor<256xf32> {
    %k = "xgpu.apply_indexing"(%tid, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1), d0 in [0, 31], d1 in [0, 3]>} : (index, index) -> index
    %l = "xgpu.apply_indexing"(%n, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1), d0 in [0, 7], d1 in [0, 3]>} : (index, index) -> index
    %y = arith.addf %x, %x : f32
    %p = tensor.insert %x into %o[%k] : tensor<256xf32>
    %q = tensor.insert %y into %p[%l] : tensor<256xf32>
    scf.yield %q : tensor<256xf32>
  }
  return %r : tensor<256xf32>
}
