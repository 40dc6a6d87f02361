// RUN: xgpu-opt %s -p expand-complex --split-input-file | FileCheck %s

// A number in memory is one integer, and its type is known from the attribute.

// CHECK-LABEL: func.func @single
// CHECK-SAME:    (%[[A:.*]]: tensor<8x4xi64> {xgpu.element = complex<f32>}, %[[I:.*]]: index,
// CHECK-SAME:    %[[OUT:.*]]: tensor<8x4xi64> {xgpu.element = complex<f32>}) -> tensor<8x4xi64>
// CHECK-NEXT:    %[[BITS:.*]] = tensor.extract %[[A]][%[[I]], %[[I]]] : tensor<8x4xi64>
// CHECK-NEXT:    %[[Z:.*]] = llvm.bitcast %[[BITS]] : i64 to vector<2xf32>
// CHECK-NEXT:    %[[RE:.*]] = vector.extract %[[Z]][0] : f32 from vector<2xf32>
// CHECK-NEXT:    %[[IM:.*]] = vector.extract %[[Z]][1] : f32 from vector<2xf32>
// CHECK-NEXT:    %[[N:.*]] = arith.negf %[[IM]] : f32
// CHECK-NEXT:    %[[W:.*]] = vector.from_elements %[[RE]], %[[N]] : vector<2xf32>
// CHECK-NEXT:    %[[STORED:.*]] = llvm.bitcast %[[W]] : vector<2xf32> to i64
// CHECK-NEXT:    %[[R:.*]] = tensor.insert %[[STORED]] into %[[OUT]][%[[I]], %[[I]]] : tensor<8x4xi64>
// CHECK-NEXT:    return %[[R]] : tensor<8x4xi64>
func.func @single(%a: tensor<8x4xcomplex<f32>>, %i: index, %out: tensor<8x4xcomplex<f32>>)
    -> tensor<8x4xcomplex<f32>> {
  %z = tensor.extract %a[%i, %i] : tensor<8x4xcomplex<f32>>
  %re = complex.re %z : complex<f32>
  %im = complex.im %z : complex<f32>
  %n = arith.negf %im : f32
  %w = complex.create %re, %n : complex<f32>
  %r = tensor.insert %w into %out[%i, %i] : tensor<8x4xcomplex<f32>>
  return %r : tensor<8x4xcomplex<f32>>
}

// -----

// CHECK-LABEL: func.func @double
// CHECK-SAME:    (%[[A:.*]]: tensor<3xi128> {test.a, xgpu.element = complex<f64>}, %[[I:.*]]: index) -> (f64, f64)
// CHECK:         llvm.bitcast %{{.*}} : i128 to vector<2xf64>
func.func @double(%a: tensor<3xcomplex<f64>> {test.a}, %i: index) -> complex<f64> {
  %z = tensor.extract %a[%i] : tensor<3xcomplex<f64>>
  return %z : complex<f64>
}
