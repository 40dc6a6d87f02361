// RUN: xgpu compile %s -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=NONE < %t

// Operands of several types are all read in vectors: a thread takes as many elements as one store of 16 bytes holds, but
// not more than two loads of the widest operand.

// Four elements of bf16 and f32: the narrow load is of 8 bytes.
// CHECK-LABEL: .entry fusion_0(
// CHECK-DAG: ld.global.nc.v4.b16
// CHECK-DAG: ld.global.nc.v4.b32
// CHECK: st.global.v4.b32
// CHECK-NOT: .global.
// CHECK: ret;

// Eight elements of i8, f32 and i1: the wide loads are two.
// CHECK-LABEL: .entry fusion_1(
// CHECK-DAG: ld.global.nc.v2.b32
// CHECK-DAG: ld.global.nc.v4.b32
// CHECK-DAG: ld.global.nc.v4.b32
// CHECK: st.global.v2.b32
// CHECK-NOT: .global.
// CHECK: ret;

// NONE-NOT: {{bra|div|rem|mul\.hi}}
func.func @main(
    %x: tensor<1024x1024xf32>, %y: tensor<1024x1024xbf16>, %q: tensor<2048x1024xi8>, %s: tensor<2048x1024xf32>
) -> (tensor<1024x1024xf32>, tensor<2048x1024xi1>) {
  %0 = stablehlo.convert %y : (tensor<1024x1024xbf16>) -> tensor<1024x1024xf32>
  %1 = stablehlo.add %x, %0 : tensor<1024x1024xf32>
  %2 = stablehlo.convert %q : (tensor<2048x1024xi8>) -> tensor<2048x1024xf32>
  %3 = stablehlo.compare LT, %2, %s : (tensor<2048x1024xf32>, tensor<2048x1024xf32>) -> tensor<2048x1024xi1>
  return %1, %3 : tensor<1024x1024xf32>, tensor<2048x1024xi1>
}
