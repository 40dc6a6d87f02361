// The IR before and after chosen passes goes to stderr, the result to stdout.

// RUN: xgpu-opt %s -p cse,canonicalize --print-ir-before=canonicalize --print-ir-after=cse,canonicalize 2>&1 >%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=RESULT < %t
// RUN: xgpu-opt %s -p cse,canonicalize --print-ir-before-all 2>&1 >%t | FileCheck %s --check-prefix=BEFORE
// RUN: xgpu-opt %s -p cse,canonicalize --print-ir-after-all 2>&1 >%t | FileCheck %s --check-prefix=AFTER

// CHECK: {{^}}// -----// IR Dump After cse //----- //{{$}}
// CHECK-NEXT: module {
// CHECK: arith.subi
// CHECK: {{^}}// -----// IR Dump Before canonicalize //----- //{{$}}
// CHECK: arith.subi
// CHECK: {{^}}// -----// IR Dump After canonicalize //----- //{{$}}
// CHECK-NOT: arith.subi
// CHECK: arith.constant 0
// RESULT-NOT: IR Dump
// RESULT: arith.constant 0
// BEFORE: IR Dump Before cse
// BEFORE: IR Dump Before canonicalize
// BEFORE-NOT: IR Dump
// AFTER: IR Dump After cse
// AFTER: IR Dump After canonicalize
// AFTER-NOT: IR Dump
func.func @f(%a: i32) -> i32 {
  %0 = arith.subi %a, %a : i32
  return %0 : i32
}
