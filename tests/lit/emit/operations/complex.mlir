// RUN: xgpu compile %s --emit emitted | FileCheck %s

// Complex scalars are taken apart, computed with part by part, and joined; branches hand them on whole.

// CHECK-LABEL: func.func private @fusion_0__root
// CHECK-SAME:    (%[[Z:.*]]: tensor<5xcomplex<f32>>, %[[I:.*]]: index {xgpu.range = array<i64: 0, 7>}) -> complex<f32>
// CHECK:         %[[PADDED:.*]] = scf.if %{{.*}} -> (complex<f32>) {
// CHECK:           %[[X:.*]] = tensor.extract %[[Z]]
// CHECK-NEXT:      %[[RE:.*]] = complex.re %[[X]] : complex<f32>
// CHECK-NEXT:      %[[IM:.*]] = complex.im %[[X]] : complex<f32>
// CHECK-NEXT:      %[[NRE:.*]] = arith.negf %[[RE]] : f32
// CHECK-NEXT:      %[[NIM:.*]] = arith.negf %[[IM]] : f32
// CHECK-NEXT:      %[[N:.*]] = complex.create %[[NRE]], %[[NIM]] : complex<f32>
// CHECK-NEXT:      scf.yield %[[N]] : complex<f32>
// CHECK-NEXT:    } else {
// CHECK:           %[[FILL:.*]] = complex.create
// CHECK-NEXT:      scf.yield %[[FILL]] : complex<f32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[PADDED]] : complex<f32>
func.func @main(%z: tensor<5xcomplex<f32>>) -> tensor<8xcomplex<f32>> {
  %fill = stablehlo.constant dense<(1.0, -2.0)> : tensor<complex<f32>>
  %n = stablehlo.negate %z : tensor<5xcomplex<f32>>
  %p = stablehlo.pad %n, %fill, low = [1], high = [2], interior = [0]
    : (tensor<5xcomplex<f32>>, tensor<complex<f32>>) -> tensor<8xcomplex<f32>>
  return %p : tensor<8xcomplex<f32>>
}
