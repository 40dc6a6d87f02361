// RUN: xgpu-opt %s -p 'expand-floats{target=nvvm}' | FileCheck %s
// RUN: xgpu-opt %s -p 'expand-floats{target=host}' | FileCheck %s --check-prefix=HOST

// HOST-NOT: ff2bf16x2

// A bf16 that is only widened again is the upper half of an f32: one instruction rounds to it.

// CHECK-LABEL: func.func @scalar(%arg0: f32)
// CHECK-NEXT:    %[[Z:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %[[P:.*]] = llvm.call_intrinsic "llvm.nvvm.ff2bf16x2.rn"(%arg0, %[[Z]]) : (f32, f32) -> vector<2xbf16>
// CHECK-NEXT:    %[[B:.*]] = llvm.bitcast %[[P]] : vector<2xbf16> to i32
// CHECK-NEXT:    %[[R:.*]] = arith.bitcast %[[B]] : i32 to f32
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[R]], %[[R]] : f32
// CHECK-NEXT:    return %[[S]]
func.func @scalar(%x: f32) -> f32 {
  %0 = arith.truncf %x : f32 to bf16
  %1 = arith.extf %0 : bf16 to f32
  %2 = arith.extf %0 : bf16 to f32
  %3 = arith.addf %1, %2 : f32
  return %3 : f32
}

// Of a pair each number that is needed in f32 alone.

// CHECK-LABEL: func.func @pair(%arg0: f32, %arg1: f32)
// CHECK:         %[[T:.*]] = arith.truncf %{{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK:         llvm.call_intrinsic "llvm.nvvm.ff2bf16x2.rn"(%arg1, %{{.*}})
// CHECK-NOT:     call_intrinsic
// CHECK:         %[[E:.*]]:2 = vector.to_elements %[[T]]
// CHECK:         return %[[E]]#0
func.func @pair(%x: f32, %y: f32) -> (bf16, f32) {
  %0 = vector.from_elements %x, %y : vector<2xf32>
  %1 = arith.truncf %0 : vector<2xf32> to vector<2xbf16>
  %2:2 = vector.to_elements %1 : vector<2xbf16>
  %3 = arith.extf %2#1 : bf16 to f32
  return %2#0, %3 : bf16, f32
}

// A bf16 that is stored as well, and an f16, are made as before.

// CHECK-LABEL: func.func @others
// CHECK-NOT:     call_intrinsic
// CHECK:         return
func.func @others(%x: f32) -> (bf16, f32, f32) {
  %0 = arith.truncf %x : f32 to bf16
  %1 = arith.extf %0 : bf16 to f32
  %2 = arith.truncf %x : f32 to f16
  %3 = arith.extf %2 : f16 to f32
  return %0, %1, %3 : bf16, f32, f32
}

// What is widened to f64 by way of f32 is rounded once as well.

// CHECK-LABEL: func.func @wider
// CHECK:         llvm.call_intrinsic "llvm.nvvm.ff2bf16x2.rn"(%arg0, %{{.*}})
// CHECK-NOT:     truncf
// CHECK:         arith.extf %{{.*}} : f32 to f64
func.func @wider(%x: f32) -> f64 {
  %0 = arith.truncf %x : f32 to bf16
  %1 = arith.extf %0 : bf16 to f32
  %2 = arith.extf %1 : f32 to f64
  return %2 : f64
}
