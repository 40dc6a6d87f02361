// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    "xgpu.ptx"(%arg0, %arg1) {text = "mov.b32 $0, {$1, $2};"} : (i16, i16) -> i32
func.func @f(%x: i16, %y: i16) -> i32 {
  %0 = "xgpu.ptx"(%x, %y) {text = "mov.b32 $0, {$1, $2};"} : (i16, i16) -> i32
  return %0 : i32
}
