"""Usage: client.py SOCKET COMMAND [ARGUMENT...]: have the server at SOCKET run a command, with this process's streams.

Starts in a few milliseconds: it is run in place of each command of the lit tests, with ``python -I -S``.
"""

import array
import json
import os
import socket
import sys


def main() -> int:
    """Return the command's exit code."""
    request = json.dumps({"folder": os.getcwd(), "words": sys.argv[2:]}).encode()
    streams = array.array("i", (0, 1, 2))
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(sys.argv[1])
        sent = server.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
        server.sendall(request[sent:])
        server.shutdown(socket.SHUT_WR)
        answer = server.recv(16)
    if not answer:
        print(f"{sys.argv[2]}: the process ended without an exit code: it crashed", file=sys.stderr)
        return 139
    return int(answer)


if __name__ == "__main__":
    sys.exit(main())
