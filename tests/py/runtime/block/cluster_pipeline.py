"""A product of two blocks of a cluster: one copies the operand that both take to both, and whole boxes are stored."""

from tests.py.runtime.block.kernels import LANE, at, constants, kernel
from tests.py.runtime.block.pipelines import (
    COLUMNS,
    DEPTH,
    ROWS,
    SHARED,
    STAGE,
    STAGES,
    TILE,
    consumer,
    encode,
    init,
    producer,
    prologue,
)

_SUM = f"vector<{COLUMNS // 2}xf32>"
_PITCH = 2 * COLUMNS


_LOAD_B = """scf.if %is_sender {
          "xgpu.tensor_load_multicast"(%stage_b, %map_b, %full, %c3, %first_column, %k)
              : (!llvm.ptr<3>, !llvm.ptr<1>, !llvm.ptr<3>, i32, i32, i32) -> ()
        }"""
_RELEASE = "\n".join(
    f'"xgpu.mbarrier_arrive_remote"(%empty, %c{rank}) : (!llvm.ptr<3>, i32) -> ()' for rank in range(2)
)


def multicast(rows: int, columns: int, depth: int) -> str:
    """A product of bf16, ``a`` by the transposed ``b``, cut off to bf16; blocks of 64 rows make clusters of two."""
    steps = -(-depth // DEPTH)
    grid = 2 * -(-rows // (2 * ROWS)), -(-columns // COLUMNS), 1
    numbers = {0, 1, 2, 3, 7, 8, 16, 31, 32, 128, STAGES, steps, STAGE, ROWS, DEPTH, grid[0], 512, _PITCH}
    body = f"""{constants(*numbers)}
{prologue(grid[0], 512)}
{at("map_out", "map_a", "256", 1)}
  %rank = "xgpu.cluster_rank"() : () -> i32
  %is_sender = arith.cmpi eq, %rank, %c0 : i32
  %is_producer = arith.cmpi uge, %t, %c128 : i32
  %is_first = arith.cmpi eq, %t, %c128 : i32
  scf.if %is_producer {{
{encode("a", 0, rows, depth)}
{encode("b", 128, columns, depth)}
{encode("out", 256, rows, columns, "none")}
  }}
  scf.if %is_first {{
{init(2 * 128)}
    "xgpu.fence"() {{kind = "mbarrier_init"}} : () -> ()
  }}
  "xgpu.cluster_arrive"() : () -> ()
  "xgpu.cluster_wait"() : () -> ()
  scf.if %is_producer {{
{producer(steps, _LOAD_B)}
  }} else {{
{consumer(steps, _RELEASE)}
{_store()}
  }}
  "xgpu.cluster_arrive"() : () -> ()
  "xgpu.cluster_wait"() : () -> ()"""
    attributes = ", xgpu.inputs = 2 : i64, xgpu.cluster = array<i64: 2, 1, 1>"
    return kernel(body, ["a", "b", "maps", "out"], grid, (160, 1, 1), SHARED + 128, attributes)


def _store() -> str:
    """Return how the warp group puts its sum into shared memory, from where one thread stores the box."""
    lines = [
        f"""    %bits = vector.bitcast %sum : {_SUM} to vector<{COLUMNS // 2}xi32>
    %upper = arith.constant -65536 : i32
{LANE}
    %matrix_row = arith.andi %lane, %c7 : i32
    %matrix = arith.divui %lane, %c8 : i32
    %is_lower = arith.andi %matrix, %c1 : i32
    %lower = arith.muli %is_lower, %c8 : i32
    %right = arith.divui %matrix, %c2 : i32
    %row_in_warp = arith.addi %matrix_row, %lower : i32
    %row = arith.addi %row_in_warp, %warp_row : i32
    %row_byte = arith.muli %row, %c{_PITCH} : i32
    %column_byte = arith.muli %right, %c16 : i32
    %place = arith.addi %row_byte, %column_byte : i32
{at("box", "shared", str(TILE))}
{at("to", "box", "%place")}"""
    ]
    for pair in range(COLUMNS // 4):
        lines.append(f"""    %x{pair} = vector.extract %bits[{2 * pair}] : i32 from vector<{COLUMNS // 2}xi32>
    %y{pair} = vector.extract %bits[{2 * pair + 1}] : i32 from vector<{COLUMNS // 2}xi32>
    %low{pair} = arith.shrui %x{pair}, %c16 : i32
    %high{pair} = arith.andi %y{pair}, %upper : i32
    %pair{pair} = arith.ori %low{pair}, %high{pair} : i32""")
    for j in range(COLUMNS // 16):
        parts = ", ".join(f"%pair{4 * j + m}" for m in range(4))
        lines.append(f"""    %matrices{j} = vector.from_elements {parts} : vector<4xi32>
{at(f"to{j}", "to", str(32 * j))}
    "xgpu.store_matrix"(%matrices{j}, %to{j}) {{transposed = false}} : (vector<4xi32>, !llvm.ptr<3>) -> ()""")
    lines.append("""    "xgpu.fence"() {kind = "async"} : () -> ()
    "xgpu.named_barrier"(%c1) {threads = 128 : i64, wait = true} : (i32) -> ()
    %is_storer = arith.cmpi eq, %t, %c0 : i32
    scf.if %is_storer {
      "xgpu.acquire_tensor_map"(%map_out) : (!llvm.ptr<1>) -> ()
      "xgpu.tensor_store"(%map_out, %box, %first_row, %first_column)
          : (!llvm.ptr<1>, !llvm.ptr<3>, i32, i32) -> ()
      "xgpu.bulk_commit"() : () -> ()
      "xgpu.bulk_wait"() {pending = 0 : i64, until = "read"} : () -> ()
    }""")
    return "\n".join(lines)
