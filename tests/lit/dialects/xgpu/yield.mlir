// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @nothing_carried
func.func @nothing_carried(%i: index) {
  // CHECK: "xgpu.yield"() : () -> ()
  "xgpu.loop"(%i) ({
    "xgpu.yield"() : () -> ()
  }) {map = #xgpu.map<(d0) -> (), d0 in [0, 3]>} : (index) -> ()
  return
}
