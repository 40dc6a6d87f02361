"""ptxas on many kernels at once."""

import re
from collections.abc import Callable, Sequence

import pytest

from xgpu.target.nvptx.cubin import assemble, find_ptxas

type Kernel = tuple[str, str]
"""A name for messages, and PTX."""

_HEADER = re.compile(r"\A.*?^\.address_size \d+\n", re.MULTILINE | re.DOTALL)
_SYMBOL = re.compile(r"\.entry (\w+)\(|^\.func (?:.*\) )?(\w+)|^\.(?:const|global|shared)\b.*? (\w+)\[", re.MULTILINE)


def joined(kernels: Sequence[Kernel]) -> str:
    """Return one PTX module of all ``kernels``, which are for one target, with a number before their symbols."""
    parts: list[str] = []
    for number, (_, ptx) in enumerate(kernels):
        header = _HEADER.match(ptx)
        assert header is not None
        body = ptx[header.end() :]
        symbols = {name for match in _SYMBOL.finditer(body) for name in match.groups() if name}
        renamed = re.sub(rf"\b({'|'.join(symbols)})\b", rf"k{number}_\1", body)
        parts += [renamed] if parts else [header[0], renamed]
    return "".join(parts)


@pytest.fixture(scope="session")
def spilling() -> Callable[[Sequence[Kernel], str], list[str]]:
    """Assembles kernels for a target by one run of ptxas and returns the names of those that spill registers."""
    if find_ptxas() is None:
        pytest.skip("ptxas is not installed")

    def assembled(kernels: Sequence[Kernel], target: str) -> list[str]:
        if assemble(joined(kernels), target).spill_bytes == 0:
            return []
        return [name for name, ptx in kernels if assemble(ptx, target).spill_bytes]

    return assembled
