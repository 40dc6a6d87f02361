// RUN: xgpu-opt %s -p expand-floats --split-input-file | FileCheck %s --check-prefixes=CHECK,NVVM
// RUN: xgpu-opt %s -p 'expand-floats{target=host}' --split-input-file | FileCheck %s --check-prefixes=CHECK,HOST
// RUN: xgpu-opt %s -p 'expand-floats{capability=80}' --split-input-file | FileCheck %s --check-prefixes=CHECK,SM80

// Each operation on bf16 rounds its own result; sm_90 adds bf16 itself, but nobody divides it.

// CHECK-LABEL: func.func @bf16
// NVVM:          %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : bf16
// NVVM-DAG:      %[[L:.*]] = arith.extf %[[SUM]] : bf16 to f32
// NVVM-DAG:      %[[R:.*]] = arith.extf %arg1 : bf16 to f32
// NVVM:          %[[Q:.*]] = arith.divf %[[L]], %[[R]] {xgpu.grade = 16 : i32} : f32
// NVVM-NEXT:     %[[B:.*]] = arith.truncf %[[Q]] : f32 to bf16
// NVVM-NEXT:     return %[[B]]
// SM80:          %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// SM80:          llvm.call_intrinsic "llvm.nvvm.ff2bf16x2.rn"(%[[SUM]], %{{.*}})
// SM80:          arith.divf {{.*}} {xgpu.grade = 16 : i32} : f32
// HOST-NOT:      arith.extf
// HOST-NOT:      arith.truncf
// HOST:          arith.shli
// HOST:          arith.addf {{.*}} : f32
// HOST:          arith.trunci {{.*}} : i32 to i16
// HOST-NEXT:     arith.bitcast {{.*}} : i16 to bf16
// HOST:          arith.divf {{.*}} {xgpu.grade = 16 : i32} : f32
func.func @bf16(%x: bf16, %y: bf16) -> bf16 {
  %sum = arith.addf %x, %y : bf16
  %q = arith.divf %sum, %y : bf16
  return %q : bf16
}

// -----

// f16 has more operations of its own on the GPU, but no functions.

// CHECK-LABEL: func.func @f16
// NVVM:          arith.mulf {{.*}} : f16
// NVVM:          arith.maximumf {{.*}} : f16
// NVVM:          arith.cmpf olt, {{.*}} : f16
// NVVM:          math.fma {{.*}} : f16
// NVVM:          math.exp {{.*}} : f32
// HOST:          arith.mulf {{.*}} : f32
// HOST:          arith.maximumf {{.*}} : f32
// HOST:          arith.cmpf olt, {{.*}} : f32
// HOST-NOT:      math.fma
// HOST:          math.exp {{.*}} : f32
func.func @f16(%x: f16, %y: f16) -> (f16, i1) {
  %m = arith.mulf %x, %y : f16
  %n = arith.maximumf %m, %y : f16
  %c = arith.cmpf olt, %n, %x : f16
  %f = math.fma %n, %x, %y : f16
  %e = math.exp %f : f16
  return %e, %c : f16, i1
}

// -----

// A function whose result is rounded to bf16 says so, as it can be written shorter; of f16, it cannot.

// CHECK-LABEL: func.func @grades
// CHECK:         math.exp %{{.*}} {xgpu.grade = 16 : i32} : f32
// CHECK:         "xgpu.lgamma"(%{{.*}}) {xgpu.grade = 16 : i32} : (f32) -> f32
// CHECK:         math.sqrt %{{.*}} : f32
// CHECK:         math.exp %{{[^ ]*}} : f32
func.func @grades(%x: bf16, %y: f16) -> (bf16, bf16, bf16, f16) {
  %0 = math.exp %x : bf16
  %1 = "xgpu.lgamma"(%x) : (bf16) -> bf16
  %2 = math.sqrt %x : bf16
  %3 = math.exp %y : f16
  return %0, %1, %2, %3 : bf16, bf16, bf16, f16
}

// -----

// Signs are bits: no rounding, and NaN keeps its code.

// CHECK-LABEL: func.func @signs
// CHECK-NEXT:    %[[I:.*]] = arith.bitcast %arg0 : bf16 to i16
// CHECK-NEXT:    %[[S:.*]] = arith.constant -32768 : i16
// CHECK-NEXT:    %[[X:.*]] = arith.xori %[[I]], %[[S]] : i16
// CHECK-NEXT:    arith.bitcast %[[X]] : i16 to bf16
// CHECK:         arith.andi {{.*}} : i16
func.func @signs(%x: bf16) -> (bf16, bf16) {
  %n = arith.negf %x : bf16
  %a = math.absf %x : bf16
  return %n, %a : bf16, bf16
}

// -----

// f64 goes to bf16 by way of an f32 that is rounded to odd; an i64 first becomes an f64 that is.

// CHECK-LABEL: func.func @once
// CHECK:         %[[F:.*]] = arith.truncf %arg0 : f64 to f32
// CHECK-NEXT:    %[[D:.*]] = arith.extf %[[F]] : f32 to f64
// CHECK-NEXT:    arith.cmpf one, %[[D]], %arg0 : f64
// CHECK:         arith.ori {{.*}} : i32
// CHECK:         arith.ori {{.*}} : i64
// CHECK:         arith.sitofp {{.*}} : i64 to f64
// CHECK:         arith.ori {{.*}} : i32
func.func @once(%x: f64, %i: i64) -> (bf16, bf16) {
  %a = arith.truncf %x : f64 to bf16
  %b = arith.sitofp %i : i64 to bf16
  return %a, %b : bf16, bf16
}

// -----

// A conversion to an integer saturates, whatever it comes from.

// CHECK-LABEL: func.func @to_integer
// CHECK:         llvm.call_intrinsic "llvm.fptosi.sat.i8.f32"(%arg0)
// CHECK:         llvm.call_intrinsic "llvm.fptoui.sat.i64.f64"(%arg1)
// CHECK:         llvm.call_intrinsic "llvm.fptosi.sat.i32.f32"
// CHECK-NOT:     arith.fpto
func.func @to_integer(%x: f32, %y: f64, %z: f16) -> (i8, i64, i32) {
  %a = arith.fptosi %x : f32 to i8
  %b = arith.fptoui %y : f64 to i64
  %c = arith.fptosi %z : f16 to i32
  return %a, %b, %c : i8, i64, i32
}

// -----

// Remainders share one function for each type.

// CHECK-LABEL: func.func @remainder
// CHECK:         call @xgpu_remainder_f32(%arg0, %arg0)
// CHECK:         call @xgpu_remainder_f32
// CHECK:         call @xgpu_remainder_f64(%arg1, %arg1)
// CHECK-NOT:     arith.remf
// CHECK:       func.func private @xgpu_remainder_f32(%{{.*}}: f32, %{{.*}}: f32) -> f32
// NVVM:          %[[INVERSE:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[SIZE:.*]]) : (f32) -> f32
// HOST:          %[[INVERSE:.*]] = arith.divf %{{.*}}, %[[SIZE:.*]] : f32
// SM80:          %[[INVERSE:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[SIZE:.*]]) : (f32) -> f32
// CHECK:         %[[SHIFTED:.*]] = math.fma %{{.*}}, %[[INVERSE]], %[[ROUNDER:.*]] : f32
// CHECK:         arith.subf %[[SHIFTED]], %[[ROUNDER]] : f32
// CHECK:         %[[REST:.*]] = math.fma %{{.*}}, %[[SIZE]], %{{.*}} : f32
// CHECK:         %[[MORE:.*]] = arith.addf %[[REST]], %[[SIZE]] : f32
// CHECK:         %[[RIGHT:.*]] = arith.select %{{.*}}, %[[MORE]], %[[REST]] : f32
// CHECK-DAG:     %[[CODE:.*]] = arith.bitcast %[[RIGHT]] : f32 to i32
// CHECK-DAG:     %[[MOST:.*]] = arith.bitcast %[[SIZE]] : f32 to i32
// CHECK:         %[[SHORT:.*]] = arith.cmpi ult, %[[CODE]], %[[MOST]] : i32
// CHECK:         scf.if %[[SHORT]]
// CHECK:         call @xgpu_remainder_f32_long(%{{.*}}, %{{.*}})
// CHECK:       func.func private @xgpu_remainder_f32_long(%{{.*}}: f32, %{{.*}}: f32) -> f32 attributes {xgpu.cold}
// CHECK:         scf.while
// CHECK:       func.func private @xgpu_remainder_f64(
// CHECK:         arith.divf
// CHECK:       func.func private @xgpu_remainder_f64_long(
// CHECK-NOT:   func.func
func.func @remainder(%x: f32, %y: f64, %z: f16) -> (f32, f64, f16) {
  %a = arith.remf %x, %x : f32
  %b = arith.remf %z, %z : f16
  %c = arith.remf %y, %y : f64
  return %a, %c, %b : f32, f64, f16
}

// -----

// 8-bit floats are bytes wherever they are held or moved.

// CHECK-LABEL: func.func @bytes
// CHECK-SAME:    (%arg0: i8, %arg1: i1, %arg2: vector<4xi8>) -> (i8, vector<4xi8>, i8)
// CHECK-DAG:     %[[C:.*]] = arith.constant 57 : i8
// CHECK-DAG:     %[[V:.*]] = arith.constant dense<[56, 127, 68, -128]> : vector<4xi8>
// CHECK:         %[[S:.*]] = arith.select %arg1, %arg0, %[[C]] : i8
// CHECK:         %[[T:.*]] = arith.select %arg1, %arg2, %[[V]] : vector<4xi8>
// CHECK-NOT:     arith.bitcast {{.*}} : i8 to i8
// CHECK:         return %[[S]], %[[T]], %arg0 : i8, vector<4xi8>, i8
func.func @bytes(%x: f8E4M3FN, %c: i1, %v: vector<4xf8E4M3FN>) -> (f8E4M3FN, vector<4xf8E4M3FN>, i8) {
  %k = arith.constant 1.125 : f8E4M3FN
  %w = arith.constant dense<[1.0, 0x7F, 3.0, -0.0]> : vector<4xf8E4M3FN>
  %s = arith.select %c, %x, %k : f8E4M3FN
  %t = arith.select %c, %v, %w : vector<4xf8E4M3FN>
  %b = arith.bitcast %x : f8E4M3FN to i8
  return %s, %t, %b : f8E4M3FN, vector<4xf8E4M3FN>, i8
}

// -----

// What the target has stays as it is.

// CHECK-LABEL: func.func @untouched
// CHECK-NEXT:    %[[A:.*]] = arith.addf %arg0, %arg0 : f32
// CHECK-NEXT:    %[[B:.*]] = math.sqrt %[[A]] : f32
// CHECK-NEXT:    %[[C:.*]] = arith.truncf %arg1 : f64 to f32
// CHECK-NEXT:    %[[D:.*]] = arith.select %arg3, %arg2, %arg2 : bf16
// CHECK-NEXT:    %[[E:.*]] = arith.sitofp %arg4 : i64 to f32
// CHECK-NEXT:    %[[F:.*]] = arith.addi %arg4, %arg4 : i64
// CHECK-NEXT:    return
func.func @untouched(%x: f32, %y: f64, %z: bf16, %c: i1, %i: i64) -> (f32, f32, bf16, f32, i64) {
  %a = arith.addf %x, %x : f32
  %b = math.sqrt %a : f32
  %t = arith.truncf %y : f64 to f32
  %d = arith.select %c, %z, %z : bf16
  %e = arith.sitofp %i : i64 to f32
  %f = arith.addi %i, %i : i64
  return %b, %t, %d, %e, %f : f32, f32, bf16, f32, i64
}
