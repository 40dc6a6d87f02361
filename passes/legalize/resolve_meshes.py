"""The pass `resolve-meshes`."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from xgpu import ir
from xgpu.errors import Unsupported
from xgpu.hlo.shards import FULL_TO_SHARD, SHARD_TO_FULL
from xgpu.hlo.source_location import unsupported
from xgpu.passes.framework.base import Pass
from xgpu.records import dataclass
from xgpu.structure import replace_op, walk

_CUSTOM_CALL = "stablehlo.custom_call"
_GROUPS = "replica_groups"
_MOST_DEVICES = 1 << 20
_OPENED = ("sdy.manual_computation", "sdy.named_computation")
_IDENTITIES = ("sdy.data_flow_edge", "sdy.propagation_barrier", "sdy.reshard", "sdy.sharding_constraint")
"""Attributes and operations that say on which device the elements of an array are."""
_DROPPED = ("sdy.mesh", "sdy.sharding_group")
_ATTRIBUTES_OF_VALUES = ("arg_attrs", "res_attrs")


@dataclass(frozen=True)
class _Mesh:
    """The sizes of a mesh's axes by name, major first, and the devices in that order."""

    axes: Mapping[str, int]
    devices: Sequence[int]

    @classmethod
    def of(cls, attribute: Any) -> "_Mesh":
        """Return the mesh of an attribute of Shardy or StableHLO. Without a list, devices are in their own order."""
        axis_of = _AXES[type(attribute)]
        axes = {axis_of(each).name: axis_of(each).size for each in attribute.axes}
        if attribute.device_ids is None or not len(attribute.device_ids):
            count = math.prod(axes.values())
            if count > _MOST_DEVICES:
                raise Unsupported(f"a mesh of {count} devices is not supported, only of up to {_MOST_DEVICES}")
            return cls(axes, range(count))
        return cls(axes, [int(each) for each in attribute.device_ids])


_AXES: Mapping[Any, Any] = {ir.sdy.MeshAttr: ir.sdy.MeshAxisAttr, ir.stablehlo.MeshAttr: ir.stablehlo.MeshAxisAttr}


@dataclass(frozen=True)
class ResolveMeshes(Pass):
    """Converts a program over a mesh of devices, as JAX writes it with Shardy, to the program of one device.

    Collectives get the groups of devices that axes of the mesh stand for. The body of a ``manual_computation``, which
    runs on each device, is inlined between custom calls for arrays of which a device has a part. Shardings are removed.
    Raises Unsupported for axes that a mesh does not have. Needs: nothing.

    ```mlir
    sdy.mesh @mesh = <["x"=2]>
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
        manual_axes={"x"} (%a: tensor<4xf32>) {
      %1 = stablehlo.negate %a : tensor<4xf32>
      sdy.return %1 : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    ```
    becomes
    ```mlir
    %a = stablehlo.custom_call @SPMDFullToShardShape(%x) : (tensor<8xf32>) -> tensor<4xf32>
    %1 = stablehlo.negate %a : tensor<4xf32>
    %0 = stablehlo.custom_call @SPMDShardToFullShape(%1) : (tensor<4xf32>) -> tensor<8xf32>
    ```
    """

    NAME: ClassVar[str] = "resolve-meshes"

    def apply(self, module: ir.Module) -> None:
        """Rewrite all operations: each may have a sharding."""
        meshes = dict(_declared(module))
        for op in walk(module.operation, post_order=False):
            if _GROUPS in op.attributes and ir.stablehlo.ReplicaGroupMeshAxesAttr.isinstance(op.attributes[_GROUPS]):
                groups = _groups(op, ir.stablehlo.ReplicaGroupMeshAxesAttr(op.attributes[_GROUPS]), meshes)
                op.attributes[_GROUPS] = ir.DenseIntElementsAttr.get(groups, context=module.context)
            _drop_shardings(op)
            if op.name in _OPENED:
                _open(op)
            elif op.name in _IDENTITIES:
                replace_op(op, list(op.operands))
            elif op.name in _DROPPED:
                op.erase()


def _drop_shardings(op: ir.Operation) -> None:
    """Remove Shardy's attributes of an operation, and those of a function's arguments and results."""
    for name in list(op.attributes):
        if name.startswith("sdy."):
            del op.attributes[name]
        elif name in _ATTRIBUTES_OF_VALUES:
            of_values = [_without_shardings(ir.DictAttr(each)) for each in ir.ArrayAttr(op.attributes[name])]
            op.attributes[name] = ir.ArrayAttr.get(of_values, context=op.context)


def _without_shardings(attributes: ir.DictAttr) -> ir.Attribute:
    named = [attributes[number] for number in range(len(attributes))]
    kept = [each for each in named if not each.name.startswith("sdy.")]
    if len(kept) == len(named):
        # Not to be looked into: the bindings end the process at attributes of kinds that they do not know.
        return attributes
    return ir.DictAttr.get({each.name: each.attr for each in kept}, context=attributes.context)


def _declared(module: ir.Module) -> Iterator[tuple[str, _Mesh]]:
    """Yield the meshes that a module declares, by name."""
    for op in module.body.operations:
        if op.operation.name == "sdy.mesh":
            attributes = op.operation.attributes
            yield ir.StringAttr(attributes["sym_name"]).value, _Mesh.of(ir.sdy.MeshAttr(attributes["mesh"]))


def _groups(op: ir.Operation, attribute: Any, meshes: Mapping[str, _Mesh]) -> np.ndarray[Any, Any]:
    """Return the groups, a row each, of devices that differ in nothing but the axes named."""
    mesh = _mesh_of(op, attribute.mesh, meshes)
    parts = [_part(op, ir.stablehlo.AxisRefAttr(each), mesh) for each in attribute.axes]
    # Each axis is cut into pieces wherever a part of it begins or ends.
    cuts = {
        name: sorted({1, size, *(cut for axis, *ends in parts if axis == name for cut in ends)})
        for name, size in mesh.axes.items()
    }
    pieces = [(name, low, high) for name, at in cuts.items() for low, high in itertools.pairwise(at)]
    if any(low < 1 or high % low for _, low, high in pieces):
        raise unsupported(op, f"{attribute} does not divide the axes of its mesh")
    sizes = [high // low for _, low, high in pieces]
    if math.prod(sizes) != len(mesh.devices):
        raise unsupported(op, f"its mesh has {len(mesh.devices)} devices, and axes of {math.prod(sizes)}")
    inner = [
        number
        for part, begin, end in parts
        for number, (name, low, _) in enumerate(pieces)
        if name == part and begin <= low < end
    ]
    if len(set(inner)) < len(inner):
        raise unsupported(op, f"{attribute} names parts of axes more than once")
    outer = [number for number in range(len(pieces)) if number not in inner]
    devices = np.array(mesh.devices, np.int64).reshape(sizes).transpose([*outer, *inner])
    return np.ascontiguousarray(devices.reshape(-1, math.prod(sizes[number] for number in inner)))


def _mesh_of(op: ir.Operation, attribute: ir.Attribute, meshes: Mapping[str, _Mesh]) -> _Mesh:
    """Return the mesh that ``attribute`` is, or names."""
    if isinstance(attribute, ir.FlatSymbolRefAttr) and attribute.value in meshes:
        return meshes[attribute.value]
    for kind in _AXES:
        if kind.isinstance(attribute):
            return _Mesh.of(kind(attribute))
    raise unsupported(op, f"the module has no mesh {attribute}")


def _part(op: ir.Operation, ref: Any, mesh: _Mesh) -> tuple[str, int, int]:
    """Return the axis that ``ref`` names, and where the part of it begins and ends, from 1 to the axis's size."""
    if ref.name not in mesh.axes:
        raise unsupported(op, f"its mesh has no axis '{ref.name}', only {', '.join(mesh.axes) or 'none'}")
    if ref.sub_axis_info is None:
        return ref.name, 1, mesh.axes[ref.name]
    part = ir.stablehlo.SubAxisInfoAttr(ref.sub_axis_info)
    return ref.name, part.pre_size, part.pre_size * part.size


def _open(op: ir.Operation) -> None:
    """Put the operations of a ``manual_computation`` or ``named_computation`` where it stands."""
    (block,) = op.regions[0].blocks
    *body, terminator = (each.operation for each in block.operations)
    inputs, outputs = (_shardings(op, name) for name in ("in_shardings", "out_shardings"))
    with ir.InsertionPoint(op), op.location:
        for number, (argument, operand) in enumerate(zip(block.arguments, op.operands, strict=True)):
            argument.replace_all_uses_with(_reshaped(FULL_TO_SHARD, operand, argument.type, inputs[number]))
        for each in body:
            each.move_before(op)
        results = [
            _reshaped(SHARD_TO_FULL, value, result.type, outputs[number])
            for number, (value, result) in enumerate(zip(terminator.operands, op.results, strict=True))
        ]
    replace_op(op, results)


def _shardings(op: ir.Operation, name: str) -> list[str]:
    """Return how an operation's operands or results are spread, as text; nothing is said of those of one device."""
    if name not in op.attributes:
        return [""] * max(len(op.operands), len(op.results))
    return [str(each) for each in ir.sdy.TensorShardingPerValueAttr(op.attributes[name]).shardings]


def _reshaped(target: str, value: ir.Value, type_: ir.Type, sharding: str) -> ir.Value:
    """Return ``value`` as the call ``target`` makes it of another type; itself if it is the same on all devices."""
    if value.type == type_:
        return value
    attributes: dict[str, ir.Attribute] = {
        "call_target_name": ir.StringAttr.get(target),
        "backend_config": ir.StringAttr.get(sharding),
    }
    return ir.Operation.create(_CUSTOM_CALL, [type_], [value], attributes).results[0]
