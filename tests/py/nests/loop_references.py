"""What the programs of examples/loops compute, by NumPy, and inputs for them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "loops"
FILES = {path.stem: path for path in sorted(FOLDER.rglob("*.te"))}
"""The programs in it by the stems of their files."""

type Arrays = Sequence[np.ndarray[Any, Any]]


def _softmax(x: Any) -> Arrays:
    e = np.exp(x - x.max(1, keepdims=True))
    return [e / e.sum(1, keepdims=True)]


def _layer_norm(x: Any, scale: Any, bias: Any) -> Arrays:
    wide = x.astype(np.float64)
    centred = wide - wide.mean(1, keepdims=True)
    variance = (centred**2).mean(1, keepdims=True)
    return [(centred / np.sqrt(variance + 1e-5) * scale + bias).astype(ml_dtypes.bfloat16)]


def _stencil(a: Any) -> Arrays:
    p = np.pad(a, 1)
    return [(a + (p[1:-1, :-2] + p[1:-1, 2:]) + (p[:-2, 1:-1] + p[2:, 1:-1])) * np.float32(0.2)]


def _quantize(x: Any) -> Arrays:
    scale = np.abs(x).max(1) * np.float32(1.0 / 127.0)
    return [np.round(x * np.where(scale > 0, 1 / scale, 0)[:, None]).astype(np.int8), scale]


def _smith_waterman(a: Any, b: Any) -> Arrays:
    pairs, rows, columns = a.shape[0], a.shape[1], b.shape[1]
    h = np.zeros((pairs, rows + 1, columns + 1), np.int32)
    for i in range(rows):
        for j in range(columns):
            aligned = h[:, i, j] + np.where(a[:, i] == b[:, j], 3, -2)
            gap = np.maximum(h[:, i, j + 1], h[:, i + 1, j]) - 1
            h[:, i + 1, j + 1] = np.maximum(np.maximum(aligned, gap), 0)
    return [h.max((1, 2))]


def _causal_convolution(x: Any, w: Any) -> Arrays:
    y = np.zeros_like(x)
    for k in range(len(w)):
        y[:, k:] += w[k] * x[:, : x.shape[1] - k]
    return [y]


def _tensor_core_product(a: Any, b: Any, bias: Any) -> Arrays:
    return [np.maximum(a.astype(np.float32) @ b.astype(np.float32) + bias, 0).astype(ml_dtypes.bfloat16)]


def _attention(*operands: Any) -> Arrays:
    q, k, v = (each.astype(np.float64) for each in operands)
    scores = np.einsum("hid,hjd->hij", q, k)
    weights = np.exp(scores - scores.max(2, keepdims=True))
    found = np.einsum("hij,hjd->hid", weights / weights.sum(2, keepdims=True), v)
    return [found.astype(ml_dtypes.bfloat16)]


REFERENCES: dict[str, Callable[..., Arrays]] = {
    "bitonic_sort": lambda x: [np.sort(x, 1)],
    "causal_convolution": _causal_convolution,
    "copy": lambda a: [a],
    "histogram": lambda x, counts: [counts + np.bincount(x, minlength=256).astype(np.int32)],
    "layer_norm": _layer_norm,
    "matrix_product": lambda a, b: [a.astype(np.float64) @ b],
    "prefix_sum": lambda x: [np.cumsum(x, 1, dtype=np.int32)],
    "quantize": _quantize,
    "smith_waterman": _smith_waterman,
    "softmax": _softmax,
    "stencil": _stencil,
    "tensor_core_product": _tensor_core_product,
    "transpose": lambda a: [a.T],
    "warp_attention": _attention,
    "warp_sums": lambda x: [x.sum(1)],
}
"""The function of each program, by the stem of its file."""


def inputs_of(name: str, program: Any) -> list[Any]:
    """Return inputs: random ones, of sequences with few letters."""
    inputs = program.random_inputs(1)
    return [each % 4 for each in inputs] if name == "smith_waterman" else inputs


def check(outputs: Arrays, expected: Arrays) -> None:
    """Raise if outputs are not those expected, but for rounding."""
    assert len(outputs) == len(expected)
    for output, wanted in zip(outputs, expected, strict=True):
        assert output.shape == wanted.shape
        if output.dtype.kind in "iu":
            np.testing.assert_array_equal(output, wanted)
        else:
            coarse = output.dtype.itemsize == 2
            rtol, atol = (2**-7, 1e-2) if coarse else (1e-5, 1e-5)
            np.testing.assert_allclose(output.astype(np.float64), np.asarray(wanted, np.float64), rtol, atol)
