// RUN: xgpu compile %s --emit emitted | FileCheck %s

// A factor of logits that is a power of two is part of the subtraction: their product is exact, and hidden ones are
// those that become the number that hides. A factor of what is weighted is part of an addition before.
// CHECK: %[[LOW:.*]] = arith.constant -3.200000e+10 : f32
// CHECK-NEXT: %[[PRODUCT:.*]] = arith.select %{{.*}}, %{{.*}}, %[[LOW]] : f32
// CHECK-NEXT: %[[LESS:.*]] = arith.negf
// CHECK-NEXT: %[[EIGHTH:.*]] = arith.constant 1.250000e-01 : f32
// CHECK-NEXT: %[[EXPONENT:.*]] = math.fma %[[PRODUCT]], %[[EIGHTH]], %[[LESS]] : f32
// CHECK-NEXT: math.exp %[[EXPONENT]] {xgpu.weight} : f32
// CHECK: arith.constant 3.000000e-01 : f32
// CHECK: %[[THIRD:.*]] = arith.constant 3.000000e-01 : f32
// CHECK-NEXT: %[[OF_ROW:.*]] = arith.mulf %{{.*}}, %[[THIRD]] : f32
// CHECK-NEXT: %[[SUM:.*]] = math.fma %{{.*}}, %[[THIRD]], %[[OF_ROW]] : f32
// CHECK-NEXT: arith.mulf %[[SUM]], %{{.*}} : f32

module attributes {xgpu.level = "fusions"} {
  func.func private @fusion_0(%arg0: tensor<64x64xbf16>, %arg1: tensor<64x64xbf16>, %arg2: tensor<64x64xbf16>, %arg3: tensor<64x64xbf16>, %arg4: tensor<64xf32>, %arg5: tensor<64xf32>, %arg6: tensor<64xf32>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>) attributes {xgpu.emitter = "sums", xgpu.schedule = #xgpu.schedule<tile_m = 64, tile_n = 64, stages = 2, groups = 1, blocks = 1>} {
    %0:2 = "xgpu.chain"(%arg0, %arg1, %arg4, %arg5, %arg3, %arg2, %arg6) ({
    ^bb0(%arg7: tensor<64x64xbf16>, %arg8: tensor<64x64xbf16>, %arg9: tensor<64xf32>, %arg10: tensor<64xf32>, %arg11: tensor<64x64xbf16>, %arg12: tensor<64x64xbf16>, %arg13: tensor<64xf32>):
      %1 = stablehlo.dot_general %arg7, %arg8, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xf32>
      %2 = stablehlo.broadcast_in_dim %arg9, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
      %low = stablehlo.constant dense<-4.0e+09> : tensor<64x64xf32>
      %eighth = stablehlo.constant dense<0.125> : tensor<64x64xf32>
      %row = stablehlo.iota dim = 0 : tensor<64x64xi32>
      %key = stablehlo.iota dim = 1 : tensor<64x64xi32>
      %seen = stablehlo.compare GE, %row, %key : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi1>
      %logits = stablehlo.multiply %1, %eighth : tensor<64x64xf32>
      %masked = stablehlo.select %seen, %logits, %low : tensor<64x64xi1>, tensor<64x64xf32>
      %3 = stablehlo.subtract %masked, %2 : tensor<64x64xf32>
      %4 = stablehlo.exponential %3 {xgpu.weight} : tensor<64x64xf32>
      %5 = stablehlo.broadcast_in_dim %arg10, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
      %6 = stablehlo.multiply %4, %5 : tensor<64x64xf32>
      %7 = stablehlo.convert %6 : (tensor<64x64xf32>) -> tensor<64x64xbf16>
      %8 = stablehlo.dot_general %7, %arg11, contracting_dims = [0] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
      %9 = stablehlo.dot_general %arg11, %arg12, contracting_dims = [1] x [1] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
      %10 = stablehlo.convert %9 : (tensor<64x64xbf16>) -> tensor<64x64xf32>
      %11 = stablehlo.broadcast_in_dim %arg13, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
      %12 = stablehlo.add %10, %11 : tensor<64x64xf32>
      %13 = stablehlo.multiply %12, %6 : tensor<64x64xf32>
      %third = stablehlo.constant dense<0.3> : tensor<64x64xf32>
      %scaled = stablehlo.multiply %13, %third : tensor<64x64xf32>
      %14 = stablehlo.convert %scaled : (tensor<64x64xf32>) -> tensor<64x64xbf16>
      %15 = stablehlo.dot_general %14, %arg7, contracting_dims = [0] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
      stablehlo.return %8, %15 : tensor<64x64xbf16>, tensor<64x64xbf16>
    }) {xgpu.hero} : (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>)
    return %0#1, %0#0 : tensor<64x64xbf16>, tensor<64x64xbf16>
  }
  func.func @main(%arg0: tensor<64x64xbf16>, %arg1: tensor<64x64xbf16>, %arg2: tensor<64x64xbf16>, %arg3: tensor<64x64xbf16>, %arg4: tensor<64xf32>, %arg5: tensor<64xf32>, %arg6: tensor<64xf32>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>) {
    %0:2 = call @fusion_0(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5, %arg6) : (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>)
    return %0#0, %0#1 : tensor<64x64xbf16>, tensor<64x64xbf16>
  }
}
