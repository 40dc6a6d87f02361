"""Products whose results are read element by element by further products alone: chains without a softmax.

Retention, attention with a sigmoid in place of the softmax, and layers of few columns have this form, and so have their
gradients: no product's result is needed in memory.
"""

from collections.abc import Iterable, Set

from xgpu import ir
from xgpu.analysis.attention.gradient import drops_nothing
from xgpu.analysis.attention.places import DOT, is_tiled
from xgpu.records import dataclass
from xgpu.structure import producer, users_of


@dataclass(frozen=True)
class SumGroup:
    """All ``products`` that are computed again for ``ends``, the products that read what is made of them.

    ``made`` has the results of the products and what is made of them on the way to ends. ``is_mutual``: whether each
    product has the same group.
    """

    products: tuple[ir.Operation, ...]
    ends: tuple[ir.Operation, ...]
    made: Set[ir.Value]
    is_mutual: bool


class SumGroups:
    """The groups of the products of a block.

    Two products that a third one reads by one operand are in one group. So a product that is in none rules out all
    that are found with it, and what is made of them is not followed again: all groups take time linear in the block.
    """

    def __init__(self, block: ir.Block):
        self._made = _made_of_products(block)
        self._refused: dict[ir.Value, _Refused] = {}

    def of(self, first: ir.Operation) -> SumGroup | None:
        """Return the products computed with the ``first`` one; None if something else reads what is made of it."""
        found = _Found(first)
        refused = self._follow(found)
        if refused is None and found.products.keys().isdisjoint(found.ends):
            if not found.ends:
                return None
            return SumGroup(tuple(found.products), tuple(found.ends), found.seen, found.is_mutual)
        if found.is_mutual:
            self._refuse(found.seen, refused)
        return None

    def refuse(self, group: SumGroup) -> None:
        """Take note that no chains can be made of a group, which then is found no more."""
        if group.is_mutual:
            self._refuse([result for op in group.products for result in op.results], None)

    def forget(self, operations: Iterable[ir.Operation]) -> None:
        """Forget what was found by way of ``operations``, before they are erased."""
        for result in (result for op in operations for result in op.results):
            self._made.discard(result)
            if (refused := self._refused.pop(result, None)) is not None:
                refused.is_known = False

    def _refuse(self, values: Iterable[ir.Value], refused: "_Refused | None") -> None:
        self._refused.update(dict.fromkeys(values, refused or _Refused()))

    def _refusal_of(self, value: ir.Value) -> "_Refused | None":
        refused = self._refused.get(value)
        return refused if refused is not None and refused.is_known else None

    def _follow(self, found: "_Found") -> "_Refused | None":
        """Find the products and ends of a group; return why there is none, None if there is one."""
        while (value := found.next()) is not None:
            if (refused := self._refusal_of(value)) is not None:
                return refused
            for user in users_of(value):
                if user.block != found.first.block:
                    return _Refused()
                if user.name == DOT:
                    found.ends[user] = None
                    if (refused := self._add_behind(value, found)) is not None:
                        return refused
                elif is_tiled(user):
                    found.add(user)
                elif drops_nothing(user):
                    found.add_reduced(user)
                else:
                    return _Refused()
        return None

    def _add_behind(self, value: ir.Value, found: "_Found") -> "_Refused | None":
        """Add the products that a value is computed from element by element; return why they are in no group."""
        pending = [value]
        while pending:
            value = pending.pop()
            if (refused := self._refusal_of(value)) is not None:
                return refused
            op = producer(value)
            if op.name == DOT:
                found.add_product(op)
            elif is_tiled(op):
                behind = [each for each in op.operands if each in self._made and each not in found.behind]
                found.behind.update(behind)
                pending += behind
        return None


@dataclass(eq=False)
class _Refused:
    """The reason why products are in no group: something else reads what is made of them, as far as ``is_known``."""

    is_known: bool = True


class _Found:
    """The part found so far of the ``first`` product's group: values to be followed, and all that were ``seen``.

    What sums over dimensions of one element are made of is followed last: the group of one product that leads there
    is not that of all that are met there, and no more ``is_mutual``.
    """

    def __init__(self, first: ir.Operation):
        self.first = first
        self.products: dict[ir.Operation, None] = {}
        self.ends: dict[ir.Operation, None] = {}
        self.seen: set[ir.Value] = set()
        self.behind: set[ir.Value] = set()
        self.is_mutual = True
        self._pending: list[ir.Value] = []
        self._reduced: list[ir.Value] = []
        self.add_product(first)

    def next(self) -> ir.Value | None:
        """Return the next value whose users are to be looked at, None if there is none left."""
        if not self._pending and self._reduced:
            self.is_mutual = False
            self._pending.append(self._reduced.pop())
        return self._pending.pop() if self._pending else None

    def add(self, op: ir.Operation) -> None:
        """Follow the results of an operation, if that is not done."""
        self._pending += self._new(op)

    def add_product(self, op: ir.Operation) -> None:
        """Add a product to the group."""
        self.products[op] = None
        self.add(op)

    def add_reduced(self, op: ir.Operation) -> None:
        """Follow the results of a reduction after all others."""
        self._reduced += self._new(op)

    def _new(self, op: ir.Operation) -> list[ir.Value]:
        new: list[ir.Value] = [result for result in op.results if result not in self.seen]
        self.seen.update(new)
        return new


def _made_of_products(block: ir.Block) -> set[ir.Value]:
    """Return the values of a block that are products, or computed from some element by element."""
    made: set[ir.Value] = set()
    for op in (view.operation for view in block.operations):
        if op.name == DOT or (any(operand in made for operand in op.operands) and is_tiled(op)):
            made.update(op.results)
    return made
