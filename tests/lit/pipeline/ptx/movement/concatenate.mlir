// RUN: xgpu compile %s | FileCheck %s

// A run of elements whose length divides the boundaries lies in one operand, so the choice of the operand is made once for
// the run, and either branch reads a vector.
// CHECK-LABEL: .entry fusion_0(
// CHECK-COUNT-3: ld.global.nc.v4.b32
// CHECK-NOT: {{ld\.global|div|rem}}
// CHECK: ret;

// Along the major dimension the operands' rows stay whole.
// CHECK-LABEL: .entry fusion_1(
// CHECK: ld.global.nc.v4.b32
// CHECK-NOT: ld.global.nc.b
// CHECK: st.global.v4.b32
// CHECK: ret;

// Other boundaries are decided for each element; the result is still written in a vector.
// CHECK-LABEL: .entry fusion_2(
// CHECK-COUNT-4: ld.global.nc.b32
// CHECK-NOT: {{ld\.global|div|rem}}
// CHECK: st.global.v4.b32
// CHECK-NOT: .global
// CHECK: ret;

// Short pieces that vectors fit are read and written in vectors by the same thread, without a branch, and what they are
// computed from in common is read once.
// CHECK-LABEL: .entry fusion_3(
// CHECK-NOT: bra
// CHECK-COUNT-2: ld.global.nc.v4.b32
// CHECK-NOT: {{ld\.global|bra|shared}}
// CHECK-COUNT-2: st.global.v4.b32
// CHECK-NOT: {{ld\.global|st\.global|bra}}
// CHECK: ret;

// Short pieces that start at odd places go by a tile of whole rows: reads of consecutive elements, one barrier, and writes
// of 16 bytes. No thread has a test but in its last step.
// CHECK-LABEL: .entry fusion_4(
// CHECK-NOT: {{v2|v4}}
// CHECK-COUNT-8: ld.global.nc.b32
// CHECK-NOT: {{v2|v4|st.global}}
// CHECK: bar.sync
// CHECK: ld.shared.v4.b32
// CHECK: st.global.v4.b32
// CHECK-NOT: st.global.b32
// CHECK: ret;
func.func @main(
    %a: tensor<1024x512xf32>, %b: tensor<1024x256xf32>, %c: tensor<1024x256xf32>,
    %d: tensor<512x2048xf32>, %e: tensor<512x2048xf32>, %f: tensor<2048x511xf32>, %g: tensor<2048x513xf32>,
    %h: tensor<8192x64xbf16>, %i: tensor<8192x64xbf16>,
    %j: tensor<8192x31xf32>, %k: tensor<8192x33xf32>
) -> (tensor<1024x1024xf32>, tensor<1024x2048xf32>, tensor<2048x1024xf32>, tensor<8192x128xbf16>, tensor<8192x64xf32>) {
  %nb = stablehlo.negate %b : tensor<1024x256xf32>
  %sc = stablehlo.multiply %c, %c : tensor<1024x256xf32>
  %0 = stablehlo.concatenate %a, %nb, %sc, dim = 1
    : (tensor<1024x512xf32>, tensor<1024x256xf32>, tensor<1024x256xf32>) -> tensor<1024x1024xf32>
  %1 = stablehlo.concatenate %d, %e, dim = 0
    : (tensor<512x2048xf32>, tensor<512x2048xf32>) -> tensor<1024x2048xf32>
  %2 = stablehlo.concatenate %f, %g, dim = 1
    : (tensor<2048x511xf32>, tensor<2048x513xf32>) -> tensor<2048x1024xf32>
  %sum = stablehlo.add %h, %i : tensor<8192x64xbf16>
  %difference = stablehlo.subtract %h, %i : tensor<8192x64xbf16>
  %3 = stablehlo.concatenate %sum, %difference, dim = 1
    : (tensor<8192x64xbf16>, tensor<8192x64xbf16>) -> tensor<8192x128xbf16>
  %4 = stablehlo.concatenate %j, %k, dim = 1 : (tensor<8192x31xf32>, tensor<8192x33xf32>) -> tensor<8192x64xf32>
  return %0, %1, %2, %3, %4
    : tensor<1024x1024xf32>, tensor<1024x2048xf32>, tensor<2048x1024xf32>, tensor<8192x128xbf16>, tensor<8192x64xf32>
}
