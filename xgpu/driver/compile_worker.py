"""Processes that compile kernels, and the one that they are forked from: `xgpu.driver.nursery` starts and asks it.

A process answers requests, which are lines of JSON. A request has a kernel of level ``emitted`` as bytecode, the answer
its level ``lowered``, and PTX and machine code if these were asked for, or the error. The process ends when its input
does.
"""

import base64
import contextlib
import gc
import io
import json
import os
import signal
import socket
import sys
from dataclasses import asdict
from typing import Any, BinaryIO

from xgpu import ir
from xgpu.device import DEFAULT_DEVICE, device
from xgpu.driver.cache import CachedKernel
from xgpu.driver.collector import rare_collections
from xgpu.driver.kernel import ProgramKernel
from xgpu.errors import XgpuError
from xgpu.levels import pipeline
from xgpu.options import Options
from xgpu.passes.framework.manager import compiling_with

START, REAP = b"start", b"reap"
"""Messages to it: fork a process, whose input and output come along, and wait for the end of one, whose number follows.

The answer is the number of the process, 0 if there is none, or its exit code, minus the signal that ended it.
"""
READY = b"ready"
"""The worker's first message."""
_LONGEST_MESSAGE = 64
WARM_UP = """
module attributes {xgpu.level = "emitted"} {
  func.func @warm_up(%x: tensor<256xbf16>, %y: tensor<256xbf16>) -> tensor<256xbf16> attributes {
      xgpu.block = array<i64: 64, 1, 1>, xgpu.grid = array<i64: 1, 1, 1>, xgpu.inputs = 1 : i64, xgpu.kernel} {
    %thread = gpu.thread_id x upper_bound 64
    %all = "xgpu.loop"(%thread, %y) ({
    ^bb0(%number: index, %place: index, %old: tensor<256xbf16>):
      %element = tensor.extract %x[%place] : tensor<256xbf16>
      %wide = arith.extf %element : bf16 to f32
      %power = math.exp %wide : f32
      %narrow = arith.truncf %power : f32 to bf16
      %new = tensor.insert %narrow into %old[%place] : tensor<256xbf16>
      "xgpu.yield"(%new) : (tensor<256xbf16>) -> ()
    }) {map = #xgpu.map<(d0)[s0] -> (d0 * 4 + s0), d0 in [0, 63], s0 in [0, 3]>}
        : (index, tensor<256xbf16>) -> tensor<256xbf16>
    return %all : tensor<256xbf16>
  }
}
"""
"""A kernel that the first process compiles to PTX, so that those which are forked from it have all that this imports,
makes once and keeps: half of the time that a process took for its first kernel."""


def _build(request: dict[str, Any]) -> dict[str, Any]:
    module = ir.parse_briefly(base64.b64decode(request["emitted"]))
    options = Options(**request["options"])
    compiling_with(request["command"])
    kernel = ProgramKernel(request["name"], device(request["device"]), options, [], {"emitted": module})
    kernel.check()
    compiled = asdict(kernel.compiled) if request["level"] in ("ptx", "cubin") else None
    code = kernel.machine_code if request["level"] == "cubin" else None
    lowered = _text(kernel.bytecode("lowered"))
    return {"lowered": lowered, "compiled": compiled, "code": code and _text(code), "times": kernel.times}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _described(error: Exception) -> dict[str, Any]:
    """Return the parts needed to raise an error again."""
    if isinstance(error, XgpuError):
        location = asdict(error.location) if error.location else None
        return {"type": type(error).__name__, "message": error.message, "location": location}
    return {"type": "CompilerError", "message": f"{type(error).__name__}: {error}", "location": None}


@rare_collections()
def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more, or nobody reads the answers."""
    with contextlib.suppress(BrokenPipeError):
        for line in requests:
            answers.write(json.dumps(_answer(line)).encode() + b"\n")
            answers.flush()


def _answer(line: bytes) -> dict[str, Any]:
    try:
        return _build(json.loads(line))
    except Exception as error:
        return {"error": _described(error)}


def _forked(messages: socket.socket, files: list[int]) -> int:
    """Fork a process that serves the requests in the first file; return its number, 0 if there is no room for it."""
    try:
        process = os.fork()
    except OSError:
        return 0
    if process:
        return process
    # Nothing of the parent's is to run in here: neither what follows its loop, nor what is left to do at its end.
    code = 1
    try:
        messages.close()
        requests, answers = files
        serve(os.fdopen(requests, "rb"), os.fdopen(answers, "wb"))
        code = 0
    finally:
        os._exit(code)


def _reaped(process: int) -> int:
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def warm_up() -> CachedKernel:
    """Compile `WARM_UP` to PTX, and import the passes that it has no use for."""
    pipeline.load_kernel_passes()
    stream = io.BytesIO()
    ir.Module.parse(WARM_UP, ir.make_context()).operation.write_bytecode(stream)
    module = ir.parse_briefly(stream.getvalue())
    return ProgramKernel("warm_up", device(DEFAULT_DEVICE), Options(), [], {"emitted": module}).compiled


def main() -> None:
    """Fork processes as the messages of a socket ask for it, and end them when nobody listens to it any more."""
    warm_up()
    # What there is by now is no garbage; a collector that marked it would copy the memory that processes share.
    gc.freeze()
    processes: set[int] = set()
    with contextlib.suppress(OSError):
        messages = socket.socket(fileno=int(sys.argv[1]))
        messages.send(READY)
        while True:
            message, files, _, _ = socket.recv_fds(messages, _LONGEST_MESSAGE, 2)
            what, _, number = message.partition(b" ")
            if what == START:
                answer = _forked(messages, files)
                processes |= {answer} - {0}
            elif what == REAP:
                answer = _reaped(int(number))
                processes.discard(int(number))
            else:
                break
            for file in files:
                os.close(file)
            messages.send(b"%d" % answer)
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    main()
