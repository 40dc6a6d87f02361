// RUN: xgpu compile %s -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=NONE < %t

// Every result of a kernel is written in vectors; an operand that several of them need is read once.

// CHECK-LABEL: .entry fusion_0(
// CHECK-COUNT-2: ld.global.nc.v4.b32
// CHECK-NOT: ld.global
// Four elements each of f32, bf16 and i1.
// CHECK-DAG: st.global.v4.b32
// CHECK-DAG: st.global.v2.b32
// CHECK-DAG: st.global.b32
// CHECK-NOT: .global.
// CHECK: ret;

// NONE-NOT: {{bra|div|rem|mul\.hi}}
func.func @main(
    %x: tensor<1024x1024xf32>, %y: tensor<1024x1024xf32>
) -> (tensor<1024x1024xf32>, tensor<1024x1024xbf16>, tensor<1024x1024xi1>) {
  %0 = stablehlo.add %x, %y : tensor<1024x1024xf32>
  %1 = stablehlo.multiply %x, %y : tensor<1024x1024xf32>
  %2 = stablehlo.convert %1 : (tensor<1024x1024xf32>) -> tensor<1024x1024xbf16>
  %3 = stablehlo.compare LT, %x, %y : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xi1>
  return %0, %2, %3 : tensor<1024x1024xf32>, tensor<1024x1024xbf16>, tensor<1024x1024xi1>
}
