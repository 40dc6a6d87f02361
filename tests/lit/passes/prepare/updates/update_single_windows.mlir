// RUN: xgpu-opt %s -p update-single-windows --split-input-file | FileCheck %s

// The window is added to where it lies, and written over that.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<6xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<1> : tensor<1xi32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.slice %arg0 [1:7] : (tensor<8xf32>) -> tensor<6xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.add %[[B]], %arg1 : tensor<6xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.dynamic_update_slice %arg0, %[[C]], %[[D]] : (tensor<8xf32>, tensor<6xf32>, tensor<i32>) -> tensor<8xf32>
// CHECK-NEXT:    return %[[E]] : tensor<8xf32>
func.func @main(%x: tensor<8xf32>, %u: tensor<6xf32>) -> tensor<8xf32> {
  %i = stablehlo.constant dense<1> : tensor<1xi32>
  %0 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<8xf32>, tensor<1xi32>, tensor<6xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Where the window goes is known at run time only: the scatter stays.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<1xi32>, %arg2: tensor<6xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[A:.*]] = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = false}> ({
// CHECK-NEXT:    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
// CHECK-NEXT:      %[[B:.*]] = stablehlo.add %arg3, %arg4 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[B]] : tensor<f32>
// CHECK-NEXT:    }) : (tensor<8xf32>, tensor<1xi32>, tensor<6xf32>) -> tensor<8xf32>
// CHECK-NEXT:    return %[[A]] : tensor<8xf32>
func.func @main(%x: tensor<8xf32>, %i: tensor<1xi32>, %u: tensor<6xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<8xf32>, tensor<1xi32>, tensor<6xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A column of four lies in all sectors of the array, so that it is no update in place; of 32 columns it is one.

// CHECK-LABEL: func.func @main(%arg0: tensor<100x4xf32>, %arg1: tensor<100x32xf32>, %arg2: tensor<100xf32>) -> (tensor<100x4xf32>, tensor<100x32xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<2> : tensor<1xi32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reshape %arg2 : (tensor<100xf32>) -> tensor<100x1xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.slice %arg0 [0:100, 2:3] : (tensor<100x4xf32>) -> tensor<100x1xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.add %[[C]], %[[B]] : tensor<100x1xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT:    %[[G:.*]] = stablehlo.dynamic_update_slice %arg0, %[[D]], %[[E]], %[[F]] : (tensor<100x4xf32>, tensor<100x1xf32>, tensor<i32>, tensor<i32>) -> tensor<100x4xf32>
// CHECK-NEXT:    %[[H:.*]] = "stablehlo.scatter"(%arg1, %[[A]], %arg2) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>, unique_indices = true}> ({
// CHECK-NEXT:    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
// CHECK-NEXT:      %[[I:.*]] = stablehlo.add %arg3, %arg4 : tensor<f32>
// CHECK-NEXT:      stablehlo.return %[[I]] : tensor<f32>
// CHECK-NEXT:    }) : (tensor<100x32xf32>, tensor<1xi32>, tensor<100xf32>) -> tensor<100x32xf32>
// CHECK-NEXT:    return %[[G]], %[[H]] : tensor<100x4xf32>, tensor<100x32xf32>
func.func @main(%x: tensor<100x4xf32>, %y: tensor<100x32xf32>, %u: tensor<100xf32>) -> (tensor<100x4xf32>, tensor<100x32xf32>) {
  %i = stablehlo.constant dense<2> : tensor<1xi32>
  %0 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>, unique_indices = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<100x4xf32>, tensor<1xi32>, tensor<100xf32>) -> tensor<100x4xf32>
  %1 = "stablehlo.scatter"(%y, %i, %u) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>, unique_indices = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<100x32xf32>, tensor<1xi32>, tensor<100xf32>) -> tensor<100x32xf32>
  return %0, %1 : tensor<100x4xf32>, tensor<100x32xf32>
}

// -----

// What is written over needs no old elements: it is an update of a slice, which may be made in place, wherever it is.

// CHECK-LABEL: func.func @main(%arg0: tensor<100x32xf32>, %arg1: tensor<100xf32>) -> tensor<100x32xf32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<2> : tensor<1xi32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reshape %arg1 : (tensor<100xf32>) -> tensor<100x1xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.dynamic_update_slice %arg0, %[[B]], %[[C]], %[[D]] : (tensor<100x32xf32>, tensor<100x1xf32>, tensor<i32>, tensor<i32>) -> tensor<100x32xf32>
// CHECK-NEXT:    return %[[E]] : tensor<100x32xf32>
func.func @main(%x: tensor<100x32xf32>, %u: tensor<100xf32>) -> tensor<100x32xf32> {
  %i = stablehlo.constant dense<2> : tensor<1xi32>
  %0 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>, unique_indices = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<100x32xf32>, tensor<1xi32>, tensor<100xf32>) -> tensor<100x32xf32>
  return %0 : tensor<100x32xf32>
}

// -----

// One access of a warp holds an array of 128 elements: the update of one of them is no launch of its own.

// CHECK-LABEL: func.func @main(%arg0: tensor<128xf32>, %arg1: tensor<129xf32>, %arg2: tensor<f32>) -> (tensor<128xf32>, tensor<129xf32>)
// CHECK:         %[[OLD:.*]] = stablehlo.slice %arg0 [2:3] : (tensor<128xf32>) -> tensor<1xf32>
// CHECK-NEXT:    %[[SUM:.*]] = stablehlo.add %[[OLD]], %{{.*}} : tensor<1xf32>
// CHECK-NEXT:    %[[I:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT:    %[[NEW:.*]] = stablehlo.dynamic_update_slice %arg0, %[[SUM]], %[[I]] : (tensor<128xf32>, tensor<1xf32>, tensor<i32>) -> tensor<128xf32>
// CHECK-NEXT:    %[[LONG:.*]] = "stablehlo.scatter"(%arg1, %{{.*}}, %arg2)
// CHECK:         return %[[NEW]], %[[LONG]] : tensor<128xf32>, tensor<129xf32>
func.func @main(%x: tensor<128xf32>, %y: tensor<129xf32>, %u: tensor<f32>) -> (tensor<128xf32>, tensor<129xf32>) {
  %i = stablehlo.constant dense<2> : tensor<1xi32>
  %0 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<128xf32>, tensor<1xi32>, tensor<f32>) -> tensor<128xf32>
  %1 = "stablehlo.scatter"(%y, %i, %u) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<129xf32>, tensor<1xi32>, tensor<f32>) -> tensor<129xf32>
  return %0, %1 : tensor<128xf32>, tensor<129xf32>
}

// -----

// A window that is an operand of a concatenation is another operand, though it is a fourth of the array.

// CHECK-LABEL: func.func @main(%arg0: tensor<1x64xf32>, %arg1: tensor<3x64xf32>, %arg2: tensor<64xf32>) -> tensor<4x64xf32>
// CHECK:         %[[U:.*]] = stablehlo.reshape %arg2 : (tensor<64xf32>) -> tensor<1x64xf32>
// CHECK-NEXT:    %[[SUM:.*]] = stablehlo.add %arg0, %[[U]] : tensor<1x64xf32>
// CHECK-NEXT:    %[[NEW:.*]] = stablehlo.concatenate %[[SUM]], %arg1, dim = 0 : (tensor<1x64xf32>, tensor<3x64xf32>) -> tensor<4x64xf32>
// CHECK-NEXT:    return %[[NEW]] : tensor<4x64xf32>
func.func @main(%x: tensor<1x64xf32>, %y: tensor<3x64xf32>, %u: tensor<64xf32>) -> tensor<4x64xf32> {
  %i = stablehlo.constant dense<0> : tensor<1xi32>
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<1x64xf32>, tensor<3x64xf32>) -> tensor<4x64xf32>
  %1 = "stablehlo.scatter"(%0, %i, %u) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<4x64xf32>, tensor<1xi32>, tensor<64xf32>) -> tensor<4x64xf32>
  return %1 : tensor<4x64xf32>
}
