"""The places of tiles: shared memory, registers as accumulators of a product, or nowhere (computed again).

Mirage puts unary operations behind the operation that they follow, and accumulators of up to 192 elements a thread into
registers (its transpiler's notes, "threadblock level data reuse" and "accumulator in register file"). Here any
elementwise operation follows a product, whose other operands are read where the accumulators are. So does the reduction
of rows that a warp has whole: its threads exchange what each has of a row, and all have the result. Numbers of rows
follow each other in the same way, and go into what is computed of elements by a broadcast. What is computed for a left
operand of warp groups is computed where they read it (`xgpu/block_plan/forms.py`).
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from xgpu.block_plan.forms import Forms, lies_as_left
from xgpu.block_plan.graph import Carried, Graph, PlanNode
from xgpu.block_plan.warps import Arrangement, ResultForm, form_of, is_of_rows, rows_form
from xgpu.dialects.attributes import BY_WARP_GROUPS
from xgpu.records import dataclass

Where = Literal["shared", "fragments", "computed"]

CHEAP = 2
"""Instructions for an element that are rather repeated than kept."""
_ONCE = frozenset(("elementwise", "reduce", "write", "yield", "steps", "move"))
"""Kinds of operations that read each element of an operand about once."""


@dataclass
class Chains:
    """The place of each tile, and the reason; for tiles in registers the form of their accumulators."""

    where: dict[int, Where] = field(default_factory=dict)
    why: dict[int, str] = field(default_factory=dict)
    form: dict[int, ResultForm] = field(default_factory=dict)
    arranged: Mapping[ResultForm, Arrangement] = field(default_factory=dict)
    """The arrangement of the warps of products, by the form of their accumulators and of their left operands."""

    def is_computed(self, tile: int) -> bool:
        """Whether a tile is computed where it is read."""
        return self.where[tile] == "computed"


@dataclass(frozen=True)
class MissingCopy:
    """A copy in shared memory that is missing of a tile: for these readers, or for what steps carry."""

    tile: int
    readers: tuple[int, ...]
    before: int
    """The node before which the copy belongs."""
    operand: int | None = None
    """The number of the operand that it replaces, if not all that are the tile."""


def choose(
    graph: Graph, threads: int, given: Mapping[int, Where], arranged: Mapping[int, Arrangement] | None = None
) -> Chains:
    """Return where each tile of a graph is kept; those ``given`` are where a person wants them.

    Where an operation then cannot read a tile in registers, `missing_copies` says which copies there have to be.
    ``arranged`` is how warps share products, by node, without which none reads its left operand from registers.
    """
    by_form = {form_of(graph, graph.nodes[number]): each for number, each in (arranged or {}).items()}
    elsewhere = {tile for tile, place in given.items() if place != "fragments"}
    found = Forms(graph, threads, elsewhere, set(given), by_form)
    chains = Chains(form=found.chosen(), arranged=found.arranged)
    for number in reversed(range(len(graph.nodes))):
        node = graph.nodes[number]
        for tile in node.results:
            where, why = _place(graph, node, tile, chains)
            chains.where[tile], chains.why[tile] = (given[tile], "as given") if tile in given else (where, why)
    for each in graph.carried:
        chains.where[each.argument] = chains.where[each.result]
    return chains


def missing_copies(graph: Graph, chains: Chains) -> list[MissingCopy]:
    """Return the copies in shared memory without which operations cannot read what they are to read."""
    found = []
    for tile, form in chains.form.items():
        if chains.where[tile] != "fragments":
            continue
        readers = tuple(
            dict.fromkeys(each for each in graph.readers[tile] if not _reads_fragments(graph, each, tile, form, chains))
        )
        if readers:
            found.append(MissingCopy(tile, readers, readers[0]))
    for number, node in enumerate(graph.nodes):
        if node.kind == "steps":
            end = _end_of(graph, node.body)
            copied = _copied(graph, graph.carried_by(number), chains)
            found += [MissingCopy(each.yielded, (end,), end, operand) for operand, each in copied]
    return found


def _copied(graph: Graph, carried: list[Carried], chains: Chains) -> list[tuple[int, Carried]]:
    """Return what steps carry in shared memory whose next value cannot be computed in the tile itself."""
    found = []
    later: dict[int, set[int]] = {}
    for operand, each in enumerate(carried):
        if chains.where[each.result] != "shared" or each.yielded == each.argument:
            continue
        maker = graph.maker[each.yielded]
        before = _uses(graph, each.argument, chains) - {maker, _end_of(graph, graph.nodes[each.steps].body)}
        if _needs_copy(graph, each, chains) or any(_depends(graph, user, maker, later) for user in before):
            found.append((operand, each))
        else:
            later.setdefault(maker, set()).update(before)
    return found


def _place(graph: Graph, node: PlanNode, tile: int, chains: Chains) -> tuple[Where, str]:
    """Return where a tile of ``node`` is, once that is known of all that follow it."""
    readers = [graph.nodes[number] for number in graph.readers[tile]]
    if tile in chains.form:
        return _place_of_fragments(graph, node, tile, chains)
    if any(reader.kind == "product" for reader in readers):
        return "shared", "a product reads it"
    if node.kind in ("constant", "numbers", "spread"):
        return "computed", "its elements follow from their position or from another tile's"
    if node.kind == "read" and node.region:
        return "shared", "each step reads it"
    if node.kind not in ("read", "elementwise", "move"):
        return "shared", f"all threads have a part in a {node.kind}"
    count = len(set(graph.readers[tile]))
    if count != 1:
        return "shared", f"{count} operations read it"
    reader = readers[0]
    if len(readers) > 1 and reader.kind != "elementwise":
        return "shared", "one operation reads it in several places"
    if reader.region != node.region or (reader.kind == "yield" and not _is_fragments(graph, tile, chains)):
        return "shared", "steps read it"
    if _is_repeated(graph, reader, chains) and (node.kind == "read" or node.instructions > CHEAP):
        return "shared", "its elements are read several times"
    return "computed", "one operation reads each of its elements, once"


def _place_of_fragments(graph: Graph, node: PlanNode, tile: int, chains: Chains) -> tuple[Where, str]:
    form = chains.form[tile]
    fits = [_reads_fragments(graph, number, tile, form, chains) for number in graph.readers[tile]]
    if node.kind != "steps" and fits and not any(fits):
        return "shared", "what reads it needs elements that other threads have computed"
    return "fragments", "the threads that read its elements have computed them"


def _reads_fragments(graph: Graph, reader: int, tile: int, form: ResultForm, chains: Chains) -> bool:
    """Whether an operation reads a tile element by element, where accumulators of this form are."""
    node = graph.nodes[reader]
    if node.kind == "write":
        return True
    if node.kind == "elementwise":
        return next((chains.form[each] for each in node.operands if each in chains.form), form) == form
    if node.kind == "steps":
        return all(chains.form.get(each.result, form) == form for each in graph.carried_by(reader) if each.init == tile)
    if node.kind == "product":
        return _takes_left(graph, node, tile, form, chains)
    if node.kind == "reduce":
        rows = rows_form(form, chains.arranged.get(form)) if is_of_rows(graph, node) else None
        return rows is not None and chains.form.get(node.results[0]) == rows
    if node.kind == "spread":
        return _goes_into_rows(graph, node, form, chains)
    if node.kind == "yield":
        carried = [each for each in graph.carried if graph.nodes[each.steps].body == node.region]
        return all(chains.form.get(each.result) == form for each in carried if each.yielded == tile)
    return False


def _goes_into_rows(graph: Graph, spread: PlanNode, form: ResultForm, chains: Chains) -> bool:
    """Whether a broadcast of numbers of rows is computed where the threads are that have them."""
    (result,) = spread.results
    if spread.axes != (0,) or chains.where[result] != "computed":
        return False
    readers = [graph.nodes[number] for number in graph.readers[result]]
    into = [chains.form.get(node.results[0]) if node.kind == "elementwise" else None for node in readers]
    return all(each is not None and rows_form(each, chains.arranged.get(each)) == form for each in into)


def _takes_left(graph: Graph, product: PlanNode, tile: int, form: ResultForm, chains: Chains) -> bool:
    """Whether a product of warp groups takes a tile of accumulators as its left operand: each group has its rows."""
    if product.instruction != BY_WARP_GROUPS or product.operands[0] != tile or not lies_as_left(graph, product):
        return False
    arranged = {chains.arranged.get(each) for each in (form, form_of(graph, product))}
    is_whole = len(arranged) == 1 and all(each is not None and each[1] == 1 for each in arranged)
    return is_whole and form.is_one_matrix


def _is_fragments(graph: Graph, tile: int, chains: Chains) -> bool:
    return all(each.result in chains.form for each in graph.carried if each.yielded == tile)


def _is_repeated(graph: Graph, reader: PlanNode, chains: Chains) -> bool:
    """Whether elements that ``reader`` reads are computed several times if they are computed where they are read."""
    while True:
        if reader.kind not in _ONCE:
            return True
        if len(reader.results) != 1 or chains.where[reader.results[0]] != "computed":
            return False
        (result,) = reader.results
        following = set(graph.readers[result])
        if len(following) != 1:
            return len(following) > 1
        (number,) = following
        reader = graph.nodes[number]


def _needs_copy(graph: Graph, carried: Carried, chains: Chains) -> bool:
    """Whether what makes the next value of a tile in shared memory cannot write it there, whenever it does."""
    tile = carried.yielded
    maker = graph.maker[tile]
    node, body = graph.nodes[maker], graph.nodes[carried.steps].body
    if node.region != body or node.kind in ("read", "steps", "constant", "numbers", "spread"):
        return True
    if chains.where[tile] != "shared" or graph.readers[tile].count(_end_of(graph, body)) != 1:
        return True
    is_read = maker in _uses(graph, carried.argument, chains)
    return is_read and not _is_positional(graph, maker, carried.argument, chains)


def _end_of(graph: Graph, region: int) -> int:
    return next(number for number in graph.within(region) if graph.nodes[number].kind == "yield")


def _uses(graph: Graph, tile: int, chains: Chains) -> set[int]:
    """Return the nodes that read the memory of a tile: those whose operands are computed from it, too."""
    found, pending, seen = set[int](), list(graph.readers[tile]), set[int]()
    while pending:
        number = pending.pop()
        if number in seen:
            continue
        seen.add(number)
        results = graph.nodes[number].results
        if len(results) == 1 and chains.where[results[0]] == "computed":
            pending += graph.readers[results[0]]
        else:
            found.add(number)
    return found


def _is_positional(graph: Graph, maker: int, tile: int, chains: Chains) -> bool:
    """Whether a node reads of a tile only the element at which it writes: only elementwise operations lie between."""
    pending, seen = [maker], set[int]()
    while pending:
        number = pending.pop()
        if number in seen:
            continue
        seen.add(number)
        node = graph.nodes[number]
        reaches = [each for each in node.operands if tile in graph.sources(each, chains.is_computed)]
        if not reaches:
            continue
        if node.kind != "elementwise":
            return False
        pending += [graph.maker[each] for each in reaches if each != tile]
    return True


def _depends(graph: Graph, node: int, on: int, later: Mapping[int, set[int]]) -> bool:
    """Whether a node needs another, or has to be ``later`` than one that does."""
    pending, seen = [node], set[int]()
    while pending:
        number = pending.pop()
        if number == on:
            return True
        if number in seen:
            continue
        seen.add(number)
        pending += [*later.get(number, ()), *(graph.maker[tile] for tile in graph.nodes[number].operands)]
    return False
