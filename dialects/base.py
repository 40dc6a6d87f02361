"""Declarations of operations of a dialect in Python.

An operation is a class: its docstring is its documentation, ``OPERANDS``, ``RESULTS``, ``ATTRIBUTES`` and
``REGIONS`` are its shape, ``TRAITS`` what passes ask of it, and ``check`` holds only what relates several of them.
Builders, accessors, the verifier and the reference documentation are made from the declaration; nothing else describes
the operation.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from xgpu import ir
from xgpu.dialects.traits import Traits, note_traits
from xgpu.records import dataclass


@dataclass(frozen=True)
class TypeConstraint:
    """A named set of MLIR types."""

    description: str
    accepts: Callable[[ir.Type], bool]


ANY = TypeConstraint("any type", lambda type_: True)
INDEX = TypeConstraint("index", lambda type_: isinstance(type_, ir.IndexType))
FLOAT = TypeConstraint("a floating-point type", lambda type_: isinstance(type_, ir.FloatType))
BOOL = TypeConstraint("i1", lambda type_: str(type_) == "i1")
SCALAR = TypeConstraint(
    "an integer, floating-point or complex type",
    lambda type_: isinstance(type_, ir.IntegerType | ir.FloatType | ir.ComplexType),
)
TENSOR = TypeConstraint(
    "a tensor of static shape", lambda type_: isinstance(type_, ir.RankedTensorType) and type_.has_static_shape
)
I32 = TypeConstraint("i32", lambda type_: str(type_) == "i32")
BUFFER = TypeConstraint(
    "a memref of static shape", lambda type_: isinstance(type_, ir.MemRefType) and type_.has_static_shape
)
SCALAR_TENSOR = TypeConstraint(
    "a tensor of no dimensions", lambda type_: isinstance(type_, ir.RankedTensorType) and type_.rank == 0
)
VECTOR = TypeConstraint(
    "a vector of one dimension",
    lambda type_: isinstance(type_, ir.VectorType) and type_.rank == 1 and not type_.scalable,
)


def _pointer(space: int, memory: str) -> TypeConstraint:
    return TypeConstraint(
        f"!llvm.ptr<{space}>, a pointer to {memory}",
        lambda type_: isinstance(type_, ir.llvm.PointerType) and type_.address_space == space,
    )


GLOBAL_POINTER = _pointer(1, "global memory")
SHARED_POINTER = _pointer(3, "shared memory")
CLUSTER_POINTER = _pointer(7, "shared memory of the cluster")


@dataclass(frozen=True)
class Values:
    """A group of operands or results: one value, or (``variadic``) any number; only the last group may be variadic.

    ``count`` gives the size of a group that another part of the operation determines, such as a map's variables.
    """

    name: str
    type: TypeConstraint
    doc: str
    variadic: bool = False
    count: Callable[[Any], int] | None = None


@dataclass(frozen=True)
class AttributeKind:
    """A kind of attribute: how it is recognised, and how it converts to and from its Python value."""

    description: str
    accepts: Callable[[ir.Attribute], bool]
    encode: Callable[[Any], ir.Attribute]
    decode: Callable[[ir.Attribute], Any]
    problem: Callable[[ir.Attribute], str | None] = lambda attribute: None


@dataclass(frozen=True)
class Attribute:
    """An attribute of an operation. One that is ``optional`` is None where it is left out."""

    name: str
    kind: AttributeKind
    doc: str
    optional: bool = False


@dataclass(frozen=True)
class Problem:
    """A verification error: expected against found, at an operation's location."""

    op: ir.Operation
    message: str


class DeclaredOp(ir.OpView):
    """Base of the operations that xgpu declares. Subclasses fill in the class variables and are passed to `declare`."""

    OPERANDS: ClassVar[tuple[Values, ...]] = ()
    RESULTS: ClassVar[tuple[Values, ...]] = ()
    ATTRIBUTES: ClassVar[tuple[Attribute, ...]] = ()
    REGIONS: ClassVar[int] = 0
    TRAITS: ClassVar[Traits] = Traits()
    OPERATION_NAME: ClassVar[str]
    _ODS_REGIONS = (0, True)

    @classmethod
    def create(
        cls,
        operands: Sequence[ir.Value] = (),
        results: Sequence[ir.Type] = (),
        attributes: Mapping[str, Any] | None = None,
        loc: ir.Location | None = None,
    ) -> Any:
        """Create the operation at the current insertion point; ``attributes`` holds Python values by name."""
        given = attributes or {}
        encoded = {
            a.name: a.kind.encode(given[a.name])
            for a in cls.ATTRIBUTES
            if not (a.optional and given.get(a.name) is None)
        }
        op = ir.Operation.create(
            cls.OPERATION_NAME,
            results=list(results),
            operands=list(operands),
            attributes=encoded,
            regions=cls.REGIONS,
            loc=loc,
        )
        return op.opview

    def problems(self) -> Iterator[str]:
        """Yield the deviations of this operation from its declaration: regions, attributes, operands, results."""
        yield from _shape_problems(self)

    def check(self, symbols: Mapping[str, ir.Operation]) -> Iterator[str]:
        """Yield problems that relate several parts; runs if each part alone is valid.

        ``symbols`` maps the names of the module's functions to them.
        """
        yield from ()


class BodyOp(DeclaredOp):
    """Base of those with one region of one block, their body."""

    REGIONS = 1
    _ODS_REGIONS = (1, True)

    @property
    def body(self) -> ir.Block:
        """The block of the region."""
        return self.operation.regions[0].blocks[0]


def _shape_problems(op: DeclaredOp) -> Iterator[str]:
    if len(op.operation.regions) != op.REGIONS:
        yield f"expected {op.REGIONS} regions, got {len(op.operation.regions)}"
        return
    present = op.operation.attributes
    for attribute in op.ATTRIBUTES:
        if attribute.name not in present:
            if attribute.optional:
                continue
            yield f"expected attribute '{attribute.name}' ({attribute.kind.description})"
            return
        value = present[attribute.name]
        if not attribute.kind.accepts(value):
            yield f"attribute '{attribute.name}': expected {attribute.kind.description}, got {value}"
            return
        if problem := attribute.kind.problem(value):
            yield f"attribute '{attribute.name}': {problem}"
            return
    for what, groups, values in (
        ("operand", op.OPERANDS, op.operation.operands),
        ("result", op.RESULTS, op.operation.results),
    ):
        yield from _value_problems(op, what, groups, list(values))


def _value_problems(op: DeclaredOp, what: str, groups: Sequence[Values], values: list[ir.Value]) -> Iterator[str]:
    sizes = [0 if group.variadic else _group_size(op, group) for group in groups]
    required = sum(sizes)
    variadic = any(group.variadic for group in groups)
    if len(values) < required or (len(values) > required and not variadic):
        yield f"expected {'at least ' if variadic else ''}{required} {what}s, got {len(values)}"
        return
    position = 0
    for group, known in zip(groups, sizes, strict=True):
        size = len(values) - position if group.variadic else known
        # A value's type is a new object each time that it is asked for, and calls have many operands.
        for value in values[position : position + size] if group.type is not ANY else ():
            if not group.type.accepts(value.type):
                yield f"{what} '{group.name}': expected {group.type.description}, got {value.type}"
                return
        position += size


def _group_size(op: DeclaredOp, group: Values) -> int:
    return group.count(op) if group.count else 1


def _group_accessor(what: str, groups: Sequence[Values], index: int) -> property:
    def get(op: DeclaredOp) -> Any:
        values = op.operation.operands if what == "operand" else op.operation.results
        start = sum(_group_size(op, group) for group in groups[:index])
        group = groups[index]
        if group.variadic:
            return list(values)[start:]
        if group.count:
            return list(values)[start : start + group.count(op)]
        return values[start]

    return property(get, doc=groups[index].doc)


def _attribute_accessor(attribute: Attribute) -> property:
    def get(op: DeclaredOp) -> Any:
        present = op.operation.attributes
        if attribute.optional and attribute.name not in present:
            return None
        return attribute.kind.decode(present[attribute.name])

    return property(get, doc=attribute.doc)


def declare[OpT: DeclaredOp](cls: type[OpT]) -> type[OpT]:
    """Give a `DeclaredOp` subclass the accessors of its operands, results and attributes, and record its traits."""
    note_traits(cls.OPERATION_NAME, cls.TRAITS)
    for what, groups in (("operand", cls.OPERANDS), ("result", cls.RESULTS)):
        for index, group in enumerate(groups):
            setattr(cls, group.name, _group_accessor(what, groups, index))
    for attribute in cls.ATTRIBUTES:
        setattr(cls, attribute.name, _attribute_accessor(attribute))
    return cls


def documentation(cls: type[DeclaredOp]) -> str:
    """Return the reference documentation of an operation as Markdown, made from its declaration."""
    lines = [f"### `{cls.OPERATION_NAME}`", "", _unindent(cls.__doc__ or ""), ""]
    for title, values in (("Operands", cls.OPERANDS), ("Results", cls.RESULTS)):
        if values:
            lines.append(f"{title}:")
            lines += [
                f"- `{v.name}`{'...' if v.variadic or v.count else ''}: {v.type.description}. {v.doc}" for v in values
            ]
            lines.append("")
    if cls.ATTRIBUTES:
        lines.append("Attributes:")
        lines += [f"- `{a.name}`: {a.kind.description}{', or left out' * a.optional}. {a.doc}" for a in cls.ATTRIBUTES]
        lines.append("")
    if traits := str(cls.TRAITS):
        lines += [f"Traits: {traits}.", ""]
    return "\n".join(lines)


def _unindent(text: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in text.strip().splitlines())
