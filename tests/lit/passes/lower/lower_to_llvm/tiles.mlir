// RUN: xgpu-opt %s -p lower-to-llvm --split-input-file | FileCheck %s
// RUN: xgpu-opt %s -p 'lower-to-llvm{target=host}' --split-input-file | FileCheck %s --check-prefix=HOST

// On a GPU, tiles that say where they begin are parts of one global; the host has each by itself.

// CHECK:       llvm.mlir.global internal @k__shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<144 x i8>
// CHECK-NOT:   @k__tile
// CHECK-LABEL: llvm.func @k
// CHECK:         %[[S:.*]] = llvm.mlir.addressof @k__shared : !llvm.ptr<3>
// CHECK-NEXT:    llvm.getelementptr %[[S]][64] {xgpu.flags = "inbounds"} : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
// CHECK:         %[[T:.*]] = llvm.mlir.addressof @k__shared : !llvm.ptr<3>
// CHECK-NEXT:    llvm.getelementptr %[[T]][0] {xgpu.flags = "inbounds"} : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
// HOST-DAG:    llvm.mlir.global internal @k__tile_0() {{.*}}xgpu.shared_offset = 64 : i64}
// HOST-DAG:    llvm.mlir.global internal @k__tile_1() {{.*}}xgpu.shared_offset = 0 : i64}
llvm.mlir.global internal @k__tile_0() {addr_space = 3 : i32, alignment = 16 : i64, xgpu.shared_offset = 64 : i64} : !llvm.array<20 x f32>
llvm.mlir.global internal @k__tile_1() {addr_space = 3 : i32, alignment = 16 : i64, xgpu.shared_offset = 0 : i64} : !llvm.array<8 x f32>

func.func @k(%x: f32) attributes {xgpu.kernel} {
  %p = llvm.mlir.addressof @k__tile_0 : !llvm.ptr<3>
  %q = llvm.mlir.addressof @k__tile_1 : !llvm.ptr<3>
  llvm.store %x, %p : f32, !llvm.ptr<3>
  llvm.store %x, %q : f32, !llvm.ptr<3>
  return
}

// -----

// More than a kernel has statically: the launch gives its size.

// CHECK:       llvm.mlir.global external @large__shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
// CHECK-LABEL: llvm.func @large
// CHECK:         llvm.mlir.addressof @large__shared : !llvm.ptr<3>
// HOST:        llvm.mlir.global internal @large__tile_0()
llvm.mlir.global internal @large__tile_0() {addr_space = 3 : i32, alignment = 16 : i64, xgpu.shared_offset = 16 : i64} : !llvm.array<20000 x f32>

func.func @large(%x: f32) attributes {xgpu.kernel, xgpu.shared_bytes = 80016 : i64} {
  %p = llvm.mlir.addressof @large__tile_0 : !llvm.ptr<3>
  llvm.store %x, %p : f32, !llvm.ptr<3>
  return
}
