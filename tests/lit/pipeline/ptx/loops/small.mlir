// RUN: xgpu compile %s | FileCheck %s

// A result of fewer elements than the device has threads takes a thread each: no vectors, all threads at work.
// CHECK-LABEL: .entry fusion_0(
// CHECK-COUNT-2: ld.global.nc.b32
// CHECK: st.global.b32
// CHECK-NOT: .global
// CHECK: ret;
func.func @main(%x: tensor<256x1024xf32>, %y: tensor<256x1024xf32>) -> tensor<256x1024xf32> {
  %0 = stablehlo.add %x, %y : tensor<256x1024xf32>
  return %0 : tensor<256x1024xf32>
}
