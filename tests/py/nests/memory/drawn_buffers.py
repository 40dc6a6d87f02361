"""Programs drawn at random whose blocks have many buffers, some of which share memory, of integers of several types.

Buffers are filled from each other: inside of warps or across them, in loops that make their own and may fill these
ahead, and under conditions.
"""

import random
from collections.abc import Sequence

from xgpu.records import dataclass

_TYPES = ("s32", "s32", "s32", "s16", "u8", "s64")
_SIZES = (32, 40, 64, 96, 128, 200)


@dataclass(frozen=True)
class _Filled:
    """A buffer with elements, and whether it is of two dimensions, the rows of four elements."""

    name: str
    rows: bool
    dtype: str = "s32"


class _Drawing:
    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.size = self.random.choice(_SIZES)
        self._threads = self.random.choice(["", "", f" #threads({self.random.choice((32, 64, 128))})"])
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def place(self) -> str:
        """Return an index that is another one for each ``i``."""
        size, shift = self.size, self.random.randrange(self.size)
        group = self.random.choice([each for each in (2, 4, 8, 16, 32, size) if size % each == 0])
        flipped = f"i / {group} * {group} + {group - 1} - i % {group}"
        turned = f"i / {group} * {group} + (i % {group} + {shift % group}) % {group}"
        return self.random.choice(["i", flipped, flipped, turned, f"(i + {shift}) % {size}"])

    def read(self, buffers: Sequence[_Filled], step: str) -> str:
        """Return an element of a buffer as an s32."""
        if not buffers or self.random.random() < 0.1:
            return self.random.choice(["A[b, i]", f"A[b, ({self.place()})]", "s32(i)", f"s32({step} + 2)"])
        buffer, place = self.random.choice(buffers), self.place()
        if self.random.random() < 0.15:
            place = str(self.random.randrange(self.size))
        at = f"({place}) / 4, ({place}) % 4" if buffer.rows else place
        return f"s32({buffer.name}[{at}])"

    def fill(self, buffers: list[_Filled], step: str, source: str = "") -> list[str]:
        """Return statements that make a buffer and fill it; it is one of ``buffers`` then."""
        dtype, place = self.random.choice(_TYPES), self.place()
        new = _Filled(self.name(), self.random.random() < 0.3, dtype)
        shape = f"{self.size // 4}, 4" if new.rows else f"{self.size}"
        memory = self.random.choice([" #shared", " #shared", ""])
        threads = self.random.choice([self._threads, self._threads, "", " #block_barrier"])
        at = f"({place}) / 4, ({place}) % 4" if new.rows else place
        value = source or self.random.choice(["{0} + {1}", "{0} * 3 - {1}", "{0}", "{0}"]).format(
            self.read(buffers, step), self.read(buffers, step)
        )
        statement = f"{new.name}[{at}] = {dtype}({value})"
        if not source and self.random.random() < 0.2:
            other = f"{new.name}[{at}] = {dtype}({self.read(buffers, step)})"
            statement = f"if i % 5 < 2 {{ {statement} }} else {{ {other} }}"
        buffers.append(new)
        return [f"new {new.name}: {dtype}[{shape}]{memory}", f"par {self.size} i{threads} {{ {statement} }}"]

    def loop(self, buffers: list[_Filled]) -> list[str]:
        """Return a loop that makes buffers of its own and adds them up in one that is there for all of its steps."""
        total, steps = self.name(), self.random.choice((1, 2, 3, 5))
        lines = [
            f"new {total}: s32[{self.size}] #shared",
            f"par {self.size} i {{ {total}[i] = {self.read(buffers, 'b')} }}",
        ]
        inner, stages = list(buffers), ""
        body = []
        if self.random.random() < 0.3:
            stages = f" #stages({self.random.choice((2, 3))})"
            body += self.fill(inner, "k", f"A[b, (i + k) % {self.size}]")
        for _ in range(self.random.randrange(1, 4)):
            body += self.fill(inner, "k")
        body.append(f"par {self.size} i {{ {total}[{self.place()}] += {self.read(inner, 'k')} }}")
        if self.random.random() < 0.3:
            body.append(f"if k >= 1 {{ par {self.size} i {{ {total}[i] += {self.read(inner, 'k')} }} }}")
        buffers.append(_Filled(total, False))
        return [*lines, f"seq {steps} k{stages} {{", *body, "}"]

    def branch(self, buffers: list[_Filled]) -> list[str]:
        """Return what some blocks do alone: fill buffers of their own, and change one that is there."""
        inner, changed = list(buffers), self.random.choice(buffers)
        body = [*self.fill(inner, "b"), *self.fill(inner, "b")]
        at = "i / 4, i % 4" if changed.rows else "i"
        value = f"{changed.dtype}({self.read([each for each in inner if each != changed], 'b')})"
        return ["if b < 1 {", *body, f"par {self.size} i {{ {changed.name}[{at}] += {value} }}", "}"]


def draw(seed: int) -> str:
    """Return the text of a program."""
    drawing = _Drawing(seed)
    size, blocks = drawing.size, drawing.random.choice((1, 3))
    lines = [f"fn drawn(A: s32[{blocks}, {size}], out B: s32[{blocks}, {size}]) {{", f"par {blocks} b {{"]
    buffers: list[_Filled] = []
    for _ in range(drawing.random.randrange(3, 8)):
        lines += drawing.loop(buffers) if drawing.random.random() < 0.25 else drawing.fill(buffers, "b")
        if drawing.random.random() < 0.15:
            lines += drawing.branch(buffers)
        buffers = drawing.random.sample(buffers, min(len(buffers), drawing.random.randrange(1, 4)))
    sums = f"{drawing.read(buffers, 'b')} + {drawing.read(buffers, 'b')}"
    return "\n".join([*lines, f"par {size} i {{ B[b, i] = {sums} }}", "}", "}"])
