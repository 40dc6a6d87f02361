// A table of how long reading, each pass and printing took.

// RUN: xgpu-opt %s -p cse,canonicalize --mlir-timing 2>&1 >%t | FileCheck %s

// CHECK: Execution time report
// CHECK: Total Execution Time: {{[0-9]+\.[0-9]+}} seconds
// CHECK: {{[0-9.]+ \( *[0-9.]+%\)}} Parser
// CHECK-NEXT: cse
// CHECK-NEXT: canonicalize
// CHECK-NEXT: Output
// CHECK-NEXT: (100.0%) Total
func.func @f() {
  return
}
