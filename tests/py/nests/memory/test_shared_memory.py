"""Buffers of a block that share memory: the same results, less memory, and no barrier that can be left out."""

from typing import Any

import numpy as np
import pytest

import xgpu
from tests.py.nests.te import compiled
from xgpu.dialects.nests.loops import LaunchOp
from xgpu.errors import InvalidInput, KernelFault, Unsupported
from xgpu.interface.nest_explanation import explain_nests
from xgpu.loop_language.load import print_loops
from xgpu.nests.lifetimes import shared_buffers, shared_bytes
from xgpu.nests.structure import all_launches_of
from xgpu.packaging.checks.proofs import prove

_BARRIER = '"xgpu.barrier"'
_CHAIN = """fn chain(A: f32[3, 1000], out C: f32[3, 1000]) {{ par 3 b {{
  new t: f32[1000] #shared
  new u: f32[1000] {pragma}
  new v: f32[1000] #shared
  new w: s16[1000] #shared
  par 1000 i {{ t[i] = A[b, i] }}
  par 1000 i {{ u[i] = t[999 - i] }}
  par 1000 i {{ v[i] = u[(i + 7) % 1000] * 100.0 }}
  par 1000 i {{ w[i] = s16(v[(i + 100) % 1000]) }}
  par 1000 i {{ C[b, i] = f32(w[(i * 3) % 1000]) }}
}} }}"""


def chain(a: Any) -> Any:
    i = np.arange(1000)
    w = (a[:, ::-1][:, (i + 7) % 1000] * np.float32(100))[:, (i + 100) % 1000].astype(np.int16)
    return w[:, (i * 3) % 1000].astype(np.float32)


def launch_of(program: Any) -> LaunchOp:
    (launch,) = all_launches_of(program.modules["mapped"])
    return launch


def offsets(program: Any) -> list[int | None]:
    return [new.offset for new in shared_buffers(launch_of(program))]


def without_each(program: Any, name: str = _BARRIER) -> list[Any]:
    """Return programs that each lack one barrier."""
    lines = program.ir("mapped").splitlines()
    places = [number for number, line in enumerate(lines) if name in line]
    return [xgpu.compile("\n".join([*lines[:place], *lines[place + 1 :]])) for place in places]


def test_what_follows_shares() -> None:
    program = compiled(_CHAIN.format(pragma="#shared"))
    assert offsets(program) == [0, 4000, 0, 4000]
    assert shared_bytes(launch_of(program)) == 8000
    assert "shared memory: 8000 bytes, for buffers of 14000" in explain_nests(program)
    assert ".b8 chain_0__shared[8000]" in program.ir("ptx")
    (a,) = program.random_inputs(0)
    for sanitize in (False, True):
        np.testing.assert_array_equal(program.run(a, sanitize=sanitize)[0], chain(a))


def test_each_barrier_is_needed() -> None:
    program = compiled(_CHAIN.format(pragma="#shared"))
    changed = without_each(program)
    assert len(changed) == 4
    for each in changed:
        with pytest.raises(KernelFault):
            each.run(*program.random_inputs(0), sanitize=True)
        (kernel,) = each.kernels
        assert prove(kernel.name, kernel.module("emitted"), kernel.aliases).races
    (kernel,) = program.kernels
    assert prove(kernel.name, kernel.module("emitted"), kernel.aliases).is_complete


@pytest.mark.parametrize("given", [{"u": 0}, {"v": 4000}, {"v": 8000, "w": 8000}, {"t": 16, "u": 4000, "v": 4096}])
def test_what_is_given_wrong_is_a_fault(given: dict[str, int]) -> None:
    program = compiled(_CHAIN.format(pragma="#shared"))
    text = program.ir("mapped")
    for name, place in zip("tuvw", offsets(program), strict=True):
        before = f'called = "{name}", memory = "shared", offset = {place}'
        assert before in text
        text = text.replace(before, f'called = "{name}", memory = "shared", offset = {given.get(name, place)}')
    with pytest.raises(KernelFault):
        xgpu.compile(text).run(*program.random_inputs(0), sanitize=True)
    (kernel,) = xgpu.compile(text).kernels
    assert not prove(kernel.name, kernel.module("emitted"), kernel.aliases).is_complete


_KEPT = """fn kept(A: f32[2, 64], out C: f32[2, 64]) { par 2 b {
  new t: f32[64] #shared
  new u: f32[64] #shared
  par 64 i { t[i] = A[b, i] }
  seq 3 k {
    par 64 i { u[i] = t[63 - i] + f32(k) }
    par 64 i { C[b, i] = u[63 - i] }
  }
} }"""


def test_what_the_next_step_reads_is_kept() -> None:
    program = compiled(_KEPT)
    assert offsets(program) == [None, None]
    text = program.ir("mapped").replace('called = "t", memory', 'called = "t", offset = 0 : i64, memory')
    text = text.replace('called = "u", memory', 'called = "u", offset = 0 : i64, memory')
    # Threads wait between all accesses of the two, but what the steps after the first one read is lost.
    lines = text.splitlines()
    for number in reversed([number for number, line in enumerate(lines) if '"xgpu.par"' in line][1:]):
        lines.insert(number, '"xgpu.barrier"() {scope = "block"} : () -> ()')
    changed = xgpu.compile("\n".join(lines))
    with pytest.raises(KernelFault, match="which no thread of the block has written"):
        changed.run(*program.random_inputs(0), sanitize=True)
    (kernel,) = changed.kernels
    assert prove(kernel.name, kernel.module("emitted"), kernel.aliases).unwritten


def test_a_program_says_where_buffers_begin() -> None:
    program = compiled(_CHAIN.format(pragma="#offset(16000)"))
    assert offsets(program) == [0, 16000, 0, 4000]
    printed = print_loops(program.modules["mapped"])
    assert "new u: f32[1000] #offset(16000)" in printed
    assert offsets(compiled(printed)) == offsets(program)
    (a,) = program.random_inputs(0)
    np.testing.assert_array_equal(program.run(a, sanitize=True)[0], chain(a))
    with pytest.raises(InvalidInput, match="a multiple of 16, got 8"):
        compiled(_CHAIN.format(pragma="#offset(8)"))
    with pytest.raises(InvalidInput, match="'#offset' is a place in shared memory, got #register too"):
        compiled(_CHAIN.format(pragma="#register #offset(0)"))
    with pytest.raises(
        InvalidInput, match="'u' at byte 16: expected no bytes of 't', which is in use at the same time"
    ):
        compiled(_CHAIN.format(pragma="#offset(16)").replace("new t: f32[1000] #shared", "new t: f32[1000] #offset(0)"))


_LARGE = """fn large(A: f32[2, {0}], out B: f32[2, {0}], out C: f32[2, {0}]) {{ par 2 b {{
  new t: f32[{0}] #shared
  par {0} i {{ t[i] = A[b, i] }}
  par {0} i {{ B[b, i] = t[{0} - 1 - i] }}
  new u: f32[{0}] #shared
  par {0} i {{ u[i] = A[b, i] * 2.0 }}
  par {0} i {{ C[b, i] = u[{0} - 1 - i] }}
}} }}"""


@pytest.mark.parametrize(("count", "barriers"), [(20_000, 2), (40_000, 3)])
def test_threads_wait_once_more_where_a_block_has_too_little(count: int, barriers: int) -> None:
    program = compiled(_LARGE.format(count))
    assert program.ir("mapped").count(_BARRIER) == barriers
    assert shared_bytes(launch_of(program)) == (2 * 4 * count if barriers == 2 else 4 * count)
    (a,) = program.random_inputs(0)
    for result, factor in zip(program.run(a, sanitize=True), (1, 2), strict=True):
        np.testing.assert_array_equal(result, a[:, ::-1] * np.float32(factor))


def test_what_a_block_has_no_room_for() -> None:
    with pytest.raises(
        Unsupported, match="a block's buffers take 480000 bytes of shared memory, and a block of sm_90a"
    ):
        compiled(_LARGE.format(60_000))
