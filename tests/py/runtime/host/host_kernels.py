"""Hand-written kernels of the LLVM dialect, lowered for the host: text for `HostKernel`."""

from collections.abc import Sequence

DECLARATIONS = """
llvm.func @xgpu_host_barrier()
llvm.func @xgpu_host_shuffle_xor(i32, i32) -> i32
"""
BARRIER = "llvm.call @xgpu_host_barrier() : () -> ()"
_INDICES = "%tx: i32, %ty: i32, %tz: i32, %bx: i32, %by: i32, %bz: i32"
_READ = "llvm.readonly, llvm.noalias"


def kernel(
    body: str,
    inputs: str = "%in",
    outputs: str = "%out",
    grid: Sequence[int] = (1, 1, 1),
    block: Sequence[int] = (32, 1, 1),
    module: str = "",
    attributes: str = "",
) -> str:
    """Return a kernel named k. ``module`` is what stands beside it, ``attributes`` what it says more."""
    parameters = [f"{name}: !llvm.ptr {{{_READ}}}" for name in inputs.split()]
    parameters += [f"{name}: !llvm.ptr" for name in outputs.split()]
    shape = ", ".join(
        f"xgpu.{name} = array<i64: {', '.join(map(str, size))}>" for name, size in (("grid", grid), ("block", block))
    )
    return f"""{DECLARATIONS}
{module}
llvm.func @k({", ".join([*parameters, _INDICES])}) attributes {{xgpu.kernel, {shape}{attributes}}} {{
{body}
  llvm.return
}}
"""


def constants(*values: int) -> str:
    """Return definitions of ``%c0``, ``%c1``... of type i32."""
    return "\n".join(f"  %c{value} = llvm.mlir.constant({value} : i32) : i32" for value in values)


def tile(name: str, elements: int, type_: str = "f32") -> str:
    """Return the declaration of an array in shared memory."""
    return f"llvm.mlir.global internal @{name}() {{addr_space = 0 : i32}} : !llvm.array<{elements} x {type_}>"


def at(result: str, base: str, index: str, type_: str = "f32") -> str:
    """Return the address of an element: ``%result = %base[%index]``."""
    return f"  %{result} = llvm.getelementptr %{base}[%{index}] : (!llvm.ptr, i32) -> !llvm.ptr, {type_}"


def shuffle(result: str, value: str, distance: str) -> str:
    """Return an exchange of an i32 between lanes."""
    return f"  %{result} = llvm.call @xgpu_host_shuffle_xor(%{value}, %{distance}) : (i32, i32) -> i32"


def compare(result: str, predicate: str, left: str, right: str) -> str:
    """Return a comparison of i32."""
    return f'  %{result} = llvm.icmp "{predicate}" %{left}, %{right} : i32'


def reverse(threads: int, grid: int = 1) -> str:
    """Each block reverses its part of the input, through a tile."""
    body = f"""{constants(threads, threads - 1)}
  %tile = llvm.mlir.addressof @tile : !llvm.ptr
  %first = llvm.mul %bx, %c{threads} : i32
  %i = llvm.add %first, %tx : i32
{at("p", "in", "i")}
  %x = llvm.load %p : !llvm.ptr -> f32
{at("mine", "tile", "tx")}
  llvm.store %x, %mine : f32, !llvm.ptr
  {BARRIER}
  %r = llvm.sub %c{threads - 1}, %tx : i32
{at("theirs", "tile", "r")}
  %y = llvm.load %theirs : !llvm.ptr -> f32
{at("q", "out", "i")}
  llvm.store %y, %q : f32, !llvm.ptr"""
    return kernel(body, grid=(grid, 1, 1), block=(threads, 1, 1), module=tile("tile", threads))


def _sum_of_warp(value: str, tag: str) -> tuple[str, str]:
    """Return additions of ``%value`` over a warp, and the name of the sum."""
    lines = []
    for distance in (16, 8, 4, 2, 1):
        lines.append(shuffle(f"{tag}s{distance}", value, f"c{distance}"))
        lines.append(f"  %{tag}{distance} = llvm.add %{value}, %{tag}s{distance} : i32")
        value = f"{tag}{distance}"
    return "\n".join(lines), value


def row_sum(threads: int, columns: int, rows: int) -> str:
    """Sums of i32: each block adds a row, by lanes, then by shuffles, then the warps' sums from a tile by one warp."""
    warps = threads // 32

    first, partial = _sum_of_warp("acc", "a")
    second, total = _sum_of_warp("part", "b")
    body = f"""{constants(*{0, 1, 2, 4, 5, 8, 16, 31, threads, columns, warps})}
  %tile = llvm.mlir.addressof @tile : !llvm.ptr
  %row = llvm.mul %bx, %c{columns} : i32
  %lane = llvm.and %tx, %c31 : i32
  %warp = llvm.lshr %tx, %c5 : i32
{compare("is_first_lane", "eq", "lane", "c0")}
{compare("is_first_warp", "eq", "warp", "c0")}
{compare("has_part", "ult", "lane", f"c{warps}")}
  llvm.br ^head(%tx, %c0 : i32, i32)
^head(%j: i32, %acc: i32):
{compare("more", "ult", "j", f"c{columns}")}
  llvm.cond_br %more, ^body, ^after
^body:
  %i = llvm.add %row, %j : i32
{at("p", "in", "i", "i32")}
  %x = llvm.load %p : !llvm.ptr -> i32
  %sum = llvm.add %acc, %x : i32
  %next = llvm.add %j, %c{threads} : i32
  llvm.br ^head(%next, %sum : i32, i32)
^after:
{first}
  llvm.cond_br %is_first_lane, ^write, ^meet
^write:
{at("mine", "tile", "warp", "i32")}
  llvm.store %{partial}, %mine : i32, !llvm.ptr
  llvm.br ^meet
^meet:
  {BARRIER}
  llvm.cond_br %is_first_warp, ^last, ^done
^last:
  llvm.cond_br %has_part, ^read, ^join(%c0 : i32)
^read:
{at("theirs", "tile", "lane", "i32")}
  %y = llvm.load %theirs : !llvm.ptr -> i32
  llvm.br ^join(%y : i32)
^join(%part: i32):
{second}
  llvm.cond_br %is_first_lane, ^store, ^done
^store:
{at("q", "out", "bx", "i32")}
  llvm.store %{total}, %q : i32, !llvm.ptr
  llvm.br ^done
^done:"""
    return kernel(body, grid=(rows, 1, 1), block=(threads, 1, 1), module=tile("tile", warps, "i32"))
