"""Kernels as coroutines: how often they suspend, and how large they become."""

import pytest

from xgpu import ir
from xgpu.target.host import linker
from xgpu.target.host.block_driver import RUN_CLUSTERS
from xgpu.target.host.machine_code import HostCode, compile_host
from xgpu.target.llvm.module import optimize, parse_llvm_ir

INDICES = "%tx: i32, %ty: i32, %tz: i32, %bx: i32, %by: i32, %bz: i32"


def butterflies(chains: int, steps: int, between: str = "", sanitize: bool = False) -> HostCode:
    """A kernel of chains of shuffles and additions, written one after the other, whose sum is stored."""
    lines = ["%c1 = llvm.mlir.constant(1 : i32) : i32", "%t = llvm.add %tx, %c1 : i32"]
    total = "%t"
    for chain in range(chains):
        value = f"%v{chain}"
        lines.append(f"{value} = llvm.mul {total if chain == 0 else '%t'}, %tx : i32")
        for step in range(steps):
            lines += [
                f"%s{chain}_{step} = llvm.call @xgpu_host_shuffle_xor({value}, %c1) : (i32, i32) -> i32",
                between.format(chain, step),
                f"%a{chain}_{step} = llvm.add {value}, %s{chain}_{step} : i32",
            ]
            value = f"%a{chain}_{step}"
        lines.append(f"%sum{chain} = llvm.add {total}, {value} : i32")
        total = f"%sum{chain}"
    body = "\n".join(lines)
    text = f"""llvm.func @xgpu_host_shuffle_xor(i32, i32) -> i32
      llvm.func @k(%out: !llvm.ptr, {INDICES}) attributes {{
          xgpu.kernel, xgpu.grid = array<i64: 1, 1, 1>, xgpu.block = array<i64: 32, 1, 1>}} {{
        {body}
        llvm.store {total}, %out : i32, !llvm.ptr
        llvm.return
      }}"""
    return compile_host(ir.Module.parse(text), sanitize=sanitize)


@pytest.mark.parametrize(("chains", "steps", "sites"), [(1, 5, 5), (4, 5, 5), (8, 3, 3), (9, 3, 6)])
def test_independent_shuffles_are_one_step(context: ir.Context, chains: int, steps: int, sites: int) -> None:
    """At most eight values are exchanged in a step."""
    assert [name for name, _ in butterflies(chains, steps).waits] == [f"shuffle {n}" for n in range(1, sites + 1)]


def test_shuffles_stay_on_their_side_of_an_access(context: ir.Context) -> None:
    stores = "%u{0}_{1} = llvm.load %out : !llvm.ptr -> i32"
    assert len(butterflies(4, 2, stores).waits) == 8


def test_checked_code_has_nothing_that_is_never_reached(context: ir.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not optimised, and each of the three parts of a coroutine is a copy of all of it at first."""
    text = butterflies(4, 5, sanitize=True).llvm_ir
    size = len(linker._object_code(text, linker.CHECKED_OPT_LEVEL))
    monkeypatch.setattr(linker, "drop_unreached", lambda *arguments: None)
    assert size < 0.7 * len(linker._object_code(text, linker.CHECKED_OPT_LEVEL))


def test_llvm_works_less_where_threads_wait(context: ir.Context) -> None:
    """Threads that all come to one place are resumed there, those that wait at different places by another driver."""
    plain, waiting = butterflies(1, 0).llvm_ir, butterflies(1, 1).llvm_ir
    assert linker.opt_level_of(plain, is_checked=False) == linker.OPT_LEVEL
    assert linker.opt_level_of(waiting, is_checked=False) == linker.WAITING_OPT_LEVEL < linker.OPT_LEVEL
    checked = butterflies(1, 1, sanitize=True).llvm_ir
    assert linker.opt_level_of(checked, is_checked=True) == linker.CHECKED_OPT_LEVEL
    of_clusters = plain + f"declare void @{RUN_CLUSTERS}()"
    assert linker.opt_level_of(of_clusters, is_checked=False) == linker.WAITING_OPT_LEVEL


def test_code_grows_with_the_number_of_shuffles_only(context: ir.Context) -> None:
    """LLVM alone would compute each sum anew behind each shuffle."""
    sizes = []
    for steps in (40, 80):
        module = parse_llvm_ir(butterflies(1, steps).llvm_ir)
        optimize(module, linker.machine(), linker.OPT_LEVEL)
        sizes.append(sum(1 for function in module.functions for block in function.blocks for _ in block.instructions))
    assert sizes[1] < 2.2 * sizes[0]


def test_the_frame_is_asked_for_without_running_the_kernel(context: ir.Context) -> None:
    """The context has room for a frame for each of the 32 threads, aligned to 64 bytes."""
    code = butterflies(1, 1)
    frames = code.context_bytes - code.shared_end
    assert frames >= 32 * 64 and frames % (32 * 64) == 0
