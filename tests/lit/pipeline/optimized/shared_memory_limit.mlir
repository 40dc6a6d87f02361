// RUN: xgpu compile %s --emit llvm --target sm_90a | FileCheck %s
// RUN: not xgpu compile %s --emit llvm --target sm_86 2>&1 | FileCheck %s --check-prefix=SMALL

// A block of an H200 may have 227 KiB of shared memory, one of an RTX 3090 has 99.

// CHECK: xgpu.shared_bytes = 131072 : i64
// SMALL: shared_memory_limit.mlir:9:3: error: kernel k needs 131072 bytes of shared memory for a block, sm_86 has 101376
module attributes {xgpu.level = "emitted"} {
  func.func @k(%x: tensor<64xf32>, %o: tensor<64xf32>) -> tensor<64xf32> attributes {xgpu.kernel, xgpu.emitter = "by hand",
      xgpu.inputs = 1 : i64, xgpu.block = array<i64: 64, 1, 1>, xgpu.grid = array<i64: 1, 1, 1>} {
    %i = gpu.thread_id x upper_bound 64
    %c0 = arith.constant 0 : index
    %t = "xgpu.allocate_shared"() : () -> tensor<32768xf32>
    %v = tensor.extract %x[%i] : tensor<64xf32>
    %u = tensor.insert %v into %t[%i] : tensor<32768xf32>
    %s = "xgpu.sync_threads"(%u) : (tensor<32768xf32>) -> tensor<32768xf32>
    %w = tensor.extract %s[%c0] : tensor<32768xf32>
    %r = tensor.insert %w into %o[%i] : tensor<64xf32>
    return %r : tensor<64xf32>
  }
}
