"""Turns HLO text on stdin into MLIR text on stdout; run as a process of its own by ``hlo_text``.

XLA's importer aborts the process on some invalid modules (a failed CHECK in C++), so it never runs in the compiler's.
It imports nothing of xgpu and none of JAX's Python code, which keeps its start at about a tenth of a second.
"""

import sys

import jaxlib._hlo as hlo
import jaxlib._jax as xla

INVALID = 3


def main() -> int:
    """Convert stdin; return 0, or INVALID with the parser's message on stdout."""
    text = sys.stdin.buffer.read().decode()
    try:
        module = hlo.hlo_module_from_text(text)
        computation = hlo.XlaComputation(module.as_serialized_hlo_module_proto())
        output = xla.mlir.xla_computation_to_mlir_module(computation)
        status = 0
    except (RuntimeError, ValueError) as error:
        output, status = str(error), INVALID
    sys.stdout.buffer.write(output.encode())
    return status


if __name__ == "__main__":
    sys.exit(main())
