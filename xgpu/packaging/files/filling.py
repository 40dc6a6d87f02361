"""Files of a package made of templates, in which ``@NAME@`` stands for what one program differs in from another."""

import re
from collections.abc import Mapping, Sequence
from importlib import resources

from xgpu.errors import CompilerError

_PLACE = re.compile(r"@@|@([A-Z_]+)@")


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return the template file with a value in each place, and ``@`` for ``@@``.

    Raises CompilerError if there is no value for a place.
    """
    text = resources.files("xgpu.packaging.files").joinpath("templates", template).read_text(encoding="utf-8")

    def value(place: re.Match[str]) -> str:
        if place[0] == "@@":
            return "@"
        if place[1] not in values:
            raise CompilerError(f"the template {template} has a place for {place[1]}, for which there is no value")
        return values[place[1]]

    return _PLACE.sub(value, text)


def table(type_and_name: str, rows: Sequence[str]) -> str:
    """Return a constant C array of so many rows; of none, which C does not have, it has one that nobody reads."""
    body = "\n".join(f"    {row}," for row in rows or ["{0}"])
    return f"static const {type_and_name}[] = {{\n{body}\n}};"
