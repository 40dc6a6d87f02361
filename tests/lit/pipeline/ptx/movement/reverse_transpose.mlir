// RUN: xgpu compile %s -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=NONE < %t

// A reversed row is read in vectors, whose elements the thread takes in reverse.
// CHECK-LABEL: .entry fusion_0(
// CHECK: ld.global.nc.v4.b32 {{.*}}{[[A:%r[0-9]+]], [[B:%r[0-9]+]], [[C:%r[0-9]+]], [[D:%r[0-9]+]]}
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32 {{.*}}, {[[D]], [[C]], [[B]], [[A]]}
// CHECK: ret;

// A transpose that keeps the minor dimension reads vectors as well.
// CHECK-LABEL: .entry fusion_1(
// CHECK: ld.global.nc.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK: ret;

// One that does not reads single elements where a side is too short for a tile.
// CHECK-LABEL: .entry fusion_2(
// CHECK-COUNT-4: ld.global.nc.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK: ret;

// NONE-NOT: {{bra|div|rem|mul\.hi}}
func.func @main(
    %x: tensor<2048x1024xf32>, %y: tensor<64x128x256xf32>, %z: tensor<4x524288xf32>
) -> (tensor<2048x1024xf32>, tensor<128x64x256xf32>, tensor<524288x4xf32>) {
  %0 = stablehlo.reverse %x, dims = [1] : tensor<2048x1024xf32>
  %1 = stablehlo.transpose %y, dims = [1, 0, 2] : (tensor<64x128x256xf32>) -> tensor<128x64x256xf32>
  %2 = stablehlo.transpose %z, dims = [1, 0] : (tensor<4x524288xf32>) -> tensor<524288x4xf32>
  return %0, %1, %2 : tensor<2048x1024xf32>, tensor<128x64x256xf32>, tensor<524288x4xf32>
}
