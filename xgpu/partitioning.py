"""Programs over several devices: partitioned here by Shardy's passes, so that kernels see the arrays of one device.

XLA partitions a program after it has been handed over, when a kernel is a call of code that it knows nothing of. So
what it would do is done before: shardings are propagated, arrays that are needed otherwise get explicit collectives,
and shapes become those of one device's part.
"""

import functools
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import jax
from jax._src import xla_bridge
from jax.extend.backend import backends
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from xgpu import ir
from xgpu.frontend.inline_calls import inline_calls

_SPREAD = (
    "sdy-propagation-pipeline",
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true},sdy-reshard-to-collectives)",
)
_LOCALIZE = ("sdy-close-shardings", "sdy-export-pipeline", "sdy-convert-global-to-local")
_SPREADABLE = frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs add and atan2 broadcast_in_dim cbrt ceil clamp compare complex constant convert cosine divide dot_general "
        "exponential exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply "
        "negate not or popcnt power real reduce remainder return round_nearest_afz round_nearest_even rsqrt select "
        "shift_left shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh transpose while xor"
    ).split()
)
"""Operations that the last pass is right for, whichever dimensions of their arrays are spread.

It moves other elements than it should for some of the others (``reverse``), and ends the process for some
(``reduce_window``): checked against XLA, Shardy of jaxlib 0.12.0.1. All others must find whole arrays on every device.
"""
_OLDEST_VERSION = (0, 12)
"""Of jaxlib: Shardy of earlier ones leaves collectives out, and ends the process at some programs."""
_PARAMETERS, _RESULTS = "sdy.parameters_shardings", "sdy.output_shardings"
_SHARDING_ATTRIBUTE = "sdy.sharding"
_SHARDING = re.compile(r"<(?:@\w+|mesh<[^>]*>), \[([^\]]*)\]")
_DIMENSION = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True)
class Partitioned:
    """The program of each device, and how arrays are spread over the mesh before and after it."""

    module: ir.Module
    inputs: tuple[PartitionSpec, ...]
    outputs: tuple[PartitionSpec, ...]


def can_have_mesh() -> bool:
    """Whether there may be arrays that lie on several devices. Starts no devices."""
    return xla_bridge.backends_are_initialized() and _has_many_devices()


@functools.cache
def _has_many_devices() -> bool:
    return any(client.device_count() > 1 for client in backends().values())


_OF_ONE_DEVICE = (SingleDeviceSharding, type(None))


def mesh_of(arrays: Sequence[Any]) -> Mesh | None:
    """Return the mesh of those of ``arrays`` that lie on several devices; None if there is none, or no single one."""
    meshes = set()
    for array in arrays:
        # First of all what nearly all are, as every call looks at every argument.
        if type(getattr(array, "sharding", None)) in _OF_ONE_DEVICE:
            continue
        if (
            isinstance(array, jax.Array)
            and not isinstance(array, jax.core.Tracer)
            and len(array.sharding.device_set) > 1
        ):
            if not isinstance(array.sharding, NamedSharding) or not isinstance(array.sharding.mesh, Mesh):
                return None
            meshes.add(array.sharding.mesh)
    return meshes.pop() if len(meshes) == 1 else None


def partition_program(lowered: Any) -> Partitioned | None:
    """Return what ``jax.jit(...).lower(...)`` of sharded arrays means for one device; None if that cannot be told."""
    if tuple(map(int, version("jaxlib").split(".")[:2])) < _OLDEST_VERSION:
        return None
    stream = io.BytesIO()
    lowered.compiler_ir("stablehlo").operation.write_bytecode(stream)
    try:
        module = ir.Module.parse(stream.getvalue(), ir.make_context())
        with module.context:
            # Meshes become parts of the shardings that name them, so that only functions are left to inline.
            ir.PassManager.parse("builtin.module(sdy-inline-meshes)").run(module.operation)
            inline_calls(module)
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
    return Partitioned(module, inputs, outputs)


def _is_understood(module: ir.Module) -> bool:
    """Whether no operation but those of the table has a result, or reads an array, that is spread."""
    spread: set[ir.Value] = set()
    understood = True

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal understood
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
            understood = False
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return understood


def _names_an_axis(text: str) -> bool:
    """Whether any dimension of a sharding's text is spread over an axis of the mesh."""
    return any('"' in dimension for sharding in _SHARDING.findall(text) for dimension in _DIMENSION.findall(sharding))


def _specs(text: str) -> tuple[PartitionSpec, ...]:
    return tuple(
        PartitionSpec(  # type: ignore[no-untyped-call]
            *(tuple(re.findall(r'"(\w+)"', dimension)) or None for dimension in _DIMENSION.findall(sharding))
        )
        for sharding in _SHARDING.findall(text)
    )


def over_mesh(mesh: Mesh, program: Partitioned, body: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of whole arrays that runs ``body`` on each device's parts."""
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=program.inputs, out_specs=program.outputs, check_vma=False))
