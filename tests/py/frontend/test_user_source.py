"""Values say by which text, and under which name, a user's function makes them."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from xgpu.frontend.user_source import expression_text, target_name


class Made:
    """What the user's function computes with; it keeps what is known where it is made."""

    def __init__(self) -> None:
        self.text, self.name = expression_text(sys._getframe(1)), target_name(sys._getframe(1))

    def __enter__(self) -> "Made":
        return self

    def __exit__(self, *error: Any) -> None:
        """Nothing is left to do."""

    def __mul__(self, other: Any) -> str | None:
        return expression_text(sys._getframe(1))


def assigned() -> Any:
    value = Made()
    value.text = value.text or "nothing"
    return value


def annotated_elsewhere() -> Any:
    first = [Made()]
    return first[0]


def of_a_with() -> Any:
    with Made() as first, Made() as second:
        assert first.name == "first"
        return second


def returned() -> Any:
    return Made()


@pytest.mark.parametrize(
    ("function", "name"), [(assigned, "value"), (annotated_elsewhere, None), (of_a_with, "second"), (returned, None)]
)
def test_names(function: Callable[[], Any], name: str | None) -> None:
    assert (function().text, function().name) == ("Made()", name)


def test_text_of_an_operator() -> None:
    left, größe = Made(), 3
    assert left * größe == "left * größe"
    assert (
        left
        * (größe + 1)
    ) == "left * (größe + 1)"  # fmt: skip


def test_source_that_is_not_known() -> None:
    names = {"Made": Made}
    exec("value = Made()", names)
    made: Any = names["value"]
    assert (made.text, made.name) == (None, None)


def test_source_that_is_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linecache.getlines", lambda *_: ["%magic of a notebook\n"] * 1000)
    assert assigned().name is None
