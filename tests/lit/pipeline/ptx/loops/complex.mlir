// RUN: xgpu compile %s -o %t
// RUN: FileCheck %s < %t

// Two numbers of two f32, and one of two f64, in an access of 16 bytes; their parts need no code to come apart.

// CHECK-LABEL: .entry fusion_0(
// CHECK-COUNT-2: ld.global.nc.v4.b32
// CHECK-NOT: {{ld\.global|mov\.b64|shl\.b64|or\.b64}}
// CHECK: st.global.v4.b32
// CHECK-NOT: .global
// CHECK: ret;

// CHECK-LABEL: .entry fusion_1(
// CHECK-COUNT-2: ld.global.nc.v2.b64
// CHECK-NOT: {{ld\.global|shl\.b64|or\.b64}}
// CHECK: st.global.v2.b64
// CHECK-NOT: .global
// CHECK: ret;
func.func @main(%a: tensor<1048576xcomplex<f32>>, %b: tensor<1048576xcomplex<f32>>,
                %c: tensor<1048577xcomplex<f64>>, %d: tensor<1048577xcomplex<f64>>)
    -> (tensor<1048576xcomplex<f32>>, tensor<1048577xcomplex<f64>>) {
  %0 = stablehlo.multiply %a, %b : tensor<1048576xcomplex<f32>>
  %1 = stablehlo.multiply %c, %d : tensor<1048577xcomplex<f64>>
  return %0, %1 : tensor<1048576xcomplex<f32>>, tensor<1048577xcomplex<f64>>
}
