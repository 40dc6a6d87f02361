"""The forms of tiles in registers: those of products' accumulators, of their rows, and of left operands."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field

from xgpu.block_plan.graph import Graph, PlanNode
from xgpu.block_plan.warps import Arrangement, ResultForm, form_of, is_of_rows, left_form, rows_form
from xgpu.dialects.attributes import BY_WARP_GROUPS
from xgpu.records import dataclass

MOST_ACCUMULATORS = 192
"""Elements that a thread may carry in registers through steps: of its 255 registers, others are for operands."""
_MOST_LEFT = 64
"""Elements of a left operand that a thread computes at once. A guess: they are f32 before they are rounded."""
_LEFT_BITS = 16
"""Bits of an element of a left operand that lies in registers as accumulators do."""


@dataclass(frozen=True, eq=False)
class Forms:
    """The search for tiles that can be in registers. ``elsewhere`` are those that a person wants in another place.

    ``given`` are those of which the place is decided, so steps carry them there however many registers they take.
    ``arranged`` is how warps share products, by the form of their accumulators; those of left operands are added.
    """

    graph: Graph
    threads: int
    elsewhere: Collection[int]
    given: Collection[int]
    arranged: dict[ResultForm, Arrangement] = field(default_factory=dict)

    def chosen(self) -> dict[int, ResultForm]:
        """Return the form of each tile that can be in registers."""
        dropped: set[int] = set()
        while True:
            form = self._follow({}, dropped)
            for product in self.graph.nodes:
                form |= self._left_operand(product, form)
            form = self._follow(form, dropped)
            heavy = self._too_many(form)
            if heavy is None:
                return form
            dropped.add(heavy)

    def _follow(self, known: Mapping[int, ResultForm], dropped: set[int]) -> dict[int, ResultForm]:
        """Follow products through elementwise operations and reductions of rows, and around steps."""
        form, carried = dict(known), self.graph.carried
        while True:
            for node in self.graph.nodes:
                for tile in node.results:
                    if tile not in self.elsewhere and (found := self._form_of(node, form)):
                        form[tile] = found
            added = {
                each.result: form[each.yielded]
                for each in carried
                if each.yielded in form
                and each.result not in form
                and each.result not in dropped
                and each.result not in self.elsewhere
            }
            if not added:
                return form
            form |= added
            form |= {each.argument: added[each.result] for each in carried if each.result in added}

    def _form_of(self, node: PlanNode, form: Mapping[int, ResultForm]) -> ResultForm | None:
        if node.kind == "product":
            return form_of(self.graph, node)
        if node.kind == "elementwise":
            return next((form[tile] for tile in node.operands if tile in form), None)
        if is_of_rows(self.graph, node) and node.operands[0] in form:
            of = form[node.operands[0]]
            return rows_form(of, self.arranged.get(of))
        return None

    def _left_operand(self, product: PlanNode, form: Mapping[int, ResultForm]) -> dict[int, ResultForm]:
        """Return the form of a left operand that follows no product, and of what it is computed from, as far as it is.

        Each thread computes the elements that it multiplies, of which no other thread needs one.
        """
        if product.instruction != BY_WARP_GROUPS or not lies_as_left(self.graph, product):
            return {}
        tile, arranged = product.operands[0], self.arranged.get(form_of(self.graph, product))
        size = self.graph.tiles[tile].size // self.threads
        before = list(self._computed_from(tile, product.region))
        if arranged is None or arranged[1] != 1 or size > _MOST_LEFT or any(each in form for each in before):
            return {}
        found = left_form(self.graph.tiles[tile].shape, arranged)
        self.arranged[found] = arranged
        return dict.fromkeys(before, found)

    def _computed_from(self, tile: int, region: int) -> Iterator[int]:
        """Yield a tile, and those that it is computed from, element by element, in the same steps."""
        pending, seen = [tile], set[int]()
        while pending:
            each = pending.pop()
            node = self.graph.nodes[self.graph.maker[each]]
            if each in seen or node.kind != "elementwise" or node.region != region or each in self.elsewhere:
                continue
            seen.add(each)
            yield each
            pending += node.operands

    def _too_many(self, form: Mapping[int, ResultForm]) -> int | None:
        """Return the largest tile that some steps carry in registers if those are too many for a thread."""
        tiles = self.graph.tiles
        for number, node in enumerate(self.graph.nodes):
            if node.kind == "steps":
                held = [each.result for each in self.graph.carried_by(number) if each.result in form]
                free = [tile for tile in held if tile not in self.given]
                each_thread = sum(-(-tiles[tile].size // self.threads) for tile in held)
                if free and each_thread > MOST_ACCUMULATORS:
                    return max(free, key=lambda tile: tiles[tile].size)
        return None


def lies_as_left(graph: Graph, product: PlanNode) -> bool:
    """Whether the left operand of a product is rows of contracted elements of 16 bits, and nothing else is it, too."""
    assert product.dimensions is not None, "a product has them"
    left, _ = product.dimensions
    tile = product.operands[0]
    lies_so = (tuple(left.own), tuple(left.contracting)) == ((0,), (1,)) and graph.tiles[tile].bits == _LEFT_BITS
    return lies_so and product.operands.count(tile) == 1
