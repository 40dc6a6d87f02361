"""LLVM IR of the handler that XLA calls as a foreign function on the CPU, to launch a kernel.

XLA keeps a `KernelRecord` as the state of each call in a program. The handler takes the arrays' addresses from the call
frame and runs the blocks: alone, or, where there is enough to do, in pieces that it and tasks on XLA's own threads
take one after the other. Then it hands XLA a future and does not wait, so no thread of XLA's is ever blocked. Python is
called where XLA makes an executable, which it asks for the record, and for what goes wrong.
"""

import ctypes

from xgpu.target.host.context import ALIGNMENT, SHARED, UNWRITTEN_BYTE, offset_of
from xgpu.target.xla.ffi import FfiHeader
from xgpu.target.xla.jobs import job_functions
from xgpu.target.xla.writer import (
    DIVERGED,
    EXECUTE,
    FAIL,
    FIND,
    INSTANTIATE,
    MISALIGNED,
    NO_MEMORY,
    RELEASE,
    TYPE_ID,
    WRONG_BUFFERS,
    Answer,
    KernelRecord,
    Writer,
)


def handler_ir(header: FfiHeader) -> str:
    """Return the module of the handler for the XLA whose header is given; raises ToolError if it lacks something."""
    w = Writer(header)
    parts = _query, _instantiate, _execute, _answer, _launch, _distribute, _take, _run, _threads, job_functions
    return "\n".join([*(part(w) for part in parts), _DECLARATIONS])


def _query(w: Writer) -> str:
    """Return IR of a function that answers if XLA asks for a handler's version and type of state, and says whether."""
    return f"""
@{TYPE_ID} = global i64 0

define internal i1 @is_query(ptr %frame, i64 %type_id) {{
entry:
{w.get("extension", "ptr", "frame", "CallFrame", "extension_start")}
  %is_plain = icmp eq ptr %extension, null
  br i1 %is_plain, label %ordinary, label %extended
extended:
{w.get("type", "i32", "extension", "InternalExtension", "type")}
  %is_query = icmp eq i32 %type, {w.number("Extension_Metadata")}
  br i1 %is_query, label %query, label %ordinary
query:
{w.get("metadata", "ptr", "extension", "Metadata_Extension", "metadata")}
{w.put(f"i32 {w.number('API_MAJOR')}", "metadata", "Metadata", "api_version.major_version")}
{w.put(f"i32 {w.number('API_MINOR')}", "metadata", "Metadata", "api_version.minor_version")}
{w.put("i64 %type_id", "metadata", "Metadata", "state_type_id.type_id")}
  ret i1 true
ordinary:
  ret i1 false
}}
"""


def _instantiate(w: Writer) -> str:
    """Return IR of the handler of a call's start, and of what is called when XLA releases a record.

    That counts only, as it may happen anywhere, also where Python must not be called.
    """
    return f"""
define ptr @{INSTANTIATE}(ptr %frame) {{
entry:
  %type_id = load i64, ptr @{TYPE_ID}
  %is_query = call i1 @is_query(ptr %frame, i64 %type_id)
  br i1 %is_query, label %query, label %ordinary
query:
  ret ptr null
ordinary:
  %answer = alloca [{ctypes.sizeof(Answer)} x i8], align 8
  store [{ctypes.sizeof(Answer)} x i8] zeroinitializer, ptr %answer, align 8
  call void @{FIND}(ptr %frame, ptr %answer)
{w.get("api", "ptr", "frame", "CallFrame", "api")}
  %error = call ptr @answer(ptr %api, ptr %answer)
  ret ptr %error
}}

define void @{RELEASE}(ptr %record) {{
{w.at("released", "record", KernelRecord, "released")}
  %before = atomicrmw add ptr %released, i64 1 seq_cst
  ret void
}}
"""


def _execute(w: Writer) -> str:
    """Return IR of the handler of a launch, which finds the record of the call's kernel."""
    stage = w.number("ExecutionStage_INSTANTIATE")
    return f"""
define ptr @{EXECUTE}(ptr %frame) {{
entry:
  %is_query = call i1 @is_query(ptr %frame, i64 0)
  br i1 %is_query, label %query, label %ordinary
query:
  ret ptr null
ordinary:
{w.get("api", "ptr", "frame", "CallFrame", "api")}
{w.get("ctx", "ptr", "frame", "CallFrame", "ctx")}
{w.call("error", "State_Get", ctx="ptr %ctx", stage=f"i32 {stage}", type_id=f"ptr @{TYPE_ID}")}
  %is_known = icmp eq ptr %error, null
  br i1 %is_known, label %known, label %unknown
unknown:
  ret ptr %error
known:
{w.get("record", "ptr", "error.args", "State_Get_Args", "state")}
  %launch.error = call ptr @launch(ptr %frame, ptr %api, ptr %ctx, ptr %record)
  ret ptr %launch.error
}}
"""


def _answer(w: Writer) -> str:
    """Return IR of functions that ask Python for an error, and make one if it gave no answer."""
    message = "xgpu was interrupted\\00"
    bytes_ = len(message) - 2
    return f"""
@interrupted = internal constant [{bytes_} x i8] c"{message}"

define internal ptr @fail(ptr %api, ptr %record, i32 %what, ptr %context) {{
  %answer = alloca [{ctypes.sizeof(Answer)} x i8], align 8
  store [{ctypes.sizeof(Answer)} x i8] zeroinitializer, ptr %answer, align 8
  call void @{FAIL}(ptr %api, ptr %record, i32 %what, ptr %context, ptr %answer)
  %error = call ptr @answer(ptr %api, ptr %answer)
  ret ptr %error
}}

define internal ptr @answer(ptr %api, ptr %answer) {{
{w.get("given", "i64", "answer", Answer, "is_given")}
  %is_given = icmp ne i64 %given, 0
  br i1 %is_given, label %said, label %silent
said:
{w.get("said.error", "ptr", "answer", Answer, "error")}
  ret ptr %said.error
silent:
{w.call("error", "Error_Create", message="ptr @interrupted", errc=f"i32 {w.number('Error_Code_CANCELLED')}")}
  ret ptr %error
}}
"""


def _launch(w: Writer) -> str:
    """Return IR of a function that takes the buffers out of a call frame, and checks them."""
    return f"""
define internal ptr @launch(ptr %frame, ptr %api, ptr %ctx, ptr %record) {{
entry:
{w.get("inputs", "i64", "frame", "CallFrame", "args.size")}
{w.get("outputs", "i64", "frame", "CallFrame", "rets.size")}
  %count = add i64 %inputs, %outputs
{w.get("expected", "i64", "record", KernelRecord, "buffers")}
  %is_right = icmp eq i64 %count, %expected
  br i1 %is_right, label %collect, label %faulty
collect:
  %buffers = alloca ptr, i64 %count
{w.get("input.list", "ptr", "frame", "CallFrame", "args.args")}
{w.get("output.list", "ptr", "frame", "CallFrame", "rets.rets")}
  %output.buffers = getelementptr inbounds ptr, ptr %buffers, i64 %inputs
  %input.bits = call i64 @take(ptr %input.list, i64 %inputs, ptr %buffers)
  %output.bits = call i64 @take(ptr %output.list, i64 %outputs, ptr %output.buffers)
  %bits = or i64 %input.bits, %output.bits
{w.get("mask", "i64", "record", KernelRecord, "alignment_mask")}
  %misfit = and i64 %bits, %mask
  %is_aligned = icmp eq i64 %misfit, 0
  br i1 %is_aligned, label %aligned, label %faulty
aligned:
  %error = call ptr @distribute(ptr %frame, ptr %api, ptr %ctx, ptr %record, ptr %buffers)
  ret ptr %error
faulty:
  %what = phi i32 [ {WRONG_BUFFERS}, %entry ], [ {MISALIGNED}, %collect ]
  %fault = call ptr @fail(ptr %api, ptr %record, i32 %what, ptr null)
  ret ptr %fault
}}
"""


def _distribute(w: Writer) -> str:
    """Return IR of a function that runs a launch on one thread, or on all that XLA has."""
    return f"""
define internal ptr @distribute(ptr %frame, ptr %api, ptr %ctx, ptr %record, ptr %buffers) {{
entry:
{w.get("is_split.wide", "i64", "record", KernelRecord, "is_split")}
  %is_split = icmp ne i64 %is_split.wide, 0
  br i1 %is_split, label %split, label %alone
split:
  %threads = call i64 @threads(ptr %api, ptr %ctx)
  %are_several = icmp sgt i64 %threads, 1
  br i1 %are_several, label %several, label %alone
several:
  %spread.error = call ptr @spread(ptr %frame, ptr %api, ptr %ctx, ptr %record, ptr %buffers, i64 %threads)
  ret ptr %spread.error
alone:
{w.get("blocks", "i64", "record", KernelRecord, "blocks")}
  %context = call ptr @make_context(ptr %record)
  %run.error = call ptr @run(ptr %api, ptr %record, ptr %buffers, i64 0, i64 %blocks, ptr %context)
  call void @free(ptr %context)
  ret ptr %run.error
}}
"""


def _take(w: Writer) -> str:
    """Return IR of a function that collects the addresses of buffers, and returns all their bits."""
    return f"""
define internal i64 @take(ptr %list, i64 %count, ptr %buffers) {{
entry:
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %each, label %end
each:
  %i = phi i64 [ 0, %entry ], [ %next, %each ]
  %before = phi i64 [ 0, %entry ], [ %bits, %each ]
  %from = getelementptr inbounds ptr, ptr %list, i64 %i
  %buffer = load ptr, ptr %from
{w.get("data", "ptr", "buffer", "Buffer", "data")}
  %to = getelementptr inbounds ptr, ptr %buffers, i64 %i
  store ptr %data, ptr %to
  %address = ptrtoint ptr %data to i64
  %bits = or i64 %before, %address
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %end
end:
  %all = phi i64 [ 0, %entry ], [ %bits, %each ]
  ret i64 %all
}}
"""


def _run(w: Writer) -> str:
    """Return IR of functions that make a context, null for a kernel that needs none, and run some blocks in one."""
    return f"""
define internal ptr @make_context(ptr %record) {{
{w.get("bytes", "i64", "record", KernelRecord, "context_bytes")}
  %is_needed = icmp ne i64 %bytes, 0
  br i1 %is_needed, label %needed, label %none
needed:
  %more = add i64 %bytes, {ALIGNMENT - 1}
  %rounded = and i64 %more, {-ALIGNMENT}
  %context = call ptr @aligned_alloc(i64 {ALIGNMENT}, i64 %rounded)
  ret ptr %context
none:
  ret ptr null
}}

define internal ptr @run(ptr %api, ptr %record, ptr %buffers, i64 %first, i64 %last, ptr %context) {{
entry:
{w.get("blocks", "ptr", "record", KernelRecord, "address")}
{w.get("bytes", "i64", "record", KernelRecord, "context_bytes")}
  %is_simple = icmp eq i64 %bytes, 0
  br i1 %is_simple, label %simple, label %check
simple:
  call void %blocks(ptr %buffers, i64 %first, i64 %last, ptr null)
  ret ptr null
check:
  %has_memory = icmp ne ptr %context, null
  br i1 %has_memory, label %prepare, label %no_memory
no_memory:
  %memory.error = call ptr @fail(ptr %api, ptr %record, i32 {NO_MEMORY}, ptr null)
  ret ptr %memory.error
prepare:
  call void @llvm.memset.p0.i64(ptr align {ALIGNMENT} %context, i8 0, i64 {SHARED}, i1 false)
{w.get("end", "i64", "record", KernelRecord, "shared_end")}
  %shared = getelementptr inbounds i8, ptr %context, i64 {SHARED}
  %size = sub i64 %end, {SHARED}
  call void @llvm.memset.p0.i64(ptr %shared, i8 {UNWRITTEN_BYTE}, i64 %size, i1 false)
  call void %blocks(ptr %buffers, i64 %first, i64 %last, ptr %context)
  %diverged.at = getelementptr inbounds i8, ptr %context, i64 {offset_of("diverged")}
  %diverged = load i32, ptr %diverged.at
  %have_met = icmp eq i32 %diverged, 0
  br i1 %have_met, label %met, label %apart
met:
  ret ptr null
apart:
  %error = call ptr @fail(ptr %api, ptr %record, i32 {DIVERGED}, ptr %context)
  ret ptr %error
}}
"""


def _threads(w: Writer) -> str:
    """Return IR of functions that ask for the number of XLA's threads, 0 if it has none for us, and drop an error."""
    return f"""
define internal i64 @threads(ptr %api, ptr %ctx) {{
  %number = alloca i64
  store i64 0, ptr %number
{w.call("error", "ThreadPool_NumThreads", ctx="ptr %ctx", num_threads="ptr %number")}
  call void @drop(ptr %api, ptr %error)
  %threads = load i64, ptr %number
  ret i64 %threads
}}

define internal void @drop(ptr %api, ptr %error) {{
  %is_none = icmp eq ptr %error, null
  br i1 %is_none, label %end, label %some
some:
{w.prepare("destroy", "Error_Destroy", error="ptr %error")}
  call void %destroy.function(ptr %destroy.args)
  br label %end
end:
  ret void
}}
"""


_DECLARATIONS = f"""
declare void @{FIND}(ptr, ptr)
declare void @{FAIL}(ptr, ptr, i32, ptr, ptr)
declare ptr @malloc(i64)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i64 @llvm.smin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
