// RUN: xgpu compile %s --emit emitted | FileCheck %s
// RUN: xgpu compile %s | FileCheck %s --check-prefix=PTX

// A thread reads 16 bytes of the array and 96 of what is the same in every row, so it takes the same columns of two rows
// and reads the latter once: six loads of 16 bytes, and one for each row.
// CHECK-LABEL: func.func @fusion_0(
// CHECK-SAME: xgpu.grid = array<i64: 2048, 1, 1>
// CHECK: "xgpu.loop"
// CHECK-NEXT: ^bb0({{.*}}, %[[ROW:[a-z0-9]+]]: index, %[[COLUMN:[a-z0-9]+]]: index, %[[OUT:[a-z0-9]+]]: tensor<4096x1024xbf16>):
// CHECK-NEXT: %[[V:.*]] = "xgpu.pure_call"({{.*}}, %[[ROW]], %[[COLUMN]]) {callee = @fusion_0__root}
// CHECK-NEXT: tensor.insert %[[V]] into %[[OUT]][%[[ROW]], %[[COLUMN]]]
// CHECK: (d0, d1)[s0, s1] -> (d1 * 2 + s0, d0 * 8 + s1), d0 in [0, 127], d1 in [0, 2047], s0 in [0, 1], s1 in [0, 7]>
// PTX-LABEL: .entry fusion_0(
// PTX-COUNT-7: ld.global.nc.v4.b32
// PTX: st.global.v4.b32
// PTX-COUNT-1: ld.global.nc.v4.b32
// PTX: st.global.v4.b32
// PTX-NOT: {{ld\.global|st\.global}}
// PTX: ret;

// Of an odd number of rows, one would be left over: each thread takes one.
// CHECK-LABEL: func.func @fusion_1(
// CHECK-SAME: xgpu.grid = array<i64: 4095, 1, 1>
// CHECK: (d0, d1)[s0] -> (d1, d0 * 8 + s0), d0 in [0, 127], d1 in [0, 4094], s0 in [0, 7]>
func.func @main(
    %x: tensor<4096x1024xbf16>, %y: tensor<4095x1024xbf16>, %a: tensor<1024xf32>, %b: tensor<1024xf32>, %c: tensor<1024xf32>
) -> (tensor<4096x1024xbf16>, tensor<4095x1024xbf16>) {
  %0 = stablehlo.convert %x : (tensor<4096x1024xbf16>) -> tensor<4096x1024xf32>
  %1 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<1024xf32>) -> tensor<4096x1024xf32>
  %2 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<1024xf32>) -> tensor<4096x1024xf32>
  %3 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<1024xf32>) -> tensor<4096x1024xf32>
  %4 = stablehlo.subtract %0, %1 : tensor<4096x1024xf32>
  %5 = stablehlo.multiply %4, %2 : tensor<4096x1024xf32>
  %6 = stablehlo.add %5, %3 : tensor<4096x1024xf32>
  %7 = stablehlo.convert %6 : (tensor<4096x1024xf32>) -> tensor<4096x1024xbf16>
  %8 = stablehlo.convert %y : (tensor<4095x1024xbf16>) -> tensor<4095x1024xf32>
  %9 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<1024xf32>) -> tensor<4095x1024xf32>
  %10 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<1024xf32>) -> tensor<4095x1024xf32>
  %11 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<1024xf32>) -> tensor<4095x1024xf32>
  %12 = stablehlo.subtract %8, %9 : tensor<4095x1024xf32>
  %13 = stablehlo.multiply %12, %10 : tensor<4095x1024xf32>
  %14 = stablehlo.add %13, %11 : tensor<4095x1024xf32>
  %15 = stablehlo.convert %14 : (tensor<4095x1024xf32>) -> tensor<4095x1024xbf16>
  return %7, %15 : tensor<4096x1024xbf16>, tensor<4095x1024xbf16>
}
