// RUN: xgpu-opt %s -p lower-to-llvm | FileCheck %s
// RUN: xgpu-opt %s -p 'lower-to-llvm{target=host}' | FileCheck %s --check-prefix=HOST

// CHECK-LABEL: llvm.func @k
// CHECK:         %[[ALL:.*]] = llvm.mlir.constant(-1 : i32) : i32
// CHECK:         nvvm.bar.warp.sync %[[ALL]]
// HOST:        llvm.func @xgpu_host_warp_barrier()
// HOST-LABEL:  llvm.func @k
// HOST:          llvm.call @xgpu_host_warp_barrier() : () -> ()
func.func @k() attributes {xgpu.kernel} {
  "xgpu.sync_warp"() : () -> ()
  return
}
