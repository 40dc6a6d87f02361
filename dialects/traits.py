"""Traits of operations: what passes ask of an operation instead of its name.

Operations of ours declare theirs, and `declare` notes them here. Those of MLIR's that kernels are made of are in the
table below; an operation in neither has no trait.
"""

from dataclasses import fields

from xgpu.records import dataclass


@dataclass(frozen=True)
class Traits:
    """Facts about an operation that hold wherever it is.

    ``pure``: its results follow from its operands, and it does nothing else, so it may be merged, moved and removed.
    ``collective``: other threads execute it with this one, so that it must not be copied into branches of which threads
    take different ones. ``asynchronous``: it starts, counts or awaits what goes on beside the thread, so it keeps its
    place among such operations and accesses to memory. ``allocates``: it makes memory, and every thread of a block
    executes it once. ``loop``: its regions run any number of times. ``call``: it calls a function. ``passes_on``: it
    gives values on as they are, whatever their type: to its regions, their users, other functions or other threads.
    ``reads`` and ``updates``: the number of the operand that is the tensor it reads or writes; what it writes is its
    first result from then on. ``at_element``: it does so at one element, whose indices are the operands that follow.
    """

    pure: bool = False
    collective: bool = False
    asynchronous: bool = False
    allocates: bool = False
    loop: bool = False
    call: bool = False
    passes_on: bool = False
    reads: int | None = None
    updates: int | None = None
    at_element: bool = False

    def __str__(self) -> str:
        """The traits in words, "" if there are none."""
        said = [field.name.replace("_", " ") for field in fields(self) if getattr(self, field.name) is True]
        numbers = (("reads", self.reads), ("updates", self.updates))
        return ", ".join([*said, *(f"{name} operand {number}" for name, number in numbers if number is not None)])

    @property
    def has_effects(self) -> bool:
        """Whether to execute it twice is not the same as once."""
        return self.collective or self.asynchronous or self.allocates or self.updates is not None

    @property
    def tensor(self) -> int | None:
        """The number of the operand that is the tensor it reads or writes, None if it does neither."""
        return self.updates if self.reads is None else self.reads


_NONE = Traits()
_TRAITS: dict[str, Traits] = {
    "func.call": Traits(call=True, passes_on=True),
    "func.return": Traits(passes_on=True),
    "scf.condition": Traits(passes_on=True),
    "scf.for": Traits(loop=True, passes_on=True),
    "scf.if": Traits(passes_on=True),
    "scf.while": Traits(loop=True, passes_on=True),
    "scf.yield": Traits(passes_on=True),
    "tensor.extract": Traits(reads=0, at_element=True),
    "tensor.insert": Traits(updates=1, at_element=True),
    "vector.transfer_read": Traits(reads=0),
    "vector.transfer_write": Traits(updates=1),
}


def note_traits(name: str, traits: Traits) -> None:
    """Record the traits of a declared operation."""
    _TRAITS[name] = traits


def traits_of(name: str) -> Traits:
    """Return the traits of the operation of this name."""
    return _TRAITS.get(name, _NONE)


def is_pure(name: str) -> bool:
    """Whether an operation of this name, without regions, only makes results of its operands, tensors being values."""
    return name.startswith(("arith.", "math.")) or name == "tensor.extract" or traits_of(name).pure
