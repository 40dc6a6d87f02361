"""Chains of sums that are made of products alone: those of a group, each at the place of its result."""

from xgpu import ir
from xgpu.analysis.attention.chained_sums import ChainedSums, chained_sums
from xgpu.analysis.attention.places import DOT
from xgpu.analysis.attention.sum_groups import SumGroup
from xgpu.costs.attention import AttentionSizes, are_sums_fast
from xgpu.device import Device
from xgpu.dialects.chain import returned
from xgpu.emit.families.attention.sums_schedule import most_products, sums_problem
from xgpu.emit.families.attention.writing import MOVES
from xgpu.fusion.fallback import fallback_reason
from xgpu.passes.prepare.chains.parts import ChainParts, Taken, last_moved
from xgpu.structure import dtype_of, producer, users_of


def write_sums(group: SumGroup, target: Device) -> dict[ir.Value, ir.Value] | str:
    """Write a chain for each end; return the results by what they are instead of, or why there are none."""
    if all(fallback_reason(product) is None for product in (*group.products, *group.ends)):
        return "kernels compute products of so few terms as a part of what reads them"
    results = [last_moved(end.results[0], _element_bytes(group)) for end in group.ends]
    known: list[ChainedSums] = []
    for result in results:
        chain = chained_sums([result], group.products, group.made)
        if isinstance(chain, str):
            return chain
        if len(chain.products) > most_products():
            # What is behind the others need not be found out: all ends have chains, or none has.
            return "there are more products behind one than threads have room for"
        known.append(chain)
    count = len(group.products) + len(group.ends)
    if not are_sums_fast([(_sizes(chain), len(chain.products) + 1) for chain in known], count, target):
        return "XLA's products are expected to be faster"
    found: dict[ir.Value, ir.Value] = {}
    for chain, result in zip(known, results, strict=True):
        made = _write(chain, result)
        if isinstance(made, str):
            for each in found.values():
                producer(each).erase()
            return made
        found[result] = made.results[0]
    return found


def _element_bytes(group: SumGroup) -> int:
    return dtype_of(group.products[0].operands[0]).bits // 8


def _write(chain: ChainedSums, result: ir.Value) -> ir.Operation | str:
    """Write the chain that returns a result; return it, or why there is no kernel for it."""
    (sums,) = chain.sums
    inner = frozenset(_between(chain, producer(result)))
    moved = {each.op: list(each.op.operands) for each in chain.products} | {sums.sums.product: [sums.sums.values]}
    problem = ""
    for moves in (MOVES, frozenset[str]()):
        parts = ChainParts.of([result], Taken(inner, moved, moves, lambda value: False))
        with ir.InsertionPoint(producer(result)), producer(result).location:
            op = parts.write([result], {})
        inside = chained_sums(returned(op))
        arrays: dict[ir.Value, ir.Value] = {each: each for each in op.regions[0].blocks[0].arguments}
        found = inside if isinstance(inside, str) else sums_problem(inside, arrays)
        if found is None:
            return op
        op.erase()
        problem = found
    return problem


def _between(chain: ChainedSums, last: ir.Operation) -> list[ir.Operation]:
    """Return the operations of a chain from its products on, up to the last one: those on single elements."""
    (end,) = (each.sums.product for each in chain.sums)
    found = {each.op: None for each in chain.products}
    pending = [each.result for each in chain.products]
    while pending:
        for op in users_of(pending.pop()):
            is_inside = op == last or (op.block == last.block and op.is_before_in_block(last))
            if is_inside and op not in found and (op == end or op.name != DOT):
                found[op] = None
                pending += op.results
    return list(found)


def _sizes(chain: ChainedSums) -> AttentionSizes:
    """Return the sizes of attention whose kernel takes about as long, for two of the chain's products."""
    space = chain.space
    batch = keys = 1
    for number in space.others:
        batch *= space.shape[number]
    for number in (space.stepped, *space.loops):
        keys *= space.shape[number]
    width = max(each.width for each in chain.products)
    columns = chain.sums[0].sums.columns
    return AttentionSizes(batch, space.shape[space.resident], keys, width, columns, chain.element_bytes)
