"""Lowering and compilation, by ``jax.jit``, of a function of ``xgpu.jit``: a program that calls its kernels.

JAX traces such a function and keeps its traces as those of any other. Only where it lowers one that nothing is around
(a call, or ``lower``), the program becomes one call of itself, which `xgpu.interface.jit_lowering` replaces. As
``jax.jit`` does, ``lower`` shows the program that goes into the compiler, and ``cost_analysis`` counts what that
program does.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from xgpu.interface.jit_lowering import MarkedName, lowered_by_jax
from xgpu.interface.partitioning import partition
from xgpu.jax_internals import UNSPECIFIED, RefEffect, core, ordered_effects, pjit, pxla, weakref_lru_cache

_resolve_and_lower: Callable[..., Any] = pjit._resolve_and_lower
_GRAPHS = ("xla_gpu_graph_min_graph_size", 2)
"""XLA records sequences of so many kernels as CUDA graphs; its own default is five."""
_ESTIMATOR = ("xla_gpu_enable_analytical_sol_latency_estimator", False)
"""Turns off XLA's estimates of what takes how long between devices, which take 15 ms to set up for each program."""


def _lower(arguments: Sequence[Any], **parameters: Any) -> Any:
    """Lower a ``jax.jit`` for arguments of these types. ``parameters`` are those of its equation, and of lowering."""
    name = parameters["name"]
    if not isinstance(name, MarkedName) or not _can_be_called(parameters["jaxpr"]):
        return _resolve_and_lower(arguments, **parameters)
    call = _as_call(parameters["jaxpr"], name, parameters["ctx_mesh"])
    # JAX keeps what is made of a jaxpr for as long as that lives, so it must not refer to it: hence the copy.
    given = {**parameters, "jaxpr": call.eqns[0].params["jaxpr"], "name": str(name)}

    def as_given(**other: Any) -> Any:
        with lowered_by_jax():
            return _resolve_and_lower(arguments, **{**given, **other})

    spread = partition(arguments, given, name.options, as_given)
    options = _compiler_options(parameters["compiler_options_kvs"])
    changed = {"jaxpr": call if spread is None else spread, "compiler_options_kvs": options}
    ours = _resolve_and_lower(arguments, **{**parameters, **changed})
    return ours if parameters["lowering_parameters"].for_export else _Computation(ours, as_given)


pjit._resolve_and_lower = _lower  # type: ignore[assignment]


def _compiler_options(given: Sequence[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
    """Return XLA's options for a program: those ``given``, and on a GPU our own where they say nothing."""
    if jax.default_backend() != "gpu":
        return tuple(given)
    own = (_GRAPHS, _ESTIMATOR) if jax.device_count() == 1 else (_GRAPHS,)
    names = {name for name, _ in given}
    return (*given, *(option for option in own if option[0] not in names))


def _can_be_called(jaxpr: Any) -> bool:
    """Whether there may be something to compile: operations on arrays of known shape, ordered by their values alone.

    References to memory that is written to, and tokens, are XLA's.
    """
    values = (*jaxpr.in_avals, *jaxpr.out_avals, *map(core.typeof, jaxpr.consts))
    are_known = all(isinstance(value, core.ShapedArray) and core.is_constant_shape(value.shape) for value in values)
    is_ordered = any(isinstance(effect, RefEffect) or ordered_effects.contains(effect) for effect in jaxpr.effects)
    return bool(jaxpr.eqns) and are_known and not is_ordered


@weakref_lru_cache
def _as_call(jaxpr: Any, name: MarkedName, mesh: Any) -> Any:
    """Return a jaxpr that is one call of a copy of ``jaxpr``, whose own life it does not extend."""
    inner = jaxpr.replace(debug_info=jaxpr.debug_info)
    invars = [core.Var(value) for value in inner.in_avals]
    outvars = [core.Var(value) for value in inner.out_avals]
    parameters = {
        "jaxpr": inner,
        "name": name,
        "in_shardings": (UNSPECIFIED,) * len(invars),
        "out_shardings": (UNSPECIFIED,) * len(outvars),
        "in_layouts": (None,) * len(invars),
        "out_layouts": (None,) * len(outvars),
        "donated_invars": (False,) * len(invars),
        "ctx_mesh": mesh,
        "keep_unused": False,
        "inline": jax.Inline.AUTO,
        "compiler_options_kvs": (),
    }
    done = core.positional_effects(inner)
    equation = core.new_jaxpr_eqn(invars, outvars, pjit.jit_p, parameters, done)
    return core.Jaxpr((), invars, outvars, [equation], equation.effects, jaxpr.debug_info)


class _Computation(pxla.MeshComputation):
    """A computation that compiles with kernels, and shows the program as JAX lowers it."""

    def __init__(self, computation: Any, as_given: Callable[[], Any]):
        self.__dict__.update(vars(computation))
        self._computation = computation
        self._as_given = functools.cache(as_given)

    def stablehlo(self) -> Any:
        """Return the program as JAX lowers it."""
        return self._as_given().stablehlo()

    def compile(self, *arguments: Any, **keywords: Any) -> Any:
        """Compile the program with the calls of kernels."""
        executable = self._computation.compile(*arguments, **keywords)
        if isinstance(executable, _Executable):
            return executable
        ours = _Executable.of(executable, self._as_given)
        if self._computation._executable is executable:
            self._computation._executable = ours
        return ours


class _Executable(pxla.MeshExecutable):
    """An executable with kernels in it, whose cost XLA does not know."""

    __slots__ = ("_as_given",)
    _as_given: Callable[[], Any]

    @classmethod
    def of(cls, executable: Any, as_given: Callable[[], Any]) -> "_Executable":
        """Return what ``executable`` is; ``as_given`` returns the same program as JAX lowers it."""
        made = cls.__new__(cls)
        made._as_given = as_given
        for name in pxla.MeshExecutable.__slots__:
            setattr(made, name, getattr(executable, name))
        return made

    def cost_analysis(self) -> Any:
        """Return what XLA says that the program costs if XLA compiles all of it."""
        return self._as_given().compile().cost_analysis()
