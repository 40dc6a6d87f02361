"""Options that no kernel can have are refused where they are given."""

import re
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

import xgpu


@pytest.mark.parametrize(
    ("call", "name", "given", "meant"),
    [
        (xgpu.Options, "xgpu.Options", {"product": "all"}, " (did you mean 'products'?)"),
        (partial(replace, xgpu.Options()), "xgpu.Options", {"product": "all"}, " (did you mean 'products'?)"),
        (partial(xgpu.compile, "x.py:f"), "xgpu.compile", {"option": None}, " (did you mean 'options'?)"),
        (partial(xgpu.compile, "x.py:f"), "xgpu.compile", {"a": 1}, "; expected source, target, options"),
        (xgpu.jit, "xgpu.jit", {"autotuned": True}, " (did you mean 'autotune'?)"),
        (partial(xgpu.jit, abs), "xgpu.jit", {"static_argnum": 0}, " (did you mean 'static_argnums'?)"),
        (xgpu.block.kernel, "block.kernel", {"stage": 2}, " (did you mean 'stages'?)"),
        (partial(xgpu.export, abs, to="x"), "xgpu.export", {"target": "sm_80"}, " (did you mean 'targets'?)"),
        (partial(xgpu.block.kernel, abs), "block.kernel", {"emiter": "block"}, " (did you mean 'emitter'?)"),
    ],
)
def test_keywords_that_there_are_not(call: Any, name: str, given: dict[str, Any], meant: str) -> None:
    """Also when what is given makes a decorator, and for those who expect Python's own error."""
    ((keyword, _),) = given.items()
    with pytest.raises(xgpu.InvalidInput) as caught:
        call(**given)
    assert str(caught.value) == f"{name}: unexpected keyword '{keyword}'{meant}"
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("threads_per_block", -1, "from 1 to 1024"),
        ("threads_per_block", 2048, "from 1 to 1024"),
        ("max_elements_per_thread", 0, "of at least 1"),
        ("opt_level", 4, "from 0 to 3"),
        ("opt_level", "3", "from 0 to 3"),
        ("threads_per_block", True, "from 1 to 1024"),
    ],
)
def test_what_no_kernel_can_have(option: str, value: Any, expected: str) -> None:
    with pytest.raises(xgpu.InvalidInput, match=f"option {option}: expected a number {expected}, got {value!r}"):
        xgpu.Options(**{option: value})


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("deterministic", "yes", "True or False"),
        ("keep_barriers", 1, "True or False"),
        ("pad_products", 0, "True or False"),
        ("fuse_attention", None, "True or False"),
        ("fuse_attention_gradients", 1, "True or False"),
        ("attention_parts", 0, "a number of at least 1"),
        ("autotune", "once", "True or False"),
        ("control_flow", "gpu", "'xla', 'launches'"),
        ("products", "cublas", "'auto', 'library', 'kernels', 'all'"),
        ("schedules", 3, "numbers by name for each fusion"),
        ("schedules", {"f": 3}, "numbers by name for fusion 'f'"),
    ],
)
def test_what_is_of_another_kind(option: str, value: Any, expected: str) -> None:
    with pytest.raises(xgpu.InvalidInput, match=f"option {option}: expected {expected}, got "):
        xgpu.Options(**{option: value})


def test_a_dictionary_instead_of_options() -> None:
    given: Any = {"opt_level": 3}
    message = r"options: expected an xgpu\.Options, got \{'opt_level': 3\}"
    with pytest.raises(xgpu.InvalidInput, match=message):
        xgpu.compile(abs, "f32[8]", options=given)
    with pytest.raises(xgpu.InvalidInput, match=message):
        xgpu.jit(abs, options=given)


@pytest.mark.parametrize("name", [None, 90, ["sm_80"]])
def test_a_target_that_is_no_word(name: Any) -> None:
    with pytest.raises(xgpu.InvalidInput, match=re.escape(f"unknown target {name!r}; known targets are sm_80")):
        xgpu.compile(abs, "f32[8]", target=name)


@pytest.mark.parametrize(
    ("schedules", "message"),
    [
        ({3: {"vector": 2}}, "there is no fusion 3; the fusions are: tripled_fusion_0"),
        ({"tripled_fusion_0": {3: 2}}, "unknown number 3 of its schedule; expected one of threads, vector"),
        ({"tripled_fusion_0": {"vector": "2"}}, "vector = '2': expected a power of two"),
        ({"tripled_fusion_0": {"vector": None}}, "vector = None: expected a power of two"),
    ],
)
def test_schedules_of_what_is_no_word_or_number(schedules: Any, message: str) -> None:
    def tripled(x: Any) -> Any:
        return 3 * x

    with pytest.raises(xgpu.InvalidInput, match=message):
        xgpu.compile(tripled, "f32[8]", options=xgpu.Options(schedules=schedules))
