// Boxes of 64 x 64 elements of a bf16 array of 200 x 192 are loaded with a swizzle of 128 bytes by 4 x 3 blocks, and
// written to an array of 256 x 192, whose rows from 200 on are then zero. The second output holds each block's tensor
// map.
module attributes {xgpu.level = "lowered"} {
  llvm.mlir.global internal @tensor_copy__tile() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<8192 x i8>
  llvm.mlir.global internal @tensor_copy__map() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<128 x i8>
  llvm.mlir.global internal @tensor_copy__full() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<1 x i64>
  func.func @tensor_copy(
      %x: !llvm.ptr<1> {llvm.align = 128 : i64, llvm.dereferenceable = 76800 : i64, llvm.noalias, llvm.readonly},
      %y: !llvm.ptr<1> {llvm.align = 128 : i64, llvm.dereferenceable = 98304 : i64, llvm.noalias},
      %maps: !llvm.ptr<1> {llvm.align = 128 : i64, llvm.dereferenceable = 1536 : i64, llvm.noalias})
      attributes {xgpu.kernel, xgpu.emitter = "loop", xgpu.index_bits = 32 : i64, xgpu.inputs = 1 : i64,
                  xgpu.grid = array<i64: 3, 4, 1>, xgpu.block = array<i64: 128, 1, 1>} {
    %tile = llvm.mlir.addressof @tensor_copy__tile : !llvm.ptr<3>
    %staging = llvm.mlir.addressof @tensor_copy__map : !llvm.ptr<3>
    %full = llvm.mlir.addressof @tensor_copy__full : !llvm.ptr<3>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c7 = arith.constant 7 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %c384 = arith.constant 384 : index
    %phase = arith.constant 0 : i32
    %bytes = arith.constant 8192 : i32
    %t = gpu.thread_id x upper_bound 128
    %bx = gpu.block_id x upper_bound 3
    %by = gpu.block_id y upper_bound 4
    %row_of_blocks = arith.muli %by, %c3 : index
    %block = arith.addi %row_of_blocks, %bx : index
    %map_offset = arith.muli %block, %c128 : index
    %map_offset_i32 = arith.index_cast %map_offset : index to i32
    %map = llvm.getelementptr %maps[%map_offset_i32] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %is_first_warp = arith.cmpi ult, %t, %c32 : index
    %is_first = arith.cmpi eq, %t, %c0 : index
    scf.if %is_first_warp {
      "xgpu.encode_tensor_map"(%map, %staging, %x) {element = bf16, shape = array<i64: 200, 192>,
          strides = array<i64: 384>, box = array<i64: 64, 64>, swizzle = "128"}
          : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
    }
    scf.if %is_first {
      "xgpu.mbarrier_init"(%full) {count = 1 : i64} : (!llvm.ptr<3>) -> ()
      "xgpu.fence"() {kind = "mbarrier_init"} : () -> ()
    }
    gpu.barrier
    %first_row = arith.muli %by, %c64 : index
    %first_column = arith.muli %bx, %c64 : index
    scf.if %is_first {
      %row = arith.index_cast %first_row : index to i32
      %column = arith.index_cast %first_column : index to i32
      "xgpu.acquire_tensor_map"(%map) : (!llvm.ptr<1>) -> ()
      "xgpu.mbarrier_expect"(%full, %bytes) : (!llvm.ptr<3>, i32) -> ()
      "xgpu.tensor_load"(%tile, %map, %full, %row, %column)
          : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32) -> ()
    }
    "xgpu.mbarrier_wait"(%full, %phase) : (!llvm.ptr<3>, i32) -> ()
    scf.for %i = %c0 to %c4 step %c1 {
      %turn = arith.muli %i, %c128 : index
      %number = arith.addi %turn, %t : index
      %row = arith.divui %number, %c8 : index
      %chunk = arith.andi %number, %c7 : index
      %key = arith.andi %row, %c7 : index
      %swizzled = arith.xori %chunk, %key : index
      %row_at = arith.muli %row, %c128 : index
      %chunk_at = arith.muli %swizzled, %c16 : index
      %from = arith.addi %row_at, %chunk_at : index
      %from_i32 = arith.index_cast %from : index to i32
      %source = llvm.getelementptr %tile[%from_i32] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %value = "llvm.load"(%source) <{alignment = 16 : i64, ordering = 0 : i64}> : (!llvm.ptr<3>) -> vector<4xi32>
      %out_row = arith.addi %first_row, %row : index
      %out_row_at = arith.muli %out_row, %c384 : index
      %block_at = arith.muli %bx, %c128 : index
      %out_chunk_at = arith.muli %chunk, %c16 : index
      %in_row = arith.addi %block_at, %out_chunk_at : index
      %to = arith.addi %out_row_at, %in_row : index
      %to_i32 = arith.index_cast %to : index to i32
      %target = llvm.getelementptr %y[%to_i32] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      "llvm.store"(%value, %target) <{alignment = 16 : i64, ordering = 0 : i64}> : (vector<4xi32>, !llvm.ptr<1>) -> ()
    }
    return
  }
}
