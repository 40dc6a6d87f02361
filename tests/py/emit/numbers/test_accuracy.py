"""Accuracy of every function of floats on the host executor, from StableHLO on; docs/accuracy.md has the numbers.

The GPU's own code is measured by ``python -m xgpu.tools.accuracy --on gpu``. With ``XGPU_ACCURACY=thorough``, sixteen
times as many numbers are tried.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from xgpu.tools.accuracy import __main__ as command
from xgpu.tools.accuracy import exact, report
from xgpu.tools.accuracy.formats import FORMATS, errors, flushed_errors, is_measurable
from xgpu.tools.accuracy.functions import FUNCTIONS
from xgpu.tools.accuracy.measure import measure
from xgpu.tools.accuracy.samples import arguments, edges, every_number

FACTOR = 16 if os.environ.get("XGPU_ACCURACY") == "thorough" else 1
SAMPLES = {"bf16": 1 << 14, "f16": 1 << 14, "f32": 1 << 16, "f64": 1 << 13}
"""Numbers tried. Of one argument, every number of a 16-bit format is."""
CASES = [
    (name, form)
    for name, function in FUNCTIONS.items()
    for form, bound in zip(FORMATS, function.bounds, strict=True)
    if bound is not None
]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_errors_are_no_larger_than_allowed(name: str, form: str) -> None:
    if not is_measurable(FORMATS[form]):
        pytest.skip("numpy's long double is no wider than f64 here")
    bound = FUNCTIONS[name].bounds[list(FORMATS).index(form)]
    found = measure(FUNCTIONS[name], FORMATS[form], samples=SAMPLES[form] * FACTOR)
    assert bound is not None
    assert found.error <= bound, found


@pytest.mark.parametrize("name", ["div", "sqrt"])
def test_quotients_and_roots_are_rounded_on_the_host(name: str) -> None:
    found = measure(FUNCTIONS[name], FORMATS["f32"], samples=SAMPLES["f32"])
    assert found.error <= 0.5, found


def test_the_document_is_made_of_what_was_measured_and_all_of_it_is_allowed() -> None:
    results = report.load(report.DOCS)
    assert (report.DOCS / "accuracy.md").read_text() == report.document(results), "run xgpu.tools.accuracy --save"
    ours = {column: found for column, found in results.items() if "XLA" not in column}
    assert len(ours) > 1
    for name, form in CASES:
        bound = FUNCTIONS[name].bounds[list(FORMATS).index(form)]
        assert name in ours["host"][form]
        for column, found in ours.items():
            assert bound is None or found[form][name] <= bound, f"{name} {form}, {column}"


def test_no_more_is_allowed_than_what_is_published_of_xla() -> None:
    for name, function in FUNCTIONS.items():
        for bound, published in zip(function.bounds, function.published, strict=True):
            assert bound is None or published is None or bound <= max(published, 0.501), name


def test_units_in_the_last_place() -> None:
    form = FORMATS["f32"]
    largest = float(np.finfo(np.float32).max)
    got = np.array([1.0, 1.0, 2.0, np.inf, np.inf, largest, 0.0, -0.0, np.nan, 0.0, 1e-45], np.float32)
    exact_results = np.array([1.0, 1 + 2.0**-24, 2 - 2.0**-24, 3.5e38, largest, 3.5e38, 1e-46, 0.0, 1.0, np.nan, 0.0])
    found = errors(got, exact_results, form)
    expected = [0, 0.5, 0.5, 0, 1, (3.5e38 - largest) / 2.0**104, 1e-46 / 2.0**-149, np.inf, np.inf, np.inf, 1]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal(errors(got[:1], np.array([np.inf]), form), [np.inf])
    np.testing.assert_array_equal(errors(np.array([1e-9], np.float32), np.array([0.0]), form, floor=1.0) < 0.01, [True])


def test_what_takes_subnormal_numbers_for_zero() -> None:
    form = FORMATS["f32"]
    got, exact_results = np.zeros(3, np.float32), np.array([1e-40, 1.0, 2e-38])
    found = flushed_errors(got, exact_results, [np.array([1.0, 1e-40, 1.0])], form)
    assert list(found[:2]) == [0, 0]
    assert found[2] > 1000


@pytest.mark.parametrize("form", FORMATS)
def test_arguments(form: str) -> None:
    """Every number of a short format, or numbers of every exponent and sign; and pairs of all of them."""
    (values,) = arguments(FORMATS[form], 1, (-1, 1), 1 << 12)
    codes = values.view(f"uint{FORMATS[form].bits}")
    exponents = np.unique(codes >> FORMATS[form].mantissa)
    assert exponents.size >= min(1 << 12, 1 << FORMATS[form].bits - FORMATS[form].mantissa)
    left, right = arguments(FORMATS[form], 2, (-1, 1), 1 << 10)
    assert left.size == right.size > 2 << 10
    assert np.isnan(edges(FORMATS[form]).astype(np.float64)).any()


def test_every_number_of_a_format() -> None:
    chunks = [chunk for (chunk,) in every_number(FORMATS["f16"], 1 << 14)]
    assert np.unique(np.concatenate(chunks).view(np.uint16)).size == 1 << 16


EXACT = {
    "erf": (0.5, "0.52049987781304653768274665389196"),
    "erfc": (3.0, "2.209049699858544137277612958232e-5"),
    "erf_inv": (0.9375, "1.3171503349861307488839297920844"),
    "lgamma": (0.1, "2.2527126517342059020062379568955"),
    "digamma": (-0.25, "2.9141391202135278303731132371828"),
    "bessel_i0e": (2.5, "0.27004644161220273956009865651967"),
    "bessel_i1e": (-50.0, "-0.055993123892895399643878707557362"),
    "logistic": (1.0, "0.73105857863000487925115924182184"),
}
"""A value of each function that NumPy lacks, from mpmath."""


@pytest.mark.parametrize("name", EXACT)
def test_exact_functions(name: str) -> None:
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("numpy's long double is no wider than f64 here")
    argument, text = EXACT[name]
    value = getattr(exact, name)(np.array([argument], np.longdouble))[0]
    np.testing.assert_allclose(value, np.longdouble(text), rtol=1e-17)


@pytest.mark.parametrize("wide", [np.float64, np.longdouble])
def test_powers_of_nan(wide: type[np.floating]) -> None:
    quiet = np.array([0x7FF8 << 48], np.uint64).view(np.float64)
    signalling = np.array([0x7FF0 << 48 | 1], np.uint64).view(np.float64)
    one, zero = np.ones(3, wide), np.zeros(3, wide)
    with np.errstate(invalid="ignore"):
        nans = np.concatenate([quiet, signalling, -quiet]).astype(wide)
        for base, exponent in ((nans, zero), (nans, -zero), (one, nans)):
            np.testing.assert_array_equal(exact.power(base, exponent), one)
        assert np.isnan(exact.power(nans, one)).all() and np.isnan(exact.power(-one, nans)).all()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--function", "exp", "sqrt", "--type", "bf16", "f32", "--samples", "1000", "--save", str(tmp_path)]
    assert command.main(words) == 0
    assert capsys.readouterr().out.count("\n") == 5
    saved = json.loads((tmp_path / "accuracy.json").read_text())
    assert saved["host"]["f32"]["sqrt"] <= 0.5
    assert command.main([*words[:4], "bf16", "--of", "xla", "--save", str(tmp_path)]) == 0
    assert set(json.loads((tmp_path / "accuracy.json").read_text())) == {"host", "XLA, host"}
    assert "| sqrt | 0.5 | 0.50 | 0.50 | 0.5 |" in (tmp_path / "accuracy.md").read_text()
    capsys.readouterr()
    assert command.main(["--save", str(tmp_path / "none")]) == 1
    assert "there is no folder" in capsys.readouterr().err
