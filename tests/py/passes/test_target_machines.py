"""Passes know machines as objects: one that is neither a GPU nor the host goes through them all."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from xgpu import dialects, emit, indexing, ir, passes, target
from xgpu.errors import Unsupported
from xgpu.passes.framework.manager import run
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.passes.llvm.call import call_intrinsic
from xgpu.target_machine import FAST_INSTRUCTIONS, HOST, MACHINES, NVVM, WARP_SIZE, TargetMachine


@dataclass(frozen=True)
class Fake(TargetMachine):
    """A machine whose instructions are all intrinsics, named after what they do."""

    def barrier(self) -> None:
        call_intrinsic("llvm.fake.barrier", ir.IntegerType.get_signless(1), [])

    def warp_barrier(self) -> None:
        call_intrinsic("llvm.fake.warp.barrier", ir.IntegerType.get_signless(1), [])

    def shuffle(self, mode: str, value: ir.Value, by: ir.Value) -> ir.Value:
        return call_intrinsic(f"llvm.fake.shuffle.{mode}", value.type, [value, by])

    def add_to_memory(self, pointer: ir.Value, element: str, registers: Sequence[ir.Value]) -> None:
        call_intrinsic(f"llvm.fake.add.{len(registers)}.{element}", registers[0].type, [pointer, *registers])


FAKE = Fake(
    name="fake",
    # The other way round than on a GPU.
    registers={"gpu.thread_id": "nvvm.read.ptx.sreg.ctaid", "gpu.block_id": "nvvm.read.ptx.sreg.tid"},
    has_address_spaces=True,
    atomic_bits=64,
    atomic_pairs=frozenset(("bf16",)),
    atomic_vector_bytes=8,
    casts=frozenset(("f16",)),
    arithmetic={"bf16": frozenset(("arith.addf",))},
    fast_instructions={name: f"llvm.fake.{name}" for name in FAST_INSTRUCTIONS},
)
PASSES = ",".join(f"{name}{{target=fake}}" for name in ("expand-atomics", "expand-floats", "expand-math"))


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MACHINES, "fake", lambda capability, specific: FAKE)


def lowered(body: str) -> str:
    """A function's body at the llvm level of the machine."""
    parameters = (
        "%p: !llvm.ptr<1>, %v: vector<8xbf16>, %f: vector<2xf32>, %x: f32, %b: bf16, %h: f16, %i: i32, %w: i128"
    )
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func @f({parameters}) {{\n{body}\nreturn }}")
        run(module, parse_pipeline(f"{PASSES},lower-scf,lower-to-llvm{{target=fake}}"))
        return str(module)


@pytest.mark.parametrize(
    ("body", "expected", "absent"),
    [
        ("%t = gpu.thread_id y", ["sreg.ctaid.y"], ["sreg.tid"]),
        ("gpu.barrier", ["llvm.fake.barrier"], ["nvvm", "xgpu_host"]),
        ("%s, %ok = gpu.shuffle idx %i, %i, %i : i32", ["llvm.fake.shuffle.idx"], ["nvvm", "xgpu_host"]),
        ("%y = math.rsqrt %x : f32", ["llvm.fake.rsqrt"], ["nvvm", "llvm.fdiv"]),
        ("%s = arith.addf %b, %b : bf16", ["llvm.fadd %arg4, %arg4 : bf16"], ["llvm.zext"]),
        ("%s = arith.mulf %b, %b : bf16", ["llvm.fmul", ": f32", "llvm.lshr"], ["llvm.fpext"]),
        ("%s = arith.addf %h, %h : f16", ["llvm.fpext", "llvm.fadd", ": f32", "llvm.fptrunc"], ["llvm.lshr"]),
        (
            'llvm.atomicrmw fadd %p, %v syncscope("device") monotonic : !llvm.ptr<1>, vector<8xbf16>',
            ['"llvm.fake.add.2.bf16"', "llvm.getelementptr"],
            ["red.", "syncscope", "llvm.cmpxchg"],
        ),
        (
            'llvm.atomicrmw fadd %p, %f syncscope("device") monotonic : !llvm.ptr<1>, vector<2xf32>',
            ['"llvm.fake.add.2.f32"'],
            ["red.", "llvm.atomicrmw"],
        ),
        (
            'llvm.atomicrmw fadd %p, %h syncscope("device") monotonic : !llvm.ptr<1>, f16',
            ["llvm.cmpxchg"],
            ["red.", "llvm.fake.add", "syncscope"],
        ),
    ],
)
def test_another_machine_goes_through_the_passes(body: str, expected: list[str], absent: list[str]) -> None:
    text = lowered(body)
    assert [each for each in expected if each not in text] == [], text
    assert [each for each in absent if each in text] == [], text


def test_what_the_machine_cannot_exchange_is_refused() -> None:
    update = '%r = llvm.cmpxchg %p, %w, %w syncscope("device") monotonic monotonic : !llvm.ptr<1>, i128'
    with pytest.raises(Unsupported, match="complex128"):
        lowered(update)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"warp_size": 64}, "warps of 32 threads, not 64"),
        ({"fast_instructions": {"exp2": "llvm.exp2"}}, "all fast instructions or none; they differ in .*rsqrt"),
    ],
)
def test_machines_that_passes_could_not_lower_for(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(HOST, **wrong)  # type: ignore[arg-type]


def trees(*packages: object) -> dict[Path, ast.Module]:
    folders = [Path(package.__path__[0]) for package in packages]  # type: ignore[attr-defined]
    return {path: ast.parse(path.read_text()) for folder in folders for path in folder.rglob("*.py")}


def test_passes_compare_no_names() -> None:
    words = {HOST.name, NVVM.name}
    found = [
        f"{path}:{node.lineno}"
        for path, tree in trees(passes).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in words
    ]
    assert found == [], "passes ask the machine for what it has, not for its name"


def test_one_warp_size() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path, tree in trees(passes, dialects, emit, indexing, target).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value == WARP_SIZE
        if any(isinstance(name, ast.Name) and "WARP" in name.id and "BYTES" not in name.id for name in node.targets)
    ]
    assert found == []
