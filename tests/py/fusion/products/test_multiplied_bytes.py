"""Products of integers as products of their bytes: the same numbers, also where sums wrap."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xgpu
from tests.py.planned import TARGET, planned
from xgpu.cli.opt.main import main as xgpu_opt_main
from xgpu.options import Options

_ALL = Options(products="all")
_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def numbers(dtype: str, seed: int, *shape: int) -> np.ndarray[Any, Any]:
    """Of the whole range, its ends among them; truth values where ``dtype`` is bool."""
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.random(shape) < 0.05
    info = np.iinfo(dtype)
    made = generator.integers(info.min, info.max, shape, dtype, endpoint=True)
    made.flat[:4] = info.min, info.max, 0, info.max
    return made


def of_bytes(function: Any, *arrays: Any, tmp_path: Path, capsys: Any) -> tuple[np.ndarray[Any, Any], str]:
    """Run a program whose products are rewritten whatever they take, and return the result and the rewritten text."""
    path = tmp_path / "program.mlir"
    path.write_text(str(jax.jit(function).lower(*arrays).compiler_ir("stablehlo")))
    capsys.readouterr()
    assert xgpu_opt_main([str(path), "-p", "multiply-bytes{always=true}"]) == 0
    text = capsys.readouterr().out
    rewritten = tmp_path / "rewritten.mlir"
    rewritten.write_text(text)
    (found,) = xgpu.compile(rewritten, options=_ALL).run(*arrays)
    return np.asarray(found), text


@pytest.fixture(autouse=True)
def _wide() -> Any:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("result", ["int8", "uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("dtype", _TYPES)
def test_numbers(dtype: str, result: str, tmp_path: Path, capsys: Any) -> None:
    if np.iinfo(result).bits < np.iinfo(dtype).bits:
        pytest.skip("JAX has no results with fewer bits than operands")
    left, right = numbers(dtype, 1, 20, 137), numbers(dtype, 2, 137, 24)

    def product(x: Any, y: Any) -> Any:
        return lax.dot(x, y, preferred_element_type=result)

    found, text = of_bytes(product, left, right, tmp_path=tmp_path, capsys=capsys)
    assert found.dtype == result
    has_library = (dtype, result) == ("int8", "int32")
    assert ("concatenate" in text or "pad" in text) != has_library
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, left.astype(result) @ right.astype(result))


@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("mk,kn->mn", (33, 160), (160, 48)),
        ("km,nk->nm", (130, 20), (17, 130)),
        ("bmk,bnk->bmn", (3, 18, 144), (3, 21, 144)),
        ("mbk,kbn->bmn", (9, 2, 140), (140, 2, 16)),
        ("abkl,lkc->abc", (4, 5, 12, 13), (13, 12, 11)),
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32"])
def test_dimensions(equation: str, left: Any, right: Any, dtype: str, tmp_path: Path, capsys: Any) -> None:
    x, y = numbers(dtype, 3, *left), numbers(dtype, 4, *right)
    found, _ = of_bytes(lambda x, y: jnp.einsum(equation, x, y), x, y, tmp_path=tmp_path, capsys=capsys)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, np.einsum(equation, x, y))


def test_truth_values(tmp_path: Path, capsys: Any) -> None:
    x, y = numbers("bool", 5, 40, 150), numbers("bool", 6, 150, 30)
    found, _ = of_bytes(lambda x, y: x @ y, x, y, tmp_path=tmp_path, capsys=capsys)
    np.testing.assert_array_equal(found, x @ y)


def test_sums_that_32_bits_do_not_hold(tmp_path: Path, capsys: Any) -> None:
    """Of 64 bits: as many pairs of bytes are added up as fit, and of rows too long for one none."""
    ones = np.full((1, 20_000), -1, np.int64)

    def product(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, (((1,), (1,)), ((), ())))

    found, text = of_bytes(product, ones, ones, tmp_path=tmp_path, capsys=capsys)
    assert found.item() == 20_000
    assert text.count("dot_general") == 36
    long = np.full((1, 40_000), -1, np.int64)
    lowered = tmp_path / "long.mlir"
    lowered.write_text(str(jax.jit(product).lower(long, long).compiler_ir("stablehlo")))
    assert xgpu_opt_main([str(lowered), "-p", "multiply-bytes{always=true}"]) == 0
    assert capsys.readouterr().out.count("dot_general") == 1


@pytest.mark.parametrize(
    ("dtype", "size", "kernels"),
    [
        ("s32", 2048, 4),
        ("s64", 1024, 8),
        ("s32", 128, 0),
        ("u8", 1024, 1),
        ("s8", 1024, 1),
        ("pred", 1024, 1),
        ("f32", 2048, 0),
    ],
)
def test_where_it_pays(dtype: str, size: int, kernels: int) -> None:
    """Large products without a library; others are XLA's, and all with ``products=library``."""
    specs = [f"{dtype}[{size},{size}]"] * 2
    ways = [("auto", kernels), ("library", 0)]
    if dtype != "f32":
        ways.append(("kernels", kernels))
    for products, expected in ways:
        program = planned(lambda x, y: x @ y, specs, TARGET, Options(products=products))
        assert sum(launch.kernel.emitter == "product" for launch in program.launches) == expected
