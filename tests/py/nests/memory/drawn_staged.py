"""Programs drawn at random whose seq loops read elements that iterations share, in tiles that do and do not divide."""

import random

_COMBINE = ("+=", "max=", "min=", "^=")


class _Drawing:
    def __init__(self, seed: int):
        self.random = random.Random(seed)
        # Loops of one iteration are in no index: nothing would be shared along them.
        self.pars = {name: self.random.randint(2, 24) for name in "bij"[self.random.choice((0, 1, 1)) :]}
        self.seqs = {"k": self.random.randint(2, 40)}
        self.inner = {"c": self.random.randint(1, 3)} if self.random.random() < 0.3 else {}
        self.arrays: list[str] = []

    def read(self, names: list[str]) -> str:
        """Declare an array whose element for these variables is read, and return the access."""
        extents = self.pars | self.seqs | self.inner
        self.random.shuffle(names)
        sizes, indices = [], []
        for name in names:
            extent = extents[name]
            size, index = self.random.choice(
                [
                    (extent, name),
                    (extent, name),
                    (extent, f"{extent - 1} - {name}"),
                    (2 * extent + 1, f"2 * {name} + 1"),
                ]
            )
            sizes.append(size)
            indices.append(index)
        array = f"A{len(self.arrays)}"
        if len(names) == 2 and self.random.random() < 0.2:
            self.arrays.append(f"{array}: s32[{sizes[0] * sizes[1]}]")
            return f"{array}[({indices[0]}) * {sizes[1]} + {indices[1]}]"
        self.arrays.append(f"{array}: s32[{', '.join(map(str, sizes))}]")
        return f"{array}[{', '.join(indices)}]"

    def step(self) -> str:
        """Return statements of a seq loop's body."""
        inner, k = list(self.inner), "k"
        one = self.read(["i", k, *inner])
        other = self.read([*(["b"] if "b" in self.pars else []), "j", k])
        value = self.random.choice(["{0} * {1}", "({0} - {1}) * ({0} - {1})", "max({0}, {1}) + first"])
        lines = [f"s {self.random.choice(_COMBINE)} {value.format(one, other)}"]
        if self.random.random() < 0.3:
            lines.append(f"t += {one} ^ {self.read(['i', 'k'])}")
        if self.random.random() < 0.2 and self.is_whole():
            lines.append("t += s32(i) * s32(k)")
        if self.random.random() < 0.25 and self.is_whole():
            lines[0] = f"if k <= {self.random.choice(['i', 'j'])} {{ {lines[0]} }}"
        body = "\n".join(lines)
        for name, extent in self.inner.items():
            body = f"seq {extent} {name} {{ {body} }}"
        return body

    def is_whole(self) -> bool:
        """Whether tiles divide the par loops, so that more than staged reads may depend on them."""
        return all(extent % self.tiles[name] == 0 for name, extent in self.pars.items())

    def program(self) -> str:
        whole = self.random.random() < 0.5
        self.tiles = {
            name: self.random.choice([n for n in range(1, 13) if not whole or extent % n == 0])
            for name, extent in self.pars.items()
        }
        step = f"seq {self.seqs['k']} k #tile({self.random.randint(1, 16)}) {{ {self.step()} }}"
        if self.random.random() < 0.3:
            step += f"\nt max= s + 1\nseq {self.seqs['k']} k {{ s -= {self.read(['j', 'k'])} ^ t }}"
            step = step.replace("s -=", "s +=")
        loops = "".join(f"par {extent} {name} #tile({self.tiles[name]}) {{ " for name, extent in self.pars.items())
        first = self.random.choice([self.read(["i", "j"]), self.read(["j"]), "7"])
        result = ", ".join(self.pars)
        sizes = ", ".join(str(extent) for extent in self.pars.values())
        body = f"""let first = {first if first != "7" else "s32(7)"}
new s: s32
new t: s32
s = first
t = 0
{step}
C[{result}] = s - t * first"""
        arrays = ", ".join(self.arrays)
        return f"fn f({arrays}, out C: s32[{sizes}]) {{ {loops}{body} {'}' * len(self.pars)} }}"


def draw(seed: int) -> str:
    """Return a program's text; it is the same for the same seed."""
    return _Drawing(seed).program()
