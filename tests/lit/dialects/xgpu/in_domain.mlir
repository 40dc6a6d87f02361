// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @test
func.func @test(%i: index) -> i1 {
  // CHECK: "xgpu.in_domain"(%arg0) {map = #xgpu.map<(d0) -> (), d0 in [0, 127], d0 * 4 in [0, 99]>} : (index) -> i1
  %0 = "xgpu.in_domain"(%i) {map = #xgpu.map<(d0) -> (), d0 in [0, 127], d0 * 4 in [0, 99]>} : (index) -> i1
  return %0 : i1
}
