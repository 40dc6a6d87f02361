// RUN: xgpu-opt %s | xgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    %0:4 = "xgpu.group_rows"(%arg0, %arg1) {rows = 128 : i64, total = 4096 : i64} : (tensor<8xi32>, index) -> (index, index, index, index)
func.func @f(%sizes: tensor<8xi32>, %number: index) -> index {
  %source, %group, %first, %count = "xgpu.group_rows"(%sizes, %number) {rows = 128 : i64, total = 4096 : i64} : (tensor<8xi32>, index) -> (index, index, index, index)
  return %count : index
}
