"""Usage: client.py SOCKET COMMAND [ARGUMENT...]: have the server at SOCKET run a command, with this process's streams.

Starts in a few milliseconds: it is run in place of each command of the lit tests, with ``python -I -S``. So it imports
nothing that is written in Python: ``json`` and ``socket`` would take longer than Python's start.
"""

import _socket
import os
import sys


def main() -> int:
    """Return the command's exit code."""
    # None of them can contain a null character.
    request = "\0".join((os.getcwd(), *sys.argv[2:])).encode(errors="surrogateescape")
    streams = b"".join(stream.to_bytes(4, sys.byteorder) for stream in (0, 1, 2))
    server = _socket.socket(_socket.AF_UNIX)
    server.connect(sys.argv[1])
    sent = server.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    server.sendall(request[sent:])
    server.shutdown(_socket.SHUT_WR)
    answer = server.recv(16)
    if not answer:
        print(f"{sys.argv[2]}: the process ended without an exit code: it crashed", file=sys.stderr)
        return 139
    return int(answer)


if __name__ == "__main__":
    sys.exit(main())
