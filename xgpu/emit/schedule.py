"""Schedules: the numbers by which the threads of a kernel share its work, declared once for each family of kernels.

A schedule is plain data beside the program: whatever its numbers, a kernel computes the same. It stands in the text of
level ``fusions`` as ``xgpu.schedule = #xgpu.schedule<...>``, where a person may change it. Emitters take it from there
and decide nothing. What a family's numbers are if nobody says otherwise is in its schedule's ``of``, what they may be
in its fields and in ``problems``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import field, fields
from itertools import chain
from typing import Any, Self

from xgpu.errors import InvalidInput, did_you_mean
from xgpu.records import dataclass


@dataclass(frozen=True)
class Range:
    """The values that a number of a schedule may have: from ``least`` to ``most``, or only the powers of two there."""

    least: int
    most: int
    is_power: bool

    def __contains__(self, value: int) -> bool:
        return self.least <= value <= self.most and not (self.is_power and value & (value - 1))

    def __str__(self) -> str:
        if not self.is_power:
            return f"a number from {self.least} to {self.most}"
        return (
            f"a power of two up to {self.most}" if self.least == 1 else f"a power of two, {self.least} to {self.most}"
        )


def whole_number(doc: str, most: int, least: int = 1) -> Any:
    """Return the field of a number from ``least`` to ``most``."""
    return field(metadata={"doc": doc, "range": Range(least, most, is_power=False)})


def power_of_two(doc: str, most: int, least: int = 1) -> Any:
    """Return the field of a power of two from ``least`` to ``most``."""
    return field(metadata={"doc": doc, "range": Range(least, most, is_power=True)})


def flag(doc: str) -> Any:
    """Return the field of what is so or not."""
    return field(metadata={"doc": doc})


@dataclass(frozen=True)
class Schedule(ABC):
    """Base of the schedules. Each has fields of `whole_number`, `power_of_two` and `flag`, and of a fusion's facts F:

    ``of(facts)``, which makes the schedule of such a fusion, and ``problems(facts)``.
    """

    @classmethod
    @abstractmethod
    def of(cls, facts: Any) -> Self:
        """Return the schedule of a fusion that is given none."""

    @classmethod
    def candidates(cls, facts: Any) -> list[Self]:
        """Return schedules that are worth measuring, that of `of` first."""
        return [cls.of(facts)]

    @classmethod
    def beside(cls, given: Mapping[str, int], facts: Any) -> Self:
        """Return the schedule from which a fusion takes the numbers that are not ``given``."""
        return cls.of(facts)

    def problems(self, facts: Any) -> Iterator[str]:
        """Yield why a kernel of these facts cannot have this schedule, each as ``name = value: expected ...``."""
        yield from ()

    def seconds(self, facts: Any) -> float | None:
        """Return how long a kernel takes, about; None where what it moves and executes tells that."""
        return None

    def fits(self, facts: Any) -> bool:
        """Whether a kernel of these facts can have this schedule."""
        return not any(chain(self.range_problems(), self.problems(facts)))

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the numbers, in order."""
        return [each.name for each in fields(cls)]

    @property
    def values(self) -> dict[str, int]:
        """The numbers by name."""
        return {name: getattr(self, name) for name in self.names()}

    def wrong(self, name: str, expected: str) -> str:
        """Return the problem that the number ``name`` is not what it should be."""
        value = self.values[name]
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        return f"{name} = {shown}: expected {expected}"

    @classmethod
    def made(cls, given: Mapping[str, int], facts: Any) -> Self:
        """Return the schedule with the numbers ``given``, and such as `beside` chooses where some are missing.

        Raises `InvalidInput` for numbers that there are not, or that a kernel of these facts cannot have.
        """
        for name in given:
            if name not in cls.names():
                near = did_you_mean(name, cls.names())
                known = ", ".join(cls.names())
                raise InvalidInput(f"unknown number {name!r} of its schedule{near}; expected one of {known}")
        missing = [name for name in cls.names() if name not in given]
        chosen = cls.beside(given, facts).values if missing else {}
        schedule = cls(**{name: given.get(name, chosen.get(name)) for name in cls.names()})
        for problem in chain(schedule.range_problems(), schedule.problems(facts)):
            raise InvalidInput(problem)
        return schedule

    def range_problems(self) -> Iterator[str]:
        """Yield an error for each number that is outside of its range."""
        for each in fields(self):
            value, allowed = getattr(self, each.name), each.metadata.get("range")
            is_number = isinstance(value, int) and not isinstance(value, bool)
            if allowed is None and not isinstance(value, bool):
                yield self.wrong(each.name, "true or false")
            elif allowed is not None and not (is_number and value in allowed):
                yield self.wrong(each.name, str(allowed))


class BlockSchedule(Schedule):
    """Base of the schedules of kernels that may be parts of others, whose blocks then have a given size."""

    @property
    @abstractmethod
    def block_threads(self) -> int:
        """Threads of a block."""

    @abstractmethod
    def in_block(self, threads: int, facts: Any) -> Self:
        """Return what becomes of this schedule with so many threads in a block, if it is no fewer: they may be idle."""

    @abstractmethod
    def registers(self, facts: Any) -> int:
        """Return about how many registers a thread needs: for what it reads and computes at once, and where it is."""
