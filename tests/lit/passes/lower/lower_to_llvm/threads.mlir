// RUN: xgpu-opt %s -p lower-to-llvm | FileCheck %s
// RUN: xgpu-opt %s -p 'lower-to-llvm{target=host}' | FileCheck %s --check-prefix=HOST

// CHECK:       llvm.mlir.global internal @k__tile_0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<8 x f32>
// CHECK-LABEL: llvm.func @k
// CHECK-DAG:     %[[ALL:.*]] = llvm.mlir.constant(-1 : i32) : i32
// CHECK-DAG:     %[[LAST:.*]] = llvm.mlir.constant(31 : i32) : i32
// CHECK:         nvvm.shfl.sync bfly %[[ALL]], %[[X:.*]], %[[BY:.*]], %[[LAST]] : i32 -> i32
// CHECK:         nvvm.barrier
// CHECK:         llvm.store %{{.*}}, %{{.*}} : i32, !llvm.ptr<3>

// The host's driver has functions for it; all memory is in one space.

// HOST-DAG:    llvm.func @xgpu_host_shuffle_xor(i32, i32) -> i32
// HOST-DAG:    llvm.func @xgpu_host_shuffle_idx(i32, i32) -> i32
// HOST-DAG:    llvm.func @xgpu_host_barrier()
// HOST-DAG:    llvm.mlir.global internal @k__tile_0() {addr_space = 0 : i32, alignment = 16 : i64} : !llvm.array<8 x f32>
// HOST-LABEL:  llvm.func @k
// HOST:          %[[Y:.*]] = llvm.call @xgpu_host_shuffle_xor(%{{.*}}, %{{.*}}) : (i32, i32) -> i32
// HOST:          llvm.call @xgpu_host_barrier() : () -> ()
// HOST:          llvm.store %[[Y]], %{{.*}} : i32, !llvm.ptr
llvm.mlir.global internal @k__tile_0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<8 x f32>

func.func @k(%x: i32) attributes {xgpu.kernel} {
  %c4 = arith.constant 4 : i32
  %c32 = arith.constant 32 : i32
  %y, %valid = gpu.shuffle xor %x, %c4, %c32 : i32
  gpu.barrier
  %p = llvm.mlir.addressof @k__tile_0 : !llvm.ptr<3>
  llvm.store %y, %p : i32, !llvm.ptr<3>
  return
}

// CHECK-LABEL: llvm.func internal @from
// CHECK:         nvvm.shfl.sync idx %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : i32 -> i32
// HOST-LABEL:  llvm.func internal @from
// HOST:          llvm.call @xgpu_host_shuffle_idx(%{{.*}}, %{{.*}}) : (i32, i32) -> i32
func.func @from(%x: i32, %lane: i32) -> i32 {
  %c32 = arith.constant 32 : i32
  %y, %valid = gpu.shuffle idx %x, %lane, %c32 : i32
  return %y : i32
}
