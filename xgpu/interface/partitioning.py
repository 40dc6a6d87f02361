"""Programs over several devices: partitioned here by Shardy's passes, so that kernels see the arrays of one device.

XLA partitions a program after it has been handed over, when a kernel is a call of code that it knows nothing of. So
what it would do is done before: shardings are propagated, arrays that are needed otherwise get explicit collectives,
and shapes become those of one device's part.
"""

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
from jax import jit as jax_jit
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from xgpu import ir
from xgpu.errors import XgpuError
from xgpu.frontend.signature import make_source
from xgpu.hlo.operations import OPERATIONS
from xgpu.interface.api import Compiled, default_device, options_on
from xgpu.jax_internals import UnspecifiedValue, convert_element_type, weakref_lru_cache
from xgpu.options import Options
from xgpu.passes.normalize.inline_calls import InlineCalls
from xgpu.records import dataclass
from xgpu.runtime import cuda_calls
from xgpu.runtime.jax_backend import call_program
from xgpu.structure import walk

_SPREAD = (
    "sdy-propagation-pipeline",
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true},sdy-reshard-to-collectives)",
)
_LOCALIZE = ("sdy-close-shardings", "sdy-export-pipeline", "sdy-convert-global-to-local")
_SPREADABLE = {name for name, operation in OPERATIONS.items() if operation.spreads} | {
    "stablehlo.return",
    "stablehlo.while",
}
"""Operations that the last pass is right for, whichever dimensions of their arrays are spread.

All others must find whole arrays on every device.
"""
_OLDEST_VERSION = (0, 12)
"""Version of jaxlib: Shardy of earlier ones leaves collectives out, and ends the process at some programs."""
_PARAMETERS, _RESULTS = "sdy.parameters_shardings", "sdy.output_shardings"
_SHARDING_ATTRIBUTE = "sdy.sharding"
_SHARDING_ATTRIBUTES = (_SHARDING_ATTRIBUTE, "sharding", "in_shardings", "out_shardings")
_SHARDING = re.compile(r"<(?:@\w+|mesh<[^>]*>), \[([^\]]*)\]")
_DIMENSION = re.compile(r"\{([^}]*)\}")
_AXES = re.compile(r'(?:"[^"]*"(?:, "[^"]*")*)?')
_UNREDUCED = "unreduced="
"""Stands in the sharding of an array of which each device has a summand."""


@dataclass(frozen=True)
class _Partitioned:
    """The program of each device, and how arrays are spread over the mesh before and after it."""

    module: ir.Module
    inputs: tuple[PartitionSpec, ...]
    outputs: tuple[PartitionSpec, ...]


def partition(
    arguments: Sequence[Any], parameters: Mapping[str, Any], options: Options, lower: Callable[..., Any]
) -> Any | None:
    """Return a jaxpr that runs kernels on each device's parts of arrays, None if that cannot be done or need not be.

    ``arguments`` are the types and shardings of what a ``jax.jit`` with these ``parameters`` is lowered for; ``lower``
    lowers it, with other parameters if it is given any.
    """
    jaxpr = parameters["jaxpr"]
    mesh = _mesh_of(argument.sharding for argument in arguments)
    if mesh is None or not _is_free(parameters) or not all(map(_is_plain, (*jaxpr.in_avals, *jaxpr.out_avals))):
        return None
    known, key = _known(jaxpr), (tuple(arguments), options)
    if key not in known:
        partitioned = _partition_program(lower(keep_unused=True))
        known[key] = partitioned and _spread(arguments, partitioned, mesh, parameters, options)
    return known[key]


@weakref_lru_cache
def _known(jaxpr: Any) -> dict[Any, Any]:
    """Return the cached result of `partition` for a jaxpr, for as long as that lives."""
    return {}


def _spread(
    arguments: Sequence[Any], partitioned: _Partitioned, mesh: Mesh, parameters: Mapping[str, Any], options: Options
) -> Any | None:
    """Return a jaxpr that runs a partitioned program on the parts of whole arrays, None if that cannot be compiled."""
    try:
        source = make_source(partitioned.module, str(parameters["name"]))
        platform = mesh.devices.flat[0].platform
        target = default_device()
        level = cuda_calls.level(target) if platform == "gpu" else "lowered"
        program = Compiled.from_source(source, target, options_on(platform, options), [], level)
    except XgpuError:
        return None
    results = parameters["jaxpr"].out_avals
    types = [value.weak_type for value in results]

    def body(*parts: Any) -> tuple[Any, ...]:
        typed = zip(call_program(program, parts), types, strict=True)
        return tuple(convert_element_type(result, weak_type=is_weak) for result, is_weak in typed)

    spread = jax.shard_map(body, mesh=mesh, in_specs=partitioned.inputs, out_specs=partitioned.outputs, check_vma=False)
    # Types are those of the program, which may have been traced in another mode than this thread is in now.
    with jax.enable_x64(True):
        made = jax_jit(spread).trace(*map(_struct, arguments)).jaxpr
    return made if [*map(_type, made.out_avals)] == [*map(_type, results)] else None


def _mesh_of(shardings: Iterable[Any]) -> Mesh | None:
    """Return the mesh of what lies on several devices; None if nothing does, or on no mesh, or on different ones."""
    meshes = set()
    for sharding in shardings:
        is_named = isinstance(sharding, NamedSharding)
        if is_named and not isinstance(sharding.mesh, Mesh):
            return None
        if sharding is not None and len(sharding.device_set) > 1:
            if not is_named:
                return None
            meshes.add(sharding.mesh)
    return meshes.pop() if len(meshes) == 1 else None


def _is_free(parameters: Mapping[str, Any]) -> bool:
    """Whether a ``jax.jit`` says nothing of where arrays are to be, how they lie there, and what becomes of them."""
    shardings = (*parameters["in_shardings"], *parameters["out_shardings"])
    layouts = (*parameters["in_layouts"], *parameters["out_layouts"])
    is_said = any(parameters["donated_invars"]) or parameters["lowering_platforms"] is not None
    return (
        not is_said
        and all(isinstance(sharding, UnspecifiedValue) for sharding in shardings)
        and all(layout is None for layout in layouts)
        and not parameters["jaxpr"].effects
    )


def _is_plain(value: Any) -> bool:
    """Whether a value is an array of numbers, the sum of nothing that is on other devices, now or in its derivative."""
    if not isinstance(value, jax.core.ShapedArray) or jnp.issubdtype(value.dtype, jax.dtypes.extended):
        return False
    return not value.sharding.spec.unreduced and not value.sharding.spec.reduced


def _struct(argument: Any) -> Any:
    sharding = argument.sharding if isinstance(argument.sharding, NamedSharding) else None
    return jax.ShapeDtypeStruct(argument.aval.shape, argument.aval.dtype, sharding=sharding)  # type: ignore[no-untyped-call]


def _type(value: Any) -> tuple[Any, ...]:
    return value.shape, value.dtype, value.weak_type, value.sharding.spec


def _partition_program(lowered: Any) -> _Partitioned | None:
    """Return what a lowered ``jax.jit`` of sharded arrays means for one device; None if that cannot be told."""
    if tuple(map(int, version("jaxlib").split(".")[:2])) < _OLDEST_VERSION or lowered.const_args:
        return None
    stream = io.BytesIO()
    lowered.stablehlo().operation.write_bytecode(stream)
    try:
        module = ir.Module.parse(stream.getvalue(), ir.make_context())
        with module.context:
            # Meshes become parts of the shardings that name them, so that only functions are left to inline.
            ir.PassManager.parse("builtin.module(sdy-inline-meshes)").run(module.operation)
            InlineCalls().apply(module)
            ir.PassManager.parse(f"builtin.module({','.join(_SPREAD)})").run(module.operation)
            if not _is_understood(module):
                return None
            ir.PassManager.parse(f"builtin.module({','.join(_LOCALIZE)})").run(module.operation)
    except (ir.MLIRError, ValueError):
        return None
    given = module.operation.attributes
    if _PARAMETERS not in given or _RESULTS not in given:
        return None
    inputs, outputs = (_specs(str(given[name])) for name in (_PARAMETERS, _RESULTS))
    return None if inputs is None or outputs is None else _Partitioned(module, inputs, outputs)


def _is_understood(module: ir.Module) -> bool:
    """Whether no operation but those of the table has a result, or reads an array, that is spread; and no summands."""
    spread: set[ir.Value] = set()
    for op in walk(module.operation, post_order=False):
        if op.name == "func.func" and "arg_attrs" in op.attributes:
            for argument, described in zip(
                op.regions[0].blocks[0].arguments, ir.ArrayAttr(op.attributes["arg_attrs"]), strict=True
            ):
                if _names_an_axis(str(described)):
                    spread.add(argument)
        is_spread = _SHARDING_ATTRIBUTE in op.attributes and _names_an_axis(str(op.attributes[_SHARDING_ATTRIBUTE]))
        if is_spread:
            spread.update(op.results)
        touches = is_spread or any(operand in spread for operand in op.operands)
        if touches and not (op.name in _SPREADABLE or op.name.startswith(("sdy.", "func."))):
            return False
        given = [str(op.attributes[name]) for name in _SHARDING_ATTRIBUTES if name in op.attributes]
        if any(_UNREDUCED in text for text in given):
            return False
    return True


def _names_an_axis(text: str) -> bool:
    """Whether any dimension of a sharding's text is spread over an axis of the mesh."""
    return any('"' in dimension for sharding in _SHARDING.findall(text) for dimension in _DIMENSION.findall(sharding))


def _specs(text: str) -> tuple[PartitionSpec, ...] | None:
    """Return the specifications that shardings are; None if JAX has none like one of them, such as of parts of axes."""
    shardings = [_DIMENSION.findall(sharding) for sharding in _SHARDING.findall(text)]
    if not all(_AXES.fullmatch(dimension) for dimensions in shardings for dimension in dimensions):
        return None
    return tuple(
        PartitionSpec(*(tuple(re.findall(r'"([^"]*)"', dimension)) or None for dimension in dimensions))  # type: ignore[no-untyped-call]
        for dimensions in shardings
    )
