// RUN: xgpu compile %s | FileCheck %s

// A slice whose start and row length the run divides is read in vectors.
// CHECK-LABEL: .entry fusion_0(
// CHECK: ld.global.nc.v4.b32
// CHECK-NOT: {{ld\.global|bra|div|rem}}
// CHECK: st.global.v4.b32
// CHECK: ret;

// One that starts elsewhere is not aligned; the result is still written in vectors.
// CHECK-LABEL: .entry fusion_1(
// CHECK-NOT: {{bra|div|rem}}
// CHECK: st.global.v4.b32
// CHECK-NOT: .global
// CHECK: ret;
func.func @main(
    %x: tensor<1024x1040xf32>, %y: tensor<2048x1040xf32>
) -> (tensor<1024x1024xf32>, tensor<2048x1024xf32>) {
  %0 = stablehlo.slice %x [0:1024, 4:1028] : (tensor<1024x1040xf32>) -> tensor<1024x1024xf32>
  %1 = stablehlo.slice %y [0:2048, 3:1027] : (tensor<2048x1040xf32>) -> tensor<2048x1024xf32>
  return %0, %1 : tensor<1024x1024xf32>, tensor<2048x1024xf32>
}
