"""Starts the server of commands, for lit and for the tests of documents."""

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

_HARNESS = Path(__file__).resolve().parent


def start_server(environment: Mapping[str, str]) -> list[str]:
    """Start the server in ``environment``, until this process ends; return the words before those of a command."""
    folder = tempfile.mkdtemp(prefix="xgpu-commands-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        # Requests that come before it has imported everything wait.
        server = subprocess.Popen([sys.executable, str(_HARNESS / "server.py")], env=environment, stdin=listener)
    atexit.register(_stop, server)
    return [sys.executable, "-I", "-S", str(_HARNESS / "client.py"), path]


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    server.wait()
