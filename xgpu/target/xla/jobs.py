"""LLVM IR of launches on several threads: tasks take pieces of a launch one after the other, and the last tells XLA."""

import ctypes

from xgpu.target.host.kernel_source import PIECES_PER_WORKER
from xgpu.target.xla.writer import NO_MEMORY, KernelRecord, Writer


class _Job(ctypes.Structure):
    """A launch on several threads, before the addresses of its buffers.

    ``next`` is the piece that nobody has begun, ``remaining`` those that have not ended, ``references`` the threads
    that still look at the job: the last one frees it.
    """

    _fields_ = [
        ("api", ctypes.c_void_p),
        ("record", ctypes.c_void_p),
        ("future", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("next", ctypes.c_int64),
        ("remaining", ctypes.c_int64),
        ("pieces", ctypes.c_int64),
        ("references", ctypes.c_int64),
    ]


def job_functions(w: Writer) -> str:
    """Return IR of ``@spread``, which begins a job, and of what it calls; it needs ``@run`` and ``@fail``."""
    return "\n".join(part(w) for part in (_spread, _make_job, _work, _piece, _finish))


def _spread(w: Writer) -> str:
    """Return IR of a function that starts tasks, works on the job itself, and leaves XLA a future."""
    return f"""
define internal ptr @spread(ptr %frame, ptr %api, ptr %ctx, ptr %record, ptr %buffers, i64 %threads) {{
entry:
{w.call("error", "Future_Create")}
  %is_promised = icmp eq ptr %error, null
  br i1 %is_promised, label %promised, label %refused
refused:
  ret ptr %error
promised:
{w.get("future", "ptr", "error.args", "Future_Create_Args", "future")}
{w.put("ptr %future", "frame", "CallFrame", "future")}
  %job = call ptr @make_job(ptr %api, ptr %record, ptr %future, ptr %buffers, i64 %threads)
  %has_memory = icmp ne ptr %job, null
  br i1 %has_memory, label %begin, label %no_memory
no_memory:
  %memory.error = call ptr @fail(ptr %api, ptr %record, i32 {NO_MEMORY}, ptr null)
  call void @tell(ptr %api, ptr %future, ptr %memory.error)
  ret ptr null
begin:
{w.get("workers", "i64", "job", _Job, "references")}
  br label %start
start:
  %number = phi i64 [ 1, %begin ], [ %next, %started ]
  %more = icmp slt i64 %number, %workers
  br i1 %more, label %task, label %take_part
task:
  %task.error = call ptr @start(ptr %api, ptr %ctx, ptr %job)
  %is_started = icmp eq ptr %task.error, null
  br i1 %is_started, label %started, label %not_started
not_started:
  call void @drop(ptr %api, ptr %task.error)
{w.at("references", "job", _Job, "references")}
  %fewer = atomicrmw sub ptr %references, i64 1 acq_rel
  br label %started
started:
  %next = add nuw nsw i64 %number, 1
  br label %start
take_part:
  call void @work(ptr %job)
  ret ptr null
}}

define internal ptr @start(ptr %api, ptr %ctx, ptr %job) {{
{w.call("error", "ThreadPool_Schedule", ctx="ptr %ctx", task="ptr @work", data="ptr %job")}
  ret ptr %error
}}
"""


def _make_job(w: Writer) -> str:
    """Return IR of a function that makes a job for as many threads as have something to do; null without memory."""
    return f"""
define internal ptr @make_job(ptr %api, ptr %record, ptr %future, ptr %buffers, i64 %threads) {{
entry:
{w.get("count", "i64", "record", KernelRecord, "buffers")}
{w.get("blocks", "i64", "record", KernelRecord, "blocks")}
  %addresses = shl i64 %count, 3
  %size = add i64 %addresses, {ctypes.sizeof(_Job)}
  %job = call ptr @malloc(i64 %size)
  %has_memory = icmp ne ptr %job, null
  br i1 %has_memory, label %fill, label %end
fill:
  %wanted = mul i64 %threads, {PIECES_PER_WORKER}
  %pieces = call i64 @llvm.smin.i64(i64 %wanted, i64 %blocks)
  %workers = call i64 @llvm.smin.i64(i64 %threads, i64 %pieces)
{w.put("ptr %api", "job", _Job, "api")}
{w.put("ptr %record", "job", _Job, "record")}
{w.put("ptr %future", "job", _Job, "future")}
{w.put("ptr null", "job", _Job, "error")}
{w.put("i64 0", "job", _Job, "next")}
{w.put("i64 %pieces", "job", _Job, "remaining")}
{w.put("i64 %pieces", "job", _Job, "pieces")}
{w.put("i64 %workers", "job", _Job, "references")}
  %job.buffers = getelementptr inbounds i8, ptr %job, i64 {ctypes.sizeof(_Job)}
  call void @llvm.memcpy.p0.p0.i64(ptr %job.buffers, ptr %buffers, i64 %addresses, i1 false)
  br label %end
end:
  ret ptr %job
}}
"""


def _work(w: Writer) -> str:
    """Return IR of each thread's work on a job: it takes pieces until none is left.

    The record is read only for a piece: when none is left, XLA may have released it.
    """
    return f"""
define internal void @work(ptr %job) {{
entry:
{w.get("record", "ptr", "job", _Job, "record")}
{w.get("pieces", "i64", "job", _Job, "pieces")}
{w.at("next", "job", _Job, "next")}
{w.at("remaining", "job", _Job, "remaining")}
{w.at("references", "job", _Job, "references")}
  br label %take
take:
  %context = phi ptr [ null, %entry ], [ %own, %one ], [ %own, %last ]
  %number = atomicrmw add ptr %next, i64 1 monotonic
  %is_one = icmp slt i64 %number, %pieces
  br i1 %is_one, label %one, label %leave
one:
  %own = call ptr @own_context(ptr %record, ptr %context)
  call void @piece(ptr %job, i64 %number, ptr %own)
  %before = atomicrmw sub ptr %remaining, i64 1 acq_rel
  %is_last = icmp eq i64 %before, 1
  br i1 %is_last, label %last, label %take
last:
  call void @finish(ptr %job)
  br label %take
leave:
  call void @free(ptr %context)
  %holders = atomicrmw sub ptr %references, i64 1 acq_rel
  %is_unused = icmp eq i64 %holders, 1
  br i1 %is_unused, label %unused, label %end
unused:
  call void @free(ptr %job)
  br label %end
end:
  ret void
}}

define internal ptr @own_context(ptr %record, ptr %context) {{
  %is_made = icmp ne ptr %context, null
  br i1 %is_made, label %made, label %make
made:
  ret ptr %context
make:
  %new = call ptr @make_context(ptr %record)
  ret ptr %new
}}
"""


def _piece(w: Writer) -> str:
    """Return IR of a function that runs one piece of a job, and keeps the job's first error."""
    return f"""
define internal void @piece(ptr %job, i64 %number, ptr %context) {{
{w.get("api", "ptr", "job", _Job, "api")}
{w.get("record", "ptr", "job", _Job, "record")}
{w.get("pieces", "i64", "job", _Job, "pieces")}
{w.get("blocks", "i64", "record", KernelRecord, "blocks")}
{w.at("error", "job", _Job, "error")}
  %buffers = getelementptr inbounds i8, ptr %job, i64 {ctypes.sizeof(_Job)}
  %number.after = add i64 %number, 1
  %first.scaled = mul i64 %blocks, %number
  %last.scaled = mul i64 %blocks, %number.after
  %first = udiv i64 %first.scaled, %pieces
  %last = udiv i64 %last.scaled, %pieces
  %fault = call ptr @run(ptr %api, ptr %record, ptr %buffers, i64 %first, i64 %last, ptr %context)
  %is_well = icmp eq ptr %fault, null
  br i1 %is_well, label %end, label %faulty
faulty:
  %pair = cmpxchg ptr %error, ptr null, ptr %fault acq_rel acquire
  %is_first = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %is_first, label %end, label %another
another:
  call void @drop(ptr %api, ptr %fault)
  br label %end
end:
  ret void
}}
"""


def _finish(w: Writer) -> str:
    """Return IR of functions that tell XLA that a job is done, or what went wrong in it."""
    return f"""
define internal void @finish(ptr %job) {{
{w.get("api", "ptr", "job", _Job, "api")}
{w.get("future", "ptr", "job", _Job, "future")}
{w.get("error", "ptr", "job", _Job, "error")}
  call void @tell(ptr %api, ptr %future, ptr %error)
  ret void
}}

define internal void @tell(ptr %api, ptr %future, ptr %fault) {{
  %is_well = icmp eq ptr %fault, null
  br i1 %is_well, label %well, label %faulty
well:
{w.call("told", "Future_SetAvailable", future="ptr %future")}
  call void @drop(ptr %api, ptr %told)
  ret void
faulty:
{w.call("warned", "Future_SetError", future="ptr %future", error="ptr %fault")}
  call void @drop(ptr %api, ptr %warned)
  ret void
}}
"""
