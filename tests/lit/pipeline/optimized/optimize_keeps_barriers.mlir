// RUN: xgpu compile %s --emit lowered | FileCheck %s

// Equal barriers, shuffles and atomic updates are not merged, not moved out of loops, and not removed; only a barrier
// right after another one is.

// CHECK-LABEL: func.func @k
// CHECK:         llvm.store
// CHECK-NEXT:    gpu.barrier
// CHECK:         %[[A:.*]] = llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK:         gpu.shuffle xor
// CHECK:         scf.for
// CHECK-NEXT:      gpu.barrier
// CHECK-NEXT:      %[[P:.*]] = llvm.getelementptr
// CHECK-NEXT:      llvm.atomicrmw fadd %[[P]]
// CHECK-NEXT:      llvm.atomicrmw fadd %[[P]]
// CHECK-NEXT:    }
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    llvm.store
// CHECK-NEXT:    gpu.barrier
// CHECK-NEXT:    %[[B:.*]] = llvm.load %{{.*}} : !llvm.ptr<3> -> f32
module attributes {xgpu.level = "emitted"} {
  func.func @k(%x: tensor<64xf32>, %o: tensor<64xf32>, %p: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {xgpu.kernel, xgpu.emitter = "by hand",
      xgpu.inputs = 1 : i64, xgpu.block = array<i64: 64, 1, 1>, xgpu.grid = array<i64: 1, 1, 1>} {
    %i = gpu.thread_id x upper_bound 64
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c99 = arith.constant 99 : index
    %v = tensor.extract %x[%i] : tensor<64xf32>
    %t0 = "xgpu.allocate_shared"() : () -> tensor<64xf32>
    %t1 = tensor.insert %v into %t0[%i] : tensor<64xf32>
    %t2 = "xgpu.sync_threads"(%t1) : (tensor<64xf32>) -> tensor<64xf32>
    %a = tensor.extract %t2[%c0] : tensor<64xf32>
    %s = "xgpu.shuffle_reduce"(%a) {combiner = @add, distance = 1 : i64} : (f32) -> f32
    %r:2 = scf.for %k = %c0 to %c99 step %c1 iter_args(%u = %o, %t = %t2) -> (tensor<64xf32>, tensor<64xf32>) {
      %synced = "xgpu.sync_threads"(%t) : (tensor<64xf32>) -> tensor<64xf32>
      %u1 = "xgpu.atomic_rmw"(%u, %i) ({
      ^bb0(%old: f32):
        %new = arith.addf %old, %s : f32
        "xgpu.yield"(%new) : (f32) -> ()
      }) : (tensor<64xf32>, index) -> tensor<64xf32>
      %u2 = "xgpu.atomic_rmw"(%u1, %i) ({
      ^bb0(%old: f32):
        %new = arith.addf %old, %s : f32
        "xgpu.yield"(%new) : (f32) -> ()
      }) : (tensor<64xf32>, index) -> tensor<64xf32>
      scf.yield %u2, %synced : tensor<64xf32>, tensor<64xf32>
    }
    %t3 = "xgpu.sync_threads"(%r#1) : (tensor<64xf32>) -> tensor<64xf32>
    %t4 = "xgpu.sync_threads"(%t3) : (tensor<64xf32>) -> tensor<64xf32>
    %t5 = tensor.insert %s into %t4[%c0] : tensor<64xf32>
    %t6 = "xgpu.sync_threads"(%t5) : (tensor<64xf32>) -> tensor<64xf32>
    %b = tensor.extract %t6[%c0] : tensor<64xf32>
    %w = tensor.insert %b into %p[%i] : tensor<64xf32>
    return %r#0, %w : tensor<64xf32>, tensor<64xf32>
  }
  func.func private @add(%x: f32, %y: f32) -> f32 {
    %0 = arith.addf %x, %y : f32
    return %0 : f32
  }
}
