// RUN: xgpu-opt %s -p flatten-tensors --split-input-file | FileCheck %s

// Accesses take the row-major index; the ranges are those of the shape. Attributes of function and arguments stay.

// CHECK-LABEL: func.func @accesses
// CHECK-SAME:    (%[[A:.*]]: tensor<128xf32>, %[[I:.*]]: index {xgpu.range = array<i64: 0, 7>}, %[[J:.*]]: index,
// CHECK-SAME:    %[[OUT:.*]]: tensor<128xf32>) -> tensor<128xf32> attributes {xgpu.inputs = 1 : i64, xgpu.kernel}
// CHECK-NEXT:    %[[K:.*]] = "xgpu.apply_indexing"(%[[I]], %[[J]])
// CHECK-SAME:      {map = #xgpu.map<(d0, d1) -> (d0 * 16 + d1), d0 in [0, 7], d1 in [0, 15]>}
// CHECK-NEXT:    %[[X:.*]] = tensor.extract %[[A]][%[[K]]] : tensor<128xf32>
// CHECK-NEXT:    %[[L:.*]] = "xgpu.apply_indexing"(%[[I]], %[[J]])
// CHECK-NEXT:    %[[R:.*]] = tensor.insert %[[X]] into %[[OUT]][%[[L]]] : tensor<128xf32>
// CHECK-NEXT:    return %[[R]] : tensor<128xf32>
func.func @accesses(%a: tensor<8x16xf32>, %i: index {xgpu.range = array<i64: 0, 7>}, %j: index, %out: tensor<8x16xf32>)
    -> tensor<8x16xf32> attributes {xgpu.kernel, xgpu.inputs = 1 : i64} {
  %x = tensor.extract %a[%i, %j] : tensor<8x16xf32>
  %r = tensor.insert %x into %out[%i, %j] : tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}

// -----

// A tensor of rank 0 is one element; a tensor of rank 1 stays as it is.

// CHECK-LABEL: func.func @rank_0_and_1
// CHECK-SAME:    (%[[S:.*]]: tensor<1xf32>, %[[T:.*]]: tensor<5xf32>, %[[I:.*]]: index)
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[X:.*]] = tensor.extract %[[S]][%[[ZERO]]] : tensor<1xf32>
// CHECK-NEXT:    tensor.insert %[[X]] into %[[T]][%[[I]]] : tensor<5xf32>
func.func @rank_0_and_1(%s: tensor<f32>, %t: tensor<5xf32>, %i: index) -> tensor<5xf32> {
  %x = tensor.extract %s[] : tensor<f32>
  %r = tensor.insert %x into %t[%i] : tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// Calls, loops and conditionals carry flat tensors.

// CHECK-LABEL: func.func @carried
// CHECK:         scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<6xi8>)
// CHECK:           scf.if {{.*}} -> (tensor<6xi8>)
// CHECK:             "xgpu.pure_call"(%[[ACC]], %{{.*}}) {callee = @callee} : (tensor<6xi8>, index) -> i8
// CHECK:         "xgpu.loop"({{.*}}) ({
// CHECK-NEXT:    ^bb0(%{{.*}}: index, %{{.*}}: index, %[[TILE:.*]]: tensor<6xi8>):
// CHECK-NEXT:      "xgpu.yield"(%[[TILE]]) : (tensor<6xi8>) -> ()
// CHECK-LABEL: func.func private @callee(%{{.*}}: tensor<6xi8>, %{{.*}}: index) -> i8
func.func @carried(%t: tensor<2x3xi8>, %c: i1, %i: index) -> tensor<2x3xi8> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %j = %c0 to %c3 step %c1 iter_args(%acc = %t) -> tensor<2x3xi8> {
    %new = scf.if %c -> tensor<2x3xi8> {
      %x = "xgpu.pure_call"(%acc, %i) {callee = @callee} : (tensor<2x3xi8>, index) -> i8
      %u = tensor.insert %x into %acc[%c1, %j] : tensor<2x3xi8>
      scf.yield %u : tensor<2x3xi8>
    } else {
      scf.yield %acc : tensor<2x3xi8>
    }
    scf.yield %new : tensor<2x3xi8>
  }
  %l = "xgpu.loop"(%i, %r) ({
  ^bb0(%s: index, %k: index, %acc: tensor<2x3xi8>):
    "xgpu.yield"(%acc) : (tensor<2x3xi8>) -> ()
  }) {map = #xgpu.map<(d0)[s0] -> (d0 + s0), d0 in [0, 1], s0 in [0, 1]>} : (index, tensor<2x3xi8>) -> tensor<2x3xi8>
  return %l : tensor<2x3xi8>
}
func.func private @callee(%t: tensor<2x3xi8>, %i: index) -> i8 {
  %x = tensor.extract %t[%i, %i] : tensor<2x3xi8>
  return %x : i8
}

// -----

// Constants keep their elements, whatever the type.

// CHECK-LABEL: func.func @constants
// CHECK-DAG:     arith.constant dense<[1.000000e+00, -0.000000e+00, 0x7FC1, 4.500000e+00]> : tensor<4xbf16>
// CHECK-DAG:     arith.constant dense<7> : tensor<12xi64>
// CHECK-DAG:     arith.constant dense<[true, false, false, true]> : tensor<4xi1>
// CHECK-DAG:     arith.constant dense<2.000000e+00> : tensor<1xf32>
// CHECK-DAG:     arith.constant dense<> : tensor<0xf32>
// CHECK-DAG:     arith.constant dense<[0, 1]> : tensor<2xi32>
// CHECK-DAG:     tensor.empty() : tensor<8xf16>
func.func @constants() -> (tensor<2x2xbf16>, tensor<3x4xi64>, tensor<2x2xi1>, tensor<f32>, tensor<2x0xf32>, tensor<2xi32>,
                           tensor<2x4xf16>) {
  %a = arith.constant dense<[[1.0, -0.0], [0x7FC1, 4.5]]> : tensor<2x2xbf16>
  %b = arith.constant dense<7> : tensor<3x4xi64>
  %c = arith.constant dense<[[true, false], [false, true]]> : tensor<2x2xi1>
  %d = arith.constant dense<2.0> : tensor<f32>
  %e = arith.constant dense<> : tensor<2x0xf32>
  %f = arith.constant dense<[0, 1]> : tensor<2xi32>
  %g = tensor.empty() : tensor<2x4xf16>
  return %a, %b, %c, %d, %e, %f, %g : tensor<2x2xbf16>, tensor<3x4xi64>, tensor<2x2xi1>, tensor<f32>, tensor<2x0xf32>,
                                     tensor<2xi32>, tensor<2x4xf16>
}
