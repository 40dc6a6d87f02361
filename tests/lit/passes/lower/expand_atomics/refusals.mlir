// RUN: xgpu-opt %s -p 'expand-atomics{capability=80}' --split-input-file --verify-diagnostics

func.func @complex128(%p: !llvm.ptr<1>, %x: i128) {
  // expected-error @+1 {{updates of complex128 elements by several threads need a GPU of compute capability 9.0 or later}}
  "llvm.store"(%x, %p) <{alignment = 16 : i64, ordering = 2 : i64, syncscope = "device"}> : (i128, !llvm.ptr<1>) -> ()
  return
}

// -----

func.func @complex128_computed(%p: !llvm.ptr<1>, %x: i128) {
  // expected-error @+1 {{updates of complex128 elements by several threads need a GPU of compute capability 9.0 or later}}
  %0 = "llvm.cmpxchg"(%p, %x, %x) <{alignment = 16 : i64, failure_ordering = 2 : i64, success_ordering = 2 : i64, syncscope = "device"}> : (!llvm.ptr<1>, i128, i128) -> !llvm.struct<(i128, i1)>
  return
}

// -----

func.func @used(%p: !llvm.ptr<1>, %x: f16) -> f16 {
  // expected-error @below {{'llvm.atomicrmw': expected no use of its result}}
  %0 = "llvm.atomicrmw"(%p, %x) <{alignment = 2 : i64, bin_op = 11 : i64, ordering = 2 : i64, syncscope = "device"}> : (!llvm.ptr<1>, f16) -> f16
  return %0 : f16
}

// -----

func.func @constant(%p: !llvm.ptr<4>, %x: f16) {
  // expected-error @below {{'llvm.atomicrmw': expected a pointer of address space 0, 1 or 3, got one of 4}}
  %0 = "llvm.atomicrmw"(%p, %x) <{alignment = 2 : i64, bin_op = 11 : i64, ordering = 2 : i64, syncscope = "device"}> : (!llvm.ptr<4>, f16) -> f16
  return
}
