// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f0(
// CHECK: "xgpu.fence"() {kind = "async"} : () -> ()
func.func @f0() {
  "xgpu.fence"() {kind = "async"} : () -> ()
  return
}

// CHECK-LABEL: func.func @f1(
// CHECK: "xgpu.fence"() {kind = "mbarrier_init"} : () -> ()
func.func @f1() {
  "xgpu.fence"() {kind = "mbarrier_init"} : () -> ()
  return
}

// CHECK-LABEL: func.func @f2(
// CHECK: "xgpu.fence"() {kind = "cluster"} : () -> ()
func.func @f2() {
  "xgpu.fence"() {kind = "cluster"} : () -> ()
  return
}
