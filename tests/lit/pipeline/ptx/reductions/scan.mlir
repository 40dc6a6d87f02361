// RUN: xgpu compile %s -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=NONE < %t

// A row of 4096 elements for 256 threads: all of a thread's loads, of 16 bytes each, before the first shuffle.
// CHECK-LABEL: .entry fusion_0(
// CHECK-COUNT-4: ld.global.nc.v4.b32
// CHECK: shfl.sync.idx.b32
// CHECK: bar.sync
// CHECK: shfl.sync.idx.b32
// CHECK-COUNT-4: st.global.v4.b32
// CHECK: ret;

// Columns: rows of a thread come together too, and no shuffles.
// CHECK-LABEL: .entry fusion_1(
// CHECK-COUNT-16: ld.global.nc.b32
// CHECK: bar.sync
// CHECK-NOT: shfl.sync
// CHECK-COUNT-16: st.global.b32
// CHECK: ret;

// Blocks that share a row: all of a thread's loads before the first message, and loads of these until they are there.
// CHECK-LABEL: .entry fusion_2(
// CHECK: .minnctapersm 2
// CHECK-COUNT-8: ld.global.nc.v4.b32
// CHECK: bar.sync
// CHECK: st.relaxed.gpu.global.b64
// CHECK: ld.relaxed.gpu.global.b64
// CHECK: @%p{{[0-9]+}} bra
// CHECK: shfl.sync
// CHECK: bar.sync
// CHECK: st.relaxed.gpu.global.b64
// CHECK-COUNT-8: st.global.v4.b32
// CHECK: ret;

// NONE-NOT: {{div|rem\.|mul\.hi}}
func.func @main(%x: tensor<4096x4096xf32>, %y: tensor<2048x2048xf32>, %z: tensor<4194304xf32>)
    -> (tensor<4096x4096xf32>, tensor<2048x2048xf32>, tensor<4194304xf32>) {
  %0 = "xgpu.scan"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {dimension = 1 : i64, reverse = true} : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %1 = "xgpu.scan"(%y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %2 = "xgpu.scan"(%z) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {dimension = 0 : i64, reverse = false} : (tensor<4194304xf32>) -> tensor<4194304xf32>
  return %0, %1, %2 : tensor<4096x4096xf32>, tensor<2048x2048xf32>, tensor<4194304xf32>
}
