// RUN: xgpu compile %s --emit emitted | FileCheck %s

// A block reads a tile along the rows of the operand and writes it along the rows of the result. Few blocks take tiles of
// half the usual rows and columns. The hero's value is an argument of the epilogue.
// CHECK-LABEL: func.func @fusion_0(%arg0: tensor<256x512xf32>, %arg1: tensor<512x256xf32>, %arg2: tensor<512x256xf32>)
// CHECK-SAME: xgpu.block = array<i64: 256, 1, 1>, xgpu.emitter = "transpose", xgpu.grid = array<i64: 128, 1, 1>
// CHECK: %[[TILE:.*]] = "xgpu.allocate_shared"() : () -> tensor<1024xf32>
// CHECK: %[[FULL:.*]] = "xgpu.loop"(%{{.*}}, %{{.*}}, %[[TILE]])
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %[[I:.*]]: index, %[[J:.*]]: index, %[[A:.*]]: index, %[[T:.*]]: tensor<1024xf32>)
// CHECK: %[[X:.*]] = "xgpu.pure_call"(%arg0, %arg1, %[[I]], %[[J]]) {callee = @fusion_0__prologue__root}
// CHECK: tensor.insert %[[X]] into %[[T]][%[[A]]]
// CHECK: %[[READY:.*]] = "xgpu.sync_threads"(%[[FULL]])
// CHECK: "xgpu.loop"(%{{.*}}, %{{.*}}, %arg2)
// CHECK: %[[V:.*]] = tensor.extract %[[READY]]
// CHECK: "xgpu.pure_call"(%arg0, %arg1, %{{.*}}, %{{.*}}, %[[V]]) {callee = @fusion_0__epilogue__root}

// CHECK-LABEL: func.func private @fusion_0__prologue__root
// CHECK: math.tanh
// CHECK-LABEL: func.func private @fusion_0__epilogue__root
// CHECK-SAME: %[[HERO:arg[0-9]+]]: f32) -> f32
// CHECK: %[[Y:.*]] = tensor.extract %arg1
// CHECK: arith.addf %[[HERO]], %[[Y]]
func.func @main(%x: tensor<256x512xf32>, %y: tensor<512x256xf32>) -> tensor<512x256xf32> {
  %0 = stablehlo.tanh %x : tensor<256x512xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<256x512xf32>) -> tensor<512x256xf32>
  %2 = stablehlo.add %1, %y : tensor<512x256xf32>
  return %2 : tensor<512x256xf32>
}
