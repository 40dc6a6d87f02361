"""The work of scheduling and emitting kernels: what is known of a fusion is found once, whoever asks for it."""

from collections import Counter

import jax
import jax.numpy as jnp

from xgpu.device import DEFAULT_DEVICE, device
from xgpu.driver.compiler import emit_program, plan_program
from xgpu.emit import base, runs
from xgpu.frontend.load import load_source
from xgpu.indexing import hlo_maps
from xgpu.options import Options
from xgpu.structure import walk


def _planned(function, *specs):
    return plan_program(load_source(function, specs).module)["fusions"]


def _emit(planned):
    return emit_program(planned, device(DEFAULT_DEVICE), Options(), [])


def _update(parameters, gradients):
    return [p - 0.1 * jnp.tanh(g) / (1 + jnp.abs(p)) for p, g in zip(parameters, gradients, strict=True)]


def _arrays(count):
    return [jax.ShapeDtypeStruct((100 + number,), "float32") for number in range(count)]


def test_the_traffic_of_a_part_is_found_once(monkeypatch):
    planned = _planned(_update, _arrays(8), _arrays(8))
    found, moved_bytes = Counter[str](), base.moved_bytes

    def counting(*arguments):
        found["parts"] += 1
        return moved_bytes(*arguments)

    monkeypatch.setattr(base, "moved_bytes", counting)
    program = _emit(planned)
    assert [kernel.emitter for kernel in program.kernels] == ["parts"]
    assert found["parts"] == 8


def test_what_an_operation_reads_is_found_once(monkeypatch):
    planned = _planned(lambda x, w: jnp.sum(jax.nn.softmax(x * w), 0), "f32[512,1024]", "f32[1024]")
    found, accesses = Counter[str](), hlo_maps._accesses

    def counting(op):
        found["operations"] += 1
        return accesses(op)

    monkeypatch.setattr(hlo_maps, "_accesses", counting)
    _emit(planned)
    assert 0 < found["operations"] <= sum(op.name.startswith("stablehlo.") for op in walk(planned.operation))


def test_loads_that_are_alike_are_sampled_once(monkeypatch):
    runs._passes.cache_clear()
    runs._sample.cache_clear()
    found, requests = Counter[str](), runs._requests

    def counting(*arguments):
        found["samples"] += 1
        return requests(*arguments)

    monkeypatch.setattr(runs, "_requests", counting)
    # The functions differ, and so do their kernels; what they read does not.
    for function in (jnp.sin, jnp.cos, jnp.tanh):
        _emit(_planned(lambda x, f=function: f(x[::-1]) + x, "f32[4096,1024]"))
        first = found.setdefault("first", found["samples"])
    assert 0 < first == found["samples"]
