// RUN: xgpu-opt %s -p expand-math | FileCheck %s
// RUN: xgpu-opt %s -p expand-math{target=host} | FileCheck %s --check-prefix=HOST

// A cap of logits: 1 - 2 / (e^2x + 1), by the instructions of the GPU; near 0 it is no more exact than elsewhere.
// CHECK-LABEL: func.func @main
// CHECK:         %[[S:.*]] = arith.mulf %arg0, %{{.*}} : f32
// CHECK-NEXT:    %[[P:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.f{{.*}}"(%[[S]])
// CHECK-NEXT:    %[[D:.*]] = arith.addf %[[P]], %{{.*}} : f32
// CHECK-NEXT:    %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx{{.*}}"(%[[D]])
// CHECK-NEXT:    %[[T:.*]] = math.fma %[[R]], %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:    return %[[T]]
// HOST-NOT:      llvm.call_intrinsic
// HOST:          arith.select
func.func @main(%x: f32) -> f32 {
  %0 = math.tanh %x {xgpu.weight} : f32
  return %0 : f32
}
