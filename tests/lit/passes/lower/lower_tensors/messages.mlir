// RUN: xgpu-opt %s -p 'lower-tensors,canonicalize' --split-input-file | FileCheck %s

// A word for each 32 bits, marked in its upper half, and each written undivided.

// CHECK-LABEL: func.func @publish
// CHECK-DAG:     %[[MARK:.*]] = arith.constant 4294967296 : i64
// CHECK:         %[[FIRST:.*]] = llvm.getelementptr %arg1[%{{.*}}]
// CHECK:         %[[X:.*]] = arith.bitcast %arg3 : f32 to i32
// CHECK:         %[[XW:.*]] = arith.extui %[[X]] : i32 to i64
// CHECK:         %[[XM:.*]] = arith.ori %[[XW]], %[[MARK]] : i64
// CHECK:         llvm.store %[[XM]], %{{.*}} atomic syncscope("device") monotonic {{[<{]alignment = 8( : i64)?[>}]}} : i64, !llvm.ptr<1>
// CHECK:         %[[N:.*]] = arith.trunci %arg4 : i64 to i32
// CHECK:         %[[SECOND:.*]] = llvm.getelementptr %[[FIRST]][1]
// CHECK:         llvm.store %{{.*}}, %[[SECOND]] atomic syncscope("device") monotonic
// CHECK:         %[[HIGH:.*]] = arith.shrui %arg4, %{{.*}} : i64
// CHECK:         %[[M:.*]] = arith.trunci %[[HIGH]] : i64 to i32
// CHECK:         %[[THIRD:.*]] = llvm.getelementptr %[[FIRST]][2]
// CHECK:         llvm.store %{{.*}}, %[[THIRD]] atomic syncscope("device") monotonic
func.func @publish(%given: tensor<8xi64>, %board: tensor<8xi64>, %i: index, %x: f32, %n: i64) -> tensor<8xi64>
    attributes {xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.aliases = array<i64: 0>, xgpu.scratch = 8 : i64} {
  %0 = "xgpu.publish"(%board, %i, %x, %n) : (tensor<8xi64>, index, f32, i64) -> tensor<8xi64>
  return %0 : tensor<8xi64>
}

// -----

// All words are loaded until each has its mark.

// CHECK-LABEL: func.func @await
// CHECK:         %[[WORDS:.*]]:2 = scf.while : () -> (i64, i64) {
// CHECK:           %[[A:.*]] = llvm.load %{{.*}} atomic syncscope("device") monotonic {{.*}}xgpu.awaits} : !llvm.ptr<1> -> i64
// CHECK:           %[[B:.*]] = llvm.load %{{.*}} atomic syncscope("device") monotonic
// CHECK:           %[[BOTH:.*]] = arith.andi %[[A]], %[[B]] : i64
// CHECK:           %[[MARK:.*]] = arith.andi %[[BOTH]], %{{.*}} : i64
// CHECK:           %[[MISSING:.*]] = arith.cmpi eq, %[[MARK]], %{{.*}} : i64
// CHECK:           scf.condition(%[[MISSING]]) %[[A]], %[[B]] : i64, i64
// CHECK:         } do {
// CHECK:         %[[X:.*]] = arith.trunci %[[WORDS]]#0 : i64 to i32
// CHECK:         arith.bitcast %[[X]] : i32 to f32
// CHECK:         %[[BITS:.*]] = arith.trunci %[[WORDS]]#1 : i64 to i16
// CHECK:         arith.bitcast %[[BITS]] : i16 to bf16
func.func @await(%given: tensor<8xi64>, %out: tensor<2xf32>, %board: tensor<8xi64>, %i: index)
    -> (tensor<2xf32>, tensor<8xi64>)
    attributes {xgpu.kernel, xgpu.inputs = 1 : i64, xgpu.aliases = array<i64: -1, 0>, xgpu.scratch = 8 : i64} {
  %0:2 = "xgpu.await"(%board, %i) : (tensor<8xi64>, index) -> (f32, bf16)
  %1 = arith.extf %0#1 : bf16 to f32
  %2 = arith.addf %0#0, %1 : f32
  %3 = tensor.insert %2 into %out[%i] : tensor<2xf32>
  return %3, %board : tensor<2xf32>, tensor<8xi64>
}
