// RUN: xgpu-opt %s -p share-branch-calls --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p "share-branch-calls{min-size=100}" --split-input-file | FileCheck %s --check-prefix=LARGE

// What is rotated is read at the last index or at the one before: the index is chosen, and the function called once.
// Inner conditionals end with a call by then, so that outer ones do too.

// CHECK-LABEL: func.func @main(
// CHECK:         %[[J:.*]] = scf.if %arg2 -> (index) {
// CHECK-NEXT:      scf.yield %arg4 : index
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[K:.*]] = scf.if %arg3 -> (index) {
// CHECK-NEXT:        scf.yield %arg1 : index
// CHECK-NEXT:      } else {
// CHECK-NEXT:        %[[L:.*]] = "xgpu.apply_indexing"(%arg1)
// CHECK-NEXT:        scf.yield %[[L]] : index
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield %[[K]] : index
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[X:.*]] = "xgpu.pure_call"(%arg0, %[[J]]) {callee = @f__x} : (tensor<8xf32>, index) -> f32
// CHECK-NEXT:    return %[[X]] : f32
// LARGE-COUNT-3: "xgpu.pure_call"
func.func @main(%t: tensor<8xf32>, %i: index, %first: i1, %second: i1, %last: index) -> f32 {
  %x = scf.if %first -> (f32) {
    %0 = "xgpu.pure_call"(%t, %last) {callee = @f__x} : (tensor<8xf32>, index) -> f32
    scf.yield %0 : f32
  } else {
    %1 = scf.if %second -> (f32) {
      %2 = "xgpu.pure_call"(%t, %i) {callee = @f__x} : (tensor<8xf32>, index) -> f32
      scf.yield %2 : f32
    } else {
      %3 = "xgpu.apply_indexing"(%i) {map = #xgpu.map<(d0) -> (d0 - 1), d0 in [1, 7]>} : (index) -> index
      %4 = "xgpu.pure_call"(%t, %3) {callee = @f__x} : (tensor<8xf32>, index) -> f32
      scf.yield %4 : f32
    }
    scf.yield %1 : f32
  }
  return %x : f32
}
func.func private @f__x(%t: tensor<8xf32>, %i: index) -> f32 {
  %0 = tensor.extract %t[%i] : tensor<8xf32>
  %1 = math.exp %0 : f32
  %2 = math.sin %1 : f32
  %3 = math.tanh %2 : f32
  return %3 : f32
}

// -----

// Not where the function is small, where another is called or another array is read, or where something is computed of
// what it returns.

// CHECK-LABEL: func.func @main(
// CHECK-COUNT-8: "xgpu.pure_call"
func.func @main(%t: tensor<8xf32>, %u: tensor<8xf32>, %i: index, %j: index, %first: i1) -> (f32, f32, f32, f32) {
  %x = scf.if %first -> (f32) {
    %0 = "xgpu.pure_call"(%t, %i) {callee = @f__small} : (tensor<8xf32>, index) -> f32
    scf.yield %0 : f32
  } else {
    %0 = "xgpu.pure_call"(%t, %j) {callee = @f__small} : (tensor<8xf32>, index) -> f32
    scf.yield %0 : f32
  }
  %y = scf.if %first -> (f32) {
    %0 = "xgpu.pure_call"(%t, %i) {callee = @f__x} : (tensor<8xf32>, index) -> f32
    scf.yield %0 : f32
  } else {
    %0 = "xgpu.pure_call"(%t, %j) {callee = @f__y} : (tensor<8xf32>, index) -> f32
    scf.yield %0 : f32
  }
  %z = scf.if %first -> (f32) {
    %0 = "xgpu.pure_call"(%t, %i) {callee = @f__x} : (tensor<8xf32>, index) -> f32
    scf.yield %0 : f32
  } else {
    %0 = "xgpu.pure_call"(%t, %j) {callee = @f__x} : (tensor<8xf32>, index) -> f32
    %1 = arith.negf %0 : f32
    scf.yield %1 : f32
  }
  %w = scf.if %first -> (f32) {
    %0 = "xgpu.pure_call"(%t, %i) {callee = @f__x} : (tensor<8xf32>, index) -> f32
    scf.yield %0 : f32
  } else {
    %0 = "xgpu.pure_call"(%u, %i) {callee = @f__x} : (tensor<8xf32>, index) -> f32
    scf.yield %0 : f32
  }
  return %x, %y, %z, %w : f32, f32, f32, f32
}
func.func private @f__small(%t: tensor<8xf32>, %i: index) -> f32 {
  %0 = tensor.extract %t[%i] : tensor<8xf32>
  %1 = math.exp %0 : f32
  return %1 : f32
}
func.func private @f__x(%t: tensor<8xf32>, %i: index) -> f32 {
  %0 = tensor.extract %t[%i] : tensor<8xf32>
  %1 = math.exp %0 : f32
  %2 = math.sin %1 : f32
  %3 = math.tanh %2 : f32
  return %3 : f32
}
func.func private @f__y(%t: tensor<8xf32>, %i: index) -> f32 {
  %0 = tensor.extract %t[%i] : tensor<8xf32>
  %1 = math.exp %0 : f32
  %2 = math.cos %1 : f32
  %3 = math.tanh %2 : f32
  return %3 : f32
}
