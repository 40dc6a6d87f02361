"""The reference: the same program compiled by XLA for the CPU."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from xgpu import ir
from xgpu.analysis.initial_values import with_initial_values_once
from xgpu.errors import ToolError
from xgpu.frontend.xla_form import xla_form
from xgpu.indexing.access import shape_of
from xgpu.indexing.window_numbers import window_numbers, window_padding
from xgpu.jax_internals import compiler, xla_client
from xgpu.runtime.host_libraries import load_host_libraries
from xgpu.structure import copy_module, dtype_of, is_argument, walk

_NAME = "sym_name"
# Each operation rounds to its own type, as in a program run operation by operation and as xgpu's kernels do.
_XLA_OPTIONS: dict[str, Any] = {"xla_allow_excess_precision": False}
# Of the libraries that XLA's compiler for the CPU hands work to, all but that for reductions.
_OWN_REDUCTIONS = {
    "xla_cpu_experimental_ynn_fusion_type": ",".join(
        f"LIBRARY_FUSION_TYPE_{name}" for name in ("DOT", "INDIVIDUAL_DOT", "INDIVIDUAL_CONVOLUTION")
    )
}


class Reference:
    """A program compiled by XLA, for the CPU unless told otherwise; calling it takes and returns NumPy arrays.

    ``as_given`` leaves reductions as they are: the program's results do not depend on how often XLA takes in what they
    start from.
    """

    def __init__(self, module: ir.Module, device: Any = None, as_given: bool = False):
        self._device = device or jax.devices("cpu")[0]
        if self._device.platform == "cpu":
            _refuse_what_ends_the_process(module)
            load_host_libraries(module)
        is_wrapped = self._device.platform == "cpu" and _reduces_bytes(module)
        chosen = _XLA_OPTIONS | _OWN_REDUCTIONS if is_wrapped else _XLA_OPTIONS
        options = compiler.get_compile_options(num_replicas=1, num_partitions=1, env_options_overrides=chosen)
        devices = xla_client.DeviceList((self._device,))
        try:
            program = _with_updates_apart(_named(module))
            program = xla_form(
                program if as_given else with_initial_values_once(program), self._device.platform != "cpu"
            )
            self._executable = compiler.backend_compile_and_load(self._device.client, program, devices, options, [])
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            # The bindings make ValueErrors of exceptions in C++.
            raise ToolError(f"XLA cannot compile the reference: {error}") from None

    def __call__(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """Run on ``arrays``, one per argument of the program, of its shape and type."""
        with jax.enable_x64(True):
            buffers = [jax.device_put(array, self._device) for array in arrays]
        return [np.asarray(result) for result in self._executable.execute(buffers)]


def _named(module: ir.Module) -> ir.Module:
    """Return ``module`` with a name, which XLA wants of it: a plan has none."""
    if _NAME in module.operation.attributes:
        return module
    copy = copy_module(module)
    copy.operation.attributes[_NAME] = ir.StringAttr.get("plan", module.context)
    return copy


def _with_updates_apart(module: ir.Module) -> ir.Module:
    """Return a program that computes the update of an array before it writes it.

    XLA's compiler for the CPU fuses the two, also where the update is a slice of the array that is updated in its own
    memory: it then reads what it has just written. The module itself is returned if it has no such update, else a copy.
    """
    if not _computed_updates(module):
        return module
    copy = copy_module(module)
    for op in _computed_updates(copy):
        update, place = op.operands[1], ir.InsertionPoint(op)
        barrier = ir.Operation.create(
            "stablehlo.optimization_barrier", [update.type], [update], loc=op.location, ip=place
        )
        op.operands[1] = barrier.results[0]
    return copy


def _computed_updates(module: ir.Module) -> list[ir.Operation]:
    found = walk(module.operation, "stablehlo.dynamic_update_slice")
    return [op for op in found if not is_argument(op.operands[1])]


def _reduces_bytes(module: ir.Module) -> bool:
    """Whether there are reductions of integers of 8 bits: the library's sums of such, before it, do not wrap around."""
    results = (result for op in walk(module.operation, "stablehlo.reduce") for result in op.results)
    elements = (dtype_of(result) for result in results)
    return any(each.is_integer and each.bits == 8 for each in elements)


def _refuse_what_ends_the_process(module: ir.Module) -> None:
    """Raise ToolError for what XLA's compiler for the CPU aborts at, and Python with it."""
    if any(map(_only_cuts_edges_off, walk(module.operation, "stablehlo.reduce_window"))):
        raise ToolError(
            "XLA cannot compile the reference: on the CPU it compiles no reduce_window that only cuts off edges: "
            "windows of 1, negative padding"
        )


def _only_cuts_edges_off(op: ir.Operation) -> bool:
    """Whether windows of one element each are all that padding leaves: XLA takes them for the whole array."""
    rank = len(shape_of(op.results[0]))
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    padding = [number for pair in window_padding(op, rank) for number in pair]
    are_single = all(window_numbers(op, name, rank) == [1] * rank for name in names)
    return are_single and max(padding, default=0) <= 0 > min(padding, default=0)
