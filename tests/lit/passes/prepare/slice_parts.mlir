// RUN: xgpu-opt %s -p slice-parts --split-input-file | FileCheck %s

// What lies in one part is a slice of that, or the part; what lies in two stays as it is.

// CHECK-LABEL: func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<6xf32>) -> (tensor<2xf32>, tensor<6xf32>, tensor<3xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<2xf32>, tensor<6xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.slice %arg1 [1:3] : (tensor<6xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.slice %[[A]] [1:4] : (tensor<8xf32>) -> tensor<3xf32>
// CHECK-NEXT:    return %[[B]], %arg1, %[[C]] : tensor<2xf32>, tensor<6xf32>, tensor<3xf32>
func.func @main(%a: tensor<2xf32>, %b: tensor<6xf32>) -> (tensor<2xf32>, tensor<6xf32>, tensor<3xf32>) {
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2xf32>, tensor<6xf32>) -> tensor<8xf32>
  %1 = stablehlo.slice %0 [3:5] : (tensor<8xf32>) -> tensor<2xf32>
  %2 = stablehlo.slice %0 [2:8] : (tensor<8xf32>) -> tensor<6xf32>
  %3 = stablehlo.slice %0 [1:4] : (tensor<8xf32>) -> tensor<3xf32>
  return %1, %2, %3 : tensor<2xf32>, tensor<6xf32>, tensor<3xf32>
}

// -----

// An update at a known place is looked into, and past; what lies in both, or where the place is not known, stays.

// CHECK-LABEL: func.func @main(%arg0: tensor<100x4xf32>, %arg1: tensor<100x1xf32>, %arg2: tensor<100x2xf32>, %arg3: tensor<i32>) -> (tensor<100x1xf32>, tensor<2x1xf32>, tensor<100x2xf32>, tensor<100x1xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.constant dense<9> : tensor<i32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.dynamic_update_slice %arg0, %arg1, %[[A]], %[[B]] : (tensor<100x4xf32>, tensor<100x1xf32>, tensor<i32>, tensor<i32>) -> tensor<100x4xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.dynamic_update_slice %[[C]], %arg2, %[[A]], %[[A]] : (tensor<100x4xf32>, tensor<100x2xf32>, tensor<i32>, tensor<i32>) -> tensor<100x4xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.dynamic_update_slice %[[D]], %arg1, %[[A]], %arg3 : (tensor<100x4xf32>, tensor<100x1xf32>, tensor<i32>, tensor<i32>) -> tensor<100x4xf32>
// CHECK-NEXT:    %[[F:.*]] = stablehlo.slice %arg0 [2:4, 2:3] : (tensor<100x4xf32>) -> tensor<2x1xf32>
// CHECK-NEXT:    %[[G:.*]] = stablehlo.slice %[[D]] [0:100, 1:3] : (tensor<100x4xf32>) -> tensor<100x2xf32>
// CHECK-NEXT:    %[[H:.*]] = stablehlo.slice %[[E]] [0:100, 3:4] : (tensor<100x4xf32>) -> tensor<100x1xf32>
// CHECK-NEXT:    return %arg1, %[[F]], %[[G]], %[[H]] : tensor<100x1xf32>, tensor<2x1xf32>, tensor<100x2xf32>, tensor<100x1xf32>
func.func @main(%x: tensor<100x4xf32>, %u: tensor<100x1xf32>, %v: tensor<100x2xf32>, %i: tensor<i32>) -> (tensor<100x1xf32>, tensor<2x1xf32>, tensor<100x2xf32>, tensor<100x1xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %three = stablehlo.constant dense<9> : tensor<i32>
  %y = stablehlo.dynamic_update_slice %x, %u, %zero, %three : (tensor<100x4xf32>, tensor<100x1xf32>, tensor<i32>, tensor<i32>) -> tensor<100x4xf32>
  %z = stablehlo.dynamic_update_slice %y, %v, %zero, %zero : (tensor<100x4xf32>, tensor<100x2xf32>, tensor<i32>, tensor<i32>) -> tensor<100x4xf32>
  %w = stablehlo.dynamic_update_slice %z, %u, %zero, %i : (tensor<100x4xf32>, tensor<100x1xf32>, tensor<i32>, tensor<i32>) -> tensor<100x4xf32>
  %0 = stablehlo.slice %z [0:100, 3:4] : (tensor<100x4xf32>) -> tensor<100x1xf32>
  %1 = stablehlo.slice %z [2:4, 2:3] : (tensor<100x4xf32>) -> tensor<2x1xf32>
  %2 = stablehlo.slice %z [0:100, 1:3] : (tensor<100x4xf32>) -> tensor<100x2xf32>
  %3 = stablehlo.slice %w [0:100, 3:4] : (tensor<100x4xf32>) -> tensor<100x1xf32>
  return %0, %1, %2, %3 : tensor<100x1xf32>, tensor<2x1xf32>, tensor<100x2xf32>, tensor<100x1xf32>
}

// -----

// What an array that is updated in place had before would have to be read before; the update does not.

// CHECK-LABEL: func.func @main(%arg0: tensor<640xf32>, %arg1: tensor<2xf32>) -> (tensor<640xf32>, tensor<1xf32>, tensor<1xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<4> : tensor<i32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.dynamic_update_slice %arg0, %arg1, %[[A]] : (tensor<640xf32>, tensor<2xf32>, tensor<i32>) -> tensor<640xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.slice %[[B]] [3:4] : (tensor<640xf32>) -> tensor<1xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.slice %arg1 [1:2] : (tensor<2xf32>) -> tensor<1xf32>
// CHECK-NEXT:    return %[[B]], %[[C]], %[[D]] : tensor<640xf32>, tensor<1xf32>, tensor<1xf32>
func.func @main(%x: tensor<640xf32>, %u: tensor<2xf32>) -> (tensor<640xf32>, tensor<1xf32>, tensor<1xf32>) {
  %four = stablehlo.constant dense<4> : tensor<i32>
  %y = stablehlo.dynamic_update_slice %x, %u, %four : (tensor<640xf32>, tensor<2xf32>, tensor<i32>) -> tensor<640xf32>
  %0 = stablehlo.slice %y [3:4] : (tensor<640xf32>) -> tensor<1xf32>
  %1 = stablehlo.slice %y [5:6] : (tensor<640xf32>) -> tensor<1xf32>
  return %y, %0, %1 : tensor<640xf32>, tensor<1xf32>, tensor<1xf32>
}

// -----

// What a pad is put around, but nothing with padding in it.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x6xf32>, %arg1: tensor<f32>) -> (tensor<4x4xf32>, tensor<4x6xf32>, tensor<4x7xf32>)
// CHECK-NEXT:    %[[A:.*]] = stablehlo.pad %arg0, %arg1, low = [1, 2], high = [0, -1], interior = [0, 0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<5x7xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.pad %arg0, %arg1, low = [1, 2], high = [1, 2], interior = [0, 0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<6x10xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.slice %arg0 [0:4, 1:5] : (tensor<4x6xf32>) -> tensor<4x4xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.slice %[[B]] [1:5, 2:9] : (tensor<6x10xf32>) -> tensor<4x7xf32>
// CHECK-NEXT:    return %[[C]], %arg0, %[[D]] : tensor<4x4xf32>, tensor<4x6xf32>, tensor<4x7xf32>
func.func @main(%x: tensor<4x6xf32>, %p: tensor<f32>) -> (tensor<4x4xf32>, tensor<4x6xf32>, tensor<4x7xf32>) {
  %y = stablehlo.pad %x, %p, low = [1, 2], high = [0, -1], interior = [0, 0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<5x7xf32>
  %z = stablehlo.pad %x, %p, low = [1, 2], high = [1, 2], interior = [0, 0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<6x10xf32>
  %0 = stablehlo.slice %y [1:5, 3:7] : (tensor<5x7xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.slice %z [1:5, 2:8] : (tensor<6x10xf32>) -> tensor<4x6xf32>
  %2 = stablehlo.slice %z [1:5, 2:9] : (tensor<6x10xf32>) -> tensor<4x7xf32>
  return %0, %1, %2 : tensor<4x4xf32>, tensor<4x6xf32>, tensor<4x7xf32>
}

// -----

// Slices of rows that are padded in steps all read the last array, though some lie in what one of the steps makes.

// CHECK-LABEL: func.func @main(
// CHECK:         %[[A:.*]] = stablehlo.concatenate %arg0
// CHECK:         %[[B:.*]] = stablehlo.concatenate %[[A]]
// CHECK:         stablehlo.slice %[[B]] [2:66]
// CHECK:         stablehlo.slice %arg1 [1:63]
// CHECK:         stablehlo.slice %[[B]] [6:70]
func.func @main(%x: tensor<4xf32>, %y: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<62xf32>) {
  %a = stablehlo.concatenate %x, %y, dim = 0 : (tensor<4xf32>, tensor<64xf32>) -> tensor<68xf32>
  %b = stablehlo.concatenate %a, %x, dim = 0 : (tensor<68xf32>, tensor<4xf32>) -> tensor<72xf32>
  %0 = stablehlo.slice %b [2:66] : (tensor<72xf32>) -> tensor<64xf32>
  %1 = stablehlo.slice %b [4:68] : (tensor<72xf32>) -> tensor<64xf32>
  %2 = stablehlo.slice %b [5:67] : (tensor<72xf32>) -> tensor<62xf32>
  %3 = stablehlo.slice %b [6:70] : (tensor<72xf32>) -> tensor<64xf32>
  %4 = stablehlo.add %1, %3 : tensor<64xf32>
  return %0, %4, %2 : tensor<64xf32>, tensor<64xf32>, tensor<62xf32>
}

// -----

// Where no slice reads more than a step has made, all read what it has made.

// CHECK-LABEL: func.func @main(
// CHECK:         %[[A:.*]] = stablehlo.concatenate %arg0
// CHECK:         stablehlo.slice %[[A]] [2:66]
// CHECK:         stablehlo.slice %[[A]] [3:67]
func.func @main(%x: tensor<4xf32>, %y: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = stablehlo.concatenate %x, %y, dim = 0 : (tensor<4xf32>, tensor<64xf32>) -> tensor<68xf32>
  %b = stablehlo.concatenate %a, %x, dim = 0 : (tensor<68xf32>, tensor<4xf32>) -> tensor<72xf32>
  %0 = stablehlo.slice %b [2:66] : (tensor<72xf32>) -> tensor<64xf32>
  %1 = stablehlo.slice %b [3:67] : (tensor<72xf32>) -> tensor<64xf32>
  return %0, %1 : tensor<64xf32>, tensor<64xf32>
}

// -----

// Slices of a slice are replaced before the slice itself, which is erased.

// CHECK-LABEL: func.func @main(
// CHECK:         %[[A:.*]] = stablehlo.concatenate %arg0, %arg1
// CHECK:         %[[S:.*]] = stablehlo.slice %[[A]] [0:6]
// CHECK:         %[[T:.*]] = stablehlo.slice %[[A]] [1:7]
// CHECK:         return %[[S]], %[[T]]
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<1xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %1 = stablehlo.concatenate %0, %c, dim = 0 : (tensor<8xf32>, tensor<1xf32>) -> tensor<9xf32>
  %2 = stablehlo.slice %1 [0:7] : (tensor<9xf32>) -> tensor<7xf32>
  %3 = stablehlo.slice %2 [0:6] : (tensor<7xf32>) -> tensor<6xf32>
  %4 = stablehlo.slice %2 [1:7] : (tensor<7xf32>) -> tensor<6xf32>
  return %3, %4 : tensor<6xf32>, tensor<6xf32>
}
