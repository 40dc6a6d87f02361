"""A product as a pipeline of warps: each thread copies chunks ahead (cp.async), warps read and multiply fragments."""

from tests.py.runtime.block.kernels import LANE, at, constants, kernel, store_sums

ROWS, COLUMNS, DEPTH, PITCH = 64, 32, 32, 80
_A = 2 * ROWS * PITCH
_B_STAGE = COLUMNS * PITCH
SHARED = _A + 2 * _B_STAGE
_FRAGMENT = "vector<4xf32>"


def async_copies(rows: int, columns: int, depth: int) -> str:
    """A product of bf16, ``a`` by the transposed ``b``, with two stages; ``depth`` is a multiple of 32."""
    steps = depth // DEPTH
    grid = -(-rows // ROWS), -(-columns // COLUMNS), 1
    numbers = {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 24, 31, 32, 64, PITCH, ROWS * PITCH, _B_STAGE, steps, rows, columns}
    numbers |= {2 * depth, 8 * PITCH, 16 * PITCH, ROWS, COLUMNS, 9, 17, 25}
    types = ", ".join([_FRAGMENT] * 4)
    body = f"""{constants(*numbers)}
  %zeros = arith.constant dense<0.0> : {_FRAGMENT}
  %first_row = arith.muli %block_x, %c{ROWS} : i32
  %first_column = arith.muli %block_y, %c{COLUMNS} : i32
  %chunk = arith.andi %t, %c3 : i32
  %chunk_byte = arith.muli %chunk, %c16 : i32
  %line = arith.divui %t, %c4 : i32
{at("b_tiles", "shared", str(_A))}
{_copy_step("%c0", "first")}
  "xgpu.async_commit"() : () -> ()
{_lanes()}
  %r:4 = "scf.for"(%i0, %i{steps}, %i1, %zeros, %zeros, %zeros, %zeros) ({{
  ^bb0(%step: index, %sum0: {_FRAGMENT}, %sum1: {_FRAGMENT}, %sum2: {_FRAGMENT}, %sum3: {_FRAGMENT}):
    %s = arith.index_cast %step : index to i32
    %following = arith.addi %s, %c1 : i32
    %has_more = arith.cmpi ult, %following, %c{steps} : i32
    scf.if %has_more {{
{_copy_step("%following", "next")}
    }}
    "xgpu.async_commit"() : () -> ()
    "xgpu.async_wait"() {{pending = 1 : i64}} : () -> ()
    gpu.barrier
    %parity = arith.andi %s, %c1 : i32
{_products()}
    gpu.barrier
    "scf.yield"(%sum0_2, %sum1_2, %sum2_2, %sum3_2) : ({types}) -> ()
  }}) : (index, index, index, {types}) -> ({types})
{store_sums([f"vector.extract %r#{e // 4}[{e % 4}] : f32 from {_FRAGMENT}" for e in range(16)], rows, columns)}"""
    for word, number in (("@DEPTH", 2 * depth), ("%rows", f"%c{rows}"), ("%columns", f"%c{columns}")):
        body = body.replace(word, str(number))
    return kernel(body, ["a", "b", "out"], grid, (128, 1, 1), SHARED, ", xgpu.inputs = 2 : i64")


def _copy(name: str, tag: str, line: str, stage: str, limit: str) -> str:
    """Return the copy of a chunk of a row; of one that is not there, nothing is read."""
    it = f"{tag}_{name}"
    base = "shared" if name[0] == "a" else "b_tiles"
    first = "%first_row" if name[0] == "a" else "%first_column"
    return f"""    %{it}_to_row = arith.muli {line}, %c{PITCH} : i32
    %{it}_to_byte = arith.addi %{it}_to_row, %chunk_byte : i32
    %{it}_offset = arith.addi %{it}_to_byte, {stage} : i32
{at(f"{it}_to", base, f"%{it}_offset")}
    %{it}_row = arith.addi {line}, {first} : i32
    %{it}_is_there = arith.cmpi ult, %{it}_row, {limit} : i32
    %{it}_known = arith.select %{it}_is_there, %{it}_row, %c0 : i32
    %{it}_valid = arith.select %{it}_is_there, %c16, %c0 : i32
    %{it}_line = arith.muli %{it}_known, %c@DEPTH : i32
    %{it}_in_line = arith.addi %{it}_line, %{tag}_byte : i32
{at(f"{it}_source", name[0], f"%{it}_in_line", 1)}
    "xgpu.async_copy"(%{it}_to, %{it}_source, %{it}_valid) {{bytes = 16 : i64}}
        : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()"""


def _copy_step(step: str, tag: str) -> str:
    """Return this thread's copies of a step: two chunks of the left operand, one of the right one."""
    return f"""    %{tag}_stage = arith.andi {step}, %c1 : i32
    %{tag}_stage_a = arith.muli %{tag}_stage, %c{ROWS * PITCH} : i32
    %{tag}_stage_b = arith.muli %{tag}_stage, %c{_B_STAGE} : i32
    %{tag}_depth = arith.muli {step}, %c64 : i32
    %{tag}_byte = arith.addi %{tag}_depth, %chunk_byte : i32
    %{tag}_lower = arith.addi %line, %c32 : i32
{_copy("a_upper", tag, "%line", f"%{tag}_stage_a", "%rows")}
{_copy("a_lower", tag, f"%{tag}_lower", f"%{tag}_stage_a", "%rows")}
{_copy("b", tag, "%line", f"%{tag}_stage_b", "%columns")}"""


def _lanes() -> str:
    """Return what a thread needs to know of its lane: where the rows are that it gives the addresses of."""
    return f"""{LANE}
  %a_lane = arith.andi %lane, %c15 : i32
  %a_row = arith.addi %warp_row, %a_lane : i32
  %a_row_byte = arith.muli %a_row, %c{PITCH} : i32
  %a_half = arith.divui %lane, %c16 : i32
  %a_half_byte = arith.muli %a_half, %c16 : i32
  %a_byte = arith.addi %a_row_byte, %a_half_byte : i32
  %b_row = arith.andi %lane, %c7 : i32
  %b_row_byte = arith.muli %b_row, %c{PITCH} : i32
  %b_eight = arith.divui %lane, %c8 : i32
  %b_half = arith.andi %b_eight, %c1 : i32
  %b_half_byte = arith.muli %b_half, %c16 : i32
  %b_byte = arith.addi %b_row_byte, %b_half_byte : i32"""


def _products() -> str:
    lines = [
        f"""    %a_stage = arith.muli %parity, %c{ROWS * PITCH} : i32
    %b_stage = arith.muli %parity, %c{_B_STAGE} : i32
    %a_place = arith.addi %a_stage, %a_byte : i32
    %b_place = arith.addi %b_stage, %b_byte : i32
{at("a_tile", "shared", "%a_place")}
{at("b_tile", "b_tiles", "%b_place")}"""
    ]
    for k in range(2):
        lines.append(f"""{at(f"a_at{k}", "a_tile", str(32 * k))}
    %a{k} = "xgpu.load_matrix"(%a_at{k}) {{transposed = false}} : (!llvm.ptr<3>) -> vector<4xi32>""")
        for j in range(4):
            before = f"%sum{j}" if k == 0 else f"%sum{j}_{k}"
            lines.append(f"""{at(f"b_at{k}_{j}", "b_tile", str(8 * PITCH * j + 32 * k))}
    %b{k}_{j} = "xgpu.load_matrix"(%b_at{k}_{j}) {{transposed = false}} : (!llvm.ptr<3>) -> vector<2xi32>
    %sum{j}_{k + 1} = "xgpu.mma"(%a{k}, %b{k}_{j}, {before}) {{a_element = bf16, b_element = bf16}}
        : (vector<4xi32>, vector<2xi32>, {_FRAGMENT}) -> {_FRAGMENT}""")
    return "\n".join(lines)
