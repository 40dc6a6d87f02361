// RUN: not xgpu compile %s --emit fusions 2>&1 | FileCheck %s

// What a kernel cannot have is refused, with the reason and the place.
// CHECK: schedule_invalid.mlir:6:3: error: fusion @double of emitter 'loop': vector = 3: expected a power of two up to 64
module attributes {xgpu.level = "fusions"} {
  func.func private @double(%x: tensor<64xf32>) -> tensor<64xf32>
      attributes {xgpu.emitter = "loop", xgpu.schedule = #xgpu.schedule<threads = 128, vector = 3, rows = 1>} {
    %0 = stablehlo.add %x, %x : tensor<64xf32>
    return %0 : tensor<64xf32>
  }
  func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
    %0 = call @double(%x) : (tensor<64xf32>) -> tensor<64xf32>
    return %0 : tensor<64xf32>
  }
}
