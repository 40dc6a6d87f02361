// RUN: xgpu-opt %s -p split-reductions --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'split-reductions{target=sm_86}' --split-input-file | FileCheck %s --check-prefix=SMALL

// There are 512 blocks to sum up parts, and one for the sum of these; fewer on a GPU of fewer multiprocessors.

// SMALL:        tensor<256x65536x1xf32>

// CHECK-LABEL: func.func @main(%arg0: tensor<16777216xf32>) -> tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reshape %arg0 : (tensor<16777216xf32>) -> tensor<512x32768x1xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.reduce(%[[B]] init: %[[A]]) applies stablehlo.add across dimensions = [1] : (tensor<512x32768x1xf32>, tensor<f32>) -> tensor<512x1xf32>
// CHECK-NEXT:    %[[D:.*]] = stablehlo.reshape %[[C]] : (tensor<512x1xf32>) -> tensor<512xf32>
// CHECK-NEXT:    %[[E:.*]] = stablehlo.reduce(%[[D]] init: %[[A]]) applies stablehlo.add across dimensions = [0] : (tensor<512xf32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    return %[[E]] : tensor<f32>
func.func @main(%x: tensor<16777216xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16777216xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// One block is fast enough.

// CHECK-LABEL: func.func @main(%arg0: tensor<1024xf32>) -> tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.reduce(%arg0 init: %[[A]]) applies stablehlo.add across dimensions = [0] : (tensor<1024xf32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:    return %[[B]] : tensor<f32>
func.func @main(%x: tensor<1024xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Branches that reduce the same array from outside each have a reshape of their own.

// CHECK-LABEL: func.func @main
// CHECK:         "stablehlo.case"
// CHECK-NEXT:      %[[A:.*]] = stablehlo.reshape %arg1 : (tensor<16777216xf32>) -> tensor<512x32768x1xf32>
// CHECK-NEXT:      stablehlo.reduce(%[[A]] init: %{{.*}}) applies stablehlo.add
// CHECK:         }, {
// CHECK-NEXT:      %[[B:.*]] = stablehlo.reshape %arg1 : (tensor<16777216xf32>) -> tensor<512x32768x1xf32>
// CHECK-NEXT:      stablehlo.reduce(%[[B]] init: %{{.*}}) applies stablehlo.maximum
func.func @main(%i: tensor<i32>, %x: tensor<16777216xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16777216xf32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }, {
    %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [0] : (tensor<16777216xf32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Columns that a column program holds stay whole, as each element is needed again with its column's sum.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.reduce(%arg0 init: {{.*}}) applies stablehlo.add across dimensions = [0] : (tensor<2048x512xf32>
func.func @main(%x: tensor<2048x512xf32>) -> tensor<2048x512xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<2048x512xf32>, tensor<f32>) -> tensor<512xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [1] : (tensor<512xf32>) -> tensor<2048x512xf32>
  %shares = stablehlo.divide %x, %sums : tensor<2048x512xf32>
  return %shares : tensor<2048x512xf32>
}

// -----

// Sums that nothing of the columns needs are split, and so are columns that are too long to be held.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.reduce(%{{.*}} init: {{.*}}) applies stablehlo.add across dimensions = [1] : (tensor<{{[0-9]+}}x{{[0-9]+}}x1x512xf32>
func.func @main(%x: tensor<2048x512xf32>) -> tensor<512xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<2048x512xf32>, tensor<f32>) -> tensor<512xf32>
  return %sum : tensor<512xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.reduce(%{{.*}} init: {{.*}}) applies stablehlo.add across dimensions = [1] : (tensor<{{[0-9]+}}x{{[0-9]+}}x1x512xf32>
func.func @main(%x: tensor<4096x512xf32>) -> tensor<4096x512xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<4096x512xf32>, tensor<f32>) -> tensor<512xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [1] : (tensor<512xf32>) -> tensor<4096x512xf32>
  %shares = stablehlo.divide %x, %sums : tensor<4096x512xf32>
  return %shares : tensor<4096x512xf32>
}
