"""Bitcasts: operations that change an array's shape and move no element in memory."""

import math
from collections.abc import Iterator

from xgpu import ir
from xgpu.analysis.transposes import transpose_of
from xgpu.indexing.access import integers, shape_of
from xgpu.structure import is_argument, producer, users_of


def is_bitcast(op: ir.Operation) -> bool:
    """Whether XLA implements ``op`` as a view of its operand's memory if it falls back to XLA."""
    if op.name == "stablehlo.reshape":
        return True
    if op.name == "stablehlo.transpose":
        return transpose_of(op) is None
    if op.name != "stablehlo.broadcast_in_dim":
        return False
    dimensions = integers(op, "broadcast_dimensions")
    is_same_size = math.prod(shape_of(op.operands[0])) == math.prod(shape_of(op.results[0]))
    return is_same_size and dimensions == sorted(dimensions)


def bitcasts_behind(value: ir.Value) -> list[ir.Operation]:
    """Return the chain of single-block bitcasts that defines ``value``, in program order."""
    found: list[ir.Operation] = []
    while not is_argument(value) and is_bitcast(producer(value)):
        if found and producer(value).parent != found[0].parent:
            break
        found.append(producer(value))
        value = producer(value).operands[0]
    return found[::-1]


def behind_bitcasts(value: ir.Value) -> ir.Value:
    """Return the array of which ``value`` is a chain of bitcasts within a block; ``value`` itself if it is none."""
    found = bitcasts_behind(value)
    return found[0].operands[0] if found else value


def readers(value: ir.Value) -> Iterator[ir.Operation]:
    """Yield what reads the result ``value`` of an operation, or a bitcast of it in the same block."""
    around = producer(value).parent
    pending = [value]
    while pending:
        for user in users_of(pending.pop()):
            if is_bitcast(user) and user.parent == around:
                pending += user.results
            else:
                yield user
