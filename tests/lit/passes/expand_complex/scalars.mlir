// RUN: xgpu-opt %s -p expand-complex --split-input-file | FileCheck %s

// Two real values for each complex one; the operations on complex numbers go away.

// CHECK-LABEL: func.func @parts
// CHECK-SAME:    (%[[X:.*]]: f32, %[[C:.*]]: i1, %[[RE:.*]]: f32, %[[IM:.*]]: f32, %[[Y:.*]]: f32) -> (f32, f32, f32)
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG:     %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK:         %[[A:.*]] = arith.addf %[[RE]], %[[X]] : f32
// CHECK-NEXT:    %[[B:.*]] = arith.mulf %[[IM]], %[[Y]] : f32
// CHECK-NEXT:    %[[R:.*]] = arith.select %[[C]], %[[A]], %[[ONE]] : f32
// CHECK-NEXT:    %[[I:.*]] = arith.select %[[C]], %[[B]], %[[TWO]] : f32
// CHECK-NEXT:    return %[[R]], %[[I]], %[[Y]] : f32, f32, f32
func.func @parts(%x: f32, %c: i1, %z: complex<f32>, %y: f32) -> (complex<f32>, f32) {
  %k = complex.constant [1.0 : f32, 2.0 : f32] : complex<f32>
  %re = complex.re %z : complex<f32>
  %im = complex.im %z : complex<f32>
  %a = arith.addf %re, %x : f32
  %b = arith.mulf %im, %y : f32
  %w = complex.create %a, %b : complex<f32>
  %r = arith.select %c, %w, %k : complex<f32>
  return %r, %y : complex<f32>, f32
}

// -----

// Attributes of arguments and results stay with what they describe.

// CHECK-LABEL: func.func @attributes
// CHECK-SAME:    (%{{.*}}: f64 {test.z}, %{{.*}}: f64 {test.z}, %{{.*}}: index {xgpu.range = array<i64: 0, 7>})
// CHECK-SAME:    -> (f64 {test.r}, f64 {test.r}, index {test.i})
func.func @attributes(%z: complex<f64> {test.z}, %i: index {xgpu.range = array<i64: 0, 7>})
    -> (complex<f64> {test.r}, index {test.i}) {
  return %z, %i : complex<f64>, index
}

// -----

// A program without complex numbers stays as it is.

// CHECK-LABEL: func.func @real
// CHECK-SAME:    (%[[T:.*]]: tensor<8xf32>, %[[I:.*]]: index, %[[B:.*]]: i64) -> (f32, i64)
// CHECK-NEXT:    %[[X:.*]] = tensor.extract %[[T]][%[[I]]] : tensor<8xf32>
// CHECK-NEXT:    return %[[X]], %[[B]] : f32, i64
func.func @real(%t: tensor<8xf32>, %i: index, %b: i64) -> (f32, i64) {
  %x = tensor.extract %t[%i] : tensor<8xf32>
  return %x, %b : f32, i64
}
