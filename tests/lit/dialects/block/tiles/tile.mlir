// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.tile"(%arg0, %arg1, %arg2) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 128 + s0, d1 * 64 + s1), d0 in [0, 3], d1 in [0, 7], s0 in [0, 127], s1 in [0, 63], d0 * 128 + s0 in [0, 499]>} : (tensor<500x512xbf16>, index, index) -> tensor<128x64xbf16>
func.func @f(%array: tensor<500x512xbf16>, %i: index, %step: index) -> tensor<128x64xbf16> {
  %0 = "xgpu.tile"(%array, %i, %step) {map = #xgpu.map<(d0, d1)[s0, s1] -> (d0 * 128 + s0, d1 * 64 + s1), d0 in [0, 3], d1 in [0, 7], s0 in [0, 127], s1 in [0, 63], d0 * 128 + s0 in [0, 499]>} : (tensor<500x512xbf16>, index, index) -> tensor<128x64xbf16>
  return %0 : tensor<128x64xbf16>
}

// A tile without dimensions, and one of an array without them.

// CHECK-LABEL: func.func @elements
// CHECK-NEXT:    "xgpu.tile"(%arg0, %arg2) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 3]>} : (tensor<4xf32>, index) -> tensor<f32>
// CHECK-NEXT:    "xgpu.tile"(%arg1) {map = #xgpu.map<()[s0] -> (), s0 in [0, 7]>} : (tensor<f32>) -> tensor<8xf32>
func.func @elements(%array: tensor<4xf32>, %one: tensor<f32>, %i: index) {
  %0 = "xgpu.tile"(%array, %i) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 3]>} : (tensor<4xf32>, index) -> tensor<f32>
  %1 = "xgpu.tile"(%one) {map = #xgpu.map<()[s0] -> (), s0 in [0, 7]>} : (tensor<f32>) -> tensor<8xf32>
  return
}
