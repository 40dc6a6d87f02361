"""Runs commands of the tests, each in a process of its own that has everything imported already.

Starting Python and importing xgpu takes longer than what most of these tests have a command do. So this process
imports it once and forks for each command; ``client.py`` sends it the command's words, folder and streams. What a
process of the command's own does beside that, `xgpu.cli.process.supervise`, is left to the tests in ``commands/``.

Its standard input is the socket on which it listens; it ends when the process that started it does.
"""

import contextlib
import gc
import os
import socket
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from filecheck.main import main as filecheck_main

from xgpu.cli.main import main as xgpu_main
from xgpu.cli.opt.main import main as xgpu_opt_main


def _filecheck(arguments: Sequence[str]) -> int:
    filecheck_main(["filecheck", *arguments])
    return 0


COMMANDS = {"FileCheck": _filecheck, "xgpu": xgpu_main, "xgpu-opt": xgpu_opt_main}


EVERYTHING = Path(__file__).with_name("everything.mlir")
"""A program that, compiled to PTX, has the commands import what they import only when they need it."""


def serve(listener: socket.socket) -> None:
    """Take one request after the other, and fork for each."""
    words = [str(EVERYTHING), "-o", os.devnull]
    xgpu_main(["compile", *words])
    xgpu_opt_main(words)
    # What is there now is never freed: so the collector does not touch, and thereby copy, the memory that is shared.
    gc.freeze()
    parent = os.getppid()
    listener.settimeout(1)
    while os.getppid() == parent:
        with contextlib.suppress(TimeoutError):
            connection = listener.accept()[0]
            if os.fork() == 0:
                listener.close()
                _answer(connection)
            connection.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _answer(connection: socket.socket) -> None:
    """Run the command that ``connection`` asks for and end this process."""
    connection.settimeout(None)
    text, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while part := connection.recv(1 << 16):
        text += part
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # Those of before know of what was open then, whether one can seek in it for instance.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    folder, name, *arguments = text.decode(errors="surrogateescape").split("\0")
    os.chdir(folder)
    code = 1
    try:
        code = COMMANDS[name](arguments)
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(str(code).encode())
        os._exit(0)


if __name__ == "__main__":
    serve(socket.socket(fileno=os.dup(0)))
