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
// HOST:          %[[QUOTIENT:.*]] = arith.divf %arg0, %arg1 {xgpu.grade = 16 : i32} : f32
// CHECK:         return %[[QUOTIENT]]
func.func @rounded(%x: f32, %y: f32) -> f32 {
  %0 = arith.divf %x, %y {xgpu.grade = 16 : i32} : f32
  return %0 : f32
}

// -----

// Others of f32 are an instruction that is off by two units in the last place at most. Those of f64 stay.

// CHECK-LABEL: func.func @others
// NVVM-NEXT:     llvm.call_intrinsic "llvm.nvvm.div.full"(%arg0, %arg1) : (f32, f32) -> f32
// HOST-NEXT:     arith.divf %arg0, %arg1 : f32
// CHECK-NEXT:    arith.divf %arg2, %arg2 : f64
// CHECK-NEXT:    return
func.func @others(%x: f32, %y: f32, %z: f64) -> (f32, f64) {
  %0 = arith.divf %x, %y : f32
  %1 = arith.divf %z, %z : f64
  return %0, %1 : f32, f64
}

// -----

// Of a divisor that is known to be a positive number and no subnormal one, only the inverse of a large one needs care.

// CHECK-LABEL: func.func @by_normal
// NVVM-DAG:      %[[BOUND:.*]] = arith.constant 8.50705917E+37 : f32
// NVVM:          %[[LARGE:.*]] = arith.cmpf ogt, %[[DIVISOR:.*]], %[[BOUND]] : f32
// NVVM:          %[[SCALE:.*]] = arith.select %[[LARGE]], %{{.*}}, %{{.*}} : f32
// NVVM-DAG:      %[[DIVIDEND:.*]] = arith.mulf %arg0, %[[SCALE]] : f32
// NVVM-DAG:      %[[SCALED:.*]] = arith.mulf %[[DIVISOR]], %[[SCALE]] : f32
// NVVM:          %[[INVERSE:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[SCALED]])
// NVVM:          %[[QUOTIENT:.*]] = arith.mulf %[[DIVIDEND]], %[[INVERSE]] : f32
// HOST:          %[[QUOTIENT:.*]] = arith.divf %arg0, %{{.*}} : f32
// CHECK:         return %[[QUOTIENT]]
func.func @by_normal(%x: f32, %y: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  %power = math.exp %y : f32
  %divisor = arith.addf %power, %one : f32
  %0 = arith.divf %x, %divisor : f32
  return %0 : f32
}

// -----

// Numbers of f16 have inverses in the normal range of f32; the remainder makes their quotient exact, constants' too.

// CHECK-LABEL: func.func @narrow
// NVVM:          %[[X:.*]] = arith.extf %arg0
// NVVM:          %[[Y:.*]] = arith.extf %arg1
// NVVM:          %[[INVERSE:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[Y]])
// NVVM:          %[[FIRST:.*]] = arith.mulf %[[X]], %[[INVERSE]] : f32
// NVVM:          %[[NEGATIVE:.*]] = arith.negf %[[FIRST]] : f32
// NVVM:          %[[REST:.*]] = math.fma %[[NEGATIVE]], %[[Y]], %[[X]] : f32
// NVVM:          %[[BETTER:.*]] = math.fma %[[REST]], %[[INVERSE]], %[[FIRST]] : f32
// NVVM:          %[[SIZE:.*]] = math.absf %[[BETTER]] : f32
// NVVM:          %[[REGULAR:.*]] = arith.cmpf ogt, %[[SIZE]], %{{.*}} : f32
// NVVM:          arith.select %[[REGULAR]], %[[BETTER]], %[[FIRST]] : f32
// NVVM:          llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[THREE:[0-9]+]])
// NVVM:          math.fma %{{.*}}, %[[THREE]], %[[X]] : f32
// HOST-COUNT-2:  arith.divf
// CHECK:         return
func.func @narrow(%x: f16, %y: f16) -> (f32, f32) {
  %a = arith.extf %x : f16 to f32
  %b = arith.extf %y : f16 to f32
  %0 = arith.divf %a, %b : f32
  %three = arith.constant 3.0 : f16
  %c = arith.extf %three : f16 to f32
  %1 = arith.divf %a, %c : f32
  return %0, %1 : f32, f32
}

// -----

// A constant divisor is the multiplication that XLA makes of it, unless its inverse is zero, infinite or subnormal.

// CHECK-LABEL: func.func @constants
// NVVM-DAG:      %[[THIRD:.*]] = arith.constant 0.333333343 : f32
// NVVM-DAG:      %[[TENTH:.*]] = arith.constant -1.000000e-01 : f32
// NVVM:          arith.mulf %arg0, %[[THIRD]] : f32
// NVVM-NEXT:     arith.mulf %arg0, %[[TENTH]] : f32
// NVVM:          %[[ZERO:.*]] = llvm.call_intrinsic "llvm.nvvm.div.full"(%arg0, %{{.*}}) : (f32, f32) -> f32
// NVVM-COUNT-2:  llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
// NVVM:          %[[SUBNORMAL:.*]] = llvm.call_intrinsic "llvm.nvvm.div.full"(%arg0, %{{.*}}) : (f32, f32) -> f32
// HOST-COUNT-6:  arith.divf
// CHECK:         return
func.func @constants(%x: f32) -> (f32, f32, f32, f32, f32, f32) {
  %three = arith.constant 3.0 : f32
  %minus_ten = arith.constant -10.0 : f32
  %zero = arith.constant 0.0 : f32
  %infinity = arith.constant 0x7F800000 : f32
  %large = arith.constant 2.0e38 : f32
  %subnormal = arith.constant 1.0e-39 : f32
  %0 = arith.divf %x, %three : f32
  %1 = arith.divf %x, %minus_ten : f32
  %2 = arith.divf %x, %zero : f32
  %3 = arith.divf %x, %infinity : f32
  %4 = arith.divf %x, %large : f32
  %5 = arith.divf %x, %subnormal : f32
  return %0, %1, %2, %3, %4, %5 : f32, f32, f32, f32, f32, f32
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
