"""The launch properties that a kernel's PTX states: the alignment of its arrays, and the blocks of a cluster."""

import re

from xgpu.errors import CompilerError
from xgpu.records import dataclass

_ENTRY = re.compile(r"^\.visible \.entry ([\w$]+)\(([^)]*)\)\n((?:^\.\w+.*\n)*)", re.MULTILINE)
_PARAMETER = re.compile(r"\.param \.u64 (?:\.ptr (?:\.global )?\.align (\d+) )?[\w$]+")
_CLUSTER = re.compile(r"^\.reqnctapercluster (\d+), (\d+), (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class PtxEntry:
    """The parameters of a kernel, all pointers, by the bytes that each is aligned to, and its cluster."""

    alignments: tuple[int, ...]
    cluster: tuple[int, int, int]


def entry_of(ptx: str, name: str) -> PtxEntry:
    """Return what the PTX says of its entry ``name``; raises CompilerError if it has none that takes pointers alone."""
    for entry in _ENTRY.finditer(ptx):
        if entry[1] == name:
            parameters = [text.strip() for text in entry[2].split(",") if text.strip()]
            matches = [_PARAMETER.fullmatch(text) for text in parameters]
            if not all(matches):
                break
            alignments = tuple(int(match[1] or 1) for match in matches if match is not None)
            cluster = _CLUSTER.search(entry[3])
            x, y, z = (int(size) for size in cluster.groups()) if cluster is not None else (1, 1, 1)
            return PtxEntry(alignments, (x, y, z))
    raise CompilerError(f"the PTX has no entry '{name}' whose parameters are all pointers")
