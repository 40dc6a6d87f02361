"""Programs of one operation each, joined to programs of several."""

from collections.abc import Iterable, Iterator
from itertools import batched
from typing import Any

from xgpu.tools.programs.base import TestProgram

_AT_ONCE = 10


def joined(programs: Iterable[TestProgram]) -> Iterator[TestProgram]:
    """Yield programs that have the results of several of ``programs``: of all that take the same types.

    Those must be run on the same arrays, too, and be compared with XLA.
    """
    alike: dict[tuple[str, ...], list[TestProgram]] = {}
    for program in programs:
        assert program.expected is None
        alike.setdefault(program.specs, []).append(program)
    for each in alike.values():
        for parts in batched(each, _AT_ONCE):
            yield _of_parts(parts)


def _of_parts(parts: tuple[TestProgram, ...]) -> TestProgram:
    def function(*arrays: Any) -> list[Any]:
        return [part.function(*arrays) for part in parts]

    return TestProgram(",".join(part.name for part in parts), function, parts[0].specs, parts[0].inputs)
