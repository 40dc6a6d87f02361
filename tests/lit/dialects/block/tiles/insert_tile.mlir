// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.insert_tile"(%arg0, %arg1, %arg2) {map = #xgpu.map<(d0)[s0] -> (d0 * 128 + s0), d0 in [0, 3], s0 in [0, 127], d0 * 128 + s0 in [0, 499]>} : (tensor<128xf32>, tensor<500xf32>, index) -> tensor<500xf32>
func.func @f(%tile: tensor<128xf32>, %array: tensor<500xf32>, %i: index) -> tensor<500xf32> {
  %0 = "xgpu.insert_tile"(%tile, %array, %i) {map = #xgpu.map<(d0)[s0] -> (d0 * 128 + s0), d0 in [0, 3], s0 in [0, 127], d0 * 128 + s0 in [0, 499]>} : (tensor<128xf32>, tensor<500xf32>, index) -> tensor<500xf32>
  return %0 : tensor<500xf32>
}
