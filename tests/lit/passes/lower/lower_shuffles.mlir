// RUN: xgpu-opt %s -p lower-shuffles --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'lower-shuffles{max-ops=1}' --split-input-file | FileCheck %s --check-prefix=CALL

// CHECK-LABEL: func.func @sum
// CHECK-SAME:    (%[[X:.*]]: f32)
// CHECK-NEXT:    %[[BY:.*]] = arith.constant 16 : i32
// CHECK-NEXT:    %[[BITS:.*]] = arith.bitcast %[[X]] : f32 to i32
// CHECK-NEXT:    %[[WARP:.*]] = arith.constant 32 : i32
// CHECK-NEXT:    %[[OTHER:.*]], %{{.*}} = gpu.shuffle xor %[[BITS]], %[[BY]], %[[WARP]] : i32
// CHECK-NEXT:    %[[Y:.*]] = arith.bitcast %[[OTHER]] : i32 to f32
// CHECK-NEXT:    %[[R:.*]] = arith.addf %[[X]], %[[Y]] : f32
// CHECK-NEXT:    return %[[R]]
// The combiner is not used any more.
// CHECK-NOT:   func.func private

// A large combiner is called.
// CALL-LABEL:  func.func @sum
// CALL:          %[[R:.*]] = call @add(%arg0, %{{.*}}) : (f32, f32) -> f32
// CALL-NEXT:     return %[[R]]
// CALL:        func.func private @add
func.func @sum(%x: f32) -> f32 {
  %0 = "xgpu.shuffle_reduce"(%x) {combiner = @add, distance = 16 : i64} : (f32) -> f32
  return %0 : f32
}

func.func private @add(%x: f32, %y: f32) -> f32 {
  %0 = arith.addf %x, %y : f32
  return %0 : f32
}

// -----

// What is narrower than 32 bits is the low bits of an i32, a wider value two.

// CHECK-LABEL: func.func @types
// CHECK:         %[[A:.*]] = arith.extui %arg0 : i1 to i32
// CHECK:         %[[AS:.*]], %{{.*}} = gpu.shuffle xor %[[A]],
// CHECK:         %[[AR:.*]] = arith.trunci %[[AS]] : i32 to i1
// CHECK:         %[[B:.*]] = arith.extui %arg1 : i4 to i32
// CHECK:         %[[BS:.*]], %{{.*}} = gpu.shuffle xor %[[B]],
// CHECK:         %[[BR:.*]] = arith.trunci %[[BS]] : i32 to i4
// CHECK:         %[[C16:.*]] = arith.bitcast %arg2 : bf16 to i16
// CHECK:         %[[C:.*]] = arith.extui %[[C16]] : i16 to i32
// CHECK:         %[[CS:.*]], %{{.*}} = gpu.shuffle xor %[[C]],
// CHECK:         %[[CT:.*]] = arith.trunci %[[CS]] : i32 to i16
// CHECK:         %[[CR:.*]] = arith.bitcast %[[CT]] : i16 to bf16
// CHECK:         %[[D8:.*]] = arith.bitcast %arg3 : f8E5M2 to i8
// CHECK:         %[[D:.*]] = arith.extui %[[D8]] : i8 to i32
// CHECK:         %[[DS:.*]], %{{.*}} = gpu.shuffle xor %[[D]],
// CHECK:         %[[DT:.*]] = arith.trunci %[[DS]] : i32 to i8
// CHECK:         %[[DR:.*]] = arith.bitcast %[[DT]] : i8 to f8E5M2
// CHECK:         %[[E64:.*]] = arith.bitcast %arg4 : f64 to i64
// CHECK:         %[[LOW:.*]] = arith.trunci %[[E64]] : i64 to i32
// CHECK:         %[[LS:.*]], %{{.*}} = gpu.shuffle xor %[[LOW]],
// CHECK:         %[[SHIFTED:.*]] = arith.shrui %[[E64]], %{{.*}} : i64
// CHECK:         %[[HIGH:.*]] = arith.trunci %[[SHIFTED]] : i64 to i32
// CHECK:         %[[HS:.*]], %{{.*}} = gpu.shuffle xor %[[HIGH]],
// CHECK:         %[[L64:.*]] = arith.extui %[[LS]] : i32 to i64
// CHECK:         %[[H64:.*]] = arith.extui %[[HS]] : i32 to i64
// CHECK:         %[[UP:.*]] = arith.shli %[[H64]], %{{.*}} : i64
// CHECK:         %[[JOINED:.*]] = arith.ori %[[L64]], %[[UP]] : i64
// CHECK:         %[[ER:.*]] = arith.bitcast %[[JOINED]] : i64 to f64
// CHECK:         return %[[AR]], %[[BR]], %[[CR]], %[[DR]], %[[ER]]
func.func @types(%a: i1, %b: i4, %c: bf16, %d: f8E5M2, %e: f64) -> (i1, i4, bf16, f8E5M2, f64) {
  %0:5 = "xgpu.shuffle_reduce"(%a, %b, %c, %d, %e) {combiner = @other, distance = 8 : i64} : (i1, i4, bf16, f8E5M2, f64) -> (i1, i4, bf16, f8E5M2, f64)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : i1, i4, bf16, f8E5M2, f64
}

func.func private @other(%a: i1, %b: i4, %c: bf16, %d: f8E5M2, %e: f64, %v: i1, %w: i4, %x: bf16, %y: f8E5M2, %z: f64) -> (i1, i4, bf16, f8E5M2, f64) {
  return %v, %w, %x, %y, %z : i1, i4, bf16, f8E5M2, f64
}

// -----

// Without users, a shuffle goes away, and then those before it.

// CHECK-LABEL: func.func @unused
// CHECK-NEXT:    return
func.func @unused(%x: f32) {
  %0 = "xgpu.shuffle_reduce"(%x) {combiner = @add, distance = 2 : i64} : (f32) -> f32
  %1 = "xgpu.shuffle_reduce"(%0) {combiner = @add, distance = 1 : i64} : (f32) -> f32
  return
}

func.func private @add(%x: f32, %y: f32) -> f32 {
  %0 = arith.addf %x, %y : f32
  return %0 : f32
}

// -----

// A shuffle takes the values of a lane that is computed; a value that no one uses is not shuffled.

// CHECK-LABEL: func.func @from
// CHECK-SAME:    (%[[LANE:.*]]: index, %[[X:.*]]: f32, %{{.*}}: i32)
// CHECK-NEXT:    %[[FROM:.*]] = arith.index_cast %[[LANE]] : index to i32
// CHECK-NEXT:    %[[BITS:.*]] = arith.bitcast %[[X]] : f32 to i32
// CHECK-NEXT:    %[[WARP:.*]] = arith.constant 32 : i32
// CHECK-NEXT:    %[[OTHER:.*]], %{{.*}} = gpu.shuffle idx %[[BITS]], %[[FROM]], %[[WARP]] : i32
// CHECK-NEXT:    %[[R:.*]] = arith.bitcast %[[OTHER]] : i32 to f32
// CHECK-NEXT:    return %[[R]]
func.func @from(%lane: index, %x: f32, %i: i32) -> f32 {
  %0:2 = "xgpu.shuffle"(%lane, %x, %i) : (index, f32, i32) -> (f32, i32)
  return %0#0 : f32
}
