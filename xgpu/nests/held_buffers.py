"""Buffers of blocks of which each thread has the elements that it alone accesses, in its registers.

Each iteration of the loops that access such a buffer has an element of its own, or a row of them: the buffer's first
dimensions are these loops, and which element of a row is meant is known once seq loops are unrolled.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import cast

from xgpu import ir
from xgpu.dialects.nests.accesses import elements_of
from xgpu.dialects.nests.loops import NewOp, ParOp, SeqOp
from xgpu.dtypes import dtype_of_element
from xgpu.indexing.affine import AffineExpr, constant, dim
from xgpu.nests.structure import PAR, SEQ, BufferAccess, ancestors, band_at, loop_of

MAX_REGISTERS = 64
"""Elements of a buffer in registers, at most."""
MAX_ITERATIONS = 1024
"""Iterations that the unrolled loops of an access to registers have, at most."""


def band_of(access: BufferAccess) -> list[ParOp] | None:
    """Return the loops of a block's threads that an access is in; None if it is in none."""
    par = next((op for op in ancestors(access.op) if op.name == PAR), None)
    if par is None or cast(ParOp, par.opview).band != "thread":
        return None
    around = itertools.takewhile(lambda op: op.name == PAR and cast(ParOp, op.opview).band == "thread", ancestors(par))
    return band_at([par, *around][-1])


def bands_of(accesses: Sequence[BufferAccess]) -> list[list[ParOp]]:
    """Return the bands that access a buffer, each once."""
    found = (band_of(access) for access in accesses)
    return list({band[0]: band for band in found if band is not None}.values())


def obstacle(accesses: Sequence[BufferAccess]) -> str | None:
    """Return why the elements of a block's buffer are not each of one iteration of its loops; None if they are."""
    if not any(access.writes and band_of(access) is not None for access in accesses):
        return "no thread changes it"
    for access in accesses:
        band = band_of(access)
        if band is None:
            return "the block accesses it outside of its par loops"
        if access.is_atomic:
            return "it is updated in single steps"
        if not _is_own(access, band):
            names = ", ".join(loop.called for loop in band)
            return f"iteration ({names}) accesses other elements than [{names}], or there are other iterations"
    shapes = {tuple(loop.extent for loop in band) for band in bands_of(accesses)}
    return "loops of several numbers of iterations access it" if len(shapes) > 1 else None


def is_unrolled(access: BufferAccess, indices: Sequence[AffineExpr]) -> bool:
    """Whether indices are numbers once the seq loops whose variables are in them are unrolled, a few times each."""
    used = {number for index in indices for number in index.variables()[0]}
    loops = [loop_of(access.variables[number]) for number in used]
    seqs = [cast(SeqOp, loop.opview) for loop in loops if loop is not None and loop.name == SEQ]
    return len(seqs) == len(loops) and math.prod(seq.extent for seq in seqs) <= MAX_ITERATIONS


def asked(accesses: Sequence[BufferAccess]) -> ParOp | None:
    """Return a loop, of those that access a buffer, of which a program says which iterations a thread takes.

    To go through as many iterations together is no obstacle if all loops do.
    """
    first, *others = bands_of(accesses)
    for loop, model in ((loop, model) for band in (first, *others) for loop, model in zip(band, first, strict=True)):
        if loop.map is not None or loop.vector is not None or loop.together != model.together:
            return loop
    return None


def slots_of(band: Sequence[ParOp]) -> int:
    """Return how many iterations of a mapped band a thread has at most."""
    map_ = band[0].map
    assert map_ is not None, "map-threads writes it"
    return math.prod(interval.size for interval in map_.symbols)


def row_of(buffer: ir.Value, band: Sequence[ParOp]) -> int:
    """Return how many elements of a buffer an iteration of a band has."""
    return elements_of(buffer) // math.prod(loop.extent for loop in band)


def registers_of(new: NewOp) -> int:
    """Return how many registers of 32 bits an element takes."""
    return max(1, -(-dtype_of_element(ir.MemRefType(new.buffer.type).element_type).storage_bits // 32))


def held_problems(accesses: Sequence[BufferAccess]) -> Iterator[str]:
    """Yield why the elements of a buffer cannot be held by threads, where the bands' maps are known."""
    if (problem := obstacle(accesses)) is not None:
        yield f"expected each iteration to access its own element: {problem}"
    elif len({band[0].map for band in bands_of(accesses)}) > 1:
        yield "expected one map of all loops that access it"


def _is_own(access: BufferAccess, band: Sequence[ParOp]) -> bool:
    """Whether each iteration of a band accesses its own element, or row of elements, and each is one's."""
    # The only iteration of a loop may be said as a number.
    indices = [dim(number) if loop.extent > 1 else constant(0) for number, loop in enumerate(band)]
    numbers = dict(zip((loop.variable for loop in band), indices, strict=True))
    places = {n: numbers[value] for n, value in enumerate(access.variables) if value in numbers}
    own, rest = access.map.results[: len(band)], access.map.results[len(band) :]
    used = set[int]().union(*(result.variables()[0] for result in own))
    extents = tuple(loop.extent for loop in band)
    if not used <= places.keys() or access.shape[: len(band)] != extents or not is_unrolled(access, rest):
        return False
    return [result.substitute(places) for result in own] == indices
