"""Operations that all lanes of a warp do together: the last lane to come does the work for all.

A lane finds operands and results in the half of its warp's memory that the round has; as no lane comes to a round
before all have come to the one before, two halves are enough.
"""

from ctypes import c_double, c_float, c_int32, c_uint8, c_uint16, c_uint32, c_uint64

from xgpu.passes.llvm.host_block import LANE_PARTS
from xgpu.target.host.access_checks import READS, WRITES
from xgpu.target.host.block.clocks import release, tables_of, warp_row
from xgpu.target.host.block.elements import decoded, element_bytes, is_integer
from xgpu.target.host.block.races import check
from xgpu.target.host.block.state import Warp
from xgpu.target.host.block.threads import PAUSES, meet_all, state_of, this_thread
from xgpu.target.host.block.waits import pass_on
from xgpu.target.host.context import WARP, Header
from xgpu.target.host.language.words import CHECKED, Bytes, Pointer, address, cast, compiled, copy, to_integer


@compiled
def this_warp(context: Pointer[Header]) -> Pointer[Warp]:
    """The warp of the thread that runs."""
    return state_of(context).warps[context.thread // WARP]


@compiled
def lane(context: Pointer[Header]) -> int:
    """The lane that runs."""
    return context.thread % WARP


@compiled
def operands(context: Pointer[Header], number: int) -> Bytes:
    """The memory of a lane in the round to come."""
    warp = this_warp(context)
    return cast(c_uint8, warp.lanes[warp.meeting.round % 2 * WARP + number])


@compiled
def enter(context: Pointer[Header], site: int) -> int:
    """Come to an operation: 0 for the last lane, which now does it; others wait."""
    warp = this_warp(context)
    this_thread(context).turn = warp.meeting.round % 2
    return meet_all(warp.meeting, WARP, context, site)


@compiled
def done(context: Pointer[Header], number: int) -> Bytes:
    """The memory of a lane in the round that all lanes have come to."""
    return cast(c_uint8, this_warp(context).lanes[this_thread(context).turn * WARP + number])


@compiled
def lane_result(context: Pointer[Header], site: int) -> Bytes:
    """The results of the lane that runs."""
    return done(context, lane(context))


@compiled
def lane_operands(context: Pointer[Header], site: int) -> Bytes:
    """Return the place for the operands of the running lane."""
    return operands(context, lane(context))


@compiled
def elect(context: Pointer[Header], site: int) -> int:
    """Meet; lane 0 is the one."""
    return enter(context, site)


@compiled
def is_elected(context: Pointer[Header], site: int) -> int:
    """Whether the lane that runs is the one."""
    if lane(context) == 0:
        return 1
    return 0


@compiled
def warp_barrier(context: Pointer[Header], site: int) -> int:
    """Wait for all threads of the warp."""
    row = warp_row(context, context.thread // WARP)
    if CHECKED:
        release(context, row)
    if enter(context, site) != 0:
        if CHECKED:
            this_thread(context).acquires = row + 2 * tables_of(context).units
        return PAUSES
    if CHECKED:
        pass_on(context, row, True)
    return 0


@compiled
def shuffle(value: int, context: Pointer[Header], site: int) -> int:
    """Give a number to the other lanes."""
    cast(c_uint32, operands(context, lane(context)))[0] = value
    return enter(context, site)


@compiled
def shuffle_xor(by: int, context: Pointer[Header], site: int) -> int:
    """The number that the lane gave whose own differs by ``by``."""
    return shuffle_idx(lane(context) ^ by, context, site)


@compiled
def shuffle_idx(by: int, context: Pointer[Header], site: int) -> int:
    """The number that a lane gave."""
    return cast(c_uint32, done(context, by % WARP))[0]


ROW_BYTES = 16
ROW_ADDRESS = 32
"""The place in a lane's memory of the address of its row, behind its elements."""


@compiled
def give_row(row: Bytes, count: int, kind: int, context: Pointer[Header], site: int) -> int:
    """Come with the address of a row to an operation on so many matrices; what `enter` says."""
    if CHECKED and lane(context) < 8 * count:
        row = check(context, -1, row, ROW_BYTES, ROW_BYTES, kind, tables_of(context).first_site + site)
    cast(c_uint64, operands(context, lane(context)) + ROW_ADDRESS)[0] = address(row)
    return enter(context, site)


@compiled
def load_matrix(row: Bytes, count: int, transposed: int, context: Pointer[Header], site: int) -> int:
    """Read 8 x 8 matrices; each lane has given the address of a row."""
    if give_row(row, count, READS, context, site) != 0:
        return 1
    for each in range(WARP):
        result = cast(c_uint32, done(context, each))
        for matrix in range(count):
            if transposed != 0:
                low = halves_of(context, 8 * matrix + 2 * (each % 4))[each // 4]
                high = halves_of(context, 8 * matrix + 2 * (each % 4) + 1)[each // 4]
                result[matrix] = low | high << 16
            else:
                result[matrix] = cast(c_uint32, halves_of(context, 8 * matrix + each // 4))[each % 4]
    return 0


@compiled
def halves_of(context: Pointer[Header], number: int) -> Pointer[c_uint16]:
    """The row whose address a lane has given."""
    return cast(c_uint16, cast(c_uint64, done(context, number) + ROW_ADDRESS)[0])


@compiled
def store_matrix(row: Bytes, count: int, transposed: int, context: Pointer[Header], site: int) -> int:
    """Write 8 x 8 matrices; each lane has given the address of a row, and its elements."""
    if give_row(row, count, WRITES, context, site) != 0:
        return 1
    for each in range(WARP):
        given = cast(c_uint32, done(context, each))
        for matrix in range(count):
            if transposed != 0:
                halves_of(context, 8 * matrix + 2 * (each % 4))[each // 4] = given[matrix] & 0xFFFF
                halves_of(context, 8 * matrix + 2 * (each % 4) + 1)[each // 4] = given[matrix] >> 16
            else:
                cast(c_uint32, halves_of(context, 8 * matrix + each // 4))[each % 4] = given[matrix]
    return 0


A, B, C = LANE_PARTS
"""The places in a lane's memory of the operands of a product; the result comes first."""


@compiled
def mma(a_element: int, b_element: int, context: Pointer[Header], site: int) -> int:
    """A product of a warp, of elements of at most 32 bits."""
    if enter(context, site) != 0:
        return 1
    for each in range(WARP):
        for number in range(4):
            row = each // 4 + number // 2 * 8
            column = each % 4 * 2 + number % 2
            if is_integer(a_element):
                sums = cast(c_int32, done(context, each) + C)
                part = to_integer(contract(a_element, b_element, row, column, 0.0, context))
                sums[number] = sums[number] + part
            else:
                numbers = cast(c_float, done(context, each) + C)
                numbers[number] = contract(a_element, b_element, row, column, numbers[number], context)
    for each in range(WARP):
        copy(done(context, each), done(context, each) + C, 16)
    return 0


@compiled
def contract(a_element: int, b_element: int, row: int, column: int, start: float, context: Pointer[Header]) -> float:
    """An element of the product, added to another number."""
    packed = 4 // element_bytes(a_element)
    sum = start
    for k in range(8 * packed):
        part = k // (4 * packed)
        holder = k // packed % 4
        left = done(context, row % 8 * 4 + holder) + (A + (row // 8 + 2 * part) * 4)
        right = done(context, column * 4 + holder) + (B + part * 4)
        sum = sum + decoded(a_element, left, k % packed) * decoded(b_element, right, k % packed)
    return sum


@compiled
def mma_f64(context: Pointer[Header], site: int) -> int:
    """A product of a warp, of f64: 8 x 4 by 4 x 8."""
    if enter(context, site) != 0:
        return 1
    for each in range(WARP):
        for number in range(2):
            sums = cast(c_double, done(context, each) + C)
            sum = sums[number]
            for k in range(4):
                left = cast(c_double, done(context, each // 4 * 4 + k) + A)
                right = cast(c_double, done(context, (each % 4 * 2 + number) * 4 + k) + B)
                sum = sum + left[0] * right[0]
            sums[number] = sum
    for each in range(WARP):
        copy(done(context, each), done(context, each) + C, 16)
    return 0
