"""The contents of a module: the kinds of its operations and values, by which passes know whether they have work."""

from functools import cached_property

from xgpu import ir


class Contents:
    """The kinds of operations and values in a module, each found by one walk when it is first asked for.

    It is no longer true of a module that has been changed.
    """

    def __init__(self, module: ir.Module):
        self._module = module

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the operations, and of each dialect that has some: ``mhlo.*``."""
        names: set[str] = set()
        advance = ir.WalkResult.ADVANCE

        def visit(op: ir.Operation) -> ir.WalkResult:
            names.add(op.name)
            return advance

        self._module.operation.walk(visit)
        return frozenset(names | {f"{name.partition('.')[0]}.*" for name in names})

    @cached_property
    def arrays(self) -> frozenset[ir.RankedTensorType]:
        """The types of all arrays: results of operations and arguments of blocks."""
        types: set[ir.Type] = set()
        advance = ir.WalkResult.ADVANCE

        def visit(op: ir.Operation) -> ir.WalkResult:
            results = op.results
            # By number: an iterator of the bindings ends with an exception, which takes longer than all else here.
            for number in range(len(results)):
                types.add(results[number].type)
            if len(op.regions):
                for region in op.regions:
                    for block in region.blocks:
                        types.update(argument.type for argument in block.arguments)
            return advance

        self._module.operation.walk(visit)
        return frozenset(type_ for type_ in types if isinstance(type_, ir.RankedTensorType))

    @cached_property
    def elements(self) -> frozenset[ir.Type]:
        """The element types of all arrays."""
        return frozenset(type_.element_type for type_ in self.arrays)
