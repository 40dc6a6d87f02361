"""Kernels of large programs are compiled in several processes: the same kernels, the same errors, no process left."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xgpu
from xgpu.device import device
from xgpu.driver import nursery, parallel
from xgpu.driver.kernel import ProgramKernel
from xgpu.driver.parallel import compile_each, compile_kernels
from xgpu.errors import CompilerError, InvalidInput, SourceLocation, Unsupported
from xgpu.interface import api
from xgpu.options import Options
from xgpu.target.nvptx import cubin
from xgpu.target.nvptx.cubin import find_ptxas

COUNT = 20


def _function(x):
    """Sorts keep its kernels apart, constants keep them different."""
    for number in range(COUNT):
        x = jnp.sort(jnp.sin(x + number))
    return x


@pytest.fixture
def jobs(monkeypatch):
    """Set the number of processes; the kernels of tests are as long as any that are compiled in several."""
    monkeypatch.setattr(parallel, "_BYTES_PER_SECOND", 1)
    return lambda number: monkeypatch.setenv("XGPU_JOBS", str(number))


@pytest.mark.parametrize(
    ("seconds", "processes"),
    [([], 0), ([0.04, 0.05], 0), ([0.09, 0.02], 1), ([0.5], 0), ([0.5] * 3, 2), ([0.5] * 9, 7)],
)
def test_a_process_is_worth_what_it_takes_to_start(monkeypatch, seconds, processes):
    monkeypatch.setenv("XGPU_JOBS", "8")
    requests = [bytes(int(each * parallel._BYTES_PER_SECOND)) for each in seconds]
    assert parallel._others(requests) == processes


@pytest.fixture
def elsewhere(monkeypatch):
    """Have every kernel compiled by other processes, none by this one."""
    monkeypatch.setattr(parallel, "_compile_here", lambda *given: None)
    monkeypatch.setattr(ProgramKernel, "check", lambda kernel: pytest.fail("compiled in this process"))


def _compiled():
    return xgpu.compile(_function, "f32[64]")


@pytest.mark.parametrize("by", ["others", "all"])
def test_kernels_are_the_same(jobs, request, by):
    jobs(1)
    expected = [(kernel.name, kernel.ptx, kernel.shared_bytes, kernel.grid) for kernel in _compiled().kernels]
    if by == "others":
        request.getfixturevalue("elsewhere")
    jobs(3)
    program = _compiled()
    assert [(kernel.name, kernel.ptx, kernel.shared_bytes, kernel.grid) for kernel in program.kernels] == expected
    assert len(expected) == COUNT
    inputs = program.random_inputs(1)
    # Twenty sines in a row, each within an ULP or two of XLA's.
    np.testing.assert_allclose(program.run(*inputs)[0], program.reference(*inputs)[0], rtol=1e-5)
    assert {"simplify-indexing", "LLVM to PTX"} <= {name for name, _ in program.timings}


@pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed")
def test_machine_code_is_made_by_other_processes(jobs, elsewhere, monkeypatch):
    jobs(3)
    program = api.compile_to("cubin", _function, ["f32[64]"], device("sm_90a"), Options())
    monkeypatch.setattr(cubin, "find_ptxas", lambda: pytest.fail("assembled in this process"))
    codes = {kernel.name: kernel.machine_code for kernel in program.kernels}
    monkeypatch.undo()
    assert codes == {kernel.name: cubin.assemble(kernel.ptx, "sm_90a").cubin for kernel in program.kernels}


@pytest.mark.parametrize(
    ("level", "is_ready", "is_there", "by_others"),
    [
        ("cubin", False, True, True),
        ("cubin", False, False, False),
        ("ptx", False, True, False),
        ("ptx", True, True, True),
    ],
)
def test_few_kernels(jobs, monkeypatch, level, is_ready, is_there, by_others):
    """Processes that are being started are waited for where machine code is wanted: it is used in any case."""
    asked = []
    monkeypatch.setattr(parallel, "is_nursery_ready", lambda: is_ready)
    monkeypatch.setattr(parallel, "has_nursery", lambda: is_there)
    monkeypatch.setattr(parallel, "_compile", lambda kernels, *given: asked.append(len(kernels)) or {})
    jobs(3)
    api.compile_to(level, lambda x: (jnp.sort(x + 1), x.T), ["f32[64,32]"], device("sm_90a"), Options())
    assert asked == [2] * by_others


def test_without_ptxas_there_is_no_machine_code(jobs, monkeypatch):
    monkeypatch.setattr(cubin, "find_ptxas", lambda: None)
    jobs(1)
    program = api.compile_to("cubin", _function, ["f32[64]"], device("sm_90a"), Options())
    assert {kernel.machine_code for kernel in program.kernels} == {None}


def test_kernels_that_are_kept_are_not_compiled_again(jobs, monkeypatch, tmp_path):
    monkeypatch.setenv("XGPU_CACHE", "on")
    monkeypatch.setenv("XGPU_CACHE_DIR", str(tmp_path))
    jobs(2)
    expected = [kernel.ptx for kernel in _compiled().kernels]
    monkeypatch.setattr(parallel, "_Worker", lambda: pytest.fail("a process was started"))
    assert [kernel.ptx for kernel in _compiled().kernels] == expected


@pytest.fixture
def no_nursery(monkeypatch):
    """Have it as in a process that has started no other."""
    monkeypatch.setattr(nursery, "_nursery", None)
    yield
    nursery._end()


def test_small_programs_start_no_process(jobs, monkeypatch, no_nursery):
    jobs(64)
    monkeypatch.setattr(parallel, "_Worker", lambda: pytest.fail("a process was started"))
    assert ".entry" in xgpu.compile(lambda x: jnp.sort(x + 1) + 2, "f32[64]").kernels[1].ptx


def test_small_programs_use_processes_where_they_take_no_time_to_start(jobs, elsewhere, no_nursery):
    jobs(3)
    nursery.nursery().start().end()
    assert nursery.is_nursery_ready()
    program = xgpu.compile(lambda x: jnp.sort(jnp.sort(x + 1) + 2) + 3, "f32[64]")
    assert len(program.kernels) == 3
    assert all(kernel.built is not None for kernel in program.kernels)


@pytest.mark.parametrize(("cores", "count"), [(2, 10), (2, 200), (16, 10)])
def test_processes_are_ready_for_large_programs_and_where_cores_are_idle(jobs, monkeypatch, no_nursery, cores, count):
    def grows(x):
        for number in range(count):
            x = jnp.sin(x) + number
        return x

    def planned(*given):
        seen.append(nursery.has_nursery())
        return plan(*given)

    seen, plan = [], api.plan_program
    monkeypatch.setattr(api, "plan_program", planned)
    jobs(cores)
    xgpu.compile(grows, "f32[64]")
    assert seen == [cores > 2 or count > 100]


def test_a_nursery_that_has_ended_is_replaced(jobs, no_nursery, elsewhere):
    jobs(2)
    first = nursery.nursery()
    first.start().end()
    os.kill(first._process.pid, signal.SIGKILL)
    with pytest.raises(OSError, match="no process can be started"):
        first.start()
    first._process.wait()
    assert all(".entry" in kernel.ptx for kernel in _compiled().kernels)
    assert nursery.nursery() is not first


def test_a_process_that_was_forked_has_a_nursery_of_its_own():
    code = """
import os
from xgpu.driver.nursery import has_nursery, nursery
mine = nursery()
child = os.fork()
if not child:
    nursery().start().end()
    os._exit(0 if nursery() is not mine else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert has_nursery() and nursery() is mine
mine.start().end()
"""
    # It has no threads, as one that has imported JAX would.
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, found.stderr) == (0, "")


def test_the_nursery_has_one_thread(no_nursery):
    """Otherwise it could not be forked."""
    process = nursery.nursery().start()
    assert len(os.listdir(f"/proc/{nursery.nursery()._process.pid}/task")) == 1
    process.end()
    assert process.wait() == -signal.SIGKILL


def test_jit_on_the_host(jobs):
    jobs(2)
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    np.testing.assert_allclose(xgpu.jit(_function)(x), jax.jit(_function)(x), rtol=1e-5)


@pytest.mark.parametrize(
    "error",
    [
        Unsupported("stablehlo.foo: no", SourceLocation("x.py", 3, 4)),
        InvalidInput("no"),
        CompilerError("a pass failed"),
        CompilerError("a pass failed", SourceLocation("x.mlir", 3, 4)),
        ValueError("bad"),
    ],
)
def test_errors_come_back(error):
    from xgpu.driver.compile_worker import _described

    again = parallel._error(_described(error))
    assert type(again) is (CompilerError if isinstance(error, ValueError) else type(error))
    assert str(again) == ("ValueError: bad" if isinstance(error, ValueError) else str(error))


def test_this_process_compiles_while_others_start(jobs, monkeypatch):
    class Slow(parallel._Worker):
        def _start(self):
            ready.wait()
            return super()._start()

    ready = threading.Event()
    compile_here, here = parallel._compile_here, []

    def counted(*given):
        here.append(compile_here(*given))
        if len(here) == 5:
            ready.set()
        return here[-1]

    jobs(2)
    monkeypatch.setattr(parallel, "_Worker", Slow)
    monkeypatch.setattr(parallel, "_compile_here", counted)
    program = _compiled()
    compiled_here = [kernel for kernel in program.kernels if kernel.built is None]
    assert len(compiled_here) >= 5
    assert all("compiled" in vars(kernel) for kernel in program.kernels), "to PTX, here too"


def test_the_longest_kernels_are_compiled_first(jobs, monkeypatch):
    def growing(x):
        for number in range(1, 14):
            for _ in range(number):
                x = jnp.sin(x) * x
            x = jnp.sort(x)
        return x

    class Worker(parallel._Worker):
        def _start(self):
            return False

    compile_here, order = parallel._compile_here, []

    def noted(*given):
        done = compile_here(*given)
        order.extend(done[:1] if done else ())
        return done

    jobs(2)
    monkeypatch.setattr(parallel, "_Worker", Worker)
    monkeypatch.setattr(parallel, "_compile_here", noted)
    kernels = xgpu.compile(growing, "f32[64]").kernels
    lines = [str(kernels[number].module("emitted")).count("\n") for number in order]
    assert len(order) == len(kernels) == 13
    assert lines == sorted(lines, reverse=True)


def test_few_kernels_that_take_long(jobs, request):
    jobs(2)
    kernels = xgpu.compile(_function, "f32[64]").kernels
    fresh = [ProgramKernel(k.name, k.device, k.options, [], {"emitted": k.modules["emitted"]}) for k in kernels[:4]]
    request.getfixturevalue("elsewhere")
    assert list(compile_each(fresh, "ptx", 2)) == []
    assert [kernel.ptx for kernel in fresh] == [kernel.ptx for kernel in kernels[:4]]


def test_the_first_error_of_the_program_is_raised(jobs, monkeypatch):
    jobs(1)
    kernels = xgpu.compile(_function, "f32[64]").kernels
    fresh = [ProgramKernel(k.name, k.device, k.options, [], {"emitted": k.modules["emitted"]}) for k in kernels]
    request = parallel._request

    def broken(kernel, level):
        return request(kernel, level) if kernel.name not in ("function_fusion_5", "function_fusion_11") else b"{}\n"

    jobs(2)
    monkeypatch.setattr(parallel, "_request", broken)
    monkeypatch.setattr(parallel, "_compile_here", lambda *given: None)
    with pytest.raises(CompilerError, match="KeyError: 'emitted'"):
        compile_kernels(fresh, "ptx")
    again = [ProgramKernel(k.name, k.device, k.options, [], {"emitted": k.modules["emitted"]}) for k in kernels]
    failed = [(kernel.name, error.message) for kernel, error in compile_each(again, "ptx")]
    assert failed == [(f"function_fusion_{number}", "KeyError: 'emitted'") for number in (5, 11)]
    done = [kernel.built is not None for kernel in fresh]
    assert done == [kernel.name not in ("function_fusion_5", "function_fusion_11") for kernel in fresh]


def _ending_by(monkeypatch, number, times):
    """Have a signal sent to the process that gets the first request, before it does, each time, up to ``times``."""
    sent, fatal = [], []

    class Worker(parallel._Worker):
        def _send(self, process, request):
            fatal[:] = fatal or [request]
            if request == fatal[0] and len(sent) < times:
                sent.append(number)
                process.send_signal(number)
            super()._send(process, request)

    monkeypatch.setattr(parallel, "_Worker", Worker)
    return sent


def test_a_process_that_is_killed_is_replaced(jobs, monkeypatch, elsewhere):
    jobs(2)
    sent = _ending_by(monkeypatch, signal.SIGKILL, 1)
    assert all(".entry" in kernel.ptx for kernel in _compiled().kernels)
    assert len(sent) == 1


def test_a_process_that_is_stopped_is_replaced(jobs, monkeypatch, elsewhere):
    jobs(2)
    monkeypatch.setattr(parallel, "_WATCH_SECONDS", 0.2)
    monkeypatch.setattr(parallel, "_STALLED_SECONDS", 5.0)
    sent = _ending_by(monkeypatch, signal.SIGSTOP, 1)
    assert all(".entry" in kernel.ptx for kernel in _compiled().kernels)
    assert len(sent) == 1


def test_a_kernel_that_ends_every_process_is_an_error(jobs, monkeypatch, elsewhere):
    jobs(2)
    sent = _ending_by(monkeypatch, signal.SIGKILL, 100)
    with pytest.raises(CompilerError, match=r"kernel function_fusion_\d+: the process .* ended, 2 times: signal 9"):
        _compiled()
    assert len(sent) == 2, "no other kernel's process was ended"


@pytest.mark.parametrize("given", ["many", "0", "-2"])
def test_jobs_must_be_a_number(jobs, given):
    jobs(given)
    with pytest.raises(InvalidInput, match=f"XGPU_JOBS={given}: expected a number of processes"):
        _compiled()


class _Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress(jobs, monkeypatch, is_terminal):
    jobs(2)
    monkeypatch.setattr(parallel, "_SILENT_SECONDS", 0.0)
    stderr = _Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    _compiled()
    text = stderr.getvalue()
    assert (f"\rxgpu: compiled {COUNT - 1} of {COUNT} kernels" in text) == is_terminal
    assert text.endswith("\r") == is_terminal


def _children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in found.splitlines()]
    below, pending = [], [pid]
    while pending:
        parent = pending.pop()
        children = [child for child, above in pairs if above == parent]
        below += children
        pending += children
    return below


def _is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_process_ends_when_nobody_asks_it_any_more(no_nursery):
    process = nursery.nursery().start()
    process.stdin.close()
    assert process.wait() == 0


def test_a_process_whose_answers_nobody_reads_ends(no_nursery):
    process = nursery.nursery().start()
    process.stdout.close()
    process.stdin.write(b"{}\n")
    process.stdin.flush()
    assert process.wait() == 0


def test_an_interrupt_leaves_no_process_behind(tmp_path):
    layers = "\n".join(f"        x = jnp.sort(jnp.sin(x + {number}) * jnp.arange(64.0))" for number in range(200))
    path = tmp_path / "many.py"
    path.write_text(f"import jax.numpy as jnp\n\ndef f(x):\n    if True:\n{layers}\n    return x\n")
    command = [sys.executable, "-m", "xgpu.cli.main", "compile", f"{path}:f", "--arg", "f32[64]"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"XGPU_JOBS": "3"},
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while len(children := _children(process.pid)) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(children) == 4, "the command, two processes that compile, and the one they are forked from"
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")
    deadline = time.monotonic() + 10
    while any(map(_is_running, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_is_running, children))


def test_kernels_of_a_later_level_are_compiled_here(jobs):
    jobs(1)
    text = "\n// -----\n".join([_compiled().kernels[0].text("lowered")] * 20)
    jobs(2)
    assert ".entry" in xgpu.compile(text).kernels[19].ptx


@pytest.mark.parametrize("executable", ["/nonexistent/python", "/bin/false", "/bin/echo", "", None])
def test_where_no_process_can_be_started_this_one_compiles(jobs, monkeypatch, no_nursery, executable):
    jobs(2)
    monkeypatch.setattr(sys, "executable", executable)
    assert ".entry" in _compiled().kernels[3].ptx


def test_programs_without_stderr(jobs, monkeypatch):
    jobs(2)
    monkeypatch.setattr(sys, "stderr", None)
    assert len(_compiled().kernels) == COUNT


def test_an_error_while_processes_start_leaves_none(jobs, monkeypatch):
    jobs(3)
    started = []

    class Worker(parallel._Worker):
        def __init__(self):
            if started:
                raise KeyboardInterrupt
            super().__init__()
            started.append(self)

    monkeypatch.setattr(parallel, "_Worker", Worker)
    with pytest.raises(KeyboardInterrupt):
        _compiled()
    assert started[0]._is_over
    assert started[0]._process is None
