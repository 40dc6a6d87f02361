"""Configuration of the lit tests: ``lit tests/lit`` in the virtual environment, or ``make test``.

The commands of a RUN line are those of the interpreter that runs lit, whatever PATH says:

- ``xgpu``, ``xgpu-opt``: xgpu's own commands; ``%python``: the interpreter;
- ``FileCheck``: the ``filecheck`` package, a rewrite of LLVM's tool in Python.

They are run by a server (harness/server.py), which forks for each command and so imports nothing anew. Those of the
folder ``commands``, and all of them with ``XGPU_HYPOTHESIS=thorough``, are processes as a user starts them.

What to know of ``filecheck`` (each checked with 1.0.6) when writing a test:

- As in LLVM: ``CHECK``, ``-NEXT``, ``-SAME``, ``-DAG``, ``-NOT``, ``-COUNT-n``, ``-LABEL``, ``-EMPTY``, ``{LITERAL}``;
  captures ``[[X:%.*]]`` and ``[[X]]``, also inside one line and in ``-NOT`` and ``-DAG``; ``{{regex}}`` with POSIX
  classes; ``--check-prefix``, ``--check-prefixes``,
  ``--enable-var-scope``, ``-D``, ``--match-full-lines``, ``--allow-empty``.
- Missing: ``[[@LINE]]`` and ``[[#@LINE]]`` (for a diagnostic's line use ``--verify-diagnostics``, or write the number);
  numeric captures ``[[#N:]]`` and arithmetic; ``--implicit-check-not``, ``--ignore-case``, ``--dump-input=always``,
  ``-v`` (each ends in a traceback or a warning).
- Different: ``CHECK-NEXT`` may come first; regular expressions are Python's; ``CHECK-DAG`` may print debug text.
- A directive that is not one (``CHECK-NXT``) is passed over in silence; tests/py/test_layering.py refuses it.

Features for ``REQUIRES:``: ``ptxas`` and ``mlir-opt-22``, each there if the tool is.
"""

import os
import shlex
import shutil
import sys
from pathlib import Path

import lit.formats

# Last: where xgpu runs from the tree, the folder at the root is a part of the package only.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from tests.lit.harness.start import start_server

_HERE = Path(__file__).resolve().parent

config.name = "xgpu"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".hlo", ".test", ".py"]
config.excludes = ["lit.cfg.py", "lit.local.cfg", "harness", "Inputs"]
config.test_source_root = str(_HERE)
config.test_exec_root = str(_HERE.parent.parent / "build" / "lit")


def _command(name: str) -> str:
    """Match a command's name as a word of its own, not as part of a path, an option or a pass name."""
    return rf"(?<![\w./@#%='\"-]){name}(?![\w./=-])"


def _ptxas() -> str | None:
    folders = [os.environ.get("PATH", ""), os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin")]
    return shutil.which("ptxas", path=os.pathsep.join(folders))


config.substitutions.append(("%python", f"'{sys.executable}'"))

if _ptxas():
    config.available_features.add("ptxas")
if shutil.which("mlir-opt-22"):
    config.available_features.add("mlir-opt-22")

# lit hides the environment from the tests. These say where xgpu is if it is not installed, and how it is to behave.
for _variable in ("PYTHONPATH", "PYTHONSAFEPATH", "HOME", "CUDA_HOME"):
    if _variable in os.environ:
        config.environment[_variable] = os.environ[_variable]
# The tests here are about text. Where there is a GPU, starting it for each of them would take seconds and its memory.
config.environment["JAX_PLATFORMS"] = "cpu"


_MODULES = {"xgpu": "xgpu.cli.main", "xgpu-opt": "xgpu.cli.opt.main", "FileCheck": "filecheck"}
config.processes = [(_command(name), f"'{sys.executable}' -m {module}") for name, module in _MODULES.items()]
"""Substitutions by which each command is a process of its own."""
if os.environ.get("XGPU_HYPOTHESIS") == "thorough":
    config.substitutions += config.processes
else:
    _client = shlex.join(start_server(config.environment))
    config.substitutions += [(_command(name), f"{_client} {name}") for name in _MODULES]
