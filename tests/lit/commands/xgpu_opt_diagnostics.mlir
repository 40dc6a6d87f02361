// Diagnostics go to stderr with file, line and column, the source line and a caret; lines count in the whole file. Parts
// with an error do not stop the others.

// RUN: not xgpu-opt %s --split-input-file -p cse > %t.out 2> %t.err
// RUN: FileCheck %s < %t.err
// RUN: FileCheck %s --check-prefix=OUT < %t.out
// RUN: not xgpu-opt --split-input-file < %s 2>&1 | FileCheck %s --check-prefix=STDIN

// CHECK: xgpu_opt_diagnostics.mlir:22:3: error: type of return operand 0 ('i32') doesn't match function result type ('i64')
// CHECK-NEXT: {{^}}  return %a : i32{{$}}
// CHECK-NEXT: {{^}}  ^{{$}}
// CHECK-NEXT: xgpu_opt_diagnostics.mlir:22:3: note: see current operation: "func.return"(%arg0) : (i32) -> ()
// CHECK: xgpu_opt_diagnostics.mlir:29:6: error: redefinition of SSA value '%x'
// CHECK: xgpu_opt_diagnostics.mlir:28:5: note: previously defined here
// CHECK-NEXT: {{^}}    %x = arith.constant 1 : i32{{$}}
// CHECK: xgpu_opt_diagnostics.mlir:42:3: error: unknown operation 'nothing.known': no dialect 'nothing' is known
// OUT-NOT: @wrong
// OUT: @right
// OUT-NOT: @wrong
// STDIN: <stdin>:22:3: error: type of return operand 0
func.func @wrong(%a: i32) -> i64 {
  return %a : i32
}

// -----

func.func @wrong() {
    %x = arith.constant 1 : i32
     %x = arith.constant 2 : i32
  return
}

// -----

func.func @right() {
  return
}

// -----

func.func @wrong() {
  "nothing.known"() : () -> ()
  return
}
