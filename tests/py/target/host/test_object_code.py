"""Object files of host kernels: which symbols they have, and that nothing of this process is in them."""

import shutil
import subprocess
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import xgpu
from xgpu.errors import CompilerError
from xgpu.target.host.kernel_source import HostSource
from xgpu.target.host.machine_code import host_source
from xgpu.target.host.object_code import object_code


def halves(x: jax.Array) -> jax.Array:
    return jnp.cumsum(x.astype("float16")).astype("bfloat16")


def sources(sanitize: bool = False) -> dict[str, HostSource]:
    kernels = xgpu.compile(halves, "f32[500]").kernels
    return {
        f"kernel{number}": host_source(each.host_module(), each.name, each.grid, each.block, sanitize)
        for number, each in enumerate(kernels)
    }


def symbols(code: bytes, folder: Path) -> dict[str, str]:
    """The symbols that other files see or must have, with nm's letters."""
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("nm is not installed")
    (folder / "kernels.o").write_bytes(code)
    listed = subprocess.run([nm, folder / "kernels.o"], capture_output=True, text=True, check=True).stdout
    words = [line.split()[-2:] for line in listed.splitlines()]
    return {name: letter for letter, name in words if letter in "TWUBD"}


def test_only_kernels_are_seen(tmp_path: Path) -> None:
    found = symbols(object_code(sources()), tmp_path)
    assert {name for name, letter in found.items() if letter == "T"} == {"kernel0__blocks", "kernel0__make"}
    assert all(name.startswith(("__trunc", "__extend")) for name, letter in found.items() if letter == "W")
    assert {name for name, letter in found.items() if letter == "U"} <= {"memset", "memcpy", "fmaf", "fma"}


def test_equal_kernels_give_equal_bytes() -> None:
    assert object_code(sources()) == object_code(sources())


def test_checks_are_for_this_process() -> None:
    with pytest.raises(CompilerError, match="has checks"):
        object_code(sources(sanitize=True))
