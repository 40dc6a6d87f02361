// The product of two bf16 arrays of 64 x 64, added in f32: both are loaded with a swizzle of 128 bytes, the right one
// as it is, with rows along the columns of the result. The second output holds the tensor maps.
module attributes {xgpu.level = "lowered"} {
  llvm.mlir.global internal @wgmma_tile__a() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<8192 x i8>
  llvm.mlir.global internal @wgmma_tile__b() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<8192 x i8>
  llvm.mlir.global internal @wgmma_tile__map() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<256 x i8>
  llvm.mlir.global internal @wgmma_tile__full() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<1 x i64>
  func.func @wgmma_tile(
      %x: !llvm.ptr<1> {llvm.align = 128 : i64, llvm.dereferenceable = 8192 : i64, llvm.noalias, llvm.readonly},
      %w: !llvm.ptr<1> {llvm.align = 128 : i64, llvm.dereferenceable = 8192 : i64, llvm.noalias, llvm.readonly},
      %y: !llvm.ptr<1> {llvm.align = 128 : i64, llvm.dereferenceable = 16384 : i64, llvm.noalias},
      %maps: !llvm.ptr<1> {llvm.align = 128 : i64, llvm.dereferenceable = 256 : i64, llvm.noalias})
      attributes {xgpu.kernel, xgpu.emitter = "loop", xgpu.index_bits = 32 : i64, xgpu.inputs = 2 : i64,
                  xgpu.grid = array<i64: 1, 1, 1>, xgpu.block = array<i64: 128, 1, 1>} {
    %a = llvm.mlir.addressof @wgmma_tile__a : !llvm.ptr<3>
    %b = llvm.mlir.addressof @wgmma_tile__b : !llvm.ptr<3>
    %a_staging = llvm.mlir.addressof @wgmma_tile__map : !llvm.ptr<3>
    %b_staging = llvm.getelementptr %a_staging[128] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %full = llvm.mlir.addressof @wgmma_tile__full : !llvm.ptr<3>
    %b_map = llvm.getelementptr %maps[128] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %false = arith.constant false
    %true = arith.constant true
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0 : i32
    %bytes = arith.constant 16384 : i32
    %none = arith.constant dense<0.0> : vector<32xf32>
    %t = gpu.thread_id x upper_bound 128
    %is_first_warp = arith.cmpi ult, %t, %c32 : index
    %is_first = arith.cmpi eq, %t, %c0 : index
    scf.if %is_first_warp {
      "xgpu.encode_tensor_map"(%maps, %a_staging, %x) {element = bf16, shape = array<i64: 64, 64>,
          strides = array<i64: 128>, box = array<i64: 64, 64>, swizzle = "128"}
          : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
      "xgpu.encode_tensor_map"(%b_map, %b_staging, %w) {element = bf16, shape = array<i64: 64, 64>,
          strides = array<i64: 128>, box = array<i64: 64, 64>, swizzle = "128"}
          : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()
    }
    scf.if %is_first {
      "xgpu.mbarrier_init"(%full) {count = 1 : i64} : (!llvm.ptr<3>) -> ()
      "xgpu.fence"() {kind = "mbarrier_init"} : () -> ()
    }
    gpu.barrier
    scf.if %is_first {
      "xgpu.acquire_tensor_map"(%maps) : (!llvm.ptr<1>) -> ()
      "xgpu.acquire_tensor_map"(%b_map) : (!llvm.ptr<1>) -> ()
      "xgpu.mbarrier_expect"(%full, %bytes) : (!llvm.ptr<3>, i32) -> ()
      "xgpu.tensor_load"(%a, %maps, %full, %zero, %zero) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32) -> ()
      "xgpu.tensor_load"(%b, %b_map, %full, %zero, %zero) : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32) -> ()
    }
    "xgpu.mbarrier_wait"(%full, %zero) : (!llvm.ptr<3>, i32) -> ()
    "xgpu.warpgroup_fence"() : () -> ()
    // 16 of the contracted dimension in each step: 32 bytes of a row on the left, 16 rows on the right.
    %sum_0 = "xgpu.warpgroup_mma"(%none, %a, %b, %false) {a_element = bf16, b_element = bf16,
        a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false},
        b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}}
        : (vector<32xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<32xf32>
    %a_1 = llvm.getelementptr %a[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %b_1 = llvm.getelementptr %b[2048] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %sum_1 = "xgpu.warpgroup_mma"(%sum_0, %a_1, %b_1, %true) {a_element = bf16, b_element = bf16,
        a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false},
        b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}}
        : (vector<32xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<32xf32>
    %a_2 = llvm.getelementptr %a[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %b_2 = llvm.getelementptr %b[4096] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %sum_2 = "xgpu.warpgroup_mma"(%sum_1, %a_2, %b_2, %true) {a_element = bf16, b_element = bf16,
        a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false},
        b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}}
        : (vector<32xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<32xf32>
    %a_3 = llvm.getelementptr %a[96] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %b_3 = llvm.getelementptr %b[6144] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %sum_3 = "xgpu.warpgroup_mma"(%sum_2, %a_3, %b_3, %true) {a_element = bf16, b_element = bf16,
        a_layout = {group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false},
        b_layout = {group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}}
        : (vector<32xf32>, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> vector<32xf32>
    "xgpu.warpgroup_commit"() : () -> ()
    %sum = "xgpu.warpgroup_wait"(%sum_3) {pending = 0 : i64} : (vector<32xf32>) -> vector<32xf32>
    // Elements 4 j + 2 h and the next are of row 16 warp + lane / 4 + 8 h and columns 8 j + 2 (lane mod 4) on.
    %warp = arith.divui %t, %c32 : index
    %lane = arith.remui %t, %c32 : index
    %warp_row = arith.muli %warp, %c16 : index
    %lane_row = arith.divui %lane, %c4 : index
    %lane_in_row = arith.remui %lane, %c4 : index
    %lane_column = arith.muli %lane_in_row, %c2 : index
    %row = arith.addi %warp_row, %lane_row : index
    %row_at = arith.muli %row, %c64 : index
    %at = arith.addi %row_at, %lane_column : index
    %at_i32 = arith.index_cast %at : index to i32
    %to = llvm.getelementptr %y[%at_i32] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v0 = "vector.extract_strided_slice"(%sum) <{offsets = [0], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to0 = llvm.getelementptr %to[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v0, %to0) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    %v1 = "vector.extract_strided_slice"(%sum) <{offsets = [2], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to1 = llvm.getelementptr %to[512] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v1, %to1) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    %v2 = "vector.extract_strided_slice"(%sum) <{offsets = [4], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to2 = llvm.getelementptr %to[8] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v2, %to2) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    %v3 = "vector.extract_strided_slice"(%sum) <{offsets = [6], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to3 = llvm.getelementptr %to[520] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v3, %to3) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    %v4 = "vector.extract_strided_slice"(%sum) <{offsets = [8], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to4 = llvm.getelementptr %to[16] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v4, %to4) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    %v5 = "vector.extract_strided_slice"(%sum) <{offsets = [10], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to5 = llvm.getelementptr %to[528] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v5, %to5) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    %v6 = "vector.extract_strided_slice"(%sum) <{offsets = [12], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to6 = llvm.getelementptr %to[24] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v6, %to6) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    %v7 = "vector.extract_strided_slice"(%sum) <{offsets = [14], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to7 = llvm.getelementptr %to[536] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v7, %to7) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    %v8 = "vector.extract_strided_slice"(%sum) <{offsets = [16], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to8 = llvm.getelementptr %to[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v8, %to8) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    %v9 = "vector.extract_strided_slice"(%sum) <{offsets = [18], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to9 = llvm.getelementptr %to[544] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v9, %to9) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    %v10 = "vector.extract_strided_slice"(%sum) <{offsets = [20], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to10 = llvm.getelementptr %to[40] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v10, %to10) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    %v11 = "vector.extract_strided_slice"(%sum) <{offsets = [22], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to11 = llvm.getelementptr %to[552] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v11, %to11) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    %v12 = "vector.extract_strided_slice"(%sum) <{offsets = [24], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to12 = llvm.getelementptr %to[48] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v12, %to12) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    %v13 = "vector.extract_strided_slice"(%sum) <{offsets = [26], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to13 = llvm.getelementptr %to[560] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v13, %to13) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    %v14 = "vector.extract_strided_slice"(%sum) <{offsets = [28], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to14 = llvm.getelementptr %to[56] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v14, %to14) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    %v15 = "vector.extract_strided_slice"(%sum) <{offsets = [30], sizes = [2], strides = [1]}>
        : (vector<32xf32>) -> vector<2xf32>
    %to15 = llvm.getelementptr %to[568] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    "llvm.store"(%v15, %to15) <{alignment = 8 : i64, ordering = 0 : i64}> : (vector<2xf32>, !llvm.ptr<1>) -> ()
    return
  }
}
