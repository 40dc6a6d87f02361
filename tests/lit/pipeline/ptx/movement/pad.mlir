// RUN: xgpu compile %s | FileCheck %s

// Padding whose edges the run divides is decided once for the run: it reads a vector or nothing.
// CHECK-LABEL: .entry fusion_0(
// CHECK: ld.global.nc.v4.b32
// CHECK-NOT: {{ld\.global|div|rem}}
// CHECK: st.global.v4.b32
// CHECK: ret;

// Padding of the major dimension leaves rows whole.
// CHECK-LABEL: .entry fusion_1(
// CHECK: ld.global.nc.v4.b32
// CHECK-NOT: {{ld\.global|div|rem}}
// CHECK: st.global.v4.b32
// CHECK: ret;

// Other edges are decided for each element; the result is still written in a vector.
// CHECK-LABEL: .entry fusion_2(
// CHECK-NOT: {{div|rem}}
// CHECK: st.global.v4.b32
// CHECK-NOT: .global
// CHECK: ret;
func.func @main(
    %x: tensor<1024x1008xf32>, %y: tensor<2046x1024xf32>, %z: tensor<4096x1008xf32>
) -> (tensor<1024x1024xf32>, tensor<2048x1024xf32>, tensor<4096x1024xf32>) {
  %value = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.pad %x, %value, low = [0, 8], high = [0, 8], interior = [0, 0]
    : (tensor<1024x1008xf32>, tensor<f32>) -> tensor<1024x1024xf32>
  %1 = stablehlo.pad %y, %value, low = [1, 0], high = [1, 0], interior = [0, 0]
    : (tensor<2046x1024xf32>, tensor<f32>) -> tensor<2048x1024xf32>
  %2 = stablehlo.pad %z, %value, low = [0, 7], high = [0, 9], interior = [0, 0]
    : (tensor<4096x1008xf32>, tensor<f32>) -> tensor<4096x1024xf32>
  return %0, %1, %2 : tensor<1024x1024xf32>, tensor<2048x1024xf32>, tensor<4096x1024xf32>
}
