"""Products of warp groups: they are computed at the wait that covers them, with what shared memory then holds.

The accumulators of a product are kept in the state of the warp group until then. What threads have of them meanwhile
is NaN; its bits say which accumulators those are, so that they can be given to other products, and to the wait.
"""

from ctypes import c_float, c_int32, c_uint8, c_uint32

from xgpu.passes.llvm.host_block import FORM_OFFSET, FRAGMENT_OFFSET
from xgpu.target.host.access_checks import PENDING as PENDING_FAULT
from xgpu.target.host.access_checks import UNFENCED
from xgpu.target.host.block.clocks import advance_agent, clock_row, multiplier_of, tables_of, unit_of
from xgpu.target.host.block.elements import decoded, element_bytes, is_integer
from xgpu.target.host.block.races import END_READ, START_READ, site_fault, touch
from xgpu.target.host.block.state import (
    ACCUMULATORS,
    DIVERGED,
    GROUP_ROWS,
    GROUP_THREADS,
    MISUSED,
    MOST_COLUMNS,
    MOST_CONTRACTED,
    PRODUCTS,
    TOO_MANY,
    Accumulator,
    GroupProduct,
    ProductForm,
    WarpGroup,
)
from xgpu.target.host.block.tensor_maps import CHUNK, swizzled
from xgpu.target.host.block.threads import PAUSES, is_shared, meet_all, state_of, stop, this_thread
from xgpu.target.host.context import WARP, Header
from xgpu.target.host.language.words import (
    CHECKED,
    Bytes,
    Pointer,
    address,
    cast,
    compiled,
    copy,
    fill,
    set_vector,
    size_of,
    splat,
    to_integer,
    vector,
)

PENDING = 0x7FE50000
"""The bits of accumulators that products are still added to, but for the serial number."""
NO_SWIZZLE_ROW = 16


@compiled
def this_group(context: Pointer[Header]) -> Pointer[WarpGroup]:
    """The warp group of the thread that runs."""
    return state_of(context).groups[context.thread // GROUP_THREADS]


@compiled
def accumulator_of(group: Pointer[WarpGroup], values: Pointer[c_uint32], count: int) -> int:
    """The number of the accumulators that a thread's values stand for, -1 if they are numbers."""
    serial = values[0] - PENDING
    if serial <= 0 or serial > 0xFFFF:
        return -1
    for e in range(count):
        if values[e] != PENDING + serial:
            return -1
    for a in range(ACCUMULATORS):
        if group.accumulators[a].serial == serial:
            return a
    return -1


@compiled
def new_accumulator(group: Pointer[WarpGroup], columns: int) -> int:
    """Take accumulators that are free; -1 if none are."""
    for a in range(ACCUMULATORS):
        made = group.accumulators[a]
        if made.serial == 0:
            group.last_serial = group.last_serial % 0xFFFF + 1
            made.serial = group.last_serial
            made.products = 0
            made.fetched = 0
            made.columns = columns
            return a
    return -1


@compiled
def place_in(number: int, element: int) -> int:
    """Return the place of an element of a thread's fragment in a warp group's accumulators."""
    row = number % GROUP_THREADS // WARP * 16 + number % WARP // 4 + element // 2 % 2 * 8
    return row * MOST_COLUMNS + element // 4 * 8 + number % 4 * 2 + element % 2


@compiled
def put(context: Pointer[Header], kept: Pointer[Accumulator], values: Pointer[c_uint32]) -> None:
    """Put a thread's fragment into accumulators."""
    into = cast(c_uint32, kept.values)
    for e in range(kept.columns // 2):
        into[place_in(context.thread, e)] = values[e]


@compiled
def get(context: Pointer[Header], kept: Pointer[Accumulator], values: Pointer[c_uint32]) -> None:
    """Read a thread's fragment from accumulators."""
    source = cast(c_uint32, kept.values)
    for e in range(kept.columns // 2):
        values[e] = source[place_in(context.thread, e)]


@compiled
def warpgroup_mma(a: Bytes, b: Bytes, accumulates: int, context: Pointer[Header], site: int) -> int:
    """Start a product of the form that the thread has in its registers, where its accumulators are.

    So is the left operand if ``a`` is null.
    """
    group = this_group(context)
    thread = this_thread(context)
    values = cast(c_uint32, state_of(context).registers)
    number = thread.next_product
    if number - group.first_product >= PRODUCTS:
        return stop(context, TOO_MANY, site, PRODUCTS)
    form = cast(ProductForm, state_of(context).registers + FORM_OFFSET)
    kept = accumulator_of(group, values, form.columns // 2)
    started = group.products[number % PRODUCTS]
    if started.arrived == 0:
        if not is_product(a, b, form, context):
            return stop(context, MISUSED, site, state_of(context).count)
        started.a = a
        started.b = b
        started.site = site
        started.group = thread.product_group
        started.accumulates = accumulates
        copy(started.form, form, size_of(ProductForm))
        started.accumulator = kept
        if kept < 0:
            started.accumulator = new_accumulator(group, form.columns)
        if started.accumulator < 0:
            return stop(context, TOO_MANY, site, ACCUMULATORS)
        group.accumulators[started.accumulator].products += 1
        group.next_product = number + 1
    elif started.site != site or address(started.a) != address(a) or address(started.b) != address(b):
        return stop(context, DIVERGED, site, started.site)
    if CHECKED:
        if thread.is_fenced == 0 and (kept < 0 or address(a) == 0):
            site_fault(context, site, UNFENCED, 0)
        if context.thread % WARP == 0:
            touch_operands(context, started, START_READ)
    started.arrived += 1
    thread.next_product = number + 1
    into = group.accumulators[started.accumulator]
    if kept < 0:
        put(context, into, values)
    fragment = cast(c_uint32, started.fragments) + context.thread % GROUP_THREADS * 4
    copy(fragment, values + FRAGMENT_OFFSET // 4, 16)
    for e in range(form.columns // 2):
        values[e] = PENDING + into.serial
    return 0


@compiled
def is_product(a: Bytes, b: Bytes, form: Pointer[ProductForm], context: Pointer[Header]) -> bool:
    """Whether a product is one of a whole warp group, of operands in the block's shared memory."""
    state = state_of(context)
    is_whole = context.thread // GROUP_THREADS * GROUP_THREADS + GROUP_THREADS <= state.count
    is_aligned = (address(a) | address(b)) % CHUNK == 0
    is_left = address(a) == 0 or is_shared(state, address(a), form.a_bytes)
    return is_whole and is_aligned and is_left and is_shared(state, address(b), form.b_bytes)


@compiled
def warpgroup_commit(context: Pointer[Header], site: int) -> int:
    """End the group of products. What the next one reads in registers may have been written since its fence."""
    thread = this_thread(context)
    thread.is_fenced = 0
    thread.product_group += 1
    return 0


@compiled
def warpgroup_fence(context: Pointer[Header], site: int) -> int:
    """Order accesses to registers, which the host does anyway."""
    this_thread(context).is_fenced = 1
    return 0


@compiled
def warpgroup_wait(pending: int, context: Pointer[Header], site: int) -> int:
    """Meet, and compute the products but for those of the last groups."""
    group = this_group(context)
    thread = this_thread(context)
    thread.is_fenced = 0
    if meet_all(group.meeting, GROUP_THREADS, context, site) != 0:
        return PAUSES
    while group.first_product < group.next_product:
        each = group.products[group.first_product % PRODUCTS]
        if each.group >= thread.product_group - pending:
            break
        if CHECKED:
            end_reads(context, each)
        compute(group, each)
        group.first_product += 1
    return 0


@compiled
def warpgroup_result(columns: int, context: Pointer[Header], site: int) -> int:
    """Put the accumulators in place of what a thread has in its registers, if all products are added to them."""
    group = this_group(context)
    values = cast(c_uint32, state_of(context).registers)
    number = accumulator_of(group, values, columns // 2)
    if number < 0:
        return 0
    kept = group.accumulators[number]
    if kept.products == 0:
        get(context, kept, values)
        kept.fetched += 1
        if kept.fetched == GROUP_THREADS:
            kept.serial = 0
    return 0


@compiled
def compute(group: Pointer[WarpGroup], each: Pointer[GroupProduct]) -> None:
    """Compute a product."""
    into = group.accumulators[each.accumulator]
    contracted = 32 // element_bytes(each.form.a_element)
    if each.accumulates == 0:
        for row in range(GROUP_ROWS):
            fill(cast(c_float, into.values) + row * MOST_COLUMNS, 0, 4 * each.form.columns)
    read_left(group, each, contracted)
    read_right(group, each, contracted)
    if is_integer(each.form.a_element):
        multiply_integers(group, into, each.form.columns, contracted)
    else:
        multiply(group, into, each.form.columns, contracted)
    each.arrived = 0
    into.products -= 1


@compiled
def element_place(base: int, row: int, byte: int, swizzle: int, group: int, panel: int) -> Bytes:
    """The address of a byte of a row of a matrix, from the pointer to it on."""
    width = swizzle
    if swizzle == 0:
        width = NO_SWIZZLE_ROW
    place = base + byte // width * panel + row // 8 * group + row % 8 * width + byte % width
    return cast(c_uint8, swizzled(place, swizzle))


@compiled
def left_place(each: Pointer[GroupProduct], row: int, byte: int) -> Bytes:
    """The address of a byte of the left operand."""
    form = cast(ProductForm, each.form)
    return element_place(address(each.a), row, byte, form.a_swizzle, form.a_group, form.a_panel)


@compiled
def right_place(each: Pointer[GroupProduct], row: int, byte: int) -> Bytes:
    """The address of a byte of the right operand."""
    form = cast(ProductForm, each.form)
    return element_place(address(each.b), row, byte, form.b_swizzle, form.b_group, form.b_panel)


@compiled
def read_chunk(element: int, place: Bytes, to: Pointer[c_float], stride: int) -> None:
    """Read the numbers of a chunk, and put them so far apart."""
    for i in range(CHUNK // element_bytes(element)):
        to[i * stride] = decoded(element, place, i)


@compiled
def read_left(group: Pointer[WarpGroup], each: Pointer[GroupProduct], contracted: int) -> None:
    """Read the left operand: a row of numbers after the other."""
    element = each.form.a_element
    per_chunk = CHUNK // element_bytes(element)
    left = cast(c_float, group.left)
    if address(each.a) == 0:
        read_fragments(each, left, contracted)
    elif each.form.a_transposed != 0:
        for k in range(contracted):
            for chunk in range(GROUP_ROWS // per_chunk):
                to = left + (chunk * per_chunk * MOST_CONTRACTED + k)
                read_chunk(element, left_place(each, k, chunk * CHUNK), to, MOST_CONTRACTED)
    else:
        for r in range(GROUP_ROWS):
            for chunk in range(2):
                to = left + (r * MOST_CONTRACTED + chunk * per_chunk)
                read_chunk(element, left_place(each, r, chunk * CHUNK), to, 1)


@compiled
def read_fragments(each: Pointer[GroupProduct], left: Pointer[c_float], contracted: int) -> None:
    """Read a left operand that threads have in registers."""
    packed = 4 // element_bytes(each.form.a_element)
    for r in range(GROUP_ROWS):
        for k in range(contracted):
            holder = r // 16 * WARP + r % 8 * 4 + k // packed % 4
            register = r // 8 % 2 + k // (4 * packed) * 2
            fragment = cast(c_uint32, each.fragments) + (holder * 4 + register)
            left[r * MOST_CONTRACTED + k] = decoded(each.form.a_element, cast(c_uint8, fragment), k % packed)


@compiled
def read_right(group: Pointer[WarpGroup], each: Pointer[GroupProduct], contracted: int) -> None:
    """Read the right operand: a row of numbers for each of the contracted dimension."""
    element = each.form.b_element
    per_chunk = CHUNK // element_bytes(element)
    right = cast(c_float, group.right)
    if each.form.b_transposed != 0:
        for k in range(contracted):
            for chunk in range(each.form.columns // per_chunk):
                to = right + (k * MOST_COLUMNS + chunk * per_chunk)
                read_chunk(element, right_place(each, k, chunk * CHUNK), to, 1)
    else:
        for column in range(each.form.columns):
            for chunk in range(2):
                to = right + (chunk * per_chunk * MOST_COLUMNS + column)
                read_chunk(element, right_place(each, column, chunk * CHUNK), to, MOST_COLUMNS)


@compiled
def multiply(group: Pointer[WarpGroup], into: Pointer[Accumulator], columns: int, contracted: int) -> None:
    """Add the product of what was read to accumulators."""
    for row in range(GROUP_ROWS):
        left = cast(c_float, group.left) + row * MOST_CONTRACTED
        for column in range(0, columns, 8):
            sums = cast(c_float, into.values) + (row * MOST_COLUMNS + column)
            sum = vector(sums)
            for k in range(contracted):
                right = vector(cast(c_float, group.right) + (k * MOST_COLUMNS + column))
                sum = sum + splat(left[k]) * right
            set_vector(sums, sum)


@compiled
def multiply_integers(group: Pointer[WarpGroup], into: Pointer[Accumulator], columns: int, contracted: int) -> None:
    """As `multiply`; the sum of one product is exact as a number, and is then added as an integer."""
    for row in range(GROUP_ROWS):
        left = cast(c_float, group.left) + row * MOST_CONTRACTED
        for column in range(0, columns, 8):
            sum = splat(0.0)
            for k in range(contracted):
                right = vector(cast(c_float, group.right) + (k * MOST_COLUMNS + column))
                sum = sum + splat(left[k]) * right
            sums = cast(c_int32, into.values) + (row * MOST_COLUMNS + column)
            set_vector(sums, vector(sums) + to_integer(sum))


@compiled
def check_accumulators(columns: int, context: Pointer[Header], site: int) -> int:
    """Report accumulators that are used before the wait for their products; they are in the thread's registers."""
    if accumulator_of(this_group(context), cast(c_uint32, state_of(context).registers), columns // 2) >= 0:
        site_fault(context, site, PENDING_FAULT, 0)
    return 0


@compiled
def touch_operands(context: Pointer[Header], each: Pointer[GroupProduct], action: int) -> None:
    """Start or end the reads of a product by the warp of the thread that runs: its rows, and all columns."""
    form = cast(ProductForm, each.form)
    first = context.thread % GROUP_THREADS // WARP * 16
    contracted = 32 // element_bytes(form.a_element)
    if address(each.a) != 0:
        if form.a_transposed != 0:
            for k in range(contracted):
                for byte in range(2 * first, 2 * first + 32, CHUNK):
                    touch(context, address(left_place(each, k, byte)), CHUNK, action, each.site)
        else:
            for r in range(first, first + 16):
                for byte in range(0, 32, CHUNK):
                    touch(context, address(left_place(each, r, byte)), CHUNK, action, each.site)
    if form.b_transposed != 0:
        for k in range(contracted):
            for byte in range(0, 2 * form.columns, CHUNK):
                touch(context, address(right_place(each, k, byte)), CHUNK, action, each.site)
    else:
        for column in range(form.columns):
            for byte in range(0, 32, CHUNK):
                touch(context, address(right_place(each, column, byte)), CHUNK, action, each.site)


@compiled
def end_reads(context: Pointer[Header], each: Pointer[GroupProduct]) -> None:
    """End the reads of a product, which all threads of the warp group wait for: it is one operation of all of them."""
    here = context.thread
    group = here // GROUP_THREADS
    tables = tables_of(context)
    agent = multiplier_of(state_of(context), group)
    time = advance_agent(context, agent)
    for t in range(GROUP_THREADS):
        context.thread = group * GROUP_THREADS + t
        clock_row(tables, unit_of(context))[agent] = time
    tables.actor = agent
    tables.actor_time = time
    for warp in range(GROUP_THREADS // WARP):
        context.thread = group * GROUP_THREADS + warp * WARP
        touch_operands(context, each, END_READ)
    tables.actor = -1
    context.thread = here
