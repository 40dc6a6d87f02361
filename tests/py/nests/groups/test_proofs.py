"""What `xgpu export --check` proves of programs of loops: with instructions of warps, and where loops use buffers."""

from typing import Any

import pytest

import xgpu
from tests.py.nests.loop_references import FILES
from tests.py.nests.te import compiled
from xgpu.packaging.checks.proofs import Proof, prove

_BARRIER = '"xgpu.barrier"'


def proof_of(program: Any) -> Proof:
    (kernel,) = program.kernels
    return prove(kernel.name, kernel.module("emitted"), kernel.aliases)


def without_one_barrier(program: Any) -> list[Any]:
    lines = program.ir("mapped").splitlines()
    places = [number for number, line in enumerate(lines) if _BARRIER in line]
    return [xgpu.compile("\n".join([*lines[:place], *lines[place + 1 :]])) for place in places]


def block(body: str) -> str:
    buffers = "new t: f32[64] #shared\nnew u: f32[64] #shared\n"
    return f"fn f(A: f32[64], out B: f32[64]) {{ par 1 b {{ {buffers}{body} }} }}"


@pytest.mark.parametrize("name", ["warp_sums", "warp_attention"])
def test_instructions_of_warps_access_nothing(name: str) -> None:
    program = xgpu.compile(FILES[name])
    assert proof_of(program).is_complete
    assert not any(proof_of(each).is_complete for each in without_one_barrier(program))


@pytest.mark.parametrize(
    "body",
    [
        # The thread that reads has written the element itself.
        "par 64 i { t[i] = A[i] }\npar 64 i { B[i] = t[i] }",
        "par 64 i { t[i] = 0.0 }\nseq 4 k { par 64 i { t[i] += A[i] } }\npar 64 i { B[i] = t[i] }",
        # What is written before a loop is not written beside its end.
        "par 64 i { t[i] = A[i] }\nseq 4 k { par 64 i { u[i] = t[63 - i] }\npar 64 i { t[i] = u[63 - i] } }\n"
        "par 64 i { B[i] = t[63 - i] }",
        "par 64 i { t[i] = A[i] }\npar 64 i { u[i] = t[63 - i] }\nseq 2 k { par 64 i { t[i] = u[63 - i] }\n"
        "par 64 i { u[i] = t[i] } }\npar 64 i { B[i] = u[63 - i] }",
    ],
)
def test_loops(body: str) -> None:
    program = compiled(block(body))
    assert proof_of(program).is_complete
    assert not any(proof_of(each).is_complete for each in without_one_barrier(program))


@pytest.mark.parametrize(
    "body",
    [
        # One thread has written what all of them read.
        "t[0] = A[0]\npar 64 i { B[i] = t[0] }",
        # What an iteration writes the next one reads, which other threads do.
        "par 64 i { t[i] = A[i] }\nseq 4 k { par 64 i { u[i] = t[63 - i] }\npar 64 i { t[i] = u[i] } }\n"
        "par 64 i { B[i] = t[i] }",
    ],
)
def test_what_other_threads_wrote_needs_a_barrier(body: str) -> None:
    program = compiled(block(body))
    assert proof_of(program).is_complete
    wrong = without_one_barrier(program)
    assert wrong
    assert not any(proof_of(each).is_complete for each in wrong)


def test_what_nothing_wrote_is_not_read() -> None:
    proof = proof_of(compiled(block("par 32 i { t[i] = A[i] }\npar 64 i { B[i] = t[i] }")))
    assert proof.unwritten
    assert not proof.races
