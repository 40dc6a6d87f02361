// RUN: xgpu-opt %s -p expand-complex --split-input-file | FileCheck %s

// Loops and calls hand on both parts, in place of the complex value; what else they hand on stays.

// CHECK-LABEL: func.func @loop
// CHECK:         %[[R:.*]]:4 = "xgpu.loop"(%{{.*}}, %[[X:.*]], %[[RE:.*]], %[[IM:.*]], %[[T:.*]]) ({
// CHECK-NEXT:    ^bb0(%{{.*}}: index, %[[K:.*]]: index, %[[Y:.*]]: f32, %[[ZR:.*]]: f32, %[[ZI:.*]]: f32, %[[U:.*]]: tensor<8xi64>):
// CHECK-NEXT:      %[[W:.*]]:2 = "xgpu.pure_call"(%[[U]], %[[K]], %[[ZR]], %[[ZI]]) {callee = @step}
// CHECK-SAME:        : (tensor<8xi64>, index, f32, f32) -> (f32, f32)
// CHECK-NEXT:      "xgpu.yield"(%[[Y]], %[[W]]#0, %[[W]]#1, %[[U]]) : (f32, f32, f32, tensor<8xi64>) -> ()
// CHECK-NEXT:    }) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 1], s0 in [0, 3]>}
// CHECK-SAME:      : (index, f32, f32, f32, tensor<8xi64>) -> (f32, f32, f32, tensor<8xi64>)
// CHECK-NEXT:    return %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[R]]#3 : f32, f32, f32, tensor<8xi64>
func.func @loop(%i: index, %x: f32, %z: complex<f32>, %t: tensor<8xcomplex<f32>>)
    -> (f32, complex<f32>, tensor<8xcomplex<f32>>) {
  %r:3 = "xgpu.loop"(%i, %x, %z, %t) ({
  ^bb0(%s0: index, %k: index, %y: f32, %w: complex<f32>, %u: tensor<8xcomplex<f32>>):
    %v = "xgpu.pure_call"(%u, %k, %w) {callee = @step} : (tensor<8xcomplex<f32>>, index, complex<f32>) -> complex<f32>
    "xgpu.yield"(%y, %v, %u) : (f32, complex<f32>, tensor<8xcomplex<f32>>) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 1], s0 in [0, 3]>}
    : (index, f32, complex<f32>, tensor<8xcomplex<f32>>) -> (f32, complex<f32>, tensor<8xcomplex<f32>>)
  return %r#0, %r#1, %r#2 : f32, complex<f32>, tensor<8xcomplex<f32>>
}
// CHECK-LABEL: func.func private @step
// CHECK-SAME:    (%{{.*}}: tensor<8xi64> {xgpu.element = complex<f32>}, %{{.*}}: index, %[[RE:.*]]: f32, %[[IM:.*]]: f32) -> (f32, f32)
// CHECK-NEXT:    return %[[IM]], %[[RE]] : f32, f32
func.func private @step(%t: tensor<8xcomplex<f32>>, %i: index, %z: complex<f32>) -> complex<f32> {
  %re = complex.re %z : complex<f32>
  %im = complex.im %z : complex<f32>
  %w = complex.create %im, %re : complex<f32>
  return %w : complex<f32>
}

// -----

// CHECK-LABEL: func.func @nested
// CHECK-SAME:    (%[[C:.*]]: i1, %[[LOW:.*]]: index, %[[HIGH:.*]]: index, %[[RE:.*]]: f64, %[[IM:.*]]: f64) -> (f64, f64)
// CHECK-NEXT:    %[[R:.*]]:2 = scf.if %[[C]] -> (f64, f64) {
// CHECK-NEXT:      %[[F:.*]]:2 = scf.for %{{.*}} = %[[LOW]] to %[[HIGH]] step %{{.*}} iter_args(%[[A:.*]] = %[[RE]], %[[B:.*]] = %[[IM]]) -> (f64, f64) {
// CHECK-NEXT:        scf.yield %[[B]], %[[A]] : f64, f64
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield %[[F]]#0, %[[F]]#1 : f64, f64
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[RE]], %[[IM]] : f64, f64
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[R]]#0, %[[R]]#1 : f64, f64
func.func @nested(%c: i1, %low: index, %high: index, %z: complex<f64>) -> complex<f64> {
  %r = scf.if %c -> (complex<f64>) {
    %f = scf.for %i = %low to %high step %high iter_args(%w = %z) -> (complex<f64>) {
      %re = complex.re %w : complex<f64>
      %im = complex.im %w : complex<f64>
      %v = complex.create %im, %re : complex<f64>
      scf.yield %v : complex<f64>
    }
    scf.yield %f : complex<f64>
  } else {
    scf.yield %z : complex<f64>
  }
  return %r : complex<f64>
}
