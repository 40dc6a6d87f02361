"""The operations of blocks as PTX: what each GPU has of them ptxas takes, and what it lacks is refused in words."""

import re
from pathlib import Path

import pytest

from tests.py.block.pipelined import THREADS, pipelined_product
from tests.py.block.samples import COLUMNS, FRAGMENTS, ROWS, SAMPLES, SUMS, Sample, kernel
from xgpu import ir
from xgpu.device import DEVICES, device
from xgpu.dialects.base import DeclaredOp
from xgpu.dialects.block.copies import COPY_OPS
from xgpu.dialects.block.matrices import MATRIX_OPS, MmaOp
from xgpu.dialects.block.waits import WAIT_OPS
from xgpu.errors import CompilerError
from xgpu.levels import pipeline
from xgpu.passes.framework.manager import run
from xgpu.target.llvm.export import export_llvm_ir
from xgpu.target.nvptx.cubin import assemble, find_ptxas
from xgpu.target.nvptx.ptx import compile_to_ptx
from xgpu.target_machine import GPU_INSTRUCTIONS

needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")

OPS = (*COPY_OPS, *WAIT_OPS, *MATRIX_OPS)
KERNELS = Path(__file__).parent / "kernels"


def compiled(text: str, target: str = "sm_90a") -> str:
    """The PTX of a module at level ``lowered``."""
    gpu = device(target)
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run(module, pipeline.to_llvm(gpu.machine, gpu))
        exported = export_llvm_ir(module)
    return compile_to_ptx(exported, target)


def has(sample: Sample, target: str) -> bool:
    return sample.needs is None or sample.needs in device(target).machine.instructions


def lines(*samples: Sample) -> str:
    """The body of a kernel that uses the samples."""
    return "\n".join((FRAGMENTS, SUMS, *(sample.lines(number) for number, sample in enumerate(samples))))


def test_every_operation_has_a_sample() -> None:
    assert {sample.name for sample in SAMPLES} == {op.OPERATION_NAME for op in OPS}


@needs_ptxas
@pytest.mark.parametrize("target", DEVICES)
def test_ptxas_takes_what_a_gpu_has(target: str) -> None:
    samples = [sample for sample in SAMPLES if has(sample, target)]
    ptx = compiled(kernel(lines(*samples)), target)
    assert [sample.ptx for sample in samples if sample.ptx not in ptx] == []
    assembled = assemble(ptx, target)
    assert assembled.spill_bytes == 0 and assembled.remarks == ()


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90", "sm_100a", "sm_120"])
def test_what_a_gpu_lacks_is_refused(target: str) -> None:
    lacking = [sample for sample in SAMPLES if not has(sample, target)]
    assert lacking
    for sample in lacking:
        needs = re.escape(str(GPU_INSTRUCTIONS[str(sample.needs)]))
        with pytest.raises(CompilerError, match=f"'{sample.name}': expected {needs}, got {target}"):
            compiled(kernel(lines(sample)), target)


@pytest.mark.parametrize(
    ("instruction", "missing"),
    [
        ("cp.async", []),
        ("mma.f8", ["sm_80", "sm_86"]),
        ("bulk", ["sm_80", "sm_86", "sm_89"]),
        ("tensormap.replace", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_120"]),
        ("setmaxnreg", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_120"]),
        ("wgmma", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100a", "sm_120"]),
    ],
)
def test_which_gpus_have_an_instruction(instruction: str, missing: list[str]) -> None:
    assert [name for name in DEVICES if instruction not in device(name).machine.instructions] == missing


def test_cluster_is_required_of_the_launch() -> None:
    text = kernel("").replace(
        "xgpu.grid = array<i64: 1,", "xgpu.cluster = array<i64: 2, 1, 1>, xgpu.grid = array<i64: 2,"
    )
    ptx = compiled(text)
    assert ".explicitcluster" in ptx and ".reqnctapercluster 2, 1, 1" in ptx and ".reqntid 128, 1, 1" in ptx
    with pytest.raises(CompilerError, match=r"attribute 'xgpu.cluster': expected compute capability 9.0 or later, got"):
        compiled(text, "sm_89")


@pytest.mark.parametrize(("element", "version"), [("bf16", "8.3"), ("f8E4M3FN", "8.4")])
def test_version_is_that_of_the_instructions(element: str, version: str) -> None:
    samples = [sample for sample in SAMPLES if f"a_element = {element}," in sample.line and "xgpu.mma" in sample.line]
    assert f".version {version}\n" in compiled(kernel(lines(*samples)), "sm_89")


def test_ptxas_that_would_take_strides_wrongly_refuses() -> None:
    """That of CUDA 12.4 does, and knows versions up to 8.4; from 8.6 on all take them for bytes."""
    samples = [sample for sample in SAMPLES if sample.name == "xgpu.encode_tensor_map"]
    assert ".version 8.6\n" in compiled(kernel(lines(*samples)))


def test_wait_tests_where_it_cannot_sleep() -> None:
    sample = next(sample for sample in SAMPLES if sample.name == "xgpu.mbarrier_wait")
    assert "mbarrier.test_wait.parity" in compiled(kernel(lines(sample)), "sm_89")
    assert "mbarrier.try_wait.parity" in compiled(kernel(lines(sample)), "sm_90")


@pytest.mark.parametrize("op", [op for op in OPS if not op.TRAITS.pure and op is not MmaOp])
def test_accesses_keep_their_side(op: type[DeclaredOp]) -> None:
    """A store before and one after to the same place are both made: what happens between may read the first."""
    sample = next(sample for sample in SAMPLES if sample.name == op.OPERATION_NAME)
    store = "llvm.store %n, %shared : i32, !llvm.ptr<3>"
    ptx = compiled(kernel(f"{store}\n{lines(sample)}\n{store}"))
    assert len(re.findall(r"^\s*st\.shared", ptx, re.MULTILINE)) >= 2


def products(columns: int, element: str = "bf16", fragment: bool = False, count: int = 4) -> str:
    """A loop whose body waits for a group of products of a warp group, from tiles of another place each time."""
    sums = f"vector<{columns // 2}x{'i32' if element == 'si8' else 'f32'}>"
    zero = "0" if element == "si8" else "0.0"
    a_type = "vector<4xi32>" if fragment else "!llvm.ptr<3>"
    layout = COLUMNS if element in ("bf16", "f16") else ROWS
    body = ""
    for number in range(count):
        body += f"""
          %a{number} = llvm.getelementptr %tile[{32 * number}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
          %b{number} = llvm.getelementptr %tile[{16384 + 32 * number}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
          %f{number} = llvm.load %a{number} : !llvm.ptr<3> -> vector<4xi32>"""
    body += '\n"xgpu.warpgroup_fence"() : () -> ()'
    for number in range(count):
        left = f"%{'f' if fragment else 'a'}{number}"
        body += f"""
          %s{number + 1} = "xgpu.warpgroup_mma"(%s{number}, {left}, %b{number}, %true) {{a_element = {element},
              b_element = {element}, a_layout = {ROWS}, b_layout = {layout}}}
              : ({sums}, {a_type}, !llvm.ptr<3>, i1) -> {sums}"""
    return kernel(f"""
        %zero = arith.constant dense<{zero}> : {sums}
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c3 = arith.constant 3 : i32
        %bytes = arith.constant 8192 : i32
        %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s0 = %zero) -> ({sums}) : i32 {{
          %stage = arith.andi %i, %c3 : i32
          %offset = arith.muli %stage, %bytes : i32
          %tile = llvm.getelementptr %shared[%offset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
          {body}
          "xgpu.warpgroup_commit"() : () -> ()
          %done = "xgpu.warpgroup_wait"(%s{count}) {{pending = 0 : i64}} : ({sums}) -> {sums}
          scf.yield %done : {sums}
        }}
        %t = gpu.thread_id x upper_bound 128
        %t32 = arith.index_cast %t : index to i32
        %to = llvm.getelementptr %out[%t32] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, {sums}
        llvm.store %sum, %to : {sums}, !llvm.ptr<1>""")


@needs_ptxas
@pytest.mark.parametrize(
    ("columns", "element", "fragment", "registers"),
    [
        (64, "bf16", False, 32 + 32),
        (128, "f16", False, 64 + 32),
        (256, "bf16", False, 128 + 32),
        (256, "bf16", True, 128 + 48),
        (256, "tf32", False, 128 + 32),
        (128, "f8E4M3FN", True, 64 + 48),
        (64, "si8", True, 32 + 48),
    ],
)
def test_sums_of_products_stay_in_registers(columns: int, element: str, fragment: bool, registers: int) -> None:
    ptx = compiled(products(columns, element, fragment))
    loops = [part for part in re.split(r"\n(?=\$L)", ptx) if "wgmma.mma_async" in part]
    assert [part.count("wgmma.mma_async") for part in loops] == [4]
    assert re.findall(r"^\s*(mov\.b32|ld\.local|st\.local).*", loops[0], re.MULTILINE) == []
    assembled = assemble(ptx)
    assert assembled.spill_bytes == assembled.stack_bytes == 0 and assembled.remarks == ()
    assert assembled.registers <= registers


@needs_ptxas
@pytest.mark.parametrize("path", sorted(KERNELS.glob("*.mlir")), ids=lambda path: path.stem)
def test_kernels_for_a_gpu_are_taken(path: Path) -> None:
    assembled = assemble(compiled(path.read_text()))
    assert assembled.spill_bytes == 0 and assembled.remarks == ()


@needs_ptxas
@pytest.mark.parametrize("columns", [128, 256])
def test_roles_have_the_registers_that_they_ask_for(columns: int) -> None:
    ptx = compiled(pipelined_product(512, 512, 512, columns))
    (loop,) = [part for part in re.split(r"\n(?=\$L)", ptx) if "wgmma.mma_async" in part]
    assert re.findall(r"^\s*mov\.b32.*", loop, re.MULTILINE) == []
    assembled = assemble(ptx)
    assert assembled.spill_bytes == assembled.stack_bytes == 0 and assembled.remarks == ()
    # What a thread has when the kernel starts: its roles then have 40 and 232.
    assert assembled.registers == 65536 // THREADS // 8 * 8


def test_what_warps_execute_together_is_not_copied() -> None:
    """LLVM makes one branch of two on a condition, each with a copy of what is between, if that may be done."""
    ptx = compiled(
        kernel("""%t = gpu.thread_id x upper_bound 128
            %c1 = arith.constant 1 : i32
            %c32 = arith.constant 32 : index
            %is_first_warp = arith.cmpi ult, %t, %c32 : index
            %second = llvm.getelementptr %out[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
            scf.if %is_first_warp { llvm.store %n, %out : i32, !llvm.ptr<1> }
            "xgpu.named_barrier"(%c1) {threads = 128 : i64, wait = true} : (i32) -> ()
            scf.if %is_first_warp {
              llvm.store %n, %second : i32, !llvm.ptr<1>
            } else {
              llvm.store %c1, %second : i32, !llvm.ptr<1>
            }""")
    )
    assert ptx.count("bar.sync") == 1
