"""A small program for each emitter, at level ``fusions``, for tests of what a person may make of a plan."""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import xgpu


def _recurrence(x: Any, y: Any) -> Any:
    return jax.lax.scan(lambda state, each: (jnp.tanh(state * 0.9 + each), state), x, y)


def _update_slice(x: Any, y: Any, i: Any) -> Any:
    return jax.lax.dynamic_update_slice(x, y * 2, (i, 0))


def _side_by_side(x: Any, y: Any, z: Any, w: Any) -> Any:
    return (x * x).sum(), y.max(0) * 2, jax.nn.softmax(z), jnp.sin(w) + 1, z.sum(1)


def _product(x: Any, w: Any, b: Any) -> Any:
    return jax.nn.relu(jnp.dot(x, w, preferred_element_type=jnp.float32) + b)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "loop": (lambda x, y: (jnp.tanh(x) * y, x - y), ("f32[38,64]", "f32[64]")),
    "concatenate": (lambda *each: jnp.concatenate(each) * 2, ("f32[33]", "f32[40]", "f32[1]")),
    "concatenate_tiled": (lambda x, y: jnp.concatenate([x, -y], 1), ("f32[67,3]", "f32[67,5]")),
    "input_slices": (lambda x: (jnp.exp(x)[:, :20], jnp.exp(x)[3:, 10:]), ("f32[23,41]",)),
    "transpose": (lambda x: jnp.exp(x).T + 1, ("f32[70,48]",)),
    "scatter": (lambda x, i, y: x.at[i].add(y), ("f32[30,8]", "s32[50]", "f32[50,8]")),
    "scatter_shared": (lambda x, i, y: x.at[i].add(y), ("f32[30]", "s32[33000]", "f32[33000]")),
    "update_slice": (_update_slice, ("f32[90,8]", "f32[20,8]", "s32[]")),
    "reduce_row": (lambda x: jnp.exp(x).sum((0, 2)), ("f32[3,33,130]",)),
    "rows": (lambda x: jax.nn.softmax(x), ("f32[19,100]",)),
    "reduce_column": (lambda x: x.max(0) * 2, ("f32[130,36]",)),
    "columns": (lambda x: jax.nn.softmax(x, axis=0), ("f32[19,100]",)),
    "parts": (_side_by_side, ("f32[900]", "f32[130,36]", "f32[19,100]", "f32[70]")),
    "scan_row": (lambda x: jnp.cumsum(x, 1), ("f32[5,300]",)),
    "scan_column": (lambda x: jnp.cumsum(x, 0), ("f32[70,12]",)),
    "recurrence": (_recurrence, ("f32[40]", "f32[13,40]")),
    "product": (_product, ("bf16[130,72]", "bf16[72,136]", "f32[136]")),
    "warp_product": (_product, ("bf16[130,71]", "bf16[71,68]", "f32[68]")),
}
"""A program by the emitter of its last kernel."""


@dataclass(frozen=True)
class Plan:
    """A program at level ``fusions``, with arguments, and its results as XLA has them."""

    emitter: str
    text: str
    arguments: tuple[Any, ...]
    expected: tuple[Any, ...]

    def with_attribute(self, name: str, value: str) -> str:
        """Return the text with another value of an attribute of the last fusion, but without the schedule."""
        head, function = self._split()
        function = re.sub(r", xgpu\.schedule = #xgpu\.schedule<[^>]*>", "", function, count=1)
        if re.search(rf"{name} = ", function.split("\n", 1)[0]):
            function = re.sub(rf"{name} = (\"\w+\"|array<[^>]*>)", f"{name} = {value}", function, count=1)
        else:
            function = function.replace("attributes {", f"attributes {{{name} = {value}, ", 1)
        return head + function

    def with_schedule(self, text: str) -> str:
        """Return the text with another schedule of the last fusion, whose parts have none."""
        head, function = self._split()
        head = re.sub(r"(_part_\d+\(.*), xgpu\.schedule = #xgpu\.schedule<[^>]*>", r"\1", head)
        return head + re.sub(r"#xgpu\.schedule<[^>]*>", f"#xgpu.schedule<{text}>", function, count=1)

    @property
    def schedule(self) -> dict[str, str]:
        """The numbers of the last fusion's schedule."""
        found = re.search(r"#xgpu\.schedule<([^>]*)>", self._split()[1])
        assert found is not None
        return dict(each.split(" = ") for each in found[1].split(", "))

    def _split(self) -> tuple[str, str]:
        start = self.text.rindex("func.func private")
        return self.text[:start], self.text[start:]

    def right_or_refused(self, text: str, sanitize: bool = False) -> xgpu.Compiled | None:
        """Return the program of a changed text, which is run and right; None if it is refused with a reason."""
        try:
            program = xgpu.compile(text)
        except xgpu.InvalidInput as error:
            assert "cannot make" not in error.message, error
            assert error.location is not None, error
            return None
        found = program.run(*self.arguments, sanitize=sanitize and program.main is None)
        for one, other in zip(found, self.expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
        return program


@functools.cache
def plan_of(emitter: str) -> Plan:
    """Return the plan of the program of `PROGRAMS`."""
    function, specs = PROGRAMS[emitter]
    program = xgpu.compile(function, *specs, options=xgpu.Options(products="kernels"))
    assert program.kernels[-1].emitter == emitter, [kernel.emitter for kernel in program.kernels]
    arguments = tuple(program.random_inputs(3))
    return Plan(emitter, program.ir("fusions"), arguments, tuple(program.reference(*arguments)))
