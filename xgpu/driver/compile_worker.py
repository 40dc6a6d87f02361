"""A process that compiles kernels for another one: `xgpu.driver.parallel` starts it and talks to it by lines of JSON.

A request has a kernel of level ``emitted`` as bytecode, the answer its level ``lowered``, and PTX if that was asked
for, or the error. Before the first request it says that it is ready. It ends when its input does.
"""

import base64
import contextlib
import json
import os
import sys
from dataclasses import asdict
from typing import Any

from xgpu import ir
from xgpu.device import device
from xgpu.driver.collector import rare_collections
from xgpu.driver.kernel import Kernel
from xgpu.errors import XgpuError
from xgpu.options import Options
from xgpu.passes.framework.manager import compiling_with


def _build(request: dict[str, Any]) -> dict[str, Any]:
    module = ir.parse_briefly(base64.b64decode(request["emitted"]))
    options = Options(**request["options"])
    compiling_with(request["command"])
    kernel = Kernel(request["name"], device(request["device"]), options, [], {"emitted": module})
    kernel.check()
    compiled = asdict(kernel.compiled) if request["level"] == "ptx" else None
    lowered = base64.b64encode(kernel.bytecode("lowered")).decode()
    return {"lowered": lowered, "compiled": compiled, "times": kernel.times}


def _described(error: Exception) -> dict[str, Any]:
    """Return the parts needed to raise an error again."""
    if isinstance(error, XgpuError):
        location = asdict(error.location) if error.location else None
        return {"type": type(error).__name__, "message": error.message, "location": location}
    return {"type": "CompilerError", "message": f"{type(error).__name__}: {error}", "location": None}


@rare_collections()
def main() -> None:
    """Answer requests until there are no more."""
    # What libraries print, in Python or not, is not an answer.
    answers = os.fdopen(os.dup(1), "w")
    with contextlib.suppress(OSError):
        os.dup2(2, 1)
    try:
        print(json.dumps({"ready": True}), file=answers, flush=True)
        for line in sys.stdin.buffer:
            print(json.dumps(_answer(line)), file=answers, flush=True)
    except BrokenPipeError:
        # Whoever asked has ended, interrupted maybe. What cannot be written is not to be tried again at the end.
        os._exit(0)


def _answer(line: bytes) -> dict[str, Any]:
    try:
        return _build(json.loads(line))
    except Exception as error:
        return {"error": _described(error)}


if __name__ == "__main__":
    main()
