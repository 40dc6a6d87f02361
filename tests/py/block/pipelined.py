"""A product of bf16 arrays whose blocks have roles: a warp group copies, others multiply, mbarriers between them.

The left array is m x k, the right one k x n, the result m x n of f32. A tile of the result has 128 x ``columns``
elements, a warp group for each 64 rows. Tiles of 64 of the contracted dimension go through a ring of stages.
"""

ROWS = 128
STEP = 64
THREADS = 384
_LEFT_BYTES = ROWS * STEP * 2
_RING = 1024
"""Where the stages begin in shared memory: barriers and the maps' staging are before."""


def pipelined_product(m: int, n: int, k: int, columns: int = 256, stages: int = 4) -> str:
    """Return the kernel at level ``lowered``. Its second output holds two tensor maps for each block."""
    stage_bytes = _LEFT_BYTES + columns * STEP * 2
    blocks = (n // columns) * (m // ROWS)
    return f"""module attributes {{xgpu.level = "lowered"}} {{
  llvm.mlir.global external @product__shared() {{addr_space = 3 : i32, alignment = 1024 : i64}} : !llvm.array<0 x i8>
  func.func @product(
      %x: !llvm.ptr<1> {{llvm.noalias, llvm.readonly, llvm.align = 128 : i64,
          llvm.dereferenceable = {m * k * 2} : i64}},
      %w: !llvm.ptr<1> {{llvm.noalias, llvm.readonly, llvm.align = 128 : i64,
          llvm.dereferenceable = {k * n * 2} : i64}},
      %y: !llvm.ptr<1> {{llvm.align = 128 : i64, llvm.dereferenceable = {m * n * 4} : i64, llvm.noalias}},
      %maps: !llvm.ptr<1> {{llvm.align = 128 : i64, llvm.dereferenceable = {blocks * 256} : i64, llvm.noalias}})
      attributes {{xgpu.kernel, xgpu.emitter = "loop", xgpu.index_bits = 32 : i64, xgpu.inputs = 2 : i64,
                  xgpu.shared_bytes = {_RING + stages * stage_bytes} : i64,
                  xgpu.grid = array<i64: {n // columns}, {m // ROWS}, 1>, xgpu.block = array<i64: {THREADS}, 1, 1>}} {{
    {_constants(n, k, columns, stages, stage_bytes)}
    {_WHERE}
    scf.if %is_first_warp {{
      {_encode("x", m, k, ROWS)}
      {_encode("w", k, n, STEP)}
    }}
    {_BARRIERS}
    gpu.barrier
    %is_producer = arith.cmpi eq, %group, %c0 : i32
    scf.if %is_producer {{
      "xgpu.set_registers"() {{count = 40 : i64, more = false}} : () -> ()
      {_producer(columns)}
    }} else {{
      "xgpu.set_registers"() {{count = 232 : i64, more = true}} : () -> ()
      {_consumer(columns, n)}
    }}
    return
  }}
}}
"""


def _constants(n: int, k: int, columns: int, stages: int, stage_bytes: int) -> str:
    return f"""%shared = llvm.mlir.addressof @product__shared : !llvm.ptr<3>
    %empty = llvm.getelementptr %shared[{8 * stages}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %x_staging = llvm.getelementptr %shared[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %w_staging = llvm.getelementptr %shared[640] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %ring = llvm.getelementptr %shared[{_RING}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %false = arith.constant false
    %true = arith.constant true
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c8 = arith.constant 8 : i32
    %c16 = arith.constant 16 : i32
    %c32 = arith.constant 32 : i32
    %c128 = arith.constant 128 : i32
    %c256 = arith.constant 256 : i32
    %step = arith.constant {STEP} : i32
    %stages = arith.constant {stages} : i32
    %steps = arith.constant {k // STEP} : i32
    %bytes = arith.constant {stage_bytes} : i32
    %half = arith.constant {_LEFT_BYTES // 2} : i32
    %columns = arith.constant {columns} : i32
    %n = arith.constant {n} : i32
    %across = arith.constant {n // columns} : i32"""


def _encode(name: str, rows: int, columns: int, box_rows: int) -> str:
    return f""""xgpu.encode_tensor_map"(%{name}_map, %{name}_staging, %{name}) {{element = bf16,
          shape = array<i64: {rows}, {columns}>, strides = array<i64: {columns * 2}>,
          box = array<i64: {box_rows}, 64>, swizzle = "128"}} : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()"""


_WHERE = """%t_index = gpu.thread_id x upper_bound 384
    %bx_index = gpu.block_id x
    %by_index = gpu.block_id y
    %t = arith.index_cast %t_index : index to i32
    %bx = arith.index_cast %bx_index : index to i32
    %by = arith.index_cast %by_index : index to i32
    %group = arith.divui %t, %c128 : i32
    %warp = arith.divui %t, %c32 : i32
    %block_row = arith.muli %by, %across : i32
    %block = arith.addi %block_row, %bx : i32
    %map_at = arith.muli %block, %c256 : i32
    %x_map = llvm.getelementptr %maps[%map_at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %w_map = llvm.getelementptr %x_map[128] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %first_row = arith.muli %by, %c128 : i32
    %first_column = arith.muli %bx, %columns : i32
    %is_first_warp = arith.cmpi eq, %warp, %c0 : i32
    %is_first = arith.cmpi eq, %t, %c0 : i32"""
"""Where a thread is, and its tile."""

_BARRIERS = """scf.if %is_first {
      scf.for %i = %c0 to %stages step %c1 : i32 {
        %full_i = llvm.getelementptr %shared[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        %empty_i = llvm.getelementptr %empty[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        "xgpu.mbarrier_init"(%full_i) {count = 1 : i64} : (!llvm.ptr<3>) -> ()
        "xgpu.mbarrier_init"(%empty_i) {count = 8 : i64} : (!llvm.ptr<3>) -> ()
      }
      "xgpu.fence"() {kind = "mbarrier_init"} : () -> ()
    }"""
"""A barrier of each stage for those who wait until it is full, and one for who waits until it is empty."""

_STAGE = """%stage = arith.remui %i, %stages : i32
        %turn = arith.divui %i, %stages : i32
        %parity = arith.andi %turn, %c1 : i32
        %full_i = llvm.getelementptr %shared[%stage] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        %empty_i = llvm.getelementptr %empty[%stage] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        %stage_at = arith.muli %stage, %bytes : i32
        %left = llvm.getelementptr %ring[%stage_at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
        %right = llvm.getelementptr %left[16384] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8"""


def _producer(columns: int) -> str:
    """One thread copies: the left tile as one box, the right one as boxes of 64 columns, one panel each."""
    copies = ""
    for panel in range(columns // 64):
        copies += f"""
          %column_{panel} = arith.constant {64 * panel} : i32
          %from_{panel} = arith.addi %first_column, %column_{panel} : i32
          %panel_{panel} = llvm.getelementptr %right[{8192 * panel}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
          "xgpu.tensor_load"(%panel_{panel}, %w_map, %full_i, %k_at, %from_{panel})
              : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32) -> ()"""
    return f"""scf.if %is_first {{
        "xgpu.acquire_tensor_map"(%x_map) : (!llvm.ptr<1>) -> ()
        "xgpu.acquire_tensor_map"(%w_map) : (!llvm.ptr<1>) -> ()
        scf.for %i = %c0 to %steps step %c1 : i32 {{
          {_STAGE}
          // A stage that was never full is as one that was released: phase -1 of its barrier is complete.
          %before = arith.xori %parity, %c1 : i32
          "xgpu.mbarrier_wait"(%empty_i, %before) : (!llvm.ptr<3>, i32) -> ()
          "xgpu.mbarrier_expect"(%full_i, %bytes) : (!llvm.ptr<3>, i32) -> ()
          %k_at = arith.muli %i, %step : i32
          "xgpu.tensor_load"(%left, %x_map, %full_i, %first_row, %k_at)
              : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32) -> (){copies}
        }}
      }}"""


def _consumer(columns: int, n: int) -> str:
    """A warp group multiplies its 64 rows; one group of products is in flight while the next tile is waited for."""
    sums = f"vector<{columns // 2}xf32>"
    products = ""
    for number in range(4):
        products += f"""
          %a_{number} = llvm.getelementptr %own[{32 * number}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
          %b_{number} = llvm.getelementptr %right[{2048 * number}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
          %s{number + 1} = "xgpu.warpgroup_mma"(%s{number}, %a_{number}, %b_{number}, %true) {{a_element = bf16,
              b_element = bf16,
              a_layout = {{group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}},
              b_layout = {{group = 1024 : i64, panel = 8192 : i64, swizzle = 128 : i64, transposed = true}}}}
              : ({sums}, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> {sums}"""
    return f"""%zero = arith.constant dense<0.0> : {sums}
      %consumer = arith.subi %group, %c1 : i32
      %own_at = arith.muli %consumer, %half : i32
      %in_group = arith.remui %t, %c128 : i32
      %lane = arith.remui %t, %c32 : i32
      %is_leader = arith.cmpi eq, %lane, %c0 : i32
      %started = scf.for %i = %c0 to %steps step %c1 iter_args(%s0 = %zero) -> ({sums}) : i32 {{
        {_STAGE}
        %own = llvm.getelementptr %left[%own_at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
        "xgpu.mbarrier_wait"(%full_i, %parity) : (!llvm.ptr<3>, i32) -> ()
        "xgpu.warpgroup_fence"() : () -> (){products}
        "xgpu.warpgroup_commit"() : () -> ()
        %next = "xgpu.warpgroup_wait"(%s4) {{pending = 1 : i64}} : ({sums}) -> {sums}
        // The products before these have read their stage: each of the eight warps says so of its part.
        %is_later = arith.cmpi ne, %i, %c0 : i32
        %releases = arith.andi %is_later, %is_leader : i1
        scf.if %releases {{
          %last = arith.subi %i, %c1 : i32
          %last_stage = arith.remui %last, %stages : i32
          %read = llvm.getelementptr %empty[%last_stage] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          "xgpu.mbarrier_arrive"(%read) : (!llvm.ptr<3>) -> ()
        }}
        scf.yield %next : {sums}
      }}
      %sum = "xgpu.warpgroup_wait"(%started) {{pending = 0 : i64}} : ({sums}) -> {sums}
      {_epilogue(columns, n)}"""


def _epilogue(columns: int, n: int) -> str:
    """A thread stores its sums, two neighbours at a time."""
    sums = f"vector<{columns // 2}xf32>"
    stores = ""
    for pair in range(columns // 4):
        at = 8 * (pair // 2) + (pair % 2) * 8 * n
        stores += f"""
      %v{pair} = "vector.extract_strided_slice"(%sum) <{{offsets = [{2 * pair}], sizes = [2], strides = [1]}}>
          : ({sums}) -> vector<2xf32>
      %to{pair} = llvm.getelementptr %to[{at}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
      llvm.store %v{pair}, %to{pair} : vector<2xf32>, !llvm.ptr<1>"""
    return f"""%group_row = arith.muli %consumer, %step : i32
      %warp_of_group = arith.divui %in_group, %c32 : i32
      %warp_row = arith.muli %warp_of_group, %c16 : i32
      %lane_row = arith.divui %lane, %c4 : i32
      %lane_of_row = arith.remui %lane, %c4 : i32
      %lane_column = arith.muli %lane_of_row, %c2 : i32
      %row_0 = arith.addi %first_row, %group_row : i32
      %row_1 = arith.addi %row_0, %warp_row : i32
      %row = arith.addi %row_1, %lane_row : i32
      %row_at = arith.muli %row, %n : i32
      %column = arith.addi %first_column, %lane_column : i32
      %at = arith.addi %row_at, %column : i32
      %to = llvm.getelementptr %y[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32{stores}"""
