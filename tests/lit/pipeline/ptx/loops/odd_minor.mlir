// RUN: xgpu compile %s -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=NONE < %t

// Where the run of a thread divides the number of elements but not the minor size, operands of the result's shape are
// still read in vectors and the result is written in one; a broadcast row, whose index wraps within a run, is not.

// CHECK-LABEL: .entry fusion_0(
// CHECK-NOT: {{bra|mul\.hi}}
// CHECK-COUNT-2: ld.global.nc.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK-NOT: .global
// CHECK: ret;

// CHECK-LABEL: .entry fusion_1(
// CHECK-NOT: {{bra|mul\.hi}}
// CHECK-COUNT-2: ld.global.nc.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK-NOT: .global
// CHECK: ret;

// CHECK-LABEL: .entry fusion_2(
// CHECK-DAG: ld.global.nc.v4.b32
// CHECK-DAG: ld.global.nc.b32
// CHECK-DAG: ld.global.nc.b32
// CHECK-DAG: ld.global.nc.b32
// CHECK-DAG: ld.global.nc.b32
// CHECK: st.global.v4.b32
// CHECK-NOT: .global
// CHECK: ret;

// NONE-NOT: {{bra|div|rem}}
func.func @main(
    %x: tensor<1024x1023xf32>, %y: tensor<1024x1023xf32>, %a: tensor<2048x1023xbf16>, %b: tensor<2048x1023xbf16>,
    %z: tensor<4096x1023xf32>, %row: tensor<1023xf32>
) -> (tensor<1024x1023xf32>, tensor<2048x1023xbf16>, tensor<4096x1023xf32>) {
  %0 = stablehlo.add %x, %y : tensor<1024x1023xf32>
  %1 = stablehlo.multiply %a, %b : tensor<2048x1023xbf16>
  %2 = stablehlo.broadcast_in_dim %row, dims = [1] : (tensor<1023xf32>) -> tensor<4096x1023xf32>
  %3 = stablehlo.add %z, %2 : tensor<4096x1023xf32>
  return %0, %1, %3 : tensor<1024x1023xf32>, tensor<2048x1023xbf16>, tensor<4096x1023xf32>
}
