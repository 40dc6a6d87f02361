// RUN: xgpu compile %s | FileCheck %s

// Where the run of a thread does not divide the number of elements, all but the remainder is read and written in vectors,
// and one thread goes through the remainder in a loop of single elements.

// CHECK-LABEL: .entry fusion_0(
// CHECK-COUNT-2: ld.global.nc.v4.b32
// CHECK: st.global.v4.b32
// CHECK-NOT: .global.v
// CHECK-COUNT-2: ld.global.nc.b32
// CHECK: st.global.b32
// CHECK-NOT: .global
// CHECK: ret;

// CHECK-LABEL: .entry fusion_1(
// CHECK-DAG: ld.global.nc.v4.b32
// CHECK-DAG: ld.global.nc.v4.b32
// CHECK: st.global.v4.b32
// CHECK-COUNT-2: ld.global.nc.b16
// CHECK: st.global.b16
// CHECK-NOT: .global
// CHECK: ret;

// A broadcast row does not keep the operand of the result's shape from being read in vectors.
// CHECK-LABEL: .entry fusion_2(
// CHECK: ld.global.nc.v4.b32
// CHECK: st.global.v4.b32
// CHECK-NOT: st.global.v
// CHECK: st.global.b32
// CHECK-NOT: .global
// CHECK: ret;
func.func @main(
    %x: tensor<1023x1023xf32>, %y: tensor<1023x1023xf32>, %a: tensor<2045x1023xbf16>, %b: tensor<2045x1023xbf16>,
    %z: tensor<2043x1023xf32>, %row: tensor<1023xf32>
) -> (tensor<1023x1023xf32>, tensor<2045x1023xbf16>, tensor<2043x1023xf32>) {
  %0 = stablehlo.add %x, %y : tensor<1023x1023xf32>
  %1 = stablehlo.multiply %a, %b : tensor<2045x1023xbf16>
  %2 = stablehlo.broadcast_in_dim %row, dims = [1] : (tensor<1023xf32>) -> tensor<2043x1023xf32>
  %3 = stablehlo.add %z, %2 : tensor<2043x1023xf32>
  return %0, %1, %3 : tensor<1023x1023xf32>, tensor<2045x1023xbf16>, tensor<2043x1023xf32>
}
