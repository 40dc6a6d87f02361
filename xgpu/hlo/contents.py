"""The contents of a module: the kinds of its operations and values, by which passes know whether they have work."""

from functools import cached_property

from xgpu import ir
from xgpu.structure import arguments_of, names_in, walk


class Contents:
    """The kinds of operations and values in a module, each found by one walk when it is first asked for.

    It is no longer true of a module that has been changed.
    """

    def __init__(self, module: ir.Module):
        self._module = module

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the operations, and of each dialect that has some: ``mhlo.*``."""
        names = names_in(self._module.operation)
        return frozenset(names | {f"{name.partition('.')[0]}.*" for name in names})

    @cached_property
    def arrays(self) -> frozenset[ir.RankedTensorType]:
        """The types of all arrays: results of operations and arguments of blocks."""
        types: set[ir.Type] = set()
        for op in walk(self._module.operation):
            results = op.results
            # By number: an iterator of the bindings ends with an exception, which takes longer than all else here.
            for number in range(len(results)):
                types.add(results[number].type)
            if len(op.regions):
                types.update(argument.type for argument in arguments_of(op))
        return frozenset(type_ for type_ in types if isinstance(type_, ir.RankedTensorType))

    @cached_property
    def elements(self) -> frozenset[ir.Type]:
        """The element types of all arrays."""
        return frozenset(type_.element_type for type_ in self.arrays)
