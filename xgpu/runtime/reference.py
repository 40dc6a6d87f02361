"""The reference: the same program compiled by XLA for the CPU."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax._src import compiler
from jax._src.lib import xla_client  # type: ignore[attr-defined]

from xgpu import ir
from xgpu.dtypes import dtype_of_element
from xgpu.errors import ToolError
from xgpu.frontend.xla_form import xla_form

# Each operation rounds to its own type, as in a program run operation by operation and as xgpu's kernels do.
_XLA_OPTIONS = {"xla_allow_excess_precision": False}


class Reference:
    """A program compiled by XLA, for the CPU unless told otherwise; calling it takes and returns NumPy arrays."""

    def __init__(self, module: ir.Module, device: Any = None):
        self._device = device or jax.devices("cpu")[0]
        if self._device.platform == "cpu":
            _refuse_packed_concatenations(module)
        options = compiler.get_compile_options(num_replicas=1, num_partitions=1, env_options_overrides=_XLA_OPTIONS)
        devices = xla_client.DeviceList((self._device,))
        try:
            program = xla_form(module)
            self._executable = compiler.backend_compile_and_load(self._device.client, program, devices, options, [])
        except jax.errors.JaxRuntimeError as error:
            raise ToolError(f"XLA cannot compile the reference: {error}") from None

    def __call__(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """Run on ``arrays``, one per argument of the program, of its shape and type."""
        with jax.enable_x64(True):
            buffers = [jax.device_put(array, self._device) for array in arrays]
        return [np.asarray(result) for result in self._executable.execute(buffers)]


def _refuse_packed_concatenations(module: ir.Module) -> None:
    """Raise ToolError for what XLA ends the process at: a concatenation of elements that share bytes."""

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "stablehlo.concatenate":
            dtype = dtype_of_element(ir.RankedTensorType(op.results[0].type).element_type)
            if dtype.is_packed:
                packed.append(str(dtype))
        return ir.WalkResult.ADVANCE

    packed: list[str] = []
    module.operation.walk(visit)
    if packed:
        raise ToolError(f"XLA cannot compile the reference: on the CPU it does not concatenate arrays of {packed[0]}")
