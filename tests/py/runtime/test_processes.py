"""Tests that may end a process, or need two: threads that compile first, Ctrl-C, an early end, imported programs.

Each test runs in processes of its own.
"""

import subprocess
import sys
from pathlib import Path

import pytest

PRELUDE = "import jax, jax.numpy as jnp, numpy as np, os, pickle, signal, sys, threading, time, xgpu\n"


def run(program: str, *arguments: str, prelude: str = PRELUDE) -> str:
    """Run a program in a new process, and return what it prints."""
    command = [sys.executable, "-c", prelude + program, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, (result.returncode, result.stdout, result.stderr)
    return result.stdout


FIRST_CALLS = """
X = jnp.arange(64.0).reshape(8, 8) / 7
def make(k):
    return xgpu.jit(lambda x: xgpu.jit(lambda y: jnp.cos(y * k))(x) + xgpu.jit(lambda y: y.sum())(x))
functions = [make(k) for k in range(4)]
barrier, wrong = threading.Barrier(8), []
def go(i):
    barrier.wait()
    got, expected = functions[i % 4](X), jnp.cos(X * (i % 4)) + X.sum()
    if not jnp.allclose(got, expected, rtol=1e-4, atol=1e-3):
        wrong.append(i)
threads = [threading.Thread(target=go, args=(i,)) for i in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("wrong:", wrong)
"""


def test_first_calls_from_several_threads() -> None:
    assert run(FIRST_CALLS) == "wrong: []\n"


FIRST_LINKERS = """
from xgpu.target.host import linker
make, made = linker._Linker.__init__, []
def slow(self):
    made.append(self)
    time.sleep(0.2)
    make(self)
linker._Linker.__init__ = slow
ir = "define i32 @f() {\\n  ret i32 7\\n}"
threads = [threading.Thread(target=linker.link, args=(ir, ["f"])) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(made))
"""


def test_threads_make_one_linker() -> None:
    assert run(FIRST_LINKERS, prelude="import threading, time\n") == "1\n"


INTERRUPTED = """
from xgpu.runtime import host_executor
host_executor._core_count = lambda: 4
running = [0]
piece = host_executor.HostKernel._run_piece
def counted(self, *arguments):
    running[0] += 1
    try:
        time.sleep(0.3)
        piece(self, *arguments)
    finally:
        running[0] -= 1
host_executor.HostKernel._run_piece = counted
program = xgpu.compile(lambda a: jnp.sin(a), f"f32[{1 << 20}]")
x = np.zeros(1 << 20, np.float32)
program._host_program
threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    program.run(x)
except KeyboardInterrupt:
    print("interrupted, running:", running[0])
"""


def test_no_piece_of_a_launch_runs_after_ctrl_c() -> None:
    assert run(INTERRUPTED) == "interrupted, running: 0\n"


FAULTY = """
from xgpu.errors import KernelFault
from xgpu.runtime import host_executor
host_executor._core_count = lambda: 4
running = [0]
def piece(self, buffers, first, last):
    running[0] += 1
    try:
        if first == 0:
            raise KernelFault("k", ())
        time.sleep(0.3)
    finally:
        running[0] -= 1
host_executor.HostKernel._run_piece = piece
try:
    xgpu.compile(lambda a: jnp.sin(a), f"f32[{1 << 20}]").run(np.zeros(1 << 20, np.float32))
except KernelFault:
    print("fault, running:", running[0])
"""


def test_no_piece_of_a_launch_runs_after_a_fault() -> None:
    assert run(FAULTY) == "fault, running: 0\n"


def test_a_process_may_end_while_kernels_run() -> None:
    program = "f = xgpu.jit(lambda x: jax.lax.fori_loop(0, 50, lambda _, c: jnp.sin(c) + 1, x)); f(jnp.ones(1 << 20))"
    assert run(program) == ""


FUNCTION = """
f = xgpu.jit(lambda x, y: (jax.lax.fori_loop(0, 3, lambda _, c: jnp.sin(jnp.sort(c)) + y, x), jnp.sum(x)))
x, y = jnp.arange(300.0), jnp.float32(0.5)
"""
SERIALIZE = (
    FUNCTION
    + """
from jax.experimental import serialize_executable
pickle.dump(serialize_executable.serialize(f.lower(x, y).compile()), open(sys.argv[1], "wb"))
print(*map(np.sum, f(x, y)))
"""
)
DESERIALIZE = """
from jax.experimental import serialize_executable
f = serialize_executable.deserialize_and_load(*pickle.load(open(sys.argv[1], "rb")))
print(*map(np.sum, f(jnp.arange(300.0), jnp.float32(0.5))))
"""


def test_a_serialised_executable_runs_in_another_process(tmp_path: Path) -> None:
    file = str(tmp_path / "executable")
    assert run(SERIALIZE, file) == run(DESERIALIZE, file)
    with pytest.raises(AssertionError, match=r"JaxRuntimeError: .*[Nn]o .*\bxgpu\.jit\b"):
        run(DESERIALIZE, file, prelude=PRELUDE.replace(", xgpu", ""))


def test_an_exported_program_runs_in_another_process(tmp_path: Path) -> None:
    pytest.importorskip("flatbuffers")
    file = str(tmp_path / "exported")
    write = "from jax import export; open(sys.argv[1], 'wb').write(export.export(f)(x, y).serialize());"
    read = "from jax import export; f = export.deserialize(open(sys.argv[1], 'rb').read()).call;"
    show = "print(*map(np.sum, f(x, y)))"
    values = "x, y = jnp.arange(300.0), jnp.float32(0.5)\n"
    assert run(FUNCTION + write + show, file) == run(values + read + show, file)
