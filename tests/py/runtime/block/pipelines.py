"""Products as pipelines of blocks: copies run ahead of the products of the stages before."""

from collections.abc import Callable

from tests.py.runtime.block.kernels import at, constants, kernel

STAGES, ROWS, COLUMNS, DEPTH = 3, 64, 64, 64
TILE = ROWS * DEPTH * 2
STAGE = 2 * TILE
BARRIERS = STAGES * STAGE
_STAGING = BARRIERS + 128
SHARED = _STAGING + 256
_LAYOUT = "{group = 1024 : i64, panel = 0 : i64, swizzle = 128 : i64, transposed = false}"
_SUM = f"vector<{COLUMNS // 2}xf32>"
_LOAD = "(!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32) -> ()"
_WAIT = "(!llvm.ptr<3>, i32) -> ()"


def overlapping(rows: int, columns: int, depth: int) -> str:
    """As `warp_roles`, but the products of a step are waited for, and its stage released, during those of the next."""
    return _write(rows, columns, depth, _overlapping_consumer)


def warp_roles(rows: int, columns: int, depth: int) -> str:
    """A product of bf16, ``a`` by the transposed ``b``: one warp copies boxes (TMA), a warp group multiplies them."""
    return _write(rows, columns, depth, _consumer)


def _write(rows: int, columns: int, depth: int, consumer: Callable[[int], str]) -> str:
    steps = -(-depth // DEPTH)
    grid = -(-rows // ROWS), -(-columns // COLUMNS), 1
    numbers = {0, 1, 2, 3, 4, 16, 31, 32, 128, 256, STAGES, steps, STAGE, ROWS, DEPTH, grid[0], rows, columns}
    numbers |= {8 * n + c for n in range(9) for c in range(2)}
    body = f"""{constants(*numbers)}
  %true = arith.constant true
  %zeros = arith.constant dense<0.0> : {_SUM}
  %bytes = arith.constant {STAGE} : i32
  %blocks_before = arith.muli %block_y, %c{grid[0]} : i32
  %block = arith.addi %blocks_before, %block_x : i32
  %maps_offset = arith.muli %block, %c256 : i32
  %first_row = arith.muli %block_x, %c{ROWS} : i32
  %first_column = arith.muli %block_y, %c{COLUMNS} : i32
{at("map_a", "maps", "%maps_offset", 1)}
{at("map_b", "map_a", "128", 1)}
  %is_producer = arith.cmpi uge, %t, %c128 : i32
  %is_first = arith.cmpi eq, %t, %c128 : i32
  scf.if %is_producer {{
{encode("a", 0, rows, depth)}
{encode("b", 128, columns, depth)}
  }}
  scf.if %is_first {{
{init(128)}
    "xgpu.fence"() {{kind = "mbarrier_init"}} : () -> ()
  }}
  gpu.barrier
  scf.if %is_producer {{
{_producer(steps)}
  }} else {{
{consumer(steps)}
{_store(rows, columns)}
  }}"""
    return kernel(body, ["a", "b", "maps", "out"], grid, (160, 1, 1), SHARED, ", xgpu.inputs = 2 : i64")


def stage(parity: str) -> str:
    """Return the addresses of a step's stage and its mbarriers, and the parity of the lap that the step is in."""
    return f"""    %s = arith.index_cast %step : index to i32
    %stage = arith.remui %s, %c{STAGES} : i32
    %lap = arith.divui %s, %c{STAGES} : i32
    %{parity} = arith.andi %lap, %c1 : i32
    %barrier_offset = arith.muli %stage, %c8 : i32
{at("fulls", "shared", str(BARRIERS))}
{at("empties", "shared", str(BARRIERS + 8 * STAGES))}
{at("full", "fulls", "%barrier_offset")}
{at("empty", "empties", "%barrier_offset")}
    %stage_offset = arith.muli %stage, %c{STAGE} : i32
{at("stage_a", "shared", "%stage_offset")}
{at("stage_b", "stage_a", str(TILE))}"""


def encode(name: str, offset: int, rows: int, columns: int, swizzle: str = "128") -> str:
    """Return how a warp makes the tensor map of an array of bf16."""
    return f"""{at(f"staging_{name}", "shared", str(_STAGING + offset))}
  "xgpu.encode_tensor_map"(%map_{name}, %staging_{name}, %{name}) {{element = bf16,
      shape = array<i64: {rows}, {columns}>, strides = array<i64: {2 * columns}>,
      box = array<i64: {ROWS}, {DEPTH}>, swizzle = "{swizzle}"}} : (!llvm.ptr<1>, !llvm.ptr<3>, !llvm.ptr<1>) -> ()"""


def init(arrivals: int) -> str:
    """Return how a thread makes the mbarriers: so many consumers arrive at those that say that a stage is empty."""
    return "\n".join(
        f"""{at(f"init{n}", "shared", str(BARRIERS + 8 * n))}
    "xgpu.mbarrier_init"(%init{n}) {{count = {1 if n < STAGES else arrivals} : i64}} : (!llvm.ptr<3>) -> ()"""
        for n in range(2 * STAGES)
    )


def _producer(steps: int) -> str:
    return f"""    "xgpu.set_registers"() {{count = 40 : i64, more = false}} : () -> ()
    %elected = "xgpu.elect"() : () -> i1
    scf.if %elected {{
      "xgpu.acquire_tensor_map"(%map_a) : (!llvm.ptr<1>) -> ()
      "xgpu.acquire_tensor_map"(%map_b) : (!llvm.ptr<1>) -> ()
      scf.for %step = %i0 to %i{steps} step %i1 {{
{stage("lap_parity")}
        %parity = arith.xori %lap_parity, %c1 : i32
        "xgpu.mbarrier_wait"(%empty, %parity) : {_WAIT}
        "xgpu.mbarrier_expect"(%full, %bytes) : {_WAIT}
        %k = arith.muli %s, %c{DEPTH} : i32
        "xgpu.tensor_load"(%stage_a, %map_a, %full, %first_row, %k) : {_LOAD}
        "xgpu.tensor_load"(%stage_b, %map_b, %full, %first_column, %k) : {_LOAD}
      }}
    }}"""


def products() -> str:
    """Return the products of a stage, from ``%d0`` on."""
    return "\n".join(
        f"""{at(f"a{k}", "stage_a", str(32 * k))}
{at(f"b{k}", "stage_b", str(32 * k))}
      %d{k + 1} = "xgpu.warpgroup_mma"(%d{k}, %a{k}, %b{k}, %true) {{a_element = bf16, b_element = bf16,
          a_layout = {_LAYOUT}, b_layout = {_LAYOUT}}} : ({_SUM}, !llvm.ptr<3>, !llvm.ptr<3>, i1) -> {_SUM}"""
        for k in range(DEPTH // 16)
    )


def _consumer(steps: int) -> str:
    return f"""    "xgpu.set_registers"() {{count = 232 : i64, more = true}} : () -> ()
    %sum = scf.for %step = %i0 to %i{steps} step %i1 iter_args(%d0 = %zeros) -> ({_SUM}) {{
{stage("parity")}
      "xgpu.mbarrier_wait"(%full, %parity) : {_WAIT}
      "xgpu.warpgroup_fence"() : () -> ()
{products()}
      "xgpu.warpgroup_commit"() : () -> ()
      %done = "xgpu.warpgroup_wait"(%d{DEPTH // 16}) {{pending = 0 : i64}} : ({_SUM}) -> {_SUM}
      "xgpu.mbarrier_arrive"(%empty) : (!llvm.ptr<3>) -> ()
      scf.yield %done : {_SUM}
    }}"""


def _overlapping_consumer(steps: int) -> str:
    return f"""    %last = scf.for %step = %i0 to %i{steps} step %i1 iter_args(%d0 = %zeros) -> ({_SUM}) {{
{stage("parity")}
      "xgpu.mbarrier_wait"(%full, %parity) : {_WAIT}
      "xgpu.warpgroup_fence"() : () -> ()
{products()}
      "xgpu.warpgroup_commit"() : () -> ()
      %started = "xgpu.warpgroup_wait"(%d{DEPTH // 16}) {{pending = 1 : i64}} : ({_SUM}) -> {_SUM}
      %is_later = arith.cmpi ugt, %s, %c0 : i32
      scf.if %is_later {{
        %before = arith.subi %s, %c1 : i32
        %stage_before = arith.remui %before, %c{STAGES} : i32
        %offset_before = arith.muli %stage_before, %c8 : i32
{at("empty_before", "empties", "%offset_before")}
        "xgpu.mbarrier_arrive"(%empty_before) : (!llvm.ptr<3>) -> ()
      }}
      scf.yield %started : {_SUM}
    }}
    %sum = "xgpu.warpgroup_wait"(%last) {{pending = 0 : i64}} : ({_SUM}) -> {_SUM}"""


def _store(rows: int, columns: int) -> str:
    """Return the stores of a thread's elements of the sum that are in bounds."""
    stores = "\n".join(
        f"""    %e{e} = vector.extract %sum[{e}] : f32 from {_SUM}
    %row{e} = arith.addi %row_first, %c{e // 2 % 2 * 8} : i32
    %column{e} = arith.addi %column_first, %c{e // 4 * 8 + e % 2} : i32
    %row_ok{e} = arith.cmpi ult, %row{e}, %c{rows} : i32
    %column_ok{e} = arith.cmpi ult, %column{e}, %c{columns} : i32
    %ok{e} = arith.andi %row_ok{e}, %column_ok{e} : i1
    scf.if %ok{e} {{
      %line{e} = arith.muli %row{e}, %c{columns} : i32
      %place{e} = arith.addi %line{e}, %column{e} : i32
      %to{e} = llvm.getelementptr %out[%place{e}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %e{e}, %to{e} : f32, !llvm.ptr<1>
    }}"""
        for e in range(COLUMNS // 2)
    )
    return f"""    %warp = arith.divui %t, %c32 : i32
    %lane = arith.andi %t, %c31 : i32
    %warp_row = arith.muli %warp, %c16 : i32
    %lane_row = arith.divui %lane, %c4 : i32
    %lane_pair = arith.andi %lane, %c3 : i32
    %lane_column = arith.muli %lane_pair, %c2 : i32
    %row_in_block = arith.addi %warp_row, %lane_row : i32
    %row_first = arith.addi %row_in_block, %first_row : i32
    %column_first = arith.addi %lane_column, %first_column : i32
{stores}"""
