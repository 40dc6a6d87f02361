"""Times functions of torch on a GPU, in a process of its own: it needs nothing but torch, and is run by its path.

JAX and torch both have CUPTI tell the times of kernels, which serves one in a process. The first line of the input is
JSON: ``seconds`` in which functions may be compiled, and ``cases``, each with a ``name``, the ``program``, and its
sizes; see `torch_processes`. A line ``ready`` follows when they are compiled. The next line of the input, whatever it
is, has them measured: the output is a line of JSON for each, with ``us`` or ``error``.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

_LEAST_SECONDS = 0.02
_MOST_CALLS = 20
_SLEEP_CYCLES = 20_000_000
"""About 10 ms, in which the calls that are measured queue up."""
_EPSILON = 1e-5


def attention(
    torch: Any,
    shape: Sequence[int],
    keys: Sequence[int],
    dtype: str,
    causal: bool = False,
    gradients: bool = False,
    size: float = 1.0,
) -> Callable[[], Any]:
    """Return attention of arrays (batch, rows, heads, width), with the gradients of its operands or without."""
    q, k, v = (_normal(torch, each, dtype).transpose(1, 2) for each in (shape, keys, keys))
    q = q * size
    given = {"is_causal": causal} | ({"enable_gqa": True} if shape[2] != keys[2] else {})
    function = partial(torch.nn.functional.scaled_dot_product_attention, **given)
    if not gradients:
        return partial(function, q, k, v)
    operands = [each.detach().requires_grad_() for each in (q, k, v)]
    g = _normal(torch, shape, dtype).transpose(1, 2)

    def both() -> Any:
        with torch.enable_grad():
            result = function(*operands)
        return torch.autograd.grad(result, operands, g)

    return both


def gated_mlp(torch: Any, rows: int, width: int, inner: int) -> Callable[[], Any]:
    """Return two products with a gate, and the product after them."""
    silu = torch.nn.functional.silu
    x, *weights = _operands(torch, rows, (width, inner), (width, inner), (inner, width))
    return _bound(lambda x, gate, up, down: (silu(x @ gate) * (x @ up)) @ down, x, *weights)


def norm_linear(torch: Any, rows: int, width: int, inner: int) -> Callable[[], Any]:
    """Return a product of rows that are divided by their root mean squares."""
    x, w = _operands(torch, rows, (width, inner))
    return _bound(lambda x, scale, w: _rms_norm(torch, x, scale) @ w, x, _normal(torch, (width,)), w)


def adapters(torch: Any, rows: int, width: int, inner: int, rank: int) -> Callable[[], Any]:
    """Return a product and one of low rank beside it."""
    x, w, a, b = _operands(torch, rows, (width, inner), (width, rank), (rank, inner))
    return _bound(lambda x, w, a, b: x @ w + (x @ a) @ b, x, w, a, b)


def decode(torch: Any, rows: int, heads: int, key_heads: int, keys: int, width: int, norm: bool) -> Callable[[], Any]:
    """Return attention of one query of each row, whose queries and keys are normalised first if there is a ``norm``."""
    q = _normal(torch, (rows, 1, heads, width))
    k, v = (_normal(torch, (rows, keys, key_heads, width)) for _ in range(2))
    attend = torch.nn.functional.scaled_dot_product_attention

    def function(q: Any, k: Any, v: Any, of_q: Any, of_k: Any) -> Any:
        if norm:
            q, k = _rms_norm(torch, q, of_q), _rms_norm(torch, k, of_k)
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        return attend(q, k, v, enable_gqa=heads != key_heads).transpose(1, 2)

    return _bound(function, q, k, v, *(_normal(torch, (width,)) for _ in range(2)))


_PROGRAMS = {each.__name__: each for each in (attention, gated_mlp, norm_linear, adapters, decode)}


def _normal(torch: Any, shape: Sequence[int], dtype: str = "bfloat16", scale: float = 1.0) -> Any:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return (torch.randn(tuple(shape), device=device) * scale).to(getattr(torch, dtype))


def _operands(torch: Any, rows: int, *matrices: Sequence[int]) -> list[Any]:
    """Return rows, and matrices such that products have numbers of the size of 1."""
    weights = [_normal(torch, shape, scale=shape[0] ** -0.5) for shape in matrices]
    return [_normal(torch, (rows, matrices[0][0])), *weights]


def _rms_norm(torch: Any, x: Any, scale: Any) -> Any:
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + _EPSILON) * scale.float()).to(x.dtype)


def _bound(function: Callable[..., Any], *operands: Any) -> Callable[[], Any]:
    return partial(function, *operands)


def prepare(torch: Any, case: dict[str, Any]) -> Callable[[], Any]:
    """Return the function of a case, compiled if the case has a ``mode``, after a first call."""
    given = {name: each for name, each in case.items() if name not in ("name", "program", "mode")}
    call = _PROGRAMS[case["program"]](torch, **given)
    if "mode" in case:
        assert isinstance(call, partial)
        call = partial(torch.compile(call.func, mode=case["mode"], dynamic=False), *call.args)
    call()
    _wait(torch)
    return call


def _wait(torch: Any) -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def measured(torch: Any, call: Callable[[], Any]) -> dict[str, Any]:
    """Return the microseconds of a call: those of its kernels, or of calls in a queue where kernels are not seen."""
    call()
    _wait(torch)
    start = time.perf_counter()
    call()
    _wait(torch)
    seconds = time.perf_counter() - start
    calls = max(3, min(_MOST_CALLS, int(_LEAST_SECONDS / max(seconds, 1e-6))))
    in_queue = _queue_us(torch, call, calls)
    try:
        kernels = _kernel_us(torch, call, calls)
    except Exception as error:
        return {"us": in_queue, "by": f"queue ({type(error).__name__})"}
    # In one stream, kernels take no longer than all calls: else some were counted twice.
    if 0 < kernels < 1.1 * in_queue:
        return {"us": kernels, "by": "kernels", "queue_us": in_queue}
    return {"us": in_queue, "by": "queue", "kernels_us": kernels}


def _queue_us(torch: Any, call: Callable[[], Any], calls: int) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(_SLEEP_CYCLES)
    start.record()
    for _ in range(calls):
        call()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) * 1e3 / calls


def _kernel_us(torch: Any, call: Callable[[], Any], calls: int) -> float:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(calls):
            call()
            torch.cuda.synchronize()
    on_gpu = torch.autograd.DeviceType.CUDA
    events = [
        event
        for event in profile.events()
        if event.device_type == on_gpu and not getattr(event, "is_user_annotation", False)
    ]
    return float(sum(event.time_range.elapsed_us() for event in events)) / calls


def _allow_all_sizes() -> None:
    """Let functions of one code be compiled for many sizes."""
    try:
        config = importlib.import_module("torch._dynamo.config")
    except ImportError:
        return
    for limit in ("recompile_limit", "cache_size_limit"):
        if hasattr(config, limit):
            setattr(config, limit, 1000)


def _problem(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"


def main() -> int:
    """Compile what the input says, and measure it when it says so; returns 1 without torch."""
    request = json.loads(sys.stdin.readline())
    end = time.monotonic() + request["seconds"]
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        print(json.dumps({"missing": _problem(error)}), flush=True)
        return 1
    _allow_all_sizes()
    found: dict[str, Any] = {}
    with torch.no_grad():
        for case in request["cases"]:
            try:
                found[case["name"]] = (
                    prepare(torch, case) if time.monotonic() < end else "no time was left to compile it"
                )
            except Exception as error:
                found[case["name"]] = _problem(error)
        print("ready", flush=True)
        sys.stdin.readline()
        for name, call in found.items():
            try:
                result = {"error": call} if isinstance(call, str) else measured(torch, call)
            except Exception as error:
                result = {"error": _problem(error)}
            print(json.dumps({"name": name} | result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
