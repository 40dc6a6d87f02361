// RUN: xgpu-opt %s -p resolve-meshes | FileCheck %s

// A manual computation takes parts of arrays; shardings and meshes are gone.

// CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
// CHECK-NEXT:    %[[A:.*]] = stablehlo.custom_call @SPMDFullToShardShape(%arg0) {backend_config = "#sdy.sharding<@mesh, [{\22x\22}]>"} : (tensor<8xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %[[B:.*]] = stablehlo.negate %[[A]] : tensor<4xf32>
// CHECK-NEXT:    %[[C:.*]] = stablehlo.custom_call @SPMDShardToFullShape(%[[B]]) {backend_config = "#sdy.sharding<@mesh, [{\22x\22}]>"} : (tensor<4xf32>) -> tensor<8xf32>
// CHECK-NEXT:    return %[[C]] : tensor<8xf32>
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<4xf32>) {
    %1 = stablehlo.negate %a : tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
