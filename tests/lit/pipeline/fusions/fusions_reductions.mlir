// RUN: xgpu compile %s --emit fusions | FileCheck %s

// Too many elements for one block, and a prime number of them: parts of a multiple of 16 elements, and a rest that joins
// what the parts give.
// CHECK-LABEL: func.func private @fusion_0(%arg0: tensor<10000019xf32>)
// CHECK: stablehlo.slice %arg0 [0:[[END:[0-9]+]]]
// CHECK: %[[PARTS:.*]] = stablehlo.reshape
// CHECK: stablehlo.reduce(%[[PARTS]] init: %{{.*}}) applies stablehlo.add across dimensions = [1] {xgpu.hero}

// Few columns: the first kernel takes neighbouring rows for more columns.
// CHECK-LABEL: func.func private
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.maximum across dimensions = [1] {xgpu.hero} : (tensor<[[P:[0-9]+]]x{{[0-9]+}}x32x4xf32>, tensor<f32>) -> tensor<[[P]]x32x4xf32>

// The initial value of a sum is added once, at the end, and every thread starts from zero.
// CHECK-LABEL: func.func private
// CHECK-DAG: %[[TEN:.*]] = stablehlo.constant dense<1.000000e+01> : tensor<f32>
// CHECK-DAG: %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-DAG: stablehlo.slice %arg0 [[[END]]:10000019]
// CHECK-DAG: %[[ALL:.*]] = stablehlo.concatenate
// CHECK: %[[SUM:.*]] = stablehlo.reduce(%[[ALL]] init: %[[ZERO]])
// CHECK: stablehlo.add %{{.*}}, %[[SUM]]

// CHECK-LABEL: func.func private
// CHECK: across dimensions = [0] {xgpu.hero}
func.func @main(%x: tensor<10000019xf32>, %y: tensor<4194304x4xf32>) -> (tensor<f32>, tensor<4xf32>) {
  %ten = stablehlo.constant dense<10.0> : tensor<f32>
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %ten) applies stablehlo.add across dimensions = [0] : (tensor<10000019xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.reduce(%y init: %lowest) applies stablehlo.maximum across dimensions = [0] : (tensor<4194304x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0, %1 : tensor<f32>, tensor<4xf32>
}
