"""Kernels for the host as text that programs carry."""

import base64
import json
import zlib
from dataclasses import replace

import jax
import pytest

import xgpu
from tests.py.runtime.host.host_kernels import reverse
from xgpu import ir
from xgpu.errors import InvalidInput, SourceLocation
from xgpu.target.host.kernel_source import HostSource, from_text, to_text
from xgpu.target.host.labels import SourceOperation
from xgpu.target.host.machine_code import host_source, load_source


@pytest.fixture(scope="module")
def source() -> HostSource:
    with ir.make_context():
        return host_source(ir.Module.parse(reverse(32)))


def test_text_holds_all_of_a_kernel(source: HostSource) -> None:
    located = SourceOperation("barrier", SourceLocation("a.py", 3, 4, "f"))
    for each in (source, replace(source, waits=(*source.waits, ("barrier 2", located)))):
        assert from_text(to_text(each).encode()) == each
    assert source.waits and source.is_coroutine


def test_text_is_the_same_each_time(source: HostSource) -> None:
    assert to_text(source) == to_text(from_text(to_text(source).encode()))


def changed(source: HostSource, **values: object) -> bytes:
    data = json.loads(zlib.decompress(base64.b64decode(to_text(source)))) | values
    return base64.b64encode(zlib.compress(json.dumps(data).encode()))


def test_damaged_text(source: HostSource) -> None:
    text = to_text(source).encode()
    for damaged in (b"", b"%", text[:-4], text[4:], changed(source, parameters=3), changed(source, other=1)):
        with pytest.raises(InvalidInput, match="the text of a kernel is damaged"):
            from_text(damaged)


def test_another_format(source: HostSource) -> None:
    with pytest.raises(InvalidInput, match="a kernel has format 99, and this xgpu reads format 4: compile it again"):
        from_text(changed(source, format=99))


def test_another_machine(source: HostSource) -> None:
    with pytest.raises(InvalidInput, match="kernel 'k' is for riscv64, and this machine is "):
        load_source(replace(source, triple="riscv64"))


def test_what_is_labelled_for_checks_is_lowered_for_the_host_once() -> None:
    """The code without checks is the same, as labels are in locations alone."""

    def source(of: xgpu.Compiled) -> str:
        (kernel,) = of.kernels
        return host_source(kernel.host_module(), kernel.name, kernel.grid, kernel.block).llvm_ir

    first, second = (xgpu.compile(lambda x: jax.nn.softmax(x), "f32[40,70]") for _ in range(2))
    (kernel,) = second.kernels
    labelled = kernel.host_module(label=True)
    assert kernel.host_module() is labelled
    assert source(first) == source(second)
    assert kernel.host_module(count=True) is not labelled
