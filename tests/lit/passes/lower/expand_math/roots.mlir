// RUN: xgpu-opt %s -p expand-math --split-input-file | FileCheck %s --check-prefixes=CHECK,NVVM
// RUN: xgpu-opt %s -p 'expand-math{target=host}' --split-input-file | FileCheck %s --check-prefixes=CHECK,HOST

// Square roots of f32 are an instruction of the GPU, a shorter one where the number is known to be no subnormal one.

// CHECK-LABEL: func.func @roots
// NVVM:          llvm.call_intrinsic "llvm.nvvm.sqrt.approx.f"(%arg0) : (f32) -> f32
// NVVM:          %[[SUM:.*]] = arith.addf
// NVVM-DAG:      llvm.call_intrinsic "llvm.nvvm.sqrt.approx.ftz.f"(%[[SUM]]) : (f32) -> f32
// NVVM-DAG:      llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.ftz.f"(%[[SUM]]) : (f32) -> f32
// HOST-COUNT-3:  math.sqrt {{.*}} : f32
// CHECK:         math.sqrt %arg1 : f64
// CHECK:         return
func.func @roots(%x: f32, %y: f64) -> (f32, f32, f32, f64) {
  %tiny = arith.constant 1.0e-5 : f32
  %0 = math.sqrt %x : f32
  %square = arith.mulf %x, %x : f32
  %sum = arith.addf %square, %tiny : f32
  %1 = math.sqrt %sum : f32
  %2 = math.rsqrt %sum : f32
  %3 = math.sqrt %y : f64
  return %0, %1, %2, %3 : f32, f32, f32, f64
}

// -----

// A logarithm of what is at least 1 need not ask for subnormal numbers and zero.

// CHECK-LABEL: func.func @logarithms
// CHECK-NOT:     arith.cmpf
// CHECK:         arith.cmpi uge
// CHECK-NOT:     arith.cmp
// CHECK:         return
func.func @logarithms(%x: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  %size = math.absf %x : f32
  %sum = arith.addf %size, %one : f32
  %0 = math.log %sum : f32
  return %0 : f32
}

// -----

// Half away from zero: what is added is the number before 1/2.

// CHECK-LABEL: func.func @rounded
// NVVM-DAG:      %[[HALF:.*]] = arith.constant 0.49999997
// NVVM:          %[[SUM:.*]] = arith.addf %arg0, %{{.*}} : f32
// NVVM-NEXT:     math.trunc %[[SUM]] : f32
// HOST:          math.round %arg0 : f32
// CHECK:         return
func.func @rounded(%x: f32) -> f32 {
  %0 = math.round %x : f32
  return %0 : f32
}

// -----

// Only results of f64 that are no normal numbers need two steps to be scaled: a branch on the GPU.

// CHECK-LABEL: func.func @exponential
// NVVM:          %[[USUAL:.*]] = arith.bitcast %{{.*}} : i64 to f64
// NVVM:          scf.if %{{.*}} -> (f64) {
// NVVM-COUNT-2:    arith.mulf
// NVVM:          } else {
// NVVM-NEXT:       scf.yield %[[USUAL]] : f64
// HOST-NOT:      scf.if
// CHECK:         return
func.func @exponential(%x: f64) -> f64 {
  %0 = math.exp %x : f64
  return %0 : f64
}
