// RUN: xgpu-opt %s -p lower-predicated --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'lower-predicated,flatten-tensors,simplify-indexing,unswitch-loops,vectorize-accesses' --split-input-file | FileCheck %s --check-prefix=VECTOR

// Nothing is read or written where the condition does not hold.

// CHECK-LABEL: func.func @accesses
// CHECK-SAME:    (%[[IN:.*]]: i1, %[[X:.*]]: f32, %[[T:.*]]: tensor<4x5xf32>, %[[O:.*]]: tensor<8xf32>, %[[I:.*]]: index)
// CHECK-NEXT:    %[[Y:.*]] = scf.if %[[IN]] -> (f32) {
// CHECK-NEXT:      %[[E:.*]] = tensor.extract %[[T]][%[[I]], %[[I]]]
// CHECK-NEXT:      scf.yield %[[E]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[X]]
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[U:.*]] = scf.if %[[IN]] -> (tensor<8xf32>) {
// CHECK-NEXT:      %[[V:.*]] = tensor.insert %[[Y]] into %[[O]][%[[I]]]
// CHECK-NEXT:      scf.yield %[[V]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[O]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[Y]], %[[U]]
func.func @accesses(%inside: i1, %x: f32, %t: tensor<4x5xf32>, %o: tensor<8xf32>, %i: index) -> (f32, tensor<8xf32>) {
  %0 = "xgpu.predicated_extract"(%inside, %x, %t, %i, %i) : (i1, f32, tensor<4x5xf32>, index, index) -> f32
  %1 = "xgpu.predicated_insert"(%inside, %0, %o, %i) : (i1, f32, tensor<8xf32>, index) -> tensor<8xf32>
  return %0, %1 : f32, tensor<8xf32>
}

// -----

// A condition that the loop does not change leaves it; one version of the loop reads a vector.

// VECTOR-LABEL: func.func @in_a_loop
// VECTOR:         scf.if %{{.*}} -> (f32) {
// VECTOR:           %[[V:.*]] = vector.transfer_read %{{.*}} : tensor<64xf32>, vector<4xf32>
// VECTOR-NEXT:      scf.for
// VECTOR-NEXT:        vector.extract %[[V]]
// VECTOR:         } else {
// VECTOR-NOT:       {{tensor.extract|transfer_read}}
func.func @in_a_loop(%inside: i1, %x: f32, %t: tensor<64xf32>, %i: index {xgpu.range = array<i64: 0, 15>}) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%a = %x) -> (f32) {
    %k = "xgpu.apply_indexing"(%i, %s) {map = #xgpu.map<(d0, d1) -> (d0 * 4 + d1), d0 in [0, 15], d1 in [0, 3]>} : (index, index) -> index
    %y = "xgpu.predicated_extract"(%inside, %x, %t, %k) : (i1, f32, tensor<64xf32>, index) -> f32
    %b = arith.addf %a, %y : f32
    scf.yield %b : f32
  }
  return %r : f32
}
