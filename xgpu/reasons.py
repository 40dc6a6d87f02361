"""Reasons as values: an analysis that refuses returns why, instead of None."""

from typing import Any

from xgpu.records import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason for a decision: a sentence with ``{}`` in place of each of ``parts``.

    The parts become text only if someone reads the reason, so that one that nobody asks for costs next to nothing.
    """

    text: str
    parts: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return self.text.format(*self.parts) if self.parts else self.text
