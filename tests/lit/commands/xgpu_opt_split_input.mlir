// The parts between separator lines are modules of their own: read, run and printed each for itself.

// RUN: xgpu-opt %s --split-input-file -p cse | FileCheck %s
// RUN: xgpu-opt %s --split-input-file | xgpu-opt --split-input-file -p cse | FileCheck %s
// Without the option the separator is a comment, and the second @f a redefinition.
// RUN: not xgpu-opt %s 2>&1 | FileCheck %s --check-prefix=WHOLE

// CHECK: module {
// CHECK: func.func @f() {
// CHECK: // -----
// CHECK-NEXT: module {
// CHECK: func.func @f(%arg0: i32) {
// WHOLE: xgpu_opt_split_input.mlir:20:1: error: redefinition of symbol named 'f'
func.func @f() {
  return
}

// -----

func.func @f(%a: i32) {
  return
}
