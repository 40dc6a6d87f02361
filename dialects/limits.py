"""Limits on the types of a program that comes from outside: what is beyond can only be a mistake or an attack."""

import math

from xgpu import ir
from xgpu.dialects.base import Problem
from xgpu.dtypes import MAX_ELEMENTS
from xgpu.structure import arguments_of, walk

MAX_VECTOR_ELEMENTS = 1024
"""Far more elements than any vector that a pass makes; LLVM takes such vectors apart element by element."""
ADDRESS_SPACES = {0: "any", 1: "global", 3: "shared", 4: "constant", 5: "local", 7: "shared of the cluster"}
"""The address spaces of NVVM. LLVM ends the process at some others, and the host takes some for segments."""
_SPACES_OF_GLOBALS = tuple(space for space in ADDRESS_SPACES if space != 7)
"""Those that a global may be in: what is shared in a cluster is a global of each block."""


def type_problems(module: ir.Module) -> list[Problem]:
    """Return the operations of ``module`` with a result or block argument of a type that is too large."""
    found: list[Problem] = []
    checked: dict[ir.Type, str | None] = {}

    def check(op: ir.Operation, type_: ir.Type) -> None:
        if type_ not in checked:
            checked[type_] = _problem(type_)
        if (problem := checked[type_]) is not None:
            found.append(Problem(op, f"'{op.name}' has a value of type {type_}: {problem}"))

    for op in walk(module.operation):
        if op.name == "llvm.mlir.global" and (space := _space_of(op)) not in _SPACES_OF_GLOBALS:
            found.append(
                Problem(
                    op, f"'{op.name}' is in address space {space}: they are {', '.join(map(str, _SPACES_OF_GLOBALS))}"
                )
            )
        for result in op.results:
            check(op, result.type)
        for argument in arguments_of(op):
            check(op, argument.type)
    return found


def _space_of(variable: ir.Operation) -> int:
    return ir.IntegerAttr(variable.attributes["addr_space"]).value if "addr_space" in variable.attributes else 0


def _problem(type_: ir.Type) -> str | None:
    if isinstance(type_, ir.llvm.PointerType) and type_.address_space not in ADDRESS_SPACES:
        return f"the address spaces are {', '.join(map(str, ADDRESS_SPACES))}"
    scalar = type_.element_type if isinstance(type_, ir.RankedTensorType | ir.VectorType) else type_
    if isinstance(scalar, ir.ComplexType) and not isinstance(scalar.element_type, ir.F32Type | ir.F64Type):
        return "complex numbers have parts of f32 or f64"
    if isinstance(type_, ir.VectorType):
        count = math.prod(type_.shape)
        return None if count <= MAX_VECTOR_ELEMENTS else f"vectors have at most {MAX_VECTOR_ELEMENTS} elements"
    if isinstance(type_, ir.RankedTensorType) and type_.has_static_shape:
        count = math.prod(type_.shape)
        return None if count <= MAX_ELEMENTS else f"arrays have at most {MAX_ELEMENTS} elements"
    return None
