// RUN: xgpu-opt %s -p count-operations --split-input-file | FileCheck %s

// Each block adds its own operations; those on indices, constants and bitcasts are none. The kernel has one more array.

// CHECK-LABEL: func.func @k
// CHECK-SAME:    (%[[IN:.*]]: !llvm.ptr<1> {llvm.readonly}, %[[OUT:.*]]: !llvm.ptr<1>, %[[N:.*]]: !llvm.ptr<1> {llvm.align = 8 : i64, llvm.dereferenceable = 8 : i64, llvm.noalias})
// CHECK-NEXT:    %[[TWO:.*]] = arith.constant 2 : i64
// CHECK-NEXT:    llvm.atomicrmw add %[[N]], %[[TWO]] syncscope("device") monotonic {{[<{]alignment = 8.*[>}]}} : !llvm.ptr<1>, i64
// CHECK:         scf.if
// CHECK-NEXT:      %[[SIX:.*]] = arith.constant 6 : i64
// CHECK-NEXT:      llvm.atomicrmw add %[[N]], %[[SIX]]
// CHECK:           func.call @f(%{{.*}}, %[[N]]) : (f32, !llvm.ptr<1>) -> f32
// CHECK-LABEL: func.func private @f
// CHECK-SAME:    (%[[X:.*]]: f32, %[[M:.*]]: !llvm.ptr<1>) -> f32
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant 1 : i64
// CHECK-NEXT:    llvm.atomicrmw add %[[M]], %[[ONE]]
func.func @k(%in: !llvm.ptr<1> {llvm.readonly}, %out: !llvm.ptr<1>) attributes {
    xgpu.block = array<i64: 1, 1, 1>, xgpu.emitter = "loop", xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 1 : i64,
    xgpu.kernel} {
  %c3 = arith.constant 3 : index
  %thread = gpu.thread_id x upper_bound 128
  %inside = arith.cmpi sle, %thread, %c3 : index
  %x = llvm.load %in : !llvm.ptr<1> -> f32
  %y = math.exp %x : f32
  scf.if %inside {
    %v = llvm.load %in : !llvm.ptr<1> -> vector<2xf32>
    %w = arith.mulf %v, %v : vector<2xf32>
    %lane = vector.extract %w[0] : f32 from vector<2xf32>
    %z = func.call @f(%lane) : (f32) -> f32
    %a = arith.addf %z, %y : f32
    %bits = arith.bitcast %a : f32 to i32
    %sum = arith.addi %bits, %bits : i32
    llvm.store %sum, %out : i32, !llvm.ptr<1>
  }
  return
}

func.func private @f(%x: f32) -> f32 {
  %y = arith.mulf %x, %x : f32
  return %y : f32
}

// -----

// What has nothing to count is left as it is, but for the parameter.

// CHECK-LABEL: func.func private @none
// CHECK-SAME:    (%arg0: index, %arg1: !llvm.ptr<1>) -> index
// CHECK-NEXT:    %[[I:.*]] = arith.addi %arg0, %arg0 : index
// CHECK-NEXT:    return %[[I]]
func.func private @none(%i: index) -> index {
  %j = arith.addi %i, %i : index
  return %j : index
}
