// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f0(
// CHECK: "xgpu.mma"(%arg0, %arg1, %arg2) {a_element = bf16, b_element = bf16} : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
func.func @f0(%0: vector<4xi32>, %1: vector<2xi32>, %2: vector<4xf32>) {
  %r = "xgpu.mma"(%0, %1, %2) {a_element = bf16, b_element = bf16} : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
  return
}

// CHECK-LABEL: func.func @f1(
// CHECK: "xgpu.mma"(%arg0, %arg1, %arg2) {a_element = f64, b_element = f64} : (vector<1xf64>, vector<1xf64>, vector<2xf64>) -> vector<2xf64>
func.func @f1(%0: vector<1xf64>, %1: vector<1xf64>, %2: vector<2xf64>) {
  %r = "xgpu.mma"(%0, %1, %2) {a_element = f64, b_element = f64} : (vector<1xf64>, vector<1xf64>, vector<2xf64>) -> vector<2xf64>
  return
}

// CHECK-LABEL: func.func @f2(
// CHECK: "xgpu.mma"(%arg0, %arg1, %arg2) {a_element = si8, b_element = ui8} : (vector<4xi32>, vector<2xi32>, vector<4xi32>) -> vector<4xi32>
func.func @f2(%0: vector<4xi32>, %1: vector<2xi32>, %2: vector<4xi32>) {
  %r = "xgpu.mma"(%0, %1, %2) {a_element = si8, b_element = ui8} : (vector<4xi32>, vector<2xi32>, vector<4xi32>) -> vector<4xi32>
  return
}
