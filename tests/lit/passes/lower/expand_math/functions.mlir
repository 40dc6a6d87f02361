// RUN: xgpu-opt %s -p expand-math --split-input-file | FileCheck %s --check-prefixes=CHECK,NVVM
// RUN: xgpu-opt %s -p 'expand-math{target=host}' --split-input-file | FileCheck %s --check-prefixes=CHECK,HOST

// On the GPU, exp is the instruction for powers of two of the fraction that is left when an integer, which a saturated
// product bounds, is taken away; elsewhere a polynomial.
// Expansions of one function share their constants.

// CHECK-LABEL: func.func @exp(%arg0: f32, %arg1: f32)
// NVVM-COUNT-8:  arith.constant
// NVVM-NOT:      arith.constant
// NVVM:          %[[SHARE:.*]] = llvm.call_intrinsic "llvm.nvvm.fma.rn.sat.f"(%arg0, %{{.*}}, %{{.*}})
// NVVM:          %[[SHIFTED:.*]] = llvm.call_intrinsic "llvm.nvvm.fma.rm.f"(%[[SHARE]], %{{.*}}, %{{.*}})
// NVVM:          arith.subf %{{.*}}, %[[SHIFTED]] : f32
// NVVM:          %[[SCALE:.*]] = arith.bitcast %{{.*}} : i32 to f32
// NVVM:          %[[FRACTION:.*]] = math.fma
// NVVM:          %[[POWER:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// NVVM-NEXT:     arith.mulf %[[POWER]], %[[SCALE]] : f32
// NVVM:          llvm.call_intrinsic "llvm.nvvm.fma.rn.sat.f"(%arg1, %{{.*}}, %{{.*}})
// HOST-NOT:      llvm.call_intrinsic
// HOST-COUNT-10: math.fma
// CHECK-NOT:     math.exp
func.func @exp(%x: f32, %y: f32) -> (f32, f32) {
  %0 = math.exp %x : f32
  %1 = math.exp %y : f32
  return %0, %1 : f32, f32
}

// -----

// The other functions that have instructions in f32; in f64 only one has.

// CHECK-LABEL: func.func @instructions
// NVVM:          llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// NVVM:          llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// NVVM:          llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
// NVVM:          llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"
// HOST:          %[[ROOT:.*]] = math.sqrt %arg0 : f32
// HOST:          arith.divf %{{.*}}, %[[ROOT]] : f32
// NVVM:          llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.d"(%arg1) : (f64) -> f64
// HOST:          %[[ROOT64:.*]] = math.sqrt %arg1 : f64
// HOST:          arith.divf %{{.*}}, %[[ROOT64]] : f64
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         return
func.func @instructions(%x: f32, %y: f64) -> (f32, f32, f32, f64, f64, f64) {
  %0 = math.exp2 %x : f32
  %1 = math.tanh %x : f32
  %2 = math.rsqrt %x : f32
  %3 = math.rsqrt %y : f64
  %4 = math.exp2 %y : f64
  %5 = math.tanh %y : f64
  return %0, %1, %2, %3, %4, %5 : f32, f32, f32, f64, f64, f64
}

// -----

// Large functions are called, and made once for each type.

// CHECK-LABEL: func.func @large
// CHECK:         %[[A:.*]] = call @xgpu_powf_f32(%arg0, %arg0) : (f32, f32) -> f32
// CHECK-NEXT:    %[[B:.*]] = call @xgpu_powf_f32(%[[A]], %arg0) : (f32, f32) -> f32
// CHECK-NEXT:    %[[C:.*]] = call @xgpu_powf_f64(%arg1, %arg1) : (f64, f64) -> f64
// CHECK-NEXT:    return %[[B]], %[[C]]
// CHECK-COUNT-1: func.func private @xgpu_powf_f32
// CHECK-COUNT-1: func.func private @xgpu_powf_f64
// CHECK-NOT:     func.func
func.func @large(%x: f32, %y: f64) -> (f32, f64) {
  %0 = math.powf %x, %x : f32
  %1 = math.powf %0, %x : f32
  %2 = math.powf %y, %y : f64
  return %1, %2 : f32, f64
}

// -----

// Only the reduction of large angles is behind a branch, in a function that sin, cos and tan share.

// CHECK-LABEL: func.func @angles
// CHECK:         %[[SIZE:.*]] = math.absf %arg0 : f32
// CHECK:         %[[LARGE:.*]] = arith.cmpf oge, %[[SIZE]], %{{.*}} : f32
// CHECK:         %{{.*}}:3 = scf.if %[[LARGE]] -> (f32, f32, i32) {
// CHECK-NEXT:      %[[FAR:.*]]:3 = func.call @xgpu_reduce_large_f32(%[[SIZE]]) : (f32) -> (f32, f32, i32)
// CHECK-NEXT:      scf.yield %[[FAR]]#0, %[[FAR]]#1, %[[FAR]]#2 : f32, f32, i32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK:         func.call @xgpu_reduce_large_f32
// CHECK:         call @xgpu_tan_f32
// CHECK:         return
// CHECK-DAG:     func.func private @xgpu_reduce_large_f32(%arg0: f32) -> (f32, f32, i32) attributes {xgpu.cold}
// CHECK-DAG:     func.func private @xgpu_tan_f32(%arg0: f32) -> f32
// CHECK-NOT:     func.func
func.func @angles(%x: f32) -> (f32, f32, f32) {
  %0 = math.sin %x : f32
  %1 = math.cos %x : f32
  %2 = math.tan %x : f32
  return %0, %1, %2 : f32, f32, f32
}

// -----

// What the targets compute themselves stays, and so do types that expand-floats or unrolling should have removed.

// CHECK-LABEL: func.func @stays
// CHECK-NEXT:    math.sqrt %arg4 : f64
// CHECK-NEXT:    math.absf %arg0 : f32
// CHECK-NEXT:    math.fma %arg0, %arg0, %arg0 : f32
// CHECK-NEXT:    math.copysign %arg0, %arg0 : f32
// CHECK-NEXT:    math.roundeven %arg0 : f32
// CHECK-NEXT:    math.ctlz %arg1 : i32
// CHECK-NEXT:    math.exp %arg2 : bf16
// CHECK-NEXT:    math.exp %arg3 : vector<4xf32>
// CHECK-NEXT:    return
func.func @stays(%x: f32, %i: i32, %h: bf16, %v: vector<4xf32>, %y: f64)
    -> (f64, f32, f32, f32, f32, i32, bf16, vector<4xf32>) {
  %0 = math.sqrt %y : f64
  %1 = math.absf %x : f32
  %2 = math.fma %x, %x, %x : f32
  %3 = math.copysign %x, %x : f32
  %4 = math.roundeven %x : f32
  %5 = math.ctlz %i : i32
  %6 = math.exp %h : bf16
  %7 = math.exp %v : vector<4xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : f64, f32, f32, f32, f32, i32, bf16, vector<4xf32>
}

// -----

// The dialect's own function is one of them. What is rare is in a branch.

// CHECK-LABEL: func.func @error_function
// CHECK-NEXT:    call @xgpu_erf_inv_f32(%arg0) : (f32) -> f32
// CHECK:       func.func private @xgpu_erf_inv_f32(%arg0: f32) -> f32 {
// NVVM:          llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"
// HOST-NOT:      llvm.call_intrinsic
// CHECK:         scf.if
// CHECK:         return
func.func @error_function(%x: f32) -> f32 {
  %0 = "xgpu.erf_inv"(%x) : (f32) -> f32
  return %0 : f32
}

// -----

// What is then rounded to bf16 is written shorter, in functions of its own.

// CHECK-LABEL: func.func @grades
// CHECK:         call @xgpu_lgamma_f32(%arg0) : (f32) -> f32
// CHECK-NEXT:    call @xgpu_lgamma_f32_16(%arg0) : (f32) -> f32
// CHECK:         func.func private @xgpu_lgamma_f32(%arg0: f32) -> f32 {
// CHECK:           scf.if
// CHECK:         func.func private @xgpu_lgamma_f32_16(%arg0: f32) -> f32 {
// CHECK-NOT:       scf.if
// CHECK:           return
func.func @grades(%x: f32) -> (f32, f32) {
  %0 = "xgpu.lgamma"(%x) : (f32) -> f32
  %1 = "xgpu.lgamma"(%x) {xgpu.grade = 16 : i32} : (f32) -> f32
  return %0, %1 : f32, f32
}

// -----

// Ordinary powers are written out, and those of +0 with a positive exponent. A function that is seldom called computes
// the others; in f64 all of them.

// CHECK-LABEL: func.func @powers
// CHECK:         %[[BITS:.*]] = arith.bitcast %arg0 : f32 to i32
// CHECK:         %[[ZERO:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    %[[POSITIVE:.*]] = arith.cmpf ogt, %arg1, %{{.*}} : f32
// CHECK-NEXT:    %[[BOTH:.*]] = arith.andi %[[ZERO]], %[[POSITIVE]] : i1
// CHECK-NEXT:    arith.select %[[BOTH]], %{{.*}}, %{{.*}} : f32
// CHECK-DAG:     func.func private @xgpu_general_power_f32(%arg0: f32, %arg1: f32) -> f32 attributes {xgpu.cold}
// CHECK-DAG:     func.func private @xgpu_powf_f64(%arg0: f64, %arg1: f64) -> f64 {
// CHECK-NOT:     xgpu_general_power_f64
func.func @powers(%x: f32, %y: f64) -> (f32, f64) {
  %0 = math.powf %x, %x : f32
  %1 = math.powf %y, %y : f64
  return %0, %1 : f32, f64
}

// -----

// Inside loops and branches: constants are made where the function begins.

// CHECK-LABEL: func.func @nested
// CHECK:         %[[END:.*]] = arith.constant {{.*}} : f32
// CHECK:         scf.if
// CHECK-NOT:     arith.constant
// CHECK-NOT:     math.log
// CHECK:         scf.yield
func.func @nested(%c: i1, %x: f32) -> f32 {
  %0 = scf.if %c -> f32 {
    %1 = math.log %x : f32
    scf.yield %1 : f32
  } else {
    scf.yield %x : f32
  }
  return %0 : f32
}
