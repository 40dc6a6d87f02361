"""Kernels that are written as block programs: objects that are called like functions on arrays."""

import functools
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from xgpu.block_language import product_form
from xgpu.block_language.numbers import wrong
from xgpu.block_language.program import BlockProgram, Settings
from xgpu.block_language.trace import trace_program
from xgpu.block_language.tracing import checked_decisions
from xgpu.dialects import attributes
from xgpu.emit.families.blocks.schedule import EMITTER_NAME, BlockProgramSchedule
from xgpu.errors import InvalidInput, checks_keywords
from xgpu.frontend.signature import Source
from xgpu.interface.block_calls import call_block_program, source_of_program
from xgpu.jax_internals import config

_Key = tuple[Any, ...]
_MOST_PROGRAMS = 256


class Kernel:
    """A kernel: a function of arrays, whose blocks compute tiles of its results. `kernel` makes it.

    Arrays are positional arguments; keywords are constants, such as ``causal=True``, and each value makes a kernel of
    its own. The command line takes the arguments in ``example_args`` if it is given none.
    """

    def __init__(self, function: Callable[..., Any], settings: Settings):
        functools.update_wrapper(self, function)
        self.__name__ = getattr(function, "__name__", "kernel")
        self.example_args: Any = ()
        self._function, self._settings = function, settings
        self._programs: dict[_Key, tuple[BlockProgram, Any]] = {}
        self._rule: tuple[Callable[..., Any], Callable[..., Any]] | None = None

    def __repr__(self) -> str:
        return f"<block kernel {self.__name__}>"

    def __call__(self, *arrays: Any, **static: Any) -> Any:
        """Run on arrays, in a JAX program or alone."""
        if self._rule is None:
            return self._call(static, False, *arrays)
        forward, backward = self._rule
        function = jax.custom_vjp(functools.partial(self._call, static, False))
        function.defvjp(functools.partial(forward, **static), functools.partial(backward, **static))
        return function(*arrays)

    def reference(self, *arrays: Any, **static: Any) -> Any:
        """Run the same program by XLA: blocks one after the other, their tiles gathered and scattered."""
        return self._call(static, True, *arrays)

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Give the kernel a gradient: ``forward`` and ``backward`` are as those of ``jax.custom_vjp``.

        ``forward`` takes the kernel's arguments, and returns its results and residuals. ``backward`` takes the
        residuals and the results' gradients, and returns the arguments' gradients. Both are given the call's keywords.
        """
        self._rule = forward, backward

    def gradient_of(self, function: Callable[..., Any]) -> None:
        """Give the kernel the gradient of a function that computes the same of the same arguments."""

        def forward(*arrays: Any, **static: Any) -> Any:
            return self._call(static, False, *arrays), arrays

        def backward(arrays: Any, gradients: Any, **static: Any) -> Any:
            return jax.vjp(functools.partial(function, **static), *arrays)[1](gradients)

        self.defvjp(forward, backward)

    def program(self, *types: Any, **static: Any) -> BlockProgram:
        """Return the block program for arrays, or types of arrays."""
        return self._traced(types, static)[0]

    def own_source(self, arguments: Sequence[Any]) -> Source:
        """Return the program at level ``tiles``, for arrays of these types and shapes or ``example_args``."""
        given = [jax.ShapeDtypeStruct(shape, dtype.numpy) for dtype, shape in arguments]  # type: ignore[no-untyped-call]
        return source_of_program(self.program(*given))

    def _call(self, static: Mapping[str, Any], reference: bool, *arrays: Any) -> Any:
        values = [self._array(*each) for each in enumerate(arrays)]
        program, tree = self._traced(values, static)
        results = call_block_program(program, values, reference)
        return jax.tree.map(lambda number: results[number], tree)

    def _array(self, number: int, value: Any) -> Any:
        try:
            return jnp.asarray(value)
        except (TypeError, ValueError):
            kind = f"{reprlib.repr(value)} of type {type(value).__name__}"
            raise wrong(f"kernel {self.__name__}, argument {number}: expected an array, got {kind}") from None

    def _traced(self, types: Sequence[Any], static: Mapping[str, Any]) -> tuple[BlockProgram, Any]:
        shapes = tuple((tuple(each.shape), np.dtype(each.dtype)) for each in types)
        # 1, 1.0 and True are equal, and make other programs.
        values = tuple((name, type(value), value) for name, value in sorted(static.items()))
        key = (shapes, values, config.trace_context())
        try:
            known = self._programs.get(key)
        except TypeError:
            names = ", ".join(static)
            raise wrong(
                f"kernel {self.__name__}: expected values that can be hashed by keyword ({names}); arrays are given by"
                " position"
            ) from None
        if known is None:
            known = trace_program(self._function, types, static, self._settings)
            if len(self._programs) >= _MOST_PROGRAMS:
                self._programs.pop(next(iter(self._programs)))
            self._programs[key] = known
        return known


@checks_keywords("block.kernel")
def kernel(
    function: Callable[..., Any] | None = None,
    /,
    *,
    threads: int | None = None,
    stages: int | None = None,
    copy: str | None = None,
    emitter: str | None = None,
    schedule: Mapping[str, int] | None = None,
) -> Any:
    """Make a kernel of a function that computes the tiles of one block: see docs/block_programs.md.

    - ``threads`` is the number of a block's threads, 128 if left out.
    - ``stages`` is the number of buffers for the tiles of steps, and ``copy`` how these are copied (``"plain"`` or
      ``"async"``); single steps and tiles may choose otherwise. The compiler chooses what is left out.
    - ``emitter`` is ``"block"``, which takes any program, or ``"product"``, which takes one product of tiles with its
      epilogue, and multiplies by warp groups. ``schedule`` fixes numbers of the latter's schedule.

    Without a function, the result is a decorator.
    """
    if emitter is not None and emitter != EMITTER_NAME and emitter not in _OTHERS:
        raise wrong(f"block.kernel: expected an emitter of {', '.join((EMITTER_NAME, *_OTHERS))}, got {emitter!r}")
    _check_of_emitter(emitter, threads, copy, schedule)
    checked_decisions({"stages": stages, "copy": copy}, ("stages", "copy"))
    many = BlockProgramSchedule.of(None).threads if threads is None else threads
    settings = Settings(many, emitter, stages, copy, dict(schedule or {}))
    for problem in BlockProgramSchedule(many).range_problems():
        raise wrong(f"block.kernel: {problem}")
    if function is None:
        return functools.partial(Kernel, settings=settings)
    if not callable(function):
        raise InvalidInput(f"block.kernel: expected a function, got {function!r}")
    return Kernel(function, settings)


_OTHERS = (product_form.EMITTER,)
_COPIES = (attributes.PLAIN, attributes.ASYNC, attributes.BULK)


def _check_of_emitter(emitter: str | None, threads: object, copy: str | None, schedule: object) -> None:
    """Raise InvalidInput for what an emitter does not leave to decide, or for what is no decision."""
    if not isinstance(schedule, Mapping | None):
        raise wrong(f"block.kernel: expected a schedule of numbers by name, got {schedule!r}")
    if emitter in _OTHERS and copy is not None:
        raise wrong(f"block.kernel: the emitter '{emitter}' copies tiles in one way: expected no copy, got {copy!r}")
    if emitter in _OTHERS and threads is not None:
        said = "the threads follow from the schedule's groups"
        raise wrong(f"block.kernel: emitter '{emitter}': {said}: expected no threads, got {threads!r}")
    if emitter not in _OTHERS and schedule:
        raise wrong(
            f"block.kernel: of emitters, only {', '.join(_OTHERS)} has a schedule: expected none, got {schedule}"
        )
    if copy not in (None, *_COPIES):
        raise wrong(f"block.kernel: expected a copy of {', '.join(_COPIES)}, got {copy!r}")
