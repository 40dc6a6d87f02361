"""The registers of threads: of blocks of any size, and the elements of a row that the threads of a block hold.

A row that is held is read once, however often the kernel walks it. The planner merges reductions of rows up to the
length that `longest_row` returns; the schedule shares rows among threads by `held_elements`.
"""

from collections.abc import Iterable, Sequence

from xgpu.device import Device

_REGISTER = 32
"""Bits of a register."""
OTHER_REGISTERS = 40
"""Registers of a thread beside those that it holds elements in: for where it is, and for what it computes."""
_CODE_OF_A_REGISTER = 24
"""Instructions without a loop for which a thread needs one register more, if they do not depend on each other.

Of 4, 8 and 14 values that are each 190 instructions it needs 41, 87 and 152, as ptxas gives them for an H200.
"""
MOST_ACCUMULATORS = 32
"""Accumulators of a thread of a reduction of columns, for all its columns and sums."""
_SHARE = 4
"""One in so many registers holds an array of the rows' size; the others hold what is computed from it, and indices."""


def registers_for(elements: int, widths: Iterable[int], code: int = 0) -> int:
    """Return about how many registers a thread needs that computes so many elements at once of some arrays.

    Elements of these have ``widths`` bits, and are computed by ``code`` instructions: where these are many, more is
    computed at a time than is read and written.
    """
    held, computed = -(-elements * sum(widths) // _REGISTER), elements * code // _CODE_OF_A_REGISTER
    return OTHER_REGISTERS + max(held, computed)


def most_threads(registers: int, target: Device) -> int:
    """Return how many threads a block may have, a power of two, that each need so many registers."""
    most = min(target.max_threads_per_block, target.registers_per_sm // registers)
    return 1 << (most.bit_length() - 1)


def held_elements(widths: Iterable[int], target: Device) -> int:
    """Return how many elements of a row a thread holds, given the bits of an element of each array of the rows' size.

    Of 16 bits 32, of 32 bits 16: as many as a block of the most threads has registers for.
    """
    registers = target.registers_per_sm // target.max_threads_per_block
    return registers // _SHARE * _REGISTER // max(widths, default=_REGISTER)


def longest_row(read: Iterable[int], stored: Iterable[int], target: Device) -> int:
    """Return the longest row that a block holds from one walk to the next, given the bits of what it reads and stores.

    That is an element of each array of the rows' size. Arrays that are read are held beside each other, and with one
    number of 32 bits that is computed from each of their elements: so elements under 16 bits count as 16. What is wider
    than a register counts as one: such rows are read again if they are too long to be held, which the cache makes up
    for.
    """
    width = max(sum(read), *stored, 0)
    return target.max_threads_per_block * held_elements([min(max(width, _REGISTER // 2), _REGISTER)], target)


THREADS_THAT_HOLD_COLUMNS = 512
"""Threads of a block at most that hold elements of columns: half of a block's, as each holds many."""
_HELD_ROWS = 32
"""Registers in which a thread holds elements of a column; such blocks have at most half of the threads of others."""
FEWEST_COLUMNS = 8
"""Neighbouring columns of a block at least: so many of 32 bits are a sector, which is read whole."""


def fewest_columns(widths: Iterable[int]) -> int:
    """Return how many neighbouring columns a block has at least, given the bits of an element of each array.

    Of the widest array they are a sector.
    """
    widest = max(widths, default=0) or _REGISTER
    return FEWEST_COLUMNS * max(1, _REGISTER // widest)


def held_rows(widths: Iterable[int]) -> int:
    """Return how many elements of a column a thread holds, given the bits of an element of each array that is read.

    An element is a load of its own, and takes a register or more.
    """
    return max(1, _HELD_ROWS // max(1, sum(-(-width // _REGISTER) for width in widths)))


def longest_column(read: Sequence[int], lanes: int | None = None) -> int:
    """Return the longest column that threads hold from one walk to the next, given the bits of what they read.

    Blocks have ``lanes`` columns beside each other, if not given the fewest.
    """
    return THREADS_THAT_HOLD_COLUMNS // (lanes or fewest_columns(read)) * held_rows(read)
