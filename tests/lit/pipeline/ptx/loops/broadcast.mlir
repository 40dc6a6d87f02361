// RUN: xgpu compile %s -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=NONE < %t

// An operand broadcast along the major dimensions is read in vectors, one broadcast along the minor dimension once.

// A row and a column.
// CHECK-LABEL: .entry fusion_0(
// CHECK-DAG: ld.global.nc.v4.b32
// CHECK-DAG: ld.global.nc.v4.b32
// CHECK-DAG: ld.global.nc.b32
// CHECK: st.global.v4.b32
// CHECK: ret;

// The middle dimension, and a scalar.
// CHECK-LABEL: .entry fusion_1(
// CHECK-DAG: ld.global.nc.v4.b32
// CHECK-DAG: ld.global.nc.v4.b32
// CHECK-DAG: ld.global.nc.b32
// CHECK: st.global.v4.b32
// CHECK: ret;

// NONE-COUNT-2: ld.global.nc.b32
// NONE-NOT: ld.global.nc.b32
// NONE-NOT: {{bra|div|rem|mul\.hi}}
func.func @main(
    %x: tensor<1024x1024xf32>, %row: tensor<1024xf32>, %column: tensor<1024xf32>,
    %z: tensor<64x64x512xf32>, %minor: tensor<64x512xf32>, %scalar: tensor<f32>
) -> (tensor<1024x1024xf32>, tensor<64x64x512xf32>) {
  %0 = stablehlo.broadcast_in_dim %row, dims = [1] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %1 = stablehlo.broadcast_in_dim %column, dims = [0] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %2 = stablehlo.add %x, %0 : tensor<1024x1024xf32>
  %3 = stablehlo.multiply %2, %1 : tensor<1024x1024xf32>
  %4 = stablehlo.broadcast_in_dim %minor, dims = [0, 2] : (tensor<64x512xf32>) -> tensor<64x64x512xf32>
  %5 = stablehlo.broadcast_in_dim %scalar, dims = [] : (tensor<f32>) -> tensor<64x64x512xf32>
  %6 = stablehlo.add %z, %4 : tensor<64x64x512xf32>
  %7 = stablehlo.multiply %6, %5 : tensor<64x64x512xf32>
  return %3, %7 : tensor<1024x1024xf32>, tensor<64x64x512xf32>
}
