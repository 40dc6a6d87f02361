"""A kernel for the host before it is machine code: LLVM IR with its driver, and what a launch of it needs to know.

As text it can be carried in a program of XLA's, like PTX for a GPU, and be compiled where that program is loaded.
"""

import base64
import binascii
import json
import math
import zlib
from dataclasses import field, fields

from xgpu.errors import InvalidInput, SourceLocation
from xgpu.records import dataclass
from xgpu.target.host.block_driver import Dim3
from xgpu.target.host.labels import SourceOperation
from xgpu.target.host.sanitizer import Checks

FORMAT = 4
"""Goes up when the text of a kernel changes its meaning, or the functions that kernels call do."""

PIECES_PER_WORKER = 4
"""More pieces than workers, so that one that is slow does not leave the others idle for long."""
# Below this many threads of the kernel, and bytes of its arrays, handing work to other cores costs more than it saves.
_INLINE_THREADS, _INLINE_BYTES = 1 << 14, 1 << 18


@dataclass(frozen=True)
class BufferParameter:
    """A kernel's claims about one buffer: bytes of alignment, least size in bytes (0: unknown), whether it writes."""

    alignment: int
    size: int
    is_readonly: bool


@dataclass(frozen=True)
class HostSource:
    """A kernel as LLVM IR.

    ``shared_end`` is where in a context its shared memory ends, ``frames`` what all that is in a context takes but for
    frames, 0 if it takes no context; its threads have frames behind that if it ``is_coroutine``. ``cluster`` are the
    blocks of a cluster, which run together. Blocks that wait for others run ``in_order``. ``waits`` names the places
    where threads wait for each other, in the order of their numbers from 1; ``checks`` is None unless sanitized.
    """

    name: str
    grid: Dim3
    block: Dim3
    parameters: tuple[BufferParameter, ...]
    llvm_ir: str
    triple: str
    shared_end: int
    frames: int
    cluster: Dim3
    is_coroutine: bool
    in_order: bool
    waits: tuple[tuple[str, SourceOperation], ...] = field(repr=False)
    checks: Checks | None = field(repr=False)

    @property
    def clusters(self) -> int:
        """Clusters of the grid: what is run one after the other, or at the same time on several cores."""
        return math.prod(self.grid) // math.prod(self.cluster)

    @property
    def is_split(self) -> bool:
        """Whether a launch is worth spreading over several cores: where blocks wait for others, one after the other."""
        threads = math.prod(self.grid) * math.prod(self.block)
        is_much = threads >= _INLINE_THREADS or sum(each.size for each in self.parameters) >= _INLINE_BYTES
        return not self.in_order and self.clusters > 1 and is_much


def to_text(source: HostSource) -> str:
    """Return a kernel without checks as one line of printable text."""
    values = {each.name: getattr(source, each.name) for each in fields(source)}
    del values["checks"]
    values["parameters"] = [(each.alignment, each.size, each.is_readonly) for each in source.parameters]
    values["waits"] = [(name, place.text, _numbers(place.location)) for name, place in source.waits]
    data = json.dumps({"format": FORMAT} | values).encode()
    return base64.b64encode(zlib.compress(data)).decode()


def from_text(text: bytes) -> HostSource:
    """Return the kernel that `to_text` made text of; raises InvalidInput for any other text."""
    try:
        values = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
        if (given := values.pop("format")) != FORMAT:
            raise InvalidInput(f"a kernel has format {given}, and this xgpu reads format {FORMAT}: compile it again")
        values["parameters"] = tuple(BufferParameter(*each) for each in values["parameters"])
        values["waits"] = tuple((name, SourceOperation(place, _location(at))) for name, place, at in values["waits"])
        shape = {name: tuple(values[name]) for name in ("grid", "block", "cluster")}
        return HostSource(**values | shape, checks=None)
    except (binascii.Error, zlib.error, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InvalidInput(f"the text of a kernel is damaged: {error}") from error


def _numbers(location: SourceLocation | None) -> tuple[str, int, int, str] | None:
    return None if location is None else (location.file, location.line, location.column, location.function)


def _location(given: list[str | int] | None) -> SourceLocation | None:
    return None if given is None else SourceLocation(*given)  # type: ignore[arg-type]
