// RUN: xgpu-opt %s -p share-vectors --split-input-file | FileCheck %s

// Elements of a vector that was read before, in a branch too; not those beside it, or of another tensor.

// CHECK-LABEL: func.func @main(%arg0: tensor<128xf32>, %arg1: tensor<128xf32>, %arg2: index, %arg3: i1) -> (f32, f32, f32, f32)
// CHECK-NEXT:    %[[A:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %[[B:.*]] = "xgpu.apply_indexing"(%arg2) {map = #xgpu.map<(d0) -> (d0 * 4), d0 in [0, 30]>} : (index) -> index
// CHECK-NEXT:    %[[C:.*]] = vector.transfer_read %arg0[%[[B]]], %[[A]] {in_bounds = [true]} : tensor<128xf32>, vector<4xf32>
// CHECK-NEXT:    %[[D:.*]] = "xgpu.apply_indexing"(%arg2) {map = #xgpu.map<(d0) -> (d0 * 4 + 1), d0 in [0, 30]>} : (index) -> index
// CHECK-NEXT:    %[[E:.*]] = vector.extract %[[C]][1] : f32 from vector<4xf32>
// CHECK-NEXT:    %[[F:.*]] = scf.if %arg3 -> (f32) {
// CHECK-NEXT:      %[[G:.*]] = "xgpu.apply_indexing"(%arg2, %arg2) {map = #xgpu.map<(d0, d1) -> (d1 * 4 + 3), d0 in [0, 30], d1 in [0, 30]>} : (index, index) -> index
// CHECK-NEXT:      %[[H:.*]] = vector.extract %[[C]][3] : f32 from vector<4xf32>
// CHECK-NEXT:      scf.yield %[[H]] : f32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[A]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[I:.*]] = "xgpu.apply_indexing"(%arg2) {map = #xgpu.map<(d0) -> (d0 * 4 + 4), d0 in [0, 30]>} : (index) -> index
// CHECK-NEXT:    %[[J:.*]] = tensor.extract %arg0[%[[I]]] : tensor<128xf32>
// CHECK-NEXT:    %[[K:.*]] = tensor.extract %arg1[%[[D]]] : tensor<128xf32>
// CHECK-NEXT:    return %[[E]], %[[F]], %[[J]], %[[K]] : f32, f32, f32, f32
func.func @main(%t: tensor<128xf32>, %u: tensor<128xf32>, %n: index, %c: i1) -> (f32, f32, f32, f32) {
  %zero = arith.constant 0.0 : f32
  %k = "xgpu.apply_indexing"(%n) {map = #xgpu.map<(d0) -> (d0 * 4), d0 in [0, 30]>} : (index) -> index
  %v = vector.transfer_read %t[%k], %zero {in_bounds = [true]} : tensor<128xf32>, vector<4xf32>
  %l = "xgpu.apply_indexing"(%n) {map = #xgpu.map<(d0) -> (d0 * 4 + 1), d0 in [0, 30]>} : (index) -> index
  %x = tensor.extract %t[%l] : tensor<128xf32>
  %y = scf.if %c -> (f32) {
    %m = "xgpu.apply_indexing"(%n, %n) {map = #xgpu.map<(d0, d1) -> (d1 * 4 + 3), d0 in [0, 30], d1 in [0, 30]>} : (index, index) -> index
    %e = tensor.extract %t[%m] : tensor<128xf32>
    scf.yield %e : f32
  } else {
    scf.yield %zero : f32
  }
  %o = "xgpu.apply_indexing"(%n) {map = #xgpu.map<(d0) -> (d0 * 4 + 4), d0 in [0, 30]>} : (index) -> index
  %z = tensor.extract %t[%o] : tensor<128xf32>
  %w = tensor.extract %u[%l] : tensor<128xf32>
  return %x, %y, %z, %w : f32, f32, f32, f32
}

// -----

// At known places; what was read in a branch is not there after it.

// CHECK-LABEL: func.func @main(%arg0: tensor<128xf32>, %arg1: i1) -> (f32, f32)
// CHECK-NEXT:    %[[A:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %[[B:.*]] = arith.constant 4 : index
// CHECK-NEXT:    %[[C:.*]] = arith.constant 5 : index
// CHECK-NEXT:    %[[D:.*]] = scf.if %arg1 -> (f32) {
// CHECK-NEXT:      %[[E:.*]] = vector.transfer_read %arg0[%[[B]]], %[[A]] {in_bounds = [true]} : tensor<128xf32>, vector<4xf32>
// CHECK-NEXT:      %[[F:.*]] = vector.extract %[[E]][1] : f32 from vector<4xf32>
// CHECK-NEXT:      %[[G:.*]] = vector.extract %[[E]][0] : f32 from vector<4xf32>
// CHECK-NEXT:      %[[H:.*]] = arith.addf %[[F]], %[[G]] : f32
// CHECK-NEXT:      scf.yield %[[H]] : f32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[A]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[I:.*]] = tensor.extract %arg0[%[[C]]] : tensor<128xf32>
// CHECK-NEXT:    return %[[D]], %[[I]] : f32, f32
func.func @main(%t: tensor<128xf32>, %c: i1) -> (f32, f32) {
  %zero = arith.constant 0.0 : f32
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %x = scf.if %c -> (f32) {
    %v = vector.transfer_read %t[%c4], %zero {in_bounds = [true]} : tensor<128xf32>, vector<4xf32>
    %e = tensor.extract %t[%c5] : tensor<128xf32>
    %f = vector.extract %v[0] : f32 from vector<4xf32>
    %g = arith.addf %e, %f : f32
    scf.yield %g : f32
  } else {
    scf.yield %zero : f32
  }
  %y = tensor.extract %t[%c5] : tensor<128xf32>
  return %x, %y : f32, f32
}
