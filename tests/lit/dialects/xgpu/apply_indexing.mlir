// RUN: xgpu-opt %s --split-input-file | xgpu-opt --split-input-file | FileCheck %s

// Each result of the map is a result of the operation.
// CHECK-LABEL: func.func @rows_and_columns
func.func @rows_and_columns(%thread: index) -> (index, index) {
  // CHECK: %[[R:.*]]:2 = "xgpu.apply_indexing"(%arg0) {map = #xgpu.map<(d0) -> (d0 floordiv 32, d0 mod 32), d0 in [0, 127]>} : (index) -> (index, index)
  // CHECK: return %[[R]]#0, %[[R]]#1
  %row, %column = "xgpu.apply_indexing"(%thread) {map = #xgpu.map<(d0) -> (d0 floordiv 32, d0 mod 32), d0 in [0, 127]>} : (index) -> (index, index)
  return %row, %column : index, index
}

// -----

// Operands are the dimensions, then the range variables.
// CHECK-LABEL: func.func @symbols
func.func @symbols(%d: index, %s: index) -> index {
  // CHECK: "xgpu.apply_indexing"(%arg0, %arg1) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 7], s0 in [0, 3]>} : (index, index) -> index
  %0 = "xgpu.apply_indexing"(%d, %s) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 7], s0 in [0, 3]>} : (index, index) -> index
  return %0 : index
}
