"""Attributes that the bindings have no class for: some ways to read one raise TypeError, others end the process."""

from xgpu import ir
from xgpu.structure import find

_COMPLEX_CONSTANTS = ("stablehlo.constant", "mhlo.constant")
"""Constants that `complex_constants` replaces by real ones, without reading them."""


def unreadable_attribute(within: ir.Operation) -> tuple[ir.Operation, str] | None:
    """Return an operation with an attribute that cannot be read, a location or complex numbers, and its error."""
    found = find(within, lambda op: _problem(op) is not None)
    problem = None if found is None else _problem(found)
    return None if found is None or problem is None else (found, problem)


def _problem(op: ir.Operation) -> str | None:
    """Return the error for an attribute of ``op``, None if all can be read."""
    for name in op.attributes:
        try:
            _read(op.attributes[name])
        except TypeError:
            if name != "value" or op.name not in _COMPLEX_CONSTANTS:
                return _message(op, name)
    return None


def _message(op: ir.Operation, name: str) -> str:
    if op.name == "arith.constant":
        return f"'{op.name}': constant tensors of type {op.results[0].type} are not supported"
    return (
        f"'{op.name}' attribute '{name}' is or holds what is not supported as one, such as locations and complex arrays"
    )


def _read(attribute: ir.Attribute) -> None:
    """Read an attribute and all that it holds."""
    pending = [attribute]
    while pending:
        read = pending.pop()
        if isinstance(read, ir.ArrayAttr):
            pending += (read[number] for number in range(len(read)))
        elif isinstance(read, ir.DictAttr):
            # What is looked up by number is read together with its name, which ends the process.
            pending += (read[read[number].name] for number in range(len(read)))
