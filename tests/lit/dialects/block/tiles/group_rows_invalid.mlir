// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @sizes(%sizes: tensor<8xf32>, %number: index) {
  // expected-error @+1 {{expected sizes of groups, numbers of type i32 or i64, got tensor<8xf32>}}
  %0:4 = "xgpu.group_rows"(%sizes, %number) {rows = 128 : i64, total = 4096 : i64} : (tensor<8xf32>, index) -> (index, index, index, index)
  return
}

// -----

func.func @no_rows(%sizes: tensor<8xi32>, %number: index) {
  // expected-error @+1 {{expected rows, of a tile and in all, from 1 to 1073741823, got 0 and 4096}}
  %0:4 = "xgpu.group_rows"(%sizes, %number) {rows = 0 : i64, total = 4096 : i64} : (tensor<8xi32>, index) -> (index, index, index, index)
  return
}
