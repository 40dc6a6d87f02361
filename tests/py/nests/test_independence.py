"""Iterations of par loops that are not independent are refused where that can be known, and found by the sanitizer."""

import numpy as np
import pytest

from xgpu.errors import InvalidInput, KernelFault
from xgpu.loop_language.build import build
from xgpu.loop_language.parser import parse
from xgpu.nests import independence
from xgpu.nests.structure import PAR
from xgpu.passes.framework import manager
from xgpu.passes.framework.registry import parse_pipeline
from xgpu.structure import walk

from .te import compiled

_HEAD = "fn f(A: f32[64], n: s32[64], inout B: f32[64], inout C: f32[8, 8]) {\n"


@pytest.mark.parametrize(
    "body",
    [
        "par 64 i { B[i] = A[63 - i] }",
        "par 32 i { B[2 * i] = B[2 * i + 1] }",
        "par 8 i { par 8 j { B[i * 8 + j] = A[j] } }",
        "par 8 i { seq 8 k { C[i, k] = C[i, 7 - k] } }",
        "par 32 i { B[i] += B[i + 32] }",
        "par 64 i { B[(i + 5) % 64] = A[i] }",
        "par 64 i { B[i // 8 * 8 + (i % 8 + 3) % 8] = A[i] }",
        "par 64 i { if i == 3 { B[0] = A[i] } }",
        "par 64 i { B[0] += A[i] #atomic }",
        "par 8 i { new t: f32\n t = A[i]\n B[i] = t }",
    ],
)
def test_proved(body: str) -> None:
    text = compiled(f"{_HEAD}{body}\nseq 1 k {{ C[0, 0] = 1.0\n B[0] += 0.0 }}\n}}").ir("mapped")
    assert "unproved" not in text
    assert 'independent = "proved"' in text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("par 64 i { B[0] = A[i] }", "f.te:2:12: iterations of par 'i' are not independent: i = 0 changes B[0]"),
        ("par 63 i { B[i] = B[i + 1] }", "i = 0 reads B[1], which i = 1 changes at f.te:2:12"),
        ("par 64 i { B[i // 2] = A[i] }", "i = 0 changes B[0], which i = 1 changes"),
        ("par 8 i { par 8 j { C[i, 0] = A[j] } }", "iterations of par 'j' are not independent: j = 0 changes C[0, 0]"),
        ("par 8 i { seq 8 k { B[i + k] = 1.0 } }", "iterations of par 'i'"),
        ("par 64 i { B[0] += A[i] }", "i = 0 changes B[0], which i = 1 changes"),
        ("par 64 i { B[0] += A[i] #atomic\n B[0] max= A[i] #atomic }", "i = 0 changes B[0], which i = 1 changes"),
        ("par 64 i { B[0] += A[i] #atomic\n A2[0] = 1.0 }", "'A2' is not defined here"),
    ],
)
def test_refused(body: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        compiled_at_text(f"{_HEAD}{body}\nseq 1 k {{ C[0, 0] = 1.0\n B[0] += 0.0 }}\n}}")
    assert message in str(caught.value)


def compiled_at_text(text: str) -> None:
    """Run the first pass on a program, whose operations then have places in the text."""
    module = build(parse(text, "f.te")).module
    with module.context:
        manager.run(module, parse_pipeline("check-independence"))


def test_what_a_value_decides_is_found_when_it_runs() -> None:
    program = compiled("fn f(A: f32[64], n: s32[64], out B: f32[64]) {\n par 64 i { B[n[i]] = A[i] }\n}")
    assert 'independent = "unproved"' in program.ir("mapped")
    values, order = np.arange(64, dtype=np.float32), np.arange(64, dtype=np.int32)[::-1].copy()
    (result,) = program.run(values, order, sanitize=True)
    np.testing.assert_array_equal(result, values[::-1])
    order[5] = order[4]
    with pytest.raises(KernelFault):
        program.run(values, order, sanitize=True)
    order[5] = 64
    with pytest.raises(KernelFault, match=r"writes element 64 .* of output 0"):
        program.run(values, order, sanitize=True)


def checked(body: str, monkeypatch: pytest.MonkeyPatch | None = None, **limits: int) -> list[str]:
    """Return what is found out about each par loop, inner ones first, with other limits."""
    for name, limit in limits.items():
        assert monkeypatch is not None
        monkeypatch.setattr(independence, name, limit)
    module = build(parse(f"fn f(A: f32[64], inout B: f32[65536]) {{\n{body}\n}}")).module
    with module.context:
        checker = independence.Checker()
        answers = [checker.independence(op, op.opview.variable) for op in walk(module.operation, PAR)]  # type: ignore[attr-defined]
    return [answer if isinstance(answer, str) else "clash" for answer in answers]


_APART = "par 16 i { B[(i + 3) * 16 % 256 + 1] = B[(i + 3) * 16 % 256 + 2] }"


def test_accesses_are_gone_through_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many statements take as many steps as they are, and not as many as their pairs."""
    body = "\n".join(f"B[i * 256 % 65536 + {number}] = A[0] + B[i * 256 % 65536 + {number}]" for number in range(120))
    limits = {"MOST_WORK": 240 * 256, "MOST_PAIRS": 0}
    assert checked(f"par 256 i {{ {body} }}", monkeypatch, **limits) == ["proved"]


def test_the_work_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checked(_APART) == ["proved"]
    assert checked(_APART, monkeypatch, MOST_WORK=31) == ["unproved"]


def test_pairs_where_all_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "par 64 i { seq 8 k { B[(i * 8 + k) % 1024] = A[i] }\n"
    body += "B[1024 + i * 8 % 512] = A[i]\n B[1024 + i * 8 % 512 + 1] = A[i] }"
    assert checked(body) == ["proved"]
    assert checked(body, monkeypatch, MOST_POINTS=64) == ["unproved"]
    clash = body.replace("+ 1]", "% 2]")
    assert checked(clash, monkeypatch, MOST_POINTS=64) == ["clash"]


def test_accesses_that_are_never_made() -> None:
    nowhere = "if i * 3 % 7 == 6 { B[(i + 3) * 16 % 256] = A[i] }"
    assert checked(f"par 2 i {{ {nowhere} }}") == ["proved"]
