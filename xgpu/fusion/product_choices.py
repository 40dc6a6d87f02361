"""The choices between kernels and a library for a program's matrix products, as the text of a pass's option."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Self

from xgpu.records import dataclass
from xgpu.target_machine import OptionWord

_LIBRARY, _OPEN = "library", "open"
_NUMBER = re.compile(r"([a-z_]+)=(true|false|\d{1,18})")
_UNKNOWN = "-"


@dataclass(frozen=True)
class ProductChoice:
    """The choice for a product: a kernel with the numbers ``schedule``, XLA's library if that is None.

    ``library`` and ``kernel`` are the microseconds that the library and the fastest kernel take with what follows the
    product; None where that is not known. The text is ``library@5.31/6.07``, or ``tile_m=64+tile_n=32@5.31/4.07``.
    """

    schedule: Mapping[str, int] | None = None
    library: float | None = None
    kernel: float | None = None

    def __str__(self) -> str:
        numbers = {} if self.schedule is None else self.schedule
        chosen = "+".join(f"{name}={str(value).lower()}" for name, value in numbers.items())
        times = "/".join(_UNKNOWN if each is None else f"{each:.2f}" for each in (self.library, self.kernel))
        return f"{_LIBRARY if self.schedule is None else chosen}@{times}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the choice that ``text`` says; raises ValueError if it is none."""
        chosen, _, times = text.partition("@")
        library, kernel = (None if each == _UNKNOWN else float(each) for each in times.split("/"))
        if chosen == _LIBRARY:
            return cls(None, library, kernel)
        found = [_NUMBER.fullmatch(each) for each in chosen.split("+")] if chosen else []
        numbers = {each[1]: each[2] == "true" if each[2][0] in "tf" else int(each[2]) for each in found if each}
        if len(numbers) != len(found):
            raise ValueError(f"expected name=number+name=number, got '{chosen}'")
        return cls(numbers, library, kernel)

    @property
    def figures(self) -> str:
        """The measured times in words; empty for none."""
        times = (("library", self.library), ("kernel", self.kernel))
        return ", ".join(f"{name} {each:.1f} us" for name, each in times if each is not None)


class ProductChoices(OptionWord):
    """The choice for each product that a kernel can compute, in their order, with semicolons between them.

    Empty says nothing of it, and `OPEN` that it is to be measured. Raises ValueError for other text.
    """

    def __new__(cls, text: str) -> Self:
        """Return ``text`` if it is such a list."""
        given = str.__new__(cls, text)
        given.each  # noqa: B018  # It is read when it is first asked for.
        return given

    @classmethod
    def choices(cls) -> str:
        """Return how help texts name such a list."""
        return f"{_OPEN}|CHOICE;CHOICE;..."

    @classmethod
    def of(cls, choices: Sequence[ProductChoice]) -> Self:
        """Return the text of some choices."""
        return cls(";".join(map(str, choices)))

    @cached_property
    def each(self) -> tuple[ProductChoice, ...]:
        """The choices."""
        return tuple(map(ProductChoice.parse, self.split(";"))) if self not in ("", _OPEN) else ()


NOTHING = ProductChoices("")
"""Nothing is said of products: the options say what computes them."""
OPEN = ProductChoices(_OPEN)
"""Nothing is chosen yet: kernels are to compute all products that they can, each of which is given its number."""
