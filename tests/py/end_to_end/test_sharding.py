"""``xgpu.jit`` on arrays that are spread over eight devices, which are parts of the CPU: in a process of its own.

With ``XGPU_TEST_PLATFORM=cuda`` they are the machine's GPUs, of which there must be two or another even number.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRELUDE = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import xgpu

jax.config.update("jax_default_matmul_precision", "highest")
count = jax.device_count()
assert count >= 2
rows = max(2, count // 2)
mesh = Mesh(np.array(jax.devices()).reshape(rows, count // rows), ("a", "b"))
generator = np.random.default_rng(0)


def spread(shape, *axes):
    array = generator.standard_normal(shape, dtype=np.float32)
    return jax.device_put(array, NamedSharding(mesh, P(*axes)))


def agree(function, *arrays, **tolerance):
    got, expected = function(*arrays), jax.jit(function.__wrapped__)(*arrays)
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for ours, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, **(tolerance or dict(rtol=1e-5, atol=1e-5)))
    return got


x, y, w = spread((64, 32), "a", "b"), spread((64, 32), "a", None), spread((32, 48), None, "b")
"""


def run(body: str) -> None:
    environment = os.environ | {"JAX_PLATFORMS": os.environ.get("XGPU_TEST_PLATFORM", "cpu")}
    if environment["JAX_PLATFORMS"] == "cpu":
        flags = os.environ.get("XLA_FLAGS", "")
        environment["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count=8"
    root = Path(__file__).resolve().parents[3]
    result = subprocess.run(
        [sys.executable, "-c", PRELUDE + body], env=environment, cwd=root, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr


def test_shard_map() -> None:
    run("""
inner = xgpu.jit(lambda a: jnp.tanh(a) + jax.lax.psum(a.sum(), "a"))
function = jax.shard_map(inner, mesh=mesh, in_specs=P("a", None), out_specs=P("a", None), check_vma=False)
plain = jax.shard_map(inner.__wrapped__, mesh=mesh, in_specs=P("a", None), out_specs=P("a", None), check_vma=False)
np.testing.assert_allclose(jax.jit(function)(y), jax.jit(plain)(y), rtol=1e-5, atol=1e-5)
""")


def test_elementwise_kernels_see_the_parts_of_one_device() -> None:
    pytest.importorskip("jax", minversion="0.12", reason="Shardy of earlier versions leaves collectives out")
    run("""
function = xgpu.jit(lambda a, b: jax.nn.gelu(a + b) * 2)
result = agree(function, x, y)
text = function.lower(x, y).compile().as_text()
assert f"f32[{64 // rows},{32 * rows // count}]" in text
assert "tanh" not in text and "custom-call" in text
assert result.sharding.is_equivalent_to(x.sharding, 2)
""")


def test_products_sums_and_softmax_use_collectives() -> None:
    run("""
agree(xgpu.jit(lambda a, b: (jax.nn.softmax(a @ b), jnp.sum(a, 0), jnp.max(a))), x, w)
agree(xgpu.jit(jax.grad(lambda a, b: jnp.sum(jnp.tanh(a @ b) ** 2), argnums=(0, 1))), x, w, rtol=1e-4, atol=1e-4)
""")


def test_what_cannot_be_partitioned_is_left_to_xla() -> None:
    run("""
for function in (
    lambda a: jnp.flip(a, 0) + jnp.flip(a, 1),
    lambda a: jnp.cumsum(a, 0),
    lambda a: a + jnp.arange(64.0)[:, None],
    lambda a: jnp.sort(a, 0)[3:9],
    lambda a: jnp.pad(a, 1),
    lambda a: a.reshape(-1),
    lambda a: a.at[jnp.array([3, 50])].set(7.0),
):
    agree(xgpu.jit(function), x)
""")


def test_trees_and_arrays_on_one_device() -> None:
    run("""
tree = {"x": x, "b": np.ones(32, np.float32)}
got = agree(xgpu.jit(lambda tree, scale: {"sum": tree["x"] * scale + tree["b"]}), tree, 2.0)
assert set(got) == {"sum"}
agree(xgpu.jit(lambda a: a * 2), jnp.ones((4, 4)))
""")


def test_summands_and_keys_are_left_to_xla() -> None:
    run("""
from jax.sharding import AxisType
wide = jax.make_mesh((count,), ("x",), axis_types=(AxisType.Explicit,))
with jax.set_mesh(wide):
    a = jax.device_put(generator.standard_normal((2, 2 * count), dtype=np.float32), P(None, "x"))
    b = jax.device_put(generator.standard_normal((2 * count, 3), dtype=np.float32), P("x", None))
    reduced = jax.device_put(np.arange(4.0, dtype=np.float32), P(reduced={"x"}))
    summands = jax.jit(lambda a, b: jnp.einsum("xy,yz->xz", a, b, out_sharding=P(unreduced={"x"})))
    for function, arrays in (
        (lambda r: jnp.sin(r) * 2, (reduced,)),
        (summands, (a, b)),
        (lambda a, b: jax.reshard(summands(a, b), P()) * 2, (a, b)),
        (lambda u: u + u, (summands(a, b),)),
        (lambda u: u.T, (summands(a, b),)),
        (lambda u: jax.reshard(u, P()) * 2, (summands(a, b),)),
    ):
        got, expected = (jit(function)(*arrays) for jit in (xgpu.jit, jax.jit))
        assert got.sharding == expected.sharding
        np.testing.assert_allclose(jax.reshard(got, P()), jax.reshard(expected, P()), rtol=1e-5)

keys = jax.device_put(jax.random.split(jax.random.key(0), rows), NamedSharding(mesh, P("a")))
agree(xgpu.jit(lambda keys: jax.vmap(lambda key: jax.random.uniform(key, (3,)))(keys)), keys)
agree(xgpu.jit(lambda keys: jax.random.key_data(keys) * 2), keys)
""")


def test_abstract_meshes_are_lowered_by_jax() -> None:
    run("""
abstract = jax.ShapeDtypeStruct((64, 32), np.float32, sharding=NamedSharding(mesh.abstract_mesh, P("a")))
xgpu.jit(jnp.sin).trace(abstract).lower(lowering_platforms=("tpu",))
""")


def test_weak_types_are_kept() -> None:
    run("""
assert xgpu.jit(lambda x, s: s * 2)(x, 3.0).weak_type
""")
