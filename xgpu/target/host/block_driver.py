"""LLVM IR of the callers of a host kernel: drivers, which run the threads of blocks, and their entry points."""

import ctypes

from xgpu.records import dataclass
from xgpu.target.host.access_checks import Memory
from xgpu.target.host.context import FRAME_ALIGNMENT, WARP, Header, offset_of
from xgpu.target.llvm.types import symbol

type Dim3 = tuple[int, int, int]

# Per architecture: LLVM IR that saves the floating-point mode and sets the default one, that restores it, declarations.
_FLOAT_MODES = {
    "x86_64": (
        """  %saved = alloca i32
  %default = alloca i32
  store i32 8064, ptr %default
  call void @llvm.x86.sse.stmxcsr(ptr %saved)
  call void @llvm.x86.sse.ldmxcsr(ptr %default)""",
        "  call void @llvm.x86.sse.ldmxcsr(ptr %saved)",
        "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)",
    ),
    "aarch64": (
        "  %saved = call i64 @llvm.aarch64.get.fpcr()\n  call void @llvm.aarch64.set.fpcr(i64 0)",
        "  call void @llvm.aarch64.set.fpcr(i64 %saved)",
        "declare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)",
    ),
}


@dataclass(frozen=True)
class DriverLaunch:
    """The kernel that a driver calls: its name, how many buffers it takes, its grid and its block.

    ``has_context`` tells whether it takes a context after the indices of thread and block; ``frames`` is where in the
    context its coroutines' frames begin, ``cluster`` the blocks of a cluster. ``constants`` are the number and symbol
    of each constant that checks know.
    """

    name: str
    buffers: int
    grid: Dim3
    block: Dim3
    has_context: bool = False
    frames: int = 0
    cluster: Dim3 = (1, 1, 1)
    constants: tuple[tuple[int, str], ...] = ()


def position(number: int, shape: Dim3) -> Dim3:
    """Return the coordinates of a number that counts x fastest."""
    return number % shape[0], number // shape[0] % shape[1], number // (shape[0] * shape[1])


def driver_name(kernel: str) -> str:
    """Return the name of a kernel's driver."""
    return f"{kernel}__driver"


def entry_name(kernel: str) -> str:
    """Return the name of the function that runs blocks of a kernel."""
    return f"{kernel}__blocks"


def make_name(kernel: str) -> str:
    """Return the name of the function that creates a thread's coroutine, or returns its size for a null frame."""
    return f"{kernel}__make"


def loop_driver(launch: DriverLaunch) -> str:
    """Return LLVM IR of a driver that calls the kernel once per thread, x fastest, in one loop nest per block."""
    block = launch.block
    thread = _number_thread(launch) if launch.has_context else ""
    blocks = "i32 %block.x, i32 %block.y, i32 %block.z"
    context = ", ptr %context" if launch.has_context else ""
    return f"""{_head(launch)}
{_load_buffers(launch)}
{_fields() if launch.has_context else ""}
  %any = icmp slt i64 %first, %last
  br i1 %any, label %begin, label %done
begin:
  %b = phi i64 [ %first, %entry ], [ %b.next, %end ]
{_block_index(str(launch.grid[0]), str(launch.grid[1]))}
{_START_BLOCK if launch.has_context else ""}
  br label %z
z:
  %tz = phi i32 [ 0, %begin ], [ %tz.next, %z.end ]
  br label %y
y:
  %ty = phi i32 [ 0, %z ], [ %ty.next, %y.end ]
  br label %x
x:
  %tx = phi i32 [ 0, %y ], [ %tx.next, %x ]
{thread}
  call void {symbol(launch.name)}({_pointers(launch)}i32 %tx, i32 %ty, i32 %tz, {blocks}{context})
  %tx.next = add nuw nsw i32 %tx, 1
  %x.more = icmp ult i32 %tx.next, {block[0]}
  br i1 %x.more, label %x, label %y.end
y.end:
  %ty.next = add nuw nsw i32 %ty, 1
  %y.more = icmp ult i32 %ty.next, {block[1]}
  br i1 %y.more, label %y, label %z.end
z.end:
  %tz.next = add nuw nsw i32 %tz, 1
  %z.more = icmp ult i32 %tz.next, {block[2]}
  br i1 %z.more, label %z, label %end
end:
  %b.next = add nuw nsw i64 %b, 1
  %more = icmp slt i64 %b.next, %last
  br i1 %more, label %begin, label %done
done:
  ret void
}}
"""


def coroutine_driver(launch: DriverLaunch, barriers: int, of_warps: int = 0) -> str:
    """Return LLVM IR of a driver that has `RUN_BLOCKS` run the blocks, and of the function that makes it a thread.

    Sites up to ``barriers`` are barriers of the block, the next ``of_warps`` those of warps, and those above shuffles.
    """
    shape = (*launch.block, *launch.grid[:2], barriers, barriers + of_warps, launch.frames)
    return _coroutine_driver(launch, RUN_BLOCKS, shape)


def cluster_driver(launch: DriverLaunch, shared_end: int, state: int, is_checked: bool) -> str:
    """Return LLVM IR of a driver that has `RUN_CLUSTERS` run the clusters, and of the function that makes it a thread.

    Shared memory ends at ``shared_end`` in the context, and a block's state begins at ``state``.
    """
    shape = (*launch.block, *launch.grid, *launch.cluster, shared_end, state, launch.frames)
    return _coroutine_driver(launch, RUN_CHECKED_CLUSTERS if is_checked else RUN_CLUSTERS, shape)


def _coroutine_driver(launch: DriverLaunch, run: str, shape: tuple[int, ...]) -> str:
    name = symbol(f"{launch.name}__shape")
    make = symbol(make_name(launch.name))
    return f"""
declare void {symbol(run)}(ptr, ptr, i64, i64, ptr, ptr)

{name} = internal constant [{len(shape)} x i64] [{", ".join(f"i64 {number}" for number in shape)}]

define ptr {make}(ptr noalias readonly %buffers, i32 %x, i32 %y, i32 %z, ptr %context, ptr %frame) {{
{_load_buffers(launch)}
  %handle = call ptr {symbol(launch.name)}({_pointers(launch)}i32 %x, i32 %y, i32 %z, i32 0, i32 0, i32 0,
      ptr %context, ptr %frame)
  ret ptr %handle
}}

{_head(launch)}
  call void {symbol(run)}(ptr {make}, ptr %buffers, i64 %first, i64 %last, ptr %context, ptr {name})
  ret void
}}
"""


RUN_BLOCKS = "xgpu_run_blocks"
"""The driver that all kernels share whose threads are coroutines."""
RUN_CLUSTERS, RUN_CHECKED_CLUSTERS = "xgpu_run_clusters", "xgpu_run_checked_clusters"
"""Those of kernels whose threads wait at different places, plain and sanitized; `xgpu.target.host.block.scheduler`."""

_SHAPE = "bx by bz gx gy barriers warp.barriers frames".split()


def _run_blocks() -> str:
    """Return LLVM IR of `RUN_BLOCKS`, which makes a coroutine of each thread and runs the blocks with them.

    A round takes the threads from one barrier to the next, warp by warp; in a turn each lane of a warp runs to its next
    site. The lanes of a warp must come to one site in each turn, and the warps to one barrier, or the end, in each
    round; otherwise the driver says in the context who did not, and returns.
    """
    shape = "\n".join(
        f"  %{name}.at = getelementptr inbounds i64, ptr %shape, i64 {number}\n  %{name} = load i64, ptr %{name}.at"
        for number, name in enumerate(_SHAPE)
    )
    return f"""
declare void @llvm.coro.resume(ptr)

define void @{RUN_BLOCKS}(ptr %make, ptr %buffers, i64 %first, i64 %last, ptr %context, ptr %shape) {{
entry:
{shape}
{_fields()}
  %frame.first = getelementptr inbounds i8, ptr %context, i64 %frames
  %plane = mul i64 %bx, %by
  %count = mul i64 %plane, %bz
  %frame.answer = call ptr %make(ptr %buffers, i32 0, i32 0, i32 0, ptr %context, ptr null)
  %frame.bytes = ptrtoint ptr %frame.answer to i64
  %frame.more = add i64 %frame.bytes, {FRAME_ALIGNMENT - 1}
  %stride = and i64 %frame.more, {-FRAME_ALIGNMENT}
  %slots.upper = getelementptr inbounds i8, ptr %slots, i64 {Header.slots.size // 2}
  store ptr %slots, ptr %read_slots
  store ptr %slots.upper, ptr %write_slots
  br label %make_threads
{_MAKE_THREADS}
start:
  %any = icmp slt i64 %first, %last
  br i1 %any, label %begin, label %done
begin:
  %b = phi i64 [ %first, %start ], [ %b.next, %end ]
{_block_index("%gx", "%gy")}
{_START_BLOCK}
  br label %round
{_ROUND}
end:
  %b.next = add nuw nsw i64 %b, 1
  %more = icmp slt i64 %b.next, %last
  br i1 %more, label %begin, label %done
{_REPORT_DIVERGENCE}
  br label %done
done:
  ret void
}}
"""


def entry_point(launch: DriverLaunch, triple: str) -> str:
    """Return LLVM IR of the function that calls a kernel's driver in the default floating-point mode.

    The driver is not inlined into it, so no floating-point operation can be moved out from between the mode changes.
    Architectures that ``_FLOAT_MODES`` lacks keep the caller's mode.
    """
    architecture = {"arm64": "aarch64", "amd64": "x86_64"}.get(triple.split("-")[0], triple.split("-")[0])
    enter, leave, declarations = _FLOAT_MODES.get(architecture, ("", "", ""))
    return f"""
define void {symbol(entry_name(launch.name))}(ptr %buffers, i64 %first, i64 %last, ptr %context) {{
{_tell_constants(launch)}
{enter}
  call void {symbol(driver_name(launch.name))}(ptr %buffers, i64 %first, i64 %last, ptr %context)
{leave}
  ret void
}}

{declarations}
"""


def _head(launch: DriverLaunch) -> str:
    name = symbol(driver_name(launch.name))
    parameters = "ptr noalias readonly %buffers, i64 %first, i64 %last, ptr %context"
    return f"define internal void {name}({parameters}) noinline {{\nentry:"


def _load_buffers(launch: DriverLaunch) -> str:
    load = "  %slot{0} = getelementptr inbounds ptr, ptr %buffers, i64 {0}\n  %buffer{0} = load ptr, ptr %slot{0}"
    return "\n".join(load.format(i) for i in range(launch.buffers))


def _pointers(launch: DriverLaunch) -> str:
    return "".join(f"ptr %buffer{i}, " for i in range(launch.buffers))


def _block_index(columns: str, rows: str) -> str:
    """Return IR that takes block ``%b`` of a grid of so many columns and rows apart."""
    return f"""  %b.x = urem i64 %b, {columns}
  %b.row = udiv i64 %b, {columns}
  %b.y = urem i64 %b.row, {rows}
  %b.z = udiv i64 %b.row, {rows}
  %block.x = trunc i64 %b.x to i32
  %block.y = trunc i64 %b.y to i32
  %block.z = trunc i64 %b.z to i32"""


def _fields() -> str:
    """Return IR that names the address of every field of the context."""
    names = [name for name, *_ in Header._fields_]
    return "\n".join(f"  %{name} = getelementptr inbounds i8, ptr %context, i64 {offset_of(name)}" for name in names)


def _tell_constants(launch: DriverLaunch) -> str:
    """Return IR that tells the checks where constants are."""
    if not launch.constants:
        return ""
    lines = [
        f"  %tables.at = getelementptr inbounds i8, ptr %context, i64 {offset_of('checks')}",
        "  %tables = load ptr, ptr %tables.at",
        "  %memories = load ptr, ptr %tables",
    ]
    for number, constant in launch.constants:
        start = number * ctypes.sizeof(Memory)
        lines.append(f"  %memory{number} = getelementptr inbounds i8, ptr %memories, i64 {start}")
        lines.append(f"  store ptr {symbol(constant)}, ptr %memory{number}")
    return "\n".join(lines)


def _number_thread(launch: DriverLaunch) -> str:
    """Return IR that tells the context which thread runs, in a loop driver."""
    x, y, _ = launch.block
    return f"""  %t.plane = mul i32 %tz, {y}
  %t.row = add i32 %t.plane, %ty
  %t.rows = mul i32 %t.row, {x}
  %t.number = add i32 %t.rows, %tx
  store i32 %t.number, ptr %thread"""


# Tells the context which block runs, and that a new epoch begins with it.
_START_BLOCK = """  store i64 %b, ptr %block
  store i32 %block.x, ptr %block_index
  %block_index.y = getelementptr inbounds i32, ptr %block_index, i64 1
  store i32 %block.y, ptr %block_index.y
  %block_index.z = getelementptr inbounds i32, ptr %block_index, i64 2
  store i32 %block.z, ptr %block_index.z
  %epoch.before = load i32, ptr %epoch
  %epoch.first = add i32 %epoch.before, 1
  store i32 %epoch.first, ptr %epoch
  store i32 %epoch.first, ptr %first_epoch"""

# Makes a coroutine of each thread of a block, which all blocks then use.
_MAKE_THREADS = """make_threads:
  %m = phi i64 [ 0, %entry ], [ %m.next, %make_threads ]
  %m.x.wide = urem i64 %m, %bx
  %m.row = udiv i64 %m, %bx
  %m.y.wide = urem i64 %m.row, %by
  %m.z.wide = udiv i64 %m.row, %by
  %m.x = trunc i64 %m.x.wide to i32
  %m.y = trunc i64 %m.y.wide to i32
  %m.z = trunc i64 %m.z.wide to i32
  %m.offset = mul i64 %m, %stride
  %m.frame = getelementptr i8, ptr %frame.first, i64 %m.offset
  %m.handle = call ptr %make(ptr %buffers, i32 %m.x, i32 %m.y, i32 %m.z, ptr %context, ptr %m.frame)
  %m.next = add nuw nsw i64 %m, 1
  %m.more = icmp ult i64 %m.next, %count
  br i1 %m.more, label %make_threads, label %start"""

# -1 stands for the site of a warp, or of a lane, before the first has come to one.
_ROUND = f"""round:
  br label %warp
warp:
  %warp.first = phi i64 [ 0, %round ], [ %warp.next, %warp.met ]
  %awaited = phi i32 [ -1, %round ], [ %reached, %warp.met ]
  %warp.full = add nuw nsw i64 %warp.first, {WARP}
  %is_full = icmp ule i64 %warp.full, %count
  %warp.last = select i1 %is_full, i64 %warp.full, i64 %count
  %turn.before = load i32, ptr %turn
  %turn.begin = add i32 %turn.before, 1
  store i32 %turn.begin, ptr %turn
  store i32 %turn.begin, ptr %first_turn
  br label %exchange
exchange:
  %gave = load ptr, ptr %write_slots
  %took = load ptr, ptr %read_slots
  store ptr %gave, ptr %read_slots
  store ptr %took, ptr %write_slots
  br label %lane
lane:
  %t = phi i64 [ %warp.first, %exchange ], [ %t.next, %lane.met ]
  %before = phi i32 [ -1, %exchange ], [ %expected, %lane.met ]
  %t.number = trunc i64 %t to i32
  store i32 %t.number, ptr %thread
  %t.offset = mul i64 %t, %stride
  %frame = getelementptr i8, ptr %frame.first, i64 %t.offset
  call void @llvm.coro.resume(ptr %frame)
  %reached.site = load i32, ptr %site
  %is_first = icmp eq i32 %before, -1
  %expected = select i1 %is_first, i32 %reached.site, i32 %before
  %together = icmp eq i32 %reached.site, %expected
  br i1 %together, label %lane.met, label %apart
lane.met:
  %t.next = add nuw nsw i64 %t, 1
  %lane.more = icmp ult i64 %t.next, %warp.last
  br i1 %lane.more, label %lane, label %turn.end
turn.end:
  %expected.wide = zext i32 %expected to i64
  %is_of_warp = icmp ugt i64 %expected.wide, %barriers
  br i1 %is_of_warp, label %turn.next, label %warp.end
turn.next:
  %is_barrier_of_warp = icmp ule i64 %expected.wide, %warp.barriers
  %later = zext i1 %is_barrier_of_warp to i32
  %turn.old = load i32, ptr %turn
  %turn.new = add i32 %turn.old, %later
  store i32 %turn.new, ptr %turn
  br label %exchange
warp.end:
  %reached = phi i32 [ %expected, %turn.end ]
  %no_warp_before = icmp eq i32 %awaited, -1
  %as_awaited = icmp eq i32 %reached, %awaited
  %warps_met = or i1 %no_warp_before, %as_awaited
  br i1 %warps_met, label %warp.met, label %apart
warp.met:
  %warp.next = add nuw nsw i64 %warp.first, {WARP}
  %warp.more = icmp ult i64 %warp.next, %count
  br i1 %warp.more, label %warp, label %round.end
round.end:
  %epoch.old = load i32, ptr %epoch
  %epoch.new = add i32 %epoch.old, 1
  store i32 %epoch.new, ptr %epoch
  %is_barrier = icmp ne i32 %reached, 0
  br i1 %is_barrier, label %round, label %end"""

_REPORT_DIVERGENCE = """apart:
  %thread.a = phi i64 [ %warp.first, %lane ], [ 0, %warp.end ]
  %site.a = phi i32 [ %expected, %lane ], [ %awaited, %warp.end ]
  %thread.b = phi i64 [ %t, %lane ], [ %warp.first, %warp.end ]
  %site.b = phi i32 [ %reached.site, %lane ], [ %reached, %warp.end ]
  store i32 1, ptr %diverged
  %thread.a.number = trunc i64 %thread.a to i32
  store i32 %thread.a.number, ptr %threads
  %threads.b = getelementptr inbounds i32, ptr %threads, i64 1
  %thread.b.number = trunc i64 %thread.b to i32
  store i32 %thread.b.number, ptr %threads.b
  store i32 %site.a, ptr %sites
  %sites.b = getelementptr inbounds i32, ptr %sites, i64 1
  store i32 %site.b, ptr %sites.b"""

DRIVER_IR = _run_blocks()
"""A module of its own, compiled once in a process."""
