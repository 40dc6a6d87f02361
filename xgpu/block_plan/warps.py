"""The division of a product among a block's warps: so many down its rows, so many across its columns."""

import math
from collections.abc import Mapping, Sequence

from xgpu.block_plan.graph import Graph, PlanNode
from xgpu.dialects.attributes import BY_WARP_GROUPS
from xgpu.records import dataclass

ATOM_ROWS, ATOM_COLUMNS = 16, 8
"""Rows and columns of the result of one matrix instruction of a warp."""
GROUP_WARPS, GROUP_ROWS, MOST_GROUP_COLUMNS = 4, 64, 256
"""Warps of a warp group, and the rows and most columns of the result of its instruction."""

type Arrangement = tuple[int, int]
"""The numbers of warps down the rows of a product, and across its columns."""


@dataclass(frozen=True)
class ResultForm:
    """The form of tiles, equal for those that can lie alike in registers: ``fragment`` and shape.

    ``is_one_matrix``: whether they are one matrix, whose rows are one dimension.
    """

    fragment: str
    shape: tuple[int, ...]
    is_one_matrix: bool = False


@dataclass(frozen=True)
class WarpProduct:
    """A product of tiles: ``batch`` of them, of ``rows`` by ``contracted`` and ``contracted`` by ``columns``."""

    batch: int
    rows: int
    columns: int
    contracted: int

    @classmethod
    def of(cls, graph: Graph, node: PlanNode) -> "WarpProduct":
        """Return the product of a node."""
        assert node.dimensions is not None, "a product has them"
        left, right = node.dimensions
        shapes = [graph.tiles[tile].shape for tile in node.operands]
        sizes = [1, 1, 1, 1]
        parts = ((0, left.batching, 0), (0, left.own, 1), (1, right.own, 2), (0, left.contracting, 3))
        for operand, dimensions, place in parts:
            for dimension in dimensions:
                sizes[place] *= shapes[operand][dimension]
        return cls(*sizes)


def rows_form(form: ResultForm, arranged: Arrangement | None) -> ResultForm | None:
    """Return the form of one number for each row of results, in all threads that have elements of it.

    None if no warp has whole rows. Products of as many rows have the same form, whatever their columns are.
    """
    is_whole = arranged is not None and arranged[1] == 1 and math.prod(form.shape[1:]) % ATOM_COLUMNS == 0
    if arranged is None or not is_whole or not form.is_one_matrix:
        return None
    return ResultForm(f"rows of {arranged[0]} warps", form.shape[:1])


def left_form(shape: tuple[int, ...], arranged: Arrangement) -> ResultForm:
    """Return the form of a left operand of warp groups that have its rows whole, as they have those of the result."""
    return ResultForm(f"left operands of {arranged[0]} warps", shape, is_one_matrix=True)


def elements_read(product: WarpProduct, down: int, across: int) -> int:
    """Return how many elements of the operands all warps read: each those of its rows and of its columns."""
    rows, columns = (
        math.ceil(product.rows / ATOM_ROWS) * ATOM_ROWS,
        math.ceil(product.columns / ATOM_COLUMNS) * ATOM_COLUMNS,
    )
    return product.batch * product.contracted * (rows * across + columns * down)


def busiest(product: WarpProduct, down: int, across: int) -> int:
    """Return how many instructions the busiest warp has for each of the contracted dimension."""
    rows, columns = math.ceil(product.rows / ATOM_ROWS), math.ceil(product.columns / ATOM_COLUMNS)
    return product.batch * math.ceil(rows / down) * math.ceil(columns / across)


def arrange(products: list[WarpProduct], warps: int, by_rows: bool = False) -> Arrangement:
    """Return how many warps are down the rows and across the columns of products that share registers' form.

    The busiest warp has as little to do as can be, then as few elements are read as can be. (Mirage: `thr_layout`.)
    Before that, warps have whole rows, if what is computed ``by_rows`` is to stay in registers.
    """
    ways = [(down, warps // down) for down in range(1, warps + 1) if warps % down == 0]

    def cost(way: Arrangement) -> tuple[int, bool, int, int]:
        work = sum(busiest(each, *way) * each.contracted for each in products)
        return work, by_rows and way[1] > 1, sum(elements_read(each, *way) for each in products), way[1]

    return min(ways, key=cost)


def arrange_groups(product: WarpProduct, warps: int) -> Arrangement | None:
    """Return the arrangement of warps whose groups multiply by instructions of theirs; None if none fits.

    Each group has whole instructions of 64 rows, and one for all of its columns. As many groups as can be are one below
    the other: an instruction of more columns reads less for each of its sums, and has all columns of its rows.
    """
    if warps % GROUP_WARPS or product.batch != 1:
        return None
    groups = warps // GROUP_WARPS
    for down in sorted((each for each in range(1, groups + 1) if groups % each == 0), reverse=True):
        if group_problem(product, (down * GROUP_WARPS, groups // down)) is None:
            return down * GROUP_WARPS, groups // down
    return None


def group_problem(product: WarpProduct, arrangement: Arrangement) -> str | None:
    """Return why warp groups do not multiply a product that is so divided among warps; None if they do."""
    down, across = arrangement
    if down % GROUP_WARPS:
        return f"expected a multiple of {GROUP_WARPS} warps down, got {down}"
    rows = down // GROUP_WARPS * GROUP_ROWS
    if product.batch != 1 or product.rows % rows:
        return f"expected one matrix, and a multiple of {rows} rows, got {product.batch} of {product.rows}"
    columns, rest = divmod(product.columns, across)
    if rest or columns % ATOM_COLUMNS or columns > MOST_GROUP_COLUMNS:
        each = f"{across} times a multiple of {ATOM_COLUMNS} columns, up to {MOST_GROUP_COLUMNS}"
        return f"expected {each}, got {product.columns}"
    return None


def arrangements(graph: Graph, warps: int, given: Mapping[int, Arrangement]) -> dict[int, Arrangement]:
    """Return how each product is divided among warps, by its node: those whose results can lie alike in the same way.

    ``given`` are those that are not to be chosen.
    """
    forms: dict[ResultForm, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        if node.kind == "product":
            forms.setdefault(form_of(graph, node), []).append(number)
    found: dict[int, Arrangement] = {}
    for numbers in forms.values():
        chosen = asked_of(graph, numbers[0], given) or _arranged(graph, numbers, warps)
        found |= {number: given.get(number, chosen) for number in numbers}
    return found


def asked_of(graph: Graph, number: int, given: Mapping[int, Arrangement]) -> Arrangement | None:
    """Return the arrangement that is given for a product, or for one whose results can lie alike; None if none is."""
    if number in given:
        return given[number]
    form = form_of(graph, graph.nodes[number])
    return next((given[each] for each in sorted(given) if form_of(graph, graph.nodes[each]) == form), None)


def form_of(graph: Graph, product: PlanNode) -> ResultForm:
    """Return the form of a product's results."""
    (result,) = product.results
    assert product.dimensions is not None, "a product has them"
    left, _ = product.dimensions
    return ResultForm(product.fragment, graph.tiles[result].shape, (len(left.batching), len(left.own)) == (0, 1))


def _arranged(graph: Graph, numbers: Sequence[int], warps: int) -> Arrangement:
    by_groups = [number for number in numbers if graph.nodes[number].instruction == BY_WARP_GROUPS]
    for number in by_groups:
        found = arrange_groups(WarpProduct.of(graph, graph.nodes[number]), warps)
        if found is not None:
            return found
    by_rows = any(_reduces_rows(graph, number) for number in numbers)
    return arrange([WarpProduct.of(graph, graph.nodes[number]) for number in numbers], warps, by_rows)


def _reduces_rows(graph: Graph, product: int) -> bool:
    """Whether rows of a product's results are reduced, or of what follows these element by element."""
    pending, seen = list(graph.nodes[product].results), set[int]()
    while pending:
        tile = pending.pop()
        if tile in seen:
            continue
        seen.add(tile)
        for reader in graph.readers[tile]:
            node = graph.nodes[reader]
            if is_of_rows(graph, node):
                return True
            if node.kind == "elementwise":
                pending += node.results
            elif node.kind == "yield":
                carried = (each for each in graph.carried if each.yielded == tile)
                pending += [value for each in carried for value in (each.argument, each.result)]
    return False


def is_of_rows(graph: Graph, node: PlanNode) -> bool:
    """Whether a node reduces each row of a tile, of one operand, to a number."""
    if node.kind != "reduce" or node.axes is None or len(node.results) != 1:
        return False
    rank = len(graph.tiles[node.operands[0]].shape)
    return rank > 1 and sorted(node.axes) == list(range(1, rank))
