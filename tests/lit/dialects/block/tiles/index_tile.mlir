// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.index_tile"(%arg0, %arg1) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d1 * 64 + s1), d0 in [0, 3], d1 in [0, 7], s0 in [0, 127], s1 in [0, 63]>} : (index, index) -> tensor<128x64xi32>
func.func @f(%i: index, %step: index) -> tensor<128x64xi32> {
  %0 = "xgpu.index_tile"(%i, %step) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d1 * 64 + s1), d0 in [0, 3], d1 in [0, 7], s0 in [0, 127], s1 in [0, 63]>} : (index, index) -> tensor<128x64xi32>
  return %0 : tensor<128x64xi32>
}
