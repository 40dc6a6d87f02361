// RUN: xgpu-opt %s -p form-launches --split-input-file --verify-diagnostics | FileCheck %s

// Each par loop is a kernel, and so is what stands between two; buffers stay outside.
// CHECK-LABEL: func.func @kernels
// CHECK-NEXT:    "xgpu.launch"() ({
// CHECK-NEXT:      "xgpu.par"
// CHECK:           {called = "i", extent = 4 : i64} : () -> ()
// CHECK-NEXT:      "xgpu.yield"() : () -> ()
// CHECK-NEXT:    }) : () -> ()
// CHECK-NEXT:    %[[NEW:.*]] = "xgpu.new"
// CHECK-NEXT:    "xgpu.launch"() ({
// CHECK-NEXT:      "xgpu.write"(%arg0, %[[NEW]])
// CHECK-NEXT:      "xgpu.seq"
// CHECK:         }) : () -> ()
// CHECK-NEXT:    "xgpu.launch"() ({
// CHECK-NEXT:      "xgpu.par"
// CHECK:         }) : () -> ()
// CHECK-NEXT:    return
func.func @kernels(%x: tensor<f32>) {
  "xgpu.par"() ({
  ^bb0(%i: index):
    "xgpu.yield"() : () -> ()
  }) {called = "i", extent = 4 : i64} : () -> ()
  %0 = "xgpu.new"() {called = "t"} : () -> memref<f32>
  "xgpu.write"(%x, %0) {map = #xgpu.map<() -> ()>} : (tensor<f32>, memref<f32>) -> ()
  "xgpu.seq"() ({
  ^bb0(%i: index):
    "xgpu.yield"() : () -> ()
  }) {called = "k", extent = 4 : i64} : () -> ()
  "xgpu.par"() ({
  ^bb0(%i: index):
    "xgpu.yield"() : () -> ()
  }) {called = "j", extent = 4 : i64} : () -> ()
  return
}

// -----

func.func @value_of_another_kernel(%a: memref<f32>, %b: memref<4xf32>) {
  %x = "xgpu.read"(%a) {map = #xgpu.map<() -> ()>} : (memref<f32>) -> tensor<f32>
  "xgpu.par"() ({
  ^bb0(%i: index):
    // expected-error @+1 {{a value that is computed outside of all loops is used inside of par: keep it in a buffer}}
    "xgpu.write"(%x, %b, %i) {map = #xgpu.map<(d0) -> (d0), d0 in [0, 3]>} : (tensor<f32>, memref<4xf32>, index) -> ()
    "xgpu.yield"() : () -> ()
  }) {called = "i", extent = 4 : i64} : () -> ()
  return
}
