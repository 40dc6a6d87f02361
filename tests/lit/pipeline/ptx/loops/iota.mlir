// RUN: xgpu compile %s | FileCheck %s

// Kernels that read nothing write 16 bytes a thread.
// CHECK-LABEL: .entry fusion_0(
// CHECK-NOT: {{ld\.global|bra}}
// CHECK: st.global.v4.b32
// CHECK-NOT: st.global
// CHECK: ret;

// CHECK-LABEL: .entry fusion_1(
// CHECK-NOT: {{ld\.global|bra}}
// CHECK: st.global.v4.b32 {{.*}} {1073758208, 1073758208, 1073758208, 1073758208}
// CHECK-NOT: st.global
// CHECK: ret;
func.func @main() -> (tensor<4096x4096xf32>, tensor<4096x2048xbf16>) {
  %0 = stablehlo.iota dim = 1 : tensor<4096x4096xf32>
  %1 = stablehlo.constant dense<2.0> : tensor<4096x2048xbf16>
  return %0, %1 : tensor<4096x4096xf32>, tensor<4096x2048xbf16>
}
