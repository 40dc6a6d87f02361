// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.shared_memory"() {bytes = 196608 : i64} : () -> !llvm.ptr<3>
func.func @f() {
  %0 = "xgpu.shared_memory"() {bytes = 196608 : i64} : () -> !llvm.ptr<3>
  return
}
