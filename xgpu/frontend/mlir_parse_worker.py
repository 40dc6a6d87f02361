"""Parses MLIR text in a process of its own: `mlir_text` starts it for text that is known to crash MLIR's parser.

The text is on stdin, its file's name the argument. The error goes to stdout, as JSON; nothing if there is none.
"""

import json
import sys
from dataclasses import asdict

from xgpu.errors import InvalidInput
from xgpu.frontend.mlir_text import parse_unguarded


def main() -> None:
    """Parse the text on stdin."""
    try:
        parse_unguarded(sys.stdin.buffer.read().decode(), sys.argv[1], {})
    except InvalidInput as error:
        location = asdict(error.location) if error.location else None
        print(json.dumps({"message": error.message, "location": location}))


if __name__ == "__main__":
    main()
