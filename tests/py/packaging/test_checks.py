"""What is proved of kernels holds, and what does not hold is not proved."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import xgpu
from tests.py.packaging.packages import exported
from xgpu import ir
from xgpu.cli.main import main
from xgpu.indexing.interval import Interval
from xgpu.packaging.checks.intervals import interval_of
from xgpu.packaging.checks.proofs import Proof, prove
from xgpu.packaging.checks.report import Checked
from xgpu.runtime.host_program import HostLaunches
from xgpu.structure import walk

PROVED: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "elementwise": (lambda x, b: jax.nn.gelu(x + b), ("bf16[512,1024]", "bf16[1024]")),
    "reversed": (lambda x: x.T[::-1], ("f32[33,7]",)),
    "gather": (lambda x, i: x[i], ("f32[64,333]", "s32[5]")),
    "slice": (lambda x, i: lax.dynamic_slice(x, (i, i), (5, 5)), ("f32[51,102]", "s32[]")),
    "concatenation": (lambda x, y: jnp.concatenate([x, y * 2]), ("f32[64,33]", "f32[7,33]")),
    "padding": (lambda x: jnp.pad(x, ((1, 2), (3, 4))), ("f32[51,102]",)),
    "window": (lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 3), (1, 1), "SAME"), ("f32[51,102]",)),
    "product": (lambda x, w: x @ w, ("s32[64,333]", "s32[333,50]")),
    "packed": (lambda x: x.astype("int4"), ("f32[7001]",)),
    "scalar": (lambda x: x * 2, ("f32[]",)),
    "update": (lambda x, u, i: lax.dynamic_update_slice(x * 2, u, (i, i)), ("f32[51,102]", "f32[5,7]", "s32[]")),
    "rows": (lambda x: jax.nn.softmax(x, axis=1), ("f32[64,333]",)),
    "columns": (lambda x: x.sum(0), ("f32[130,70]",)),
    "sum": (lambda x: x.sum(), ("f32[7000]",)),
    "transpose": (lambda x: x.T, ("f32[96,70]",)),
    "scan": (lambda x: jnp.cumsum(x), ("f32[700]",)),
    # Each has the blocks of some numbers: what it writes is not under a condition that nothing is known of.
    "a launch of two": (lambda x, y: (x[:50].sum(1), y.sum(1)), ("f32[300,40]", "f32[70,200]")),
    "a launch of two with other threads": (lambda x, y: (x.max(1), y.sum(0)), ("f32[30,4000]", "f32[700,90]")),
}

NEVER_OR_TWICE = ("output 0: some elements are written never, or more than once",)


def proofs(function: Callable[..., Any], *specs: str, **options: Any) -> list[Proof]:
    program = xgpu.compile(function, *specs, options=xgpu.Options(products="all", **options))
    return [prove(kernel.name, kernel.module("emitted"), kernel.aliases) for kernel in program.kernels]


@pytest.mark.parametrize("name", PROVED)
def test_all_is_proved(name: str) -> None:
    function, specs = PROVED[name]
    found = proofs(function, *specs)
    assert found
    assert all(proof.is_complete for proof in found), found


@pytest.mark.parametrize(
    ("predicate", "number", "reasons"),
    [
        ("ult", 5, ()),
        ("slt", 5, ()),
        # Of the other blocks one more is left out, and another one is there twice.
        ("ult", 4, NEVER_OR_TWICE),
        ("ult", 6, NEVER_OR_TWICE),
        # All blocks, and none, are on one side: nothing is said of the other.
        ("ult", 8, ("output 0: some writes are under conditions",)),
        ("ugt", 5, ("output 0: some writes are under conditions",)),
    ],
)
def test_a_write_by_some_blocks(predicate: str, number: int, reasons: tuple[str, ...]) -> None:
    """Blocks before a number write their rows, the others each the row of the next one, the last one that of 5."""
    inserted = "%inserted = tensor.insert %element into %carried[%i, %j] : tensor<8x100xf32>"
    place = "(d0) -> ((d0 - 4) mod 3 + 5), d0 in [0, 7]"
    guarded = f"""%number = arith.constant {number} : index
        %c = arith.cmpi {predicate}, %i, %number : index
        %other = "xgpu.apply_indexing"(%i) {{map = #xgpu.map<{place}>}} : (index) -> index
        %inserted = scf.if %c -> (tensor<8x100xf32>) {{
          {inserted.replace("%inserted", "%new")}
          scf.yield %new : tensor<8x100xf32>
        }} else {{
          {inserted.replace("%inserted", "%new").replace("%i,", "%other,")}
          scf.yield %new : tensor<8x100xf32>
        }}"""
    assert changed(inserted, guarded).written == reasons


def test_an_update_in_place_is_not_proved() -> None:
    (proof,) = proofs(lambda x, i: x.at[i].add(1.0), "f32[64,333]", "s32[5]")
    assert proof == Proof("lambda_fusion_0", (), ("output 0 is an update in place",), ())


KERNEL = """
module attributes {xgpu.level = "emitted"} {
  func.func @kernel(%x: tensor<8x100xf32>, %out: tensor<8x100xf32>) -> tensor<8x100xf32> attributes {
      xgpu.kernel, xgpu.emitter = "loop", xgpu.inputs = 1 : i64,
      xgpu.block = array<i64: 32, 1, 1>, xgpu.grid = array<i64: 8, 1, 1>} {
    %thread = gpu.thread_id x upper_bound 32
    %block = gpu.block_id x upper_bound 8
    %0 = "xgpu.loop"(%thread, %block, %out) ({
    ^bb0(%s: index, %i: index, %j: index, %carried: tensor<8x100xf32>):
      %element = tensor.extract %x[%i, %j] : tensor<8x100xf32>
      %inserted = tensor.insert %element into %carried[%i, %j] : tensor<8x100xf32>
      "xgpu.yield"(%inserted) : (tensor<8x100xf32>) -> ()
    }) {map = #xgpu.map<(d0, d1)[s0] -> (d1, s0 * 32 + d0), d0 in [0, 31], d1 in [0, 7], s0 in [0, 3],
        s0 * 32 + d0 in [0, 99]>} : (index, index, tensor<8x100xf32>) -> tensor<8x100xf32>
    return %0 : tensor<8x100xf32>
  }
}
"""


def proof_of(text: str) -> Proof:
    with ir.make_context():
        return prove("kernel", ir.Module.parse(text), (-1,))


def changed(old: str, new: str) -> Proof:
    assert old in KERNEL
    return proof_of(KERNEL.replace(old, new))


def test_a_kernel_that_is_right() -> None:
    assert proof_of(KERNEL) == Proof("kernel", (), (), ())


@pytest.mark.parametrize(
    ("old", "new", "bounds", "written"),
    [
        # Past the end of a row, which is another row's element in memory.
        ("in [0, 99]", "in [0, 100]", "may be out of bounds", NEVER_OR_TWICE),
        ("in [0, 99]", "in [0, 98]", "", NEVER_OR_TWICE),
        ("-> (d1, s0 * 32 + d0)", "-> (d1, s0 * 31 + d0)", "", NEVER_OR_TWICE),
        ("-> (d1, s0 * 32 + d0)", "-> (d1 - 1, s0 * 32 + d0)", "may be out of bounds", NEVER_OR_TWICE),
        # Twice as many threads as the map has values of.
        ("array<i64: 32, 1, 1>", "array<i64: 32, 2, 1>", "", NEVER_OR_TWICE),
        ("%carried[%i, %j]", "%carried[%i, %s]", "", NEVER_OR_TWICE),
        ("array<i64: 32, 1, 1>", "array<i64: 31, 1, 1>", "", NEVER_OR_TWICE),
    ],
)
def test_a_kernel_that_is_wrong(old: str, new: str, bounds: str, written: tuple[str, ...]) -> None:
    proof = changed(old, new)
    assert bounds in "".join(proof.bounds) and bool(bounds) == bool(proof.bounds)
    assert proof.written == written
    assert proof.races == ("what is not known to be written once may be written by several threads",)


def test_an_output_that_is_read() -> None:
    proof = changed("tensor.extract %x[%i, %j]", "tensor.extract %carried[%i, %j]")
    assert (proof.bounds, proof.written, proof.races) == ((), (), ("an output is read too",))


def test_arrays_that_a_loop_exchanges() -> None:
    loop = """%1:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %0, %b = %x)
        -> (tensor<8x100xf32>, tensor<8x100xf32>) {
      scf.yield %b, %a : tensor<8x100xf32>, tensor<8x100xf32>
    }
    return %1#0"""
    constants = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 4))
    assert "exchanges arrays" in changed("return %0", f"{constants}\n{loop}").written[0]


def test_a_write_under_a_condition() -> None:
    inserted = "%inserted = tensor.insert %element into %carried[%i, %j] : tensor<8x100xf32>"
    for condition, reason in (
        ("%c = arith.cmpf olt, %element, %element : f32", "some writes are under conditions"),
        ('%c = "xgpu.in_domain"(%j) {map = #xgpu.map<(d0) -> (), d0 in [0, 99], d0 in [0, 50]>} : (index) -> i1',
         "some elements are written never, or more than once"),
    ):  # fmt: skip
        guarded = f"""{condition}
        %inserted = scf.if %c -> (tensor<8x100xf32>) {{
          {inserted.replace("%inserted", "%new")}
          scf.yield %new : tensor<8x100xf32>
        }} else {{
          scf.yield %carried : tensor<8x100xf32>
        }}"""
        assert changed(inserted, guarded).written == (f"output 0: {reason}",)


LOADED = """
module attributes {xgpu.level = "emitted"} {
  func.func @kernel(%x: tensor<32xf32>, %at: tensor<1xi1>, %out: tensor<32xf32>) -> tensor<32xf32> attributes {
      xgpu.kernel, xgpu.emitter = "loop", xgpu.inputs = 2 : i64,
      xgpu.block = array<i64: 32, 1, 1>, xgpu.grid = array<i64: 1, 1, 1>} {
    %thread = gpu.thread_id x upper_bound 32
    %c0 = arith.constant 0 : index
    %element = tensor.extract %x[%thread] : tensor<32xf32>
    %read = tensor.extract %at[%c0] : tensor<1xi1>
    %k = arith.index_castui %read : i1 to index
"""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            """%c = "xgpu.in_domain"(%k) {map = #xgpu.map<(d0) -> (), d0 in [0, 1], d0 in [1, 1]>} : (index) -> i1
            %n = scf.if %c -> (tensor<32xf32>) {
              %new = tensor.insert %element into %out[%thread] : tensor<32xf32>
              scf.yield %new : tensor<32xf32>
            } else {
              scf.yield %out : tensor<32xf32>
            }""",
            "output 0: some writes are under conditions",
        ),
        (
            """%n = "xgpu.loop"(%k, %thread, %out) ({
            ^bb0(%s: index, %i: index, %carried: tensor<32xf32>):
              %new = tensor.insert %element into %carried[%i] : tensor<32xf32>
              "xgpu.yield"(%new) : (tensor<32xf32>) -> ()
            }) {map = #xgpu.map<(d0, d1)[s0] -> (d1 + s0), d0 in [1, 1], d1 in [0, 31], s0 in [0, 0]>}
              : (index, index, tensor<32xf32>) -> tensor<32xf32>""",
            "output 0: some writes are under conditions",
        ),
        (
            """%w = tensor.insert %element into %x[%c0] : tensor<32xf32>
            %n = tensor.insert %element into %out[%thread] : tensor<32xf32>""",
            "memory that is no output is written",
        ),
        (
            """%c = "xgpu.in_domain"(%thread) {
              map = #xgpu.map<(d0) -> (), d0 in [0, 31], d0 in [0, 15]>} : (index) -> i1
            %a = scf.if %c -> (tensor<32xf32>) {
              scf.yield %x : tensor<32xf32>
            } else {
              scf.yield %out : tensor<32xf32>
            }
            %n = tensor.insert %element into %a[%thread] : tensor<32xf32>""",
            "it has scf.if that exchanges arrays, of which maps say nothing",
        ),
    ],
    ids=["if a loaded bit is set", "in a loop of a loaded bit", "to an input", "to one of two arrays"],
)
def test_writes_that_depend_on_memory_or_go_elsewhere(code: str, reason: str) -> None:
    proof = proof_of(f"{LOADED}{code}\nreturn %n : tensor<32xf32>\n}}\n}}")
    assert not proof.is_complete
    assert reason in (*proof.bounds, *proof.written, *proof.races)


def test_an_index_from_memory() -> None:
    def indexed(*, clamp: str) -> Proof:
        given = "tensor<8x100xf32>, %out"
        text = KERNEL.replace(given, "tensor<8x100xf32>, %at: tensor<100xi32>, %out").replace(
            "inputs = 1", "inputs = 2"
        )
        read = f"%v = tensor.extract %at[%j] : tensor<100xi32>\n{clamp}\n%k = arith.index_cast %w : i32 to index"
        return proof_of(
            text.replace("%element = tensor.extract %x[%i, %j]", f"{read}\n%element = tensor.extract %x[%i, %k]")
        )

    constants = "%c0 = arith.constant 0 : i32\n%c99 = arith.constant 99 : i32\n"
    clamped = f"{constants}%u = arith.maxsi %v, %c0 : i32\n%w = arith.minsi %u, %c99 : i32"
    assert indexed(clamp=clamped).is_complete
    for clamp in (clamped.replace("maxsi", "minsi"), clamped.replace("constant 99", "constant 100")):
        (reason,) = indexed(clamp=clamp).bounds
        assert reason == "an index of tensor.extract of [8, 100] depends on values known at run time only"


def test_an_operation_that_maps_say_nothing_of() -> None:
    proof = changed("%block = gpu", '%unknown = "xgpu.unheard_of"() : () -> index\n%block = gpu')
    assert proof.bounds == ("it has xgpu.unheard_of, of which maps say nothing",)
    assert not proof.is_complete


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("arith.constant 5 : i32", Interval(5, 5)),
        ("arith.maxsi %x, %c : i32", Interval(7, (1 << 31) - 1)),
        ("arith.minsi %x, %c : i32", Interval(-(1 << 31), 7)),
        ("arith.minui %x, %c : i32", Interval(0, 7)),
        ("arith.minui %c, %c : i32", Interval(7, 7)),
        ("arith.minui %x, %x : i32", Interval(-(1 << 31), (1 << 31) - 1)),
        ("arith.extui %b : i8 to i32", Interval(0, 255)),
        ("arith.extsi %b : i8 to i32", Interval(-128, 127)),
        ("arith.addi %c, %c : i32", Interval(14, 14)),
        # It may wrap.
        ("arith.addi %x, %c : i32", Interval(-(1 << 31), (1 << 31) - 1)),
        ("arith.trunci %x : i32 to i8", Interval(-128, 127)),
        ("arith.select %t, %c, %x : i32", Interval(-(1 << 31), (1 << 31) - 1)),
        ("arith.xori %c, %c : i32", Interval(-(1 << 31), (1 << 31) - 1)),
    ],
)
def test_intervals_of_integers(code: str, expected: Interval) -> None:
    head = "func.func @f(%x: i32, %b: i8, %t: i1) {\n%c = arith.constant 7 : i32\n"
    with ir.make_context():
        module = ir.Module.parse(f"{head}%r = {code}\nreturn\n}}")
        op = walk(module.operation, code.split()[0])[-1]
        assert interval_of(op.results[0]) == expected


def test_intervals_of_a_long_chain_are_found_once_each() -> None:
    """Each value is read twice: without memory that were 2^200 visits."""
    lines = [f"%v{n + 1} = arith.maxsi %v{n}, %v{n} : i32" for n in range(200)]
    text = "\n".join(["func.func @f(%v0: i32) {", *lines, "return", "}"])
    with ir.make_context():
        module = ir.Module.parse(text)
        op = walk(module.operation, "arith.maxsi")[-1]
        assert interval_of(op.results[0]) == Interval(-(1 << 31), (1 << 31) - 1)


def test_the_export_says_what_was_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = Path(__file__).resolve().parents[3] / "examples" / "bias_relu.py"
    assert main(["export", f"{source}:bias_relu", "-o", str(tmp_path), "--check", "--no-host"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "checked, at level 'emitted':",
        "  bias_relu_fusion_0 (sm_90a): proved: accesses are in bounds; every element of each output is written once; "
        "threads do not race; shared memory is written before it is read",
    ]
    assert re.search(r'"not_proved": \{\s*"bounds": \[\]', (tmp_path / "manifest.json").read_text())


def test_reasons_are_said_once() -> None:
    incomplete = Proof("kernel", ("one",), ("two", "one"), ())
    assert str(Checked("sm_80", (incomplete,), True)).splitlines() == [
        "  kernel (sm_80): proved: threads do not race; shared memory is written before it is read",
        "    not proved: accesses are in bounds; every element of each output is written once: one",
        "    not proved: every element of each output is written once: two",
        "    ran on random arguments with every access checked: no fault",
    ]


def test_what_is_not_proved_runs_with_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[bool] = []

    class Noting(HostLaunches):
        def __init__(self, sanitize: bool = False):
            ran.append(sanitize)
            super().__init__(sanitize)

    monkeypatch.setattr("xgpu.packaging.checks.running.HostLaunches", Noting)
    exported(
        lambda x, i: x.at[i].add(1), "f32[130,70]", "s32[5]", to=tmp_path / "ups", name="ups", check=True, host=False
    )
    exported(lambda x: x * 2, "f32[130,70]", to=tmp_path / "twice", name="twice", check=True, host=False)
    assert ran == [True]
