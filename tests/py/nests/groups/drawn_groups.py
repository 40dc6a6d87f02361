"""Programs drawn at random in which groups of threads have iterations that do several things.

Values are s32, as in `tests.py.nests.drawn`, whose interpreter runs them statement by statement.
"""

import random
from collections.abc import Callable

_WIDTHS = (8, 32, 64)


class _Drawing:
    """An iteration ``w`` that is being drawn: a group has ``x`` and ``y`` of ``size`` elements, ``z``, and ``s``."""

    def __init__(self, generator: random.Random, size: int):
        self._generator, self._size = generator, size
        self._names = 0

    def iteration(self) -> list[str]:
        """Return the statements of an iteration."""
        size = self._size
        lines = [f"new x: s32[{size}]", f"new y: s32[{size}]", f"new z: s32[2, {size}]", "new s: s32", "s = A[b, w, 1]"]
        lines += [
            self._loop("i", "x[i] = A[b, w, i] + s"),
            self._loop("i", "y[i] = x[i] * 3\nz[0, i] = 1\nz[1, i] = 2"),
        ]
        lines += self._statements(self._generator.randrange(2, 6), depth=0)
        return [*lines, self._loop("i", "B[b, w, i] = x[i] + y[i] * 5 + z[0, i] - z[1, i] + t[w, i]"), "C[b, w] = s"]

    def _statements(self, count: int, depth: int) -> list[str]:
        kinds: list[Callable[[int], list[str]]] = [self._exchange, self._sum, self._kept, self._element, self._block]
        if depth < 2:
            kinds += [self._seq, self._if, self._inner]
        return [line for _ in range(count) for line in self._generator.choice(kinds)(depth)]

    def _name(self) -> str:
        self._names += 1
        return f"v{self._names}"

    def _loop(self, variable: str, body: str) -> str:
        kind = self._generator.choice(("par", "fully par"))
        return f"{kind} {self._size} {variable} {{\n{body}\n}}"

    def _place(self, variable: str = "i") -> str:
        shift = self._generator.randrange(self._size)
        return self._generator.choice(
            [variable, f"{self._size - 1} - {variable}", f"({variable} + {shift}) % {self._size}"]
        )

    def _exchange(self, depth: int) -> list[str]:
        one, other = self._generator.sample(["x", "y", "z[0]", "z[1]"], 2)
        added = self._generator.choice(["s", "i", "1", "w"])
        target, source = (
            f"{each[:-1]}, {place}]" if each.endswith("]") else f"{each}[{place}]"
            for each, place in ((one, self._place()), (other, self._place()))
        )
        value = added if added in ("s", "1") else f"s32({added})"
        return [self._loop("i", f"{target} = {source} + {value}")]

    def _sum(self, depth: int) -> list[str]:
        return [f"seq {self._size} c {{ s += {self._generator.choice(['x', 'y'])}[c] }}"]

    def _kept(self, depth: int) -> list[str]:
        """A value that is used after what it was read from has changed."""
        before, name = self._name(), self._generator.choice(["s", f"x[{self._generator.randrange(self._size)}]"])
        between = self._generator.choice(["s += 7", self._loop("i", f"x[{self._place()}] = s32(i) + s")])
        return [f"let {before} = {name} * 3", between, self._loop("i", f"y[i] += {before}"), f"s += {before}"]

    def _element(self, depth: int) -> list[str]:
        return [
            f"x[{self._generator.randrange(self._size)}] = s",
            f"s = y[{self._generator.randrange(self._size)}] + 1",
        ]

    def _block(self, depth: int) -> list[str]:
        return [
            self._loop("i", f"t[w, i] += x[{self._place()}]"),
            f"s += t[w, {self._generator.randrange(self._size)}]",
        ]

    def _seq(self, depth: int) -> list[str]:
        variable = f"k{depth}"
        body = self._statements(self._generator.randrange(1, 3), depth + 1)
        return [f"seq 2 {variable} {{", *body, f"s += s32({variable})", "}"]

    def _if(self, depth: int) -> list[str]:
        condition = self._generator.choice(["w < 2", "b < 1", "w % 2 < 1"])
        then, otherwise = (self._statements(self._generator.randrange(1, 3), depth + 1) for _ in range(2))
        return [f"if {condition} {{", *then, "} else {", *otherwise, "}"]

    def _inner(self, depth: int) -> list[str]:
        """A par loop in which a group has several things to do, too."""
        variable, added = f"m{depth}", self._name()
        return [
            f"par 2 {variable} {{",
            f"let {added} = z[{variable}, 0] + s32({variable})",
            f"fully par {self._size} i {{ z[{variable}, {self._place()}] = x[i] + {added} }}",
            f"z[{variable}, 1] += 2",
            f"par {self._size} i {{ z[{variable}, i] += {added} }}",
            "}",
        ]


def draw_groups(seed: int) -> str:
    """Return the text of a program whose blocks, or whose groups alone, have such iterations."""
    generator = random.Random(seed)
    size, rows, blocks = generator.choice(_WIDTHS), generator.choice((1, 3, 8, 20)), generator.choice((1, 2))
    group = max(generator.choice((8, 32, 64)), size)
    pragmas = generator.choice(["", f" #group({group})"]) + generator.choice(["", f" #threads({max(64, group)})"])
    iteration = _Drawing(generator, size).iteration()
    lines = [f"fn drawn(A: s32[{blocks}, {rows}, {size}], out B: s32[{blocks}, {rows}, {size}],"]
    lines += [f"  out C: s32[{blocks}, {rows}]) {{", f"par {blocks} b {{", f"new t: s32[{rows}, {size}]"]
    lines += [f"par {rows} i {{ par {size} j {{ t[i, j] = A[b, i, j] }} }}"]
    lines += [f"par {rows} w{pragmas} {{", f"fully par {size} i {{ t[w, i] += 1 }}", *iteration, "}", "}", "}"]
    return "\n".join(lines)
