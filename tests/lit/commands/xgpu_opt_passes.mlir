// Passes run in the order given, in any of the ways to give them; without any the input is only verified.

// RUN: xgpu-opt %s | FileCheck %s --check-prefix=NONE
// RUN: xgpu-opt %s -p cse | FileCheck %s --check-prefix=CSE
// RUN: xgpu-opt %s -p 'func.func(cse)' | FileCheck %s --check-prefix=CSE
// RUN: xgpu-opt %s --pass-pipeline='builtin.module(cse)' | FileCheck %s --check-prefix=CSE
// RUN: xgpu-opt %s -p 'cse, canonicalize{max-iterations=3}' | FileCheck %s --check-prefix=BOTH
// RUN: xgpu-opt %s -p 'set-level{level=optimized},cse' | FileCheck %s --check-prefixes=OURS,CSE

// OURS: module attributes {xgpu.level = "optimized"}
// NONE-COUNT-2: arith.addi %arg0, %arg0
// NONE: arith.subi
// CSE: %[[SUM:.*]] = arith.addi %arg0, %arg0
// CSE-NEXT: %[[ZERO:.*]] = arith.subi %[[SUM]], %[[SUM]]
// CSE-NEXT: return %[[ZERO]]
// BOTH: %[[ZERO:.*]] = arith.constant 0 : i32
// BOTH-NEXT: return %[[ZERO]]
func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  %2 = arith.subi %0, %1 : i32
  return %2 : i32
}
