// Operations of blocks for the host: calls of its runtime. Vectors go through memory that it tells the address of; what
// may have to wait returns a number, which a pause takes.

// RUN: xgpu-opt %s -p 'lower-to-llvm{target=host}' | FileCheck %s

// CHECK-LABEL: llvm.func internal @copies(
// CHECK:         %[[VALID:.*]] = llvm.sext %arg2 : i32 to i64
// CHECK:         %[[BYTES:.*]] = llvm.mlir.constant(16 : i64) : i64
// CHECK:         llvm.call @xgpu_host_block_async_copy(%arg0, %arg1, %[[VALID]], %[[BYTES]])
// CHECK:         llvm.call @xgpu_host_block_async_commit()
// CHECK:         %[[TWO:.*]] = llvm.mlir.constant(2 : i64) : i64
// CHECK:         llvm.call @xgpu_host_block_async_wait(%[[TWO]])
// CHECK:         %[[REGISTERS:.*]] = llvm.call @xgpu_host_block_registers()
// CHECK:         %[[FORM:.*]] = llvm.mlir.constant(dense<[2, 2, 0, 64, 40, 64, 0, 0, 0, 128, 0, 0, 0, 0, 8, 32, 0, 0, 0]> : vector<19xi64>)
// CHECK:         %[[AT:.*]] = llvm.getelementptr %[[REGISTERS]][528]
// CHECK:         llvm.store %[[FORM]], %[[AT]]
// CHECK:         %[[ENCODED:.*]] = llvm.call @xgpu_host_block_encode_tensor_map(%arg4, %arg0, %arg1)
// CHECK:         llvm.call @xgpu_host_pause(%[[ENCODED]])
// CHECK:         %[[OWN:.*]] = llvm.call @xgpu_host_block_registers()
// CHECK:         %[[FIRST:.*]] = llvm.getelementptr %[[OWN]][528]
// CHECK-NEXT:    llvm.store %arg2, %[[FIRST]]
// CHECK-NEXT:    %[[SECOND:.*]] = llvm.getelementptr %[[OWN]][532]
// CHECK-NEXT:    llvm.store %arg2, %[[SECOND]]
// CHECK-NEXT:    %[[RANK:.*]] = llvm.mlir.constant(2 : i64) : i64
// CHECK-NEXT:    llvm.call @xgpu_host_block_tensor_load(%arg0, %arg4, %arg3, %[[RANK]])
// CHECK:         llvm.call @xgpu_host_block_tensor_load_multicast(%arg0, %arg4, %arg3,
// CHECK:         llvm.call @xgpu_host_block_tensor_store(%arg4, %arg0,
// CHECK:         %[[PENDING:.*]] = llvm.mlir.constant(0 : i64) : i64
// CHECK:         %[[DONE:.*]] = llvm.mlir.constant(1 : i64) : i64
// CHECK:         llvm.call @xgpu_host_block_bulk_wait(%[[PENDING]], %[[DONE]])
func.func @copies(%to: !llvm.ptr<3>, %source: !llvm.ptr<1>, %valid: i32, %barrier: !llvm.ptr<3>, %map: !llvm.ptr<1>) {
  "xgpu.async_copy"(%to, %source, %valid) {bytes = 16 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  "xgpu.async_commit"() : () -> ()
  "xgpu.async_wait"() {pending = 2 : i64} : () -> ()
  "xgpu.encode_tensor_map"(%map, %to, %source) {element = bf16, shape = array<i64: 40, 64>, strides = array<i64: 128>, box = array<i64: 8, 32>, swizzle = "64"} : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
  "xgpu.tensor_load"(%to, %map, %barrier, %valid, %valid) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32) -> ()
  "xgpu.tensor_load_multicast"(%to, %map, %barrier, %valid, %valid) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32) -> ()
  "xgpu.tensor_store"(%map, %to, %valid, %valid, %valid) : (!llvm.ptr<1>, !llvm.ptr<3>, i32, i32, i32) -> ()
  "xgpu.bulk_wait"() {pending = 0 : i64, until = "done"} : () -> ()
  return
}

// CHECK-LABEL: llvm.func internal @waits(
// CHECK:         %[[COUNT:.*]] = llvm.mlir.constant(3 : i64) : i64
// CHECK:         llvm.call @xgpu_host_block_mbarrier_init(%arg0, %[[COUNT]])
// CHECK:         %[[KIND:.*]] = llvm.mlir.constant(1 : i64) : i64
// CHECK:         llvm.call @xgpu_host_block_fence(%[[KIND]])
// CHECK:         %[[PARITY:.*]] = llvm.sext %arg1 : i32 to i64
// CHECK:         %[[WAITS:.*]] = llvm.call @xgpu_host_block_mbarrier_wait(%arg0, %[[PARITY]])
// CHECK-NEXT:    llvm.call @xgpu_host_pause(%[[WAITS]])
// CHECK:         %[[THREADS:.*]] = llvm.mlir.constant(64 : i64) : i64
// CHECK:         %[[STAYS:.*]] = llvm.mlir.constant(0 : i64) : i64
// CHECK:         llvm.call @xgpu_host_block_named_barrier(%{{.*}}, %[[THREADS]], %[[STAYS]])
// CHECK:         %[[MET:.*]] = llvm.call @xgpu_host_block_elect()
// CHECK-NEXT:    llvm.call @xgpu_host_pause(%[[MET]])
// CHECK-NEXT:    %[[ELECTED:.*]] = llvm.call @xgpu_host_block_is_elected()
// CHECK-NEXT:    llvm.trunc %[[ELECTED]] : i64 to i1
// CHECK-NEXT:    %[[RANK:.*]] = llvm.call @xgpu_host_block_cluster_rank()
// CHECK-NEXT:    llvm.trunc %[[RANK]] : i64 to i32
func.func @waits(%barrier: !llvm.ptr<3>, %parity: i32) -> (i1, i32) {
  "xgpu.mbarrier_init"(%barrier) {count = 3 : i64} : (!llvm.ptr<3>) -> ()
  "xgpu.fence"() {kind = "mbarrier_init"} : () -> ()
  "xgpu.mbarrier_wait"(%barrier, %parity) : (!llvm.ptr<3>, i32) -> ()
  "xgpu.named_barrier"(%parity) {threads = 64 : i64, wait = false} : (i32) -> ()
  %elected = "xgpu.elect"() : () -> i1
  %rank = "xgpu.cluster_rank"() : () -> i32
  return %elected, %rank : i1, i32
}

// CHECK-LABEL: llvm.func internal @products(
// CHECK:         llvm.call @xgpu_host_block_load_matrix(%arg0, %{{.*}}, %{{.*}})
// CHECK:         %[[RESULT:.*]] = llvm.call @xgpu_host_block_lane_result()
// CHECK:         %[[A:.*]] = llvm.load %[[RESULT]] {{.*}}alignment = 4{{.*}}
// CHECK:         %[[LANE:.*]] = llvm.call @xgpu_host_block_lane_operands()
// CHECK:         llvm.store %[[A]],
// CHECK:         llvm.store %arg1,
// CHECK:         llvm.store %arg2,
// CHECK:         %[[PRODUCT:.*]] = llvm.call @xgpu_host_block_mma(
// CHECK-NEXT:    llvm.call @xgpu_host_pause(%[[PRODUCT]])
// CHECK:         %[[OWN:.*]] = llvm.call @xgpu_host_block_registers()
// CHECK:         llvm.store %arg3, %[[OWN]]
// CHECK:         %[[FRAGMENT:.*]] = llvm.getelementptr %[[OWN]][512]
// CHECK:         llvm.store %[[A]], %[[FRAGMENT]]
// CHECK:         %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK:         llvm.mlir.constant(dense<[32, 1, 1, 0, 0, 0, 0, 128, 128, 1024, 16, 0, 4000]> : vector<13xi64>)
// CHECK:         %[[ADDS:.*]] = llvm.zext %arg4 : i1 to i64
// CHECK:         llvm.call @xgpu_host_block_warpgroup_mma(%[[NULL]], %arg0, %[[ADDS]])
// CHECK:         %[[STARTED:.*]] = llvm.load %[[OWN]]
// CHECK:         llvm.call @xgpu_host_block_warpgroup_wait(
// CHECK:         llvm.store %[[STARTED]], %[[AGAIN:.*]] {{.*}}alignment = 4{{.*}}
// CHECK:         llvm.call @xgpu_host_block_warpgroup_result(
// CHECK:         llvm.load %[[AGAIN]]
func.func @products(%row: !llvm.ptr<3>, %b: vector<2xi32>, %c: vector<4xf32>, %d: vector<16xf32>, %true: i1) -> (vector<4xf32>, vector<16xf32>) {
  %a = "xgpu.load_matrix"(%row) {transposed = true} : (!llvm.ptr<3>) -> vector<4xi32>
  %sum = "xgpu.mma"(%a, %b, %c) {a_element = bf16, b_element = bf16} : (vector<4xi32>, vector<2xi32>, vector<4xf32>) -> vector<4xf32>
  %started = "xgpu.warpgroup_mma"(%d, %a, %row, %true) {a_element = bf16, b_element = bf16, a_layout = {group = 0 : i64, panel = 0 : i64, swizzle = 0 : i64, transposed = false}, b_layout = {group = 1024 : i64, panel = 16 : i64, swizzle = 128 : i64, transposed = false}} : (vector<16xf32>, vector<4xi32>, !llvm.ptr<3>, i1) -> vector<16xf32>
  %all = "xgpu.warpgroup_wait"(%started) {pending = 0 : i64} : (vector<16xf32>) -> vector<16xf32>
  return %sum, %all : vector<4xf32>, vector<16xf32>
}
