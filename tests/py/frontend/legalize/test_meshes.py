"""Programs over several devices: groups of devices by axes of a mesh, and computations on parts of arrays."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies

import xgpu
from xgpu import ir
from xgpu.errors import Unsupported
from xgpu.passes.framework import manager
from xgpu.passes.legalize.resolve_meshes import ResolveMeshes

CALL = """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = "stablehlo.all_reduce"(%a) <{{replica_groups = {}}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %z : tensor<f32>
  }}) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}
"""
ON_PARTS = """
module {
  sdy.mesh @mesh = <["d"=2, "m"=3]>
  func.func @main(%x: tensor<8x9xf32>, %scale: tensor<9xf32>) -> (tensor<8x9xf32>, tensor<9xf32>) {
    %twice = stablehlo.add %x, %x : tensor<8x9xf32>
    %0:2 = sdy.manual_computation(%twice, %scale) in_shardings=[<@mesh, [{"d"}, {"m"}]>, <@mesh, [{}]>]
        out_shardings=[<@mesh, [{"d"}, {"m"}]>, <@mesh, [{}]>] manual_axes={"d", "m"}
        (%part: tensor<4x3xf32>, %all: tensor<9xf32>) {
      %1 = stablehlo.tanh %part : tensor<4x3xf32>
      %2 = "stablehlo.all_reduce"(%1) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh,
          axes = [#stablehlo.axis_ref<name = "m">]>,
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %s = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %s : tensor<f32>
      }) : (tensor<4x3xf32>) -> tensor<4x3xf32>
      %3 = stablehlo.exponential %2 : tensor<4x3xf32>
      %4 = stablehlo.sine %all : tensor<9xf32>
      sdy.return %3, %4 : tensor<4x3xf32>, tensor<9xf32>
    } : (tensor<8x9xf32>, tensor<9xf32>) -> (tensor<8x9xf32>, tensor<9xf32>)
    return %0#0, %0#1 : tensor<8x9xf32>, tensor<9xf32>
  }
}
"""
SPREAD = """
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["d"=2, "m"=2]>
  func.func public @main(%x: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {"m"}]>, jax.arg = "x"})
      -> (tensor<4xf32> {jax.result_info = "total", sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) {
    %0 = sdy.sharding_constraint %x <@mesh, [{"d"}, {}]> : tensor<4x6xf32>
    sdy.sharding_group %0 group_id=0 : tensor<4x6xf32>
    %1 = sdy.named_computation<"layer">(%0) in_shardings=[<@mesh, [{"d"}, {}]>] out_shardings=[<@mesh, [{"d"}, {}]>]
        (%y: tensor<4x6xf32>) {
      %3 = stablehlo.exponential %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"d"}, {}]>]>} : tensor<4x6xf32>
      sdy.return %3 : tensor<4x6xf32>
    } : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %2 = sdy.reshard %1 <@mesh, [{"d"}, {}]> : tensor<4x6xf32>
    %4 = func.call @total(%2) : (tensor<4x6xf32>) -> tensor<4xf32>
    return %4 : tensor<4xf32>
  }
  func.func private @total(%x: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) -> tensor<4xf32> {
    %0 = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.reduce(%x init: %0) applies stablehlo.add across dimensions = [1]
      : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
"""
HLO = """
HloModule m, num_partitions=6
%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %add.1 = f32[] add(%x, %y)
}
ENTRY %main (a: f32[4,8]) -> f32[4,8] {
  %a = f32[4,8] parameter(0)
  %sum = f32[4,8] all-reduce(%a), channel_id=1, use_global_device_ids=true, to_apply=%add,
    replica_groups=mesh['d'=2,'m'=3] {'d'}
  ROOT %twice = f32[4,8] add(%sum, %sum)
}
"""


def parse(text: str) -> ir.Module:
    return ir.Module.parse(text, ir.make_context())


def groups_of(mesh: str, axes: str) -> list[list[int]]:
    """Return the groups that a collective gets for ``axes`` of a mesh that the module declares."""
    groups = f"#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [{axes}]>"
    module = parse(f"sdy.mesh @mesh = <{mesh}>\n{CALL.format(groups)}")
    manager.run(module, [ResolveMeshes()])
    (function,) = (op for op in module.body.operations if isinstance(op, ir.func.FuncOp))
    found = np.array(function.entry_block.operations[0].attributes["replica_groups"])
    return found.tolist()


def axis(name: str, begin: int = 0, size: int = 0) -> str:
    part = f", sub_axis_info = ({begin}){size}" if size else ""
    return f'#stablehlo.axis_ref<name = "{name}"{part}>'


@given(strategies.data())
def test_groups_are_of_devices_that_differ_in_the_axes_named_alone(data):
    sizes = data.draw(strategies.lists(strategies.integers(1, 4), min_size=1, max_size=4))
    names = "abcd"[: len(sizes)]
    chosen = data.draw(strategies.permutations(names))[: data.draw(strategies.integers(0, len(sizes)))]
    order = data.draw(strategies.permutations(range(math.prod(sizes))))
    is_listed = list(order) != list(range(len(order)))
    mesh = f"[{', '.join(f'"{name}"={size}' for name, size in zip(names, sizes, strict=True))}]"
    if is_listed:
        mesh += f", device_ids={list(order)}"
    places = dict(zip(order, itertools.product(*map(range, sizes)), strict=True))
    expected: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
    for device, place in places.items():
        fixed = tuple(place[i] for i, name in enumerate(names) if name not in chosen)
        moving = tuple(place[names.index(name)] for name in chosen)
        expected.setdefault(fixed, []).append((moving, device))
    found = groups_of(mesh, ", ".join(map(axis, chosen)))
    assert found == [[device for _, device in sorted(expected[fixed])] for fixed in sorted(expected)]


def test_parts_of_an_axis_are_its_major_or_minor_digits():
    mesh = '["a"=2, "b"=12]'
    assert groups_of(mesh, axis("b", 1, 3))[0] == [0, 4, 8]
    assert groups_of(mesh, axis("b", 3, 2))[:2] == [[0, 2], [1, 3]]
    assert groups_of(mesh, axis("b", 6, 2))[0] == [0, 1]
    assert groups_of(mesh, f"{axis('b', 6, 2)}, {axis('b', 1, 3)}")[0] == [0, 4, 8, 1, 5, 9]
    assert groups_of(mesh, f"{axis('b', 3, 4)}, {axis('a')}")[0] == [0, 12, 1, 13, 2, 14, 3, 15]


@pytest.mark.parametrize(
    ("mesh", "axes", "message"),
    [
        ('["a"=2]', axis("b"), "its mesh has no axis 'b', only a"),
        ('["a"=12]', f"{axis('a', 1, 4)}, {axis('a', 6, 2)}", "does not divide the axes of its mesh"),
        ('["a"=12]', axis("a", 5, 2), "does not divide the axes of its mesh"),
        ('["a"=12]', f"{axis('a', 1, 4)}, {axis('a', 2, 2)}", "names parts of axes more than once"),
        ('["a"=1048576, "b"=1048576]', axis("a"), "a mesh of 1099511627776 devices is not supported"),
    ],
)
def test_axes_that_are_none_are_refused(mesh, axes, message):
    with pytest.raises((Unsupported, ir.MLIRError)) as caught:
        groups_of(mesh, axes)
    assert message in str(caught.value)


def test_a_mesh_may_be_part_of_the_attribute():
    mesh = '#stablehlo.mesh<axes=[<name = "a", size = 2>, <name = "b", size = 2>]>'
    module = parse(CALL.format(f"#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [{axis('a')}]>"))
    manager.run(module, [ResolveMeshes()])
    assert "replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>" in str(module)


def test_what_each_device_computes_is_compiled():
    compiled = xgpu.compile(ON_PARTS)
    shapes = [compiled.values[each].shape for launch in compiled.launches for each in launch.outputs]
    assert sorted(shapes) == [(4, 3), (4, 3), (8, 9), (9,)]
    text = compiled.ir("stablehlo")
    assert 'stablehlo.custom_call @SPMDFullToShardShape(%0) {backend_config = "#sdy.sharding<@mesh' in text
    assert "(tensor<4x3xf32>) -> tensor<8x9xf32>" in text
    assert "replica_groups = dense<[[0, 1, 2], [3, 4, 5]]>" in text


def test_what_each_device_computes_does_not_run_on_one():
    compiled = xgpu.compile(ON_PARTS)
    for call in (compiled.run, compiled.reference, compiled):
        with pytest.raises(Unsupported, match="splits arrays over several devices can be compiled, but not run"):
            call(*compiled.random_inputs(0))


def test_hlo_that_names_axes_of_a_mesh():
    compiled = xgpu.compile(HLO)
    assert [kernel.emitter for kernel in compiled.kernels] == ["loop"]
    assert "replica_groups = dense<[[0, 3], [1, 4], [2, 5]]>" in compiled.ir("stablehlo")


def test_shardings_say_nothing_about_results():
    compiled = xgpu.compile(SPREAD)
    text = compiled.ir("stablehlo")
    assert "sdy" not in text
    assert compiled.results[0].name == "total"
    (x,) = compiled.random_inputs(0)
    # f32 sums of six numbers in another order.
    np.testing.assert_allclose(compiled.run(x)[0], np.exp(x).sum(1), rtol=1e-6)


def test_attributes_that_the_bindings_do_not_know_are_not_looked_into():
    module = parse("func.func @main(%x: tensor<4xf32> {test.kind = array<si8: 0, 7>}) { return }")
    manager.run(module, [ResolveMeshes()])
    assert "array<si8: 0, 7>" in str(module)
