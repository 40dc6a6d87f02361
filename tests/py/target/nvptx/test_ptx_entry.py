"""What PTX says of a launch is read from its text."""

import jax
import pytest

import xgpu
from xgpu.errors import CompilerError
from xgpu.target.nvptx.entry import PtxEntry, entry_of

PTX = """
.visible .entry other(
	.param .u64 .ptr .global .align 4 other_param_0
)
.reqnctapercluster 8, 1, 1
{
}
.visible .entry kernel(
	.param .u64 .ptr .global .align 16 kernel_param_0,
	.param .u64 kernel_param_1,
	.param .u64 .ptr .align 8 kernel_param_2
)
.reqntid 256, 1, 1
.explicitcluster
.reqnctapercluster 4, 2, 1
{
}
.visible .entry numbers(
	.param .u64 .ptr .global .align 16 numbers_param_0,
	.param .u32 numbers_param_1
)
{
}
"""


def test_an_entry() -> None:
    assert entry_of(PTX, "kernel") == PtxEntry((16, 1, 8), (4, 2, 1))
    assert entry_of(PTX, "other") == PtxEntry((4,), (8, 1, 1))


@pytest.mark.parametrize("name", ["numbers", "absent", "kerne"])
def test_an_entry_that_cannot_be_launched(name: str) -> None:
    with pytest.raises(CompilerError, match=f"no entry '{name}'"):
        entry_of(PTX, name)


def test_a_kernel_of_clusters() -> None:
    options = xgpu.Options(products="all", schedules={"relu_fusion_0": {"split": 4}})

    def relu(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.nn.relu(x @ w)

    (kernel,) = xgpu.compile(relu, "bf16[512,2048]", "bf16[2048,256]", options=options).kernels
    assert entry_of(kernel.ptx, kernel.name) == PtxEntry((16, 16, 16, 16), (4, 1, 1))
