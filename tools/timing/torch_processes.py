"""Times of torch's functions, each group of them in a process beside this one: see `torch_worker`.

Processes compile beside each other, and beside this one; they measure one after the other, when nothing else runs on
the GPU.
"""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORKER = Path(__file__).with_name("torch_worker.py")
_COMPILERS = "4"
"""Processes in which one of them has Triton compile kernels."""


@dataclass
class _Worker:
    name: str
    process: subprocess.Popen[str]
    lines: queue.SimpleQueue[str | None] = field(default_factory=queue.SimpleQueue)

    def read(self) -> None:
        """Put lines of the output into the queue, and None after the last."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put(None)

    def until(self, end: float) -> Iterator[str]:
        """Yield lines as long as there are any; raises TimeoutError after the time ``end``."""
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise TimeoutError from None
            if line is None:
                return
            yield line

    def say(self, text: str) -> None:
        """Write a line to the input, if anyone reads it."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(f"{text}\n")
            self.process.stdin.flush()


class TorchProcesses:
    """Groups of cases, by any names, that processes of torch compile and then measure.

    Used as a context, at whose end no process is left.
    """

    def __init__(self, groups: Mapping[str, Sequence[Mapping[str, Any]]], seconds: float):
        """Start them. Those not compiled in so many seconds are not measured."""
        self._end = time.monotonic() + seconds
        environment = os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": _COMPILERS}
        self._workers = [self._start(name, cases, seconds, environment) for name, cases in groups.items() if cases]

    def _start(
        self, name: str, cases: Sequence[Mapping[str, Any]], seconds: float, environment: Mapping[str, str]
    ) -> _Worker:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, "-P", str(WORKER)],
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        worker = _Worker(name, process)
        threading.Thread(target=worker.read, daemon=True).start()
        worker.say(json.dumps({"seconds": seconds, "cases": list(cases)}))
        return worker

    def __enter__(self) -> "TorchProcesses":
        return self

    def __exit__(self, *error: object) -> None:
        for each in self._workers:
            each.process.kill()
            each.process.wait()

    def wait(self, more: float = 10.0) -> None:
        """Return when all have compiled; those that have not ``more`` seconds after their time are ended."""
        ready = []
        for each in self._workers:
            what = "torch ended"
            try:
                for line in each.until(self._end + more):
                    if line == "ready":
                        ready.append(each)
                        break
                    what = str(json.loads(line).get("missing", what)) if line.startswith("{") else what
            except TimeoutError:
                what = "it compiles for too long"
            if each not in ready:
                print(f"torch, {each.name}: not measured: {what}", flush=True)
                each.process.kill()
        self._ready = ready

    def measure(self, seconds: float) -> dict[str, dict[str, Any]]:
        """Return what each case's line says, by the case's name, of those measured in so many seconds."""
        end, found = time.monotonic() + seconds, {}
        for each in self._ready:
            each.say("measure")
            try:
                for line in each.until(end):
                    if line.startswith("{"):
                        one = json.loads(line)
                        found[one.pop("name")] = one
            except TimeoutError:
                print(f"torch, {each.name}: {seconds:.0f} s were over", flush=True)
                each.process.kill()
        for name, one in found.items():
            if "error" in one:
                print(f"torch, {name}: FAILED: {one['error']}", flush=True)
        return found
