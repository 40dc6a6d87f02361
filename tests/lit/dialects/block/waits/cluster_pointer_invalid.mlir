// RUN: xgpu-opt %s --split-input-file --verify-diagnostics

func.func @type(%0: !llvm.ptr<3>, %1: i32) {
  // expected-error @+1 {{'xgpu.cluster_pointer' result 'there': expected !llvm.ptr<7>, a pointer to shared memory of the cluster, got !llvm.ptr<3>}}
  %r = "xgpu.cluster_pointer"(%0, %1) : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>
  return
}
