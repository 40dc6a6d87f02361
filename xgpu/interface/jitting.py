"""``xgpu.jit``: as ``jax.jit``, but the program is compiled by xgpu.

The result is what ``jax.jit`` returns, of the same class, so that JAX traces, transforms, caches and calls it as any
other. It differs in the function's name alone, a `MarkedName`, by which `jit_lowering` and `jit_stages` know what to
compile.
"""

import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax

from xgpu.errors import checks_keywords
from xgpu.frontend import from_jax
from xgpu.interface import jit_stages
from xgpu.interface.api import Compiled, default_device, options_on
from xgpu.interface.explanation import Explanation, explain
from xgpu.interface.jit_lowering import MarkedName
from xgpu.jax_internals import (
    check_callable,
    fun_name,
    fun_signature,
    infer_argnums_and_argnames,
    source_info_util,
    traceback_util,
)
from xgpu.levels.pipeline import load_passes
from xgpu.options import Options, checked_options

# As JAX imports the rules by which it lowers: not in a function's first call.
load_passes()

# JAX hides these files where it shows its users' own lines.
for _module in (__file__, jit_stages.__file__):
    traceback_util.register_exclusion(_module)
    source_info_util.register_exclusion(_module)
# JAX makes one expression of all such files, now and not in the first call.
source_info_util.is_user_filename(__file__)

_jax_jit: Callable[..., Any] = jax.jit
"""``jax.jit``, whatever that name stands for later: it may be replaced by the function below."""


class _NotGiven:
    pass


_NOT_GIVEN = _NotGiven()


@checks_keywords("xgpu.jit", others=inspect.signature(_jax_jit).parameters)
def jit(
    function: Callable[..., Any] | _NotGiven = _NOT_GIVEN,
    /,
    *,
    options: Options | None = None,
    autotune: bool = False,
    **jit_options: Any,
) -> Callable[..., Any]:
    """Compile ``function`` with xgpu when it is called; the result is used like that of ``jax.jit``.

    ``jit_options`` are those of ``jax.jit``, and ``autotune=True`` is that of `Options`. Without a function, the result
    is a decorator. The kernels run inside XLA's executable, on a CUDA device or on a CPU; operations that xgpu cannot
    compile are left to XLA. The result can be called, traced, lowered and transformed (``jax.grad``, ...). Its
    method ``explain`` takes the function's arguments and returns an `Explanation`: the kernels, and what fell back.
    """
    chosen = checked_options(options)
    if autotune is not False:
        chosen = replace(chosen, autotune=autotune)
    if isinstance(function, _NotGiven):
        return functools.partial(jit, options=chosen, **jit_options)
    check_callable(function)  # type: ignore[no-untyped-call]
    marked = _marked(function, chosen)
    jitted = _jax_jit(marked, **jit_options)
    static = [jit_options.get(key) for key in ("static_argnums", "static_argnames")]
    # JAX's object keeps the function; what it looks like is the function, too.
    kept: Any = marked.__wrapped__
    for name, value in getattr(kept, "__dict__", {}).items():
        jitted.__dict__.setdefault(name, value)
    functools.update_wrapper(jitted, kept, updated=())
    jitted.__name__ = str(marked.__name__)
    jitted.explain = functools.partial(_explain, kept, chosen, static)
    return jitted


class _Marked:
    """A function with a `MarkedName`. It does not keep the function, unless that cannot be referred to weakly.

    JAX keeps traces and executables of a function for as long as that lives. So there is one of these for a function
    and options, which lives as long as the function or what was made of it.
    """

    __slots__ = ("__name__", "__weakref__", "_function", "_options")

    def __init__(self, function: Callable[..., Any], options: Options, is_kept: bool):
        self._function = (lambda: function) if is_kept else weakref.ref(function)
        self._options = options
        self.__name__ = MarkedName(fun_name(function), options)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        function: Any = self._function()
        return function

    def __getattr__(self, name: str) -> Any:
        if name == "__qualname__":
            return getattr(self.__wrapped__, name)
        raise AttributeError(name)

    def __repr__(self) -> str:
        # JAX names a function so where arguments are not arrays.
        return repr(self.__wrapped__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy may be all that there is of the function elsewhere.
        return _Marked, (self.__wrapped__, self._options, True)


_known: weakref.WeakKeyDictionary[Callable[..., Any], dict[Options, _Marked]] = weakref.WeakKeyDictionary()


def _marked(function: Callable[..., Any], options: Options) -> _Marked:
    """Return the one marked function of an equal function and the same options."""
    try:
        of_function = _known.setdefault(function, {})
    except TypeError:
        return _Marked(function, options, is_kept=True)
    return of_function.setdefault(options, _Marked(function, options, is_kept=False))


def _explain(
    function: Callable[..., Any], options: Options, static: Sequence[Any], *args: Any, **kwargs: Any
) -> Explanation:
    """Return the kernels of the function for these arguments, and the fallbacks to XLA with their reasons."""
    numbers, names = infer_argnums_and_argnames(fun_signature(function) or inspect.Signature(), *static)
    source = from_jax(function, args, kwargs, static_argnums=numbers, static_argnames=names)
    options = options_on(jax.default_backend(), options)
    return explain(Compiled.from_source(source, default_device(), options, [], None))
