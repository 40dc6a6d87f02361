// RUN: xgpu-opt %s -p expand-math --split-input-file | FileCheck %s --check-prefixes=CHECK,NVVM
// RUN: xgpu-opt %s -p 'expand-math{target=host}' --split-input-file | FileCheck %s --check-prefixes=CHECK,HOST

// A quotient that is then rounded to bf16: the dividend times the inverse that an instruction gives, both of numbers
// that are scaled where the divisor is very large or small. The host divides.

// CHECK-LABEL: func.func @rounded(%arg0: f32, %arg1: f32)
// NVVM-DAG:      %[[HUGE:.*]] = arith.constant 1.84467441E+19 : f32
// NVVM-DAG:      %[[TINY:.*]] = arith.constant 5.42101086E-20 : f32
// NVVM-DAG:      %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// NVVM:          %[[SIZE:.*]] = math.absf %arg1 : f32
// NVVM:          %[[SMALL:.*]] = arith.cmpf olt, %[[SIZE]], %[[TINY]] : f32
// NVVM:          %[[UP:.*]] = arith.select %[[SMALL]], %[[HUGE]], %[[ONE]] : f32
// NVVM:          %[[LARGE:.*]] = arith.cmpf ogt, %[[SIZE]], %[[HUGE]] : f32
// NVVM:          %[[SCALE:.*]] = arith.select %[[LARGE]], %[[TINY]], %[[UP]] : f32
// NVVM-DAG:      %[[DIVIDEND:.*]] = arith.mulf %arg0, %[[SCALE]] : f32
// NVVM-DAG:      %[[DIVISOR:.*]] = arith.mulf %arg1, %[[SCALE]] : f32
// NVVM:          %[[INVERSE:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[DIVISOR]])
// NVVM:          %[[QUOTIENT:.*]] = arith.mulf %[[DIVIDEND]], %[[INVERSE]] : f32
// NVVM-NOT:      arith.divf
// HOST-NOT:      arith.mulf
// HOST:          %[[QUOTIENT:.*]] = arith.divf %arg0, %arg1 : f32
// CHECK:         return %[[QUOTIENT]]
func.func @rounded(%x: f32, %y: f32) -> f32 {
  %0 = arith.divf %x, %y {xgpu.grade = 16 : i32} : f32
  return %0 : f32
}

// -----

// All others stay, of f32 or f64.

// CHECK-LABEL: func.func @exact
// CHECK-NEXT:    arith.divf %arg0, %arg1 : f32
// CHECK-NEXT:    arith.divf %arg2, %arg2 : f64
// CHECK-NEXT:    return
func.func @exact(%x: f32, %y: f32, %z: f64) -> (f32, f64) {
  %0 = arith.divf %x, %y : f32
  %1 = arith.divf %z, %z : f64
  return %0, %1 : f32, f64
}

// -----

// LLVM multiplies by the inverse of a power of two, which is exact; also of one that bf16 holds.

// CHECK-LABEL: func.func @powers_of_two
// CHECK-COUNT-3: arith.divf
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         return
func.func @powers_of_two(%x: f32) -> (f32, f32, f32) {
  %four = arith.constant 4.0 : f32
  %half = arith.constant -0.5 : f32
  %eight = arith.constant 8.0 : bf16
  %wide = arith.extf %eight : bf16 to f32
  %0 = arith.divf %x, %four {xgpu.grade = 16 : i32} : f32
  %1 = arith.divf %x, %half {xgpu.grade = 16 : i32} : f32
  %2 = arith.divf %x, %wide {xgpu.grade = 16 : i32} : f32
  return %0, %1, %2 : f32, f32, f32
}

// -----

// Any other constant is none, nor is zero or infinity.

// CHECK-LABEL: func.func @other_constants
// NVVM-COUNT-3:  llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
// NVVM-NOT:      arith.divf
// CHECK:         return
func.func @other_constants(%x: f32) -> (f32, f32, f32) {
  %three = arith.constant 3.0 : f32
  %zero = arith.constant 0.0 : f32
  %infinity = arith.constant 0x7F800000 : f32
  %0 = arith.divf %x, %three {xgpu.grade = 16 : i32} : f32
  %1 = arith.divf %x, %zero {xgpu.grade = 16 : i32} : f32
  %2 = arith.divf %x, %infinity {xgpu.grade = 16 : i32} : f32
  return %0, %1, %2 : f32, f32, f32
}
