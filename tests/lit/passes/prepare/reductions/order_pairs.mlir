// RUN: xgpu-opt %s -p order-pairs --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK:         %[[X:.*]] = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<2048x16xf32>) -> tensor<2048x16x1024xf32>
// CHECK-NEXT:    %[[T:.*]] = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<1024x16xf32>) -> tensor<16x1024xf32>
// CHECK-NEXT:    %[[R:.*]] = stablehlo.broadcast_in_dim %[[T]], dims = [1, 2] : (tensor<16x1024xf32>) -> tensor<1x16x1024xf32>
// CHECK-NEXT:    %[[Y:.*]] = stablehlo.broadcast_in_dim %[[R]], dims = [0, 1, 2] : (tensor<1x16x1024xf32>) -> tensor<2048x16x1024xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.subtract %[[X]], %[[Y]] : tensor<2048x16x1024xf32>
// CHECK-NEXT:    %[[W:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<2048x16x1024xf32>
// CHECK-NEXT:    %[[M:.*]] = stablehlo.multiply %[[D]], %[[W]] : tensor<2048x16x1024xf32>
// CHECK-NEXT:    stablehlo.reduce(%[[M]] init: %{{.*}}) applies stablehlo.add across dimensions = [1] : (tensor<2048x16x1024xf32>, tensor<f32>) -> tensor<2048x1024xf32>
func.func @main(%x: tensor<2048x16xf32>, %y: tensor<1024x16xf32>) -> tensor<2048x1024xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<2048x1024x16xf32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<2048x16xf32>) -> tensor<2048x1024x16xf32>
  %1 = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (tensor<1024x16xf32>) -> tensor<1x1024x16xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<1x1024x16xf32>) -> tensor<2048x1024x16xf32>
  %3 = stablehlo.subtract %0, %2 : tensor<2048x1024x16xf32>
  %4 = stablehlo.multiply %3, %two : tensor<2048x1024x16xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2048x1024x16xf32>, tensor<f32>) -> tensor<2048x1024xf32>
  return %5 : tensor<2048x1024xf32>
}

// -----

// Few results take less time than one more kernel.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     stablehlo.transpose
// CHECK:         across dimensions = [2]
func.func @main(%x: tensor<512x16xf32>, %y: tensor<512x16xf32>) -> tensor<512x512xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<512x16xf32>) -> tensor<512x512x16xf32>
  %1 = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (tensor<512x16xf32>) -> tensor<512x512x16xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<512x512x16xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<512x512x16xf32>, tensor<f32>) -> tensor<512x512xf32>
  return %3 : tensor<512x512xf32>
}

// -----

// An array in memory has its rows.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     stablehlo.transpose
// CHECK:         across dimensions = [2]
func.func @main(%x: tensor<2048x1024x16xf32>, %y: tensor<1024x16xf32>) -> tensor<2048x1024xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (tensor<1024x16xf32>) -> tensor<2048x1024x16xf32>
  %1 = stablehlo.subtract %x, %0 : tensor<2048x1024x16xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2048x1024x16xf32>, tensor<f32>) -> tensor<2048x1024xf32>
  return %2 : tensor<2048x1024xf32>
}

// -----

// How many of a few limits are below each number: no array is read at both indices, and none is transposed.

// CHECK-LABEL: func.func @main(%arg0: tensor<4000x128xf32>, %arg1: tensor<15xf32>)
// CHECK-NOT:     stablehlo.transpose
// CHECK-DAG:     %[[X:.*]] = stablehlo.broadcast_in_dim %arg0, dims = [0, 2] : (tensor<4000x128xf32>) -> tensor<4000x15x128xf32>
// CHECK-DAG:     %[[E:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<15xf32>) -> tensor<4000x15x128xf32>
// CHECK:         stablehlo.compare GT, %[[X]], %[[E]]
// CHECK:         across dimensions = [1] : (tensor<4000x15x128xi32>, tensor<i32>) -> tensor<4000x128xi32>
func.func @main(%x: tensor<4000x128xf32>, %e: tensor<15xf32>) -> tensor<4000x128xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<4000x128xf32>) -> tensor<4000x128x15xf32>
  %1 = stablehlo.broadcast_in_dim %e, dims = [2] : (tensor<15xf32>) -> tensor<4000x128x15xf32>
  %2 = stablehlo.compare GT, %0, %1, FLOAT : (tensor<4000x128x15xf32>, tensor<4000x128x15xf32>) -> tensor<4000x128x15xi1>
  %3 = stablehlo.convert %2 : (tensor<4000x128x15xi1>) -> tensor<4000x128x15xi32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4000x128x15xi32>, tensor<i32>) -> tensor<4000x128xi32>
  return %4 : tensor<4000x128xi32>
}

// -----

// The bits of each number, by an iota.

// CHECK-LABEL: func.func @main(%arg0: tensor<400000xi32>)
// CHECK-DAG:     stablehlo.iota dim = 0 : tensor<24x400000xi32>
// CHECK-DAG:     stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<400000xi32>) -> tensor<24x400000xi32>
// CHECK:         across dimensions = [0]
func.func @main(%x: tensor<400000xi32>) -> tensor<400000xi32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<400000xi32>) -> tensor<400000x24xi32>
  %1 = stablehlo.iota dim = 1 : tensor<400000x24xi32>
  %2 = stablehlo.shift_right_logical %0, %1 : tensor<400000x24xi32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.or across dimensions = [1] : (tensor<400000x24xi32>, tensor<i32>) -> tensor<400000xi32>
  return %3 : tensor<400000xi32>
}

// -----

// Too few results for a thread each: lanes share rows.

// CHECK-LABEL: func.func @main
// CHECK:         across dimensions = [2]
func.func @main(%x: tensor<400x128xf32>, %e: tensor<15xf32>) -> tensor<400x128xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<400x128xf32>) -> tensor<400x128x15xf32>
  %1 = stablehlo.broadcast_in_dim %e, dims = [2] : (tensor<15xf32>) -> tensor<400x128x15xf32>
  %2 = stablehlo.maximum %0, %1 : tensor<400x128x15xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<400x128x15xf32>, tensor<f32>) -> tensor<400x128xf32>
  return %3 : tensor<400x128xf32>
}
