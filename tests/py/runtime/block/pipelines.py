"""Products as pipelines of blocks: copies run ahead of the products of the stages before."""

from collections.abc import Callable

from tests.py.runtime.block.kernels import LANE, at, constants, kernel, store_sums

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
    registers = '    "xgpu.set_registers"() {count = 232 : i64, more = true} : () -> ()'
    return _write(rows, columns, depth, lambda steps: f"{registers}\n{consumer(steps)}")


def _write(rows: int, columns: int, depth: int, consume: Callable[[int], str]) -> str:
    steps = -(-depth // DEPTH)
    grid = -(-rows // ROWS), -(-columns // COLUMNS), 1
    numbers = {0, 1, 2, 3, 4, 16, 31, 32, 128, 256, STAGES, steps, STAGE, ROWS, DEPTH, grid[0], rows, columns}
    numbers |= {8 * n + c for n in range(9) for c in range(2)}
    body = f"""{constants(*numbers)}
{prologue(grid[0], 256)}
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
    "xgpu.set_registers"() {{count = 40 : i64, more = false}} : () -> ()
{producer(steps)}
  }} else {{
{consume(steps)}
{LANE}
{store_sums([f"vector.extract %sum[{e}] : f32 from {_SUM}" for e in range(COLUMNS // 2)], rows, columns)}
  }}"""
    return kernel(body, ["a", "b", "maps", "out"], grid, (160, 1, 1), SHARED, ", xgpu.inputs = 2 : i64")


def prologue(grid: int, map_bytes: int) -> str:
    """Return what a block starts with: numbers, its place in the result, and where its tensor maps are."""
    return f"""  %true = arith.constant true
  %zeros = arith.constant dense<0.0> : {_SUM}
  %bytes = arith.constant {STAGE} : i32
  %blocks_before = arith.muli %block_y, %c{grid} : i32
  %block = arith.addi %blocks_before, %block_x : i32
  %maps_offset = arith.muli %block, %c{map_bytes} : i32
  %first_row = arith.muli %block_x, %c{ROWS} : i32
  %first_column = arith.muli %block_y, %c{COLUMNS} : i32
{at("map_a", "maps", "%maps_offset", 1)}
{at("map_b", "map_a", "128", 1)}"""


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


LOAD_B = f'"xgpu.tensor_load"(%stage_b, %map_b, %full, %first_column, %k) : {_LOAD}'


def producer(steps: int, load_b: str = LOAD_B) -> str:
    """Return what the warp does that copies the tiles of each step."""
    return f"""    %elected = "xgpu.elect"() : () -> i1
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
        {load_b}
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


RELEASE = '"xgpu.mbarrier_arrive"(%empty) : (!llvm.ptr<3>) -> ()'


def consumer(steps: int, release: str = RELEASE) -> str:
    """Return what the warp group does that multiplies the tiles of each step, and then releases their stage."""
    return f"""    %sum = scf.for %step = %i0 to %i{steps} step %i1 iter_args(%d0 = %zeros) -> ({_SUM}) {{
{stage("parity")}
      "xgpu.mbarrier_wait"(%full, %parity) : {_WAIT}
      "xgpu.warpgroup_fence"() : () -> ()
{products()}
      "xgpu.warpgroup_commit"() : () -> ()
      %done = "xgpu.warpgroup_wait"(%d{DEPTH // 16}) {{pending = 0 : i64}} : ({_SUM}) -> {_SUM}
      {release}
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
