"""Calls between an array and the parts of it that devices have."""

from xgpu import ir
from xgpu.structure import walk

FULL_TO_SHARD, SHARD_TO_FULL = "SPMDFullToShardShape", "SPMDShardToFullShape"
"""Custom calls between an array and the part of it that each device has."""
_CUSTOM_CALL = "stablehlo.custom_call"


def crosses_devices(module: ir.Module) -> ir.Operation | None:
    """Return a call that splits arrays over devices or puts them together, None if there is none."""
    return next((op for op in walk(module.operation, post_order=False) if is_between_shapes(op)), None)


def is_between_shapes(op: ir.Operation) -> bool:
    """Whether ``op`` takes an array and makes a device's part of it, or the other way round."""
    is_call = op.name == _CUSTOM_CALL and len(op.operands) == len(op.results) == 1
    return is_call and ir.StringAttr(op.attributes["call_target_name"]).value in (FULL_TO_SHARD, SHARD_TO_FULL)
