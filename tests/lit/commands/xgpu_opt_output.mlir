// What is printed: the result on stdout or in a file, in each of the forms that can be asked for.

// RUN: xgpu-opt %s | FileCheck %s
// RUN: xgpu-opt < %s | FileCheck %s
// RUN: xgpu-opt - < %s | FileCheck %s
// RUN: xgpu-opt %s -o %t && FileCheck %s < %t
// RUN: xgpu-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: xgpu-opt %s --mlir-print-debuginfo | FileCheck %s --check-prefix=LOC
// The result is accepted back.
// RUN: xgpu-opt %s --mlir-print-op-generic | xgpu-opt | FileCheck %s

// CHECK: func.func @f(%arg0: i32) -> i32 {
// CHECK-NEXT: return %arg0 : i32
// GENERIC: "func.return"(%arg0) : (i32) -> ()
// LOC: return %arg0 : i32 loc([[PLACE:#loc[0-9]*]])
// LOC: [[PLACE]] = loc("{{.*}}xgpu_opt_output.mlir":18:3)
func.func @f(%a: i32) -> i32 {
  return %a : i32
}
