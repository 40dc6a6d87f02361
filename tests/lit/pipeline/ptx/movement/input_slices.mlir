// RUN: xgpu compile %s | FileCheck %s

// Every slice is read and written in vectors; the smaller ones by the first blocks only, which is a test of the block.
// CHECK-LABEL: .entry fusion_0(
// CHECK-NOT: {{div|rem|mul\.hi}}
// CHECK: ld.global.nc.v4.b32
// CHECK: st.global.v4.b32
// CHECK: setp.gt.u32 {{.*}}, 8191;
// CHECK: ld.global.nc.v4.b32
// CHECK: st.global.v4.b32
// CHECK-NOT: {{(ld|st)\.global\.(nc\.)?b32}}
// CHECK: ret;

// Where slices have elements in common, threads walk the value, at the same address for all slices.
// CHECK-LABEL: .entry fusion_1(
// CHECK: ld.global.nc.v4.b32 {{.*}}, [[[AT:%rd[0-9]+]]];
// CHECK: st.global.v4.b32
// CHECK: ld.global.nc.v4.b32 {{.*}}, [[[AT]]];
// CHECK: st.global.v4.b32
// CHECK-NOT: {{(ld|st)\.global}}
// CHECK: ret;
func.func @main(
    %x: tensor<8192x1536xf32>, %y: tensor<4194304xf32>
) -> (tensor<8192x1024xf32>, tensor<8192x512xf32>, tensor<4194300xf32>, tensor<4194296xf32>) {
  %0 = stablehlo.slice %x [0:8192, 0:1024] : (tensor<8192x1536xf32>) -> tensor<8192x1024xf32>
  %1 = stablehlo.slice %x [0:8192, 1024:1536] : (tensor<8192x1536xf32>) -> tensor<8192x512xf32>
  %2 = stablehlo.slice %y [4:4194304] : (tensor<4194304xf32>) -> tensor<4194300xf32>
  %3 = stablehlo.slice %y [0:4194296] : (tensor<4194304xf32>) -> tensor<4194296xf32>
  return %0, %1, %2, %3
    : tensor<8192x1024xf32>, tensor<8192x512xf32>, tensor<4194300xf32>, tensor<4194296xf32>
}
