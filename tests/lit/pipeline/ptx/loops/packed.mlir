// RUN: xgpu compile %s -o %t
// RUN: FileCheck %s < %t

// Sixteen elements of 4 bits are one access of 8 bytes, of 2 bits one of 4; there is no stack.

// CHECK-LABEL: .entry fusion_0(
// CHECK-NOT: .local
// CHECK-COUNT-2: ld.global.nc.b64
// CHECK-NOT: ld.global
// CHECK: st.global.b64
// CHECK-NOT: .global
// CHECK: ret;

// CHECK-LABEL: .entry fusion_1(
// CHECK-NOT: .local
// CHECK-COUNT-2: ld.global.nc.b32
// CHECK-NOT: ld.global
// CHECK: st.global.b32
// CHECK-NOT: .global
// CHECK: ret;

// CHECK-LABEL: .entry fusion_2(
// CHECK-NOT: .local
// CHECK-COUNT-2: ld.global.nc.b64
// CHECK-NOT: ld.global
// CHECK: st.global.b64
// CHECK-NOT: .global
// CHECK: ret;

// CHECK-LABEL: .entry fusion_3(
// CHECK: ld.global.nc.v4.b32
// CHECK: cvt.rn.f16x2.e4m3x2
// CHECK: cvt.rn.satfinite.e4m3x2.f16x2
// CHECK: st.global.v4.b32
// CHECK-NOT: .global
// CHECK: ret;
func.func @main(
    %s4: tensor<192x65536xi4>, %u2: tensor<400x65536xui2>, %f4: tensor<208x65536xf4E2M1FN>, %f8: tensor<128x65536xf8E4M3FN>
) -> (tensor<192x65536xi4>, tensor<400x65536xui2>, tensor<208x65536xf4E2M1FN>, tensor<128x65536xf8E4M3FN>) {
  %1 = stablehlo.reverse %s4, dims = [0] : tensor<192x65536xi4>
  %2 = stablehlo.add %s4, %1 : tensor<192x65536xi4>
  %3 = stablehlo.reverse %u2, dims = [0] : tensor<400x65536xui2>
  %4 = stablehlo.maximum %u2, %3 : tensor<400x65536xui2>
  %5 = stablehlo.reverse %f4, dims = [0] : tensor<208x65536xf4E2M1FN>
  %6 = stablehlo.multiply %f4, %5 : tensor<208x65536xf4E2M1FN>
  %7 = stablehlo.reverse %f8, dims = [0] : tensor<128x65536xf8E4M3FN>
  %8 = stablehlo.multiply %f8, %7 : tensor<128x65536xf8E4M3FN>
  return %2, %4, %6, %8 : tensor<192x65536xi4>, tensor<400x65536xui2>, tensor<208x65536xf4E2M1FN>,
    tensor<128x65536xf8E4M3FN>
}
