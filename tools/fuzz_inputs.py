"""Feeds mutated programs to the commands and to Python, and reports what ends in neither a result nor a diagnostic."""

import argparse
import contextlib
import math
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from xgpu import compile as compile_program
from xgpu import ir
from xgpu.cli.main import main as xgpu_main
from xgpu.cli.opt.main import main as xgpu_opt_main
from xgpu.cli.process import exit_code
from xgpu.device import DEFAULT_DEVICE, DEVICES, device
from xgpu.interface.api import compile_to
from xgpu.levels import pipeline
from xgpu.options import Options
from xgpu.target_machine import HOST, NVVM
from xgpu.tools.fuzzing.generate import generate
from xgpu.tools.fuzzing.mutate import mutate
from xgpu.tools.fuzzing.worker import Worker, WorkerDied

_SECONDS_PER_CASE = 120
_MEMORY = 4 << 30
# What a process keeps of earlier cases must not count as the memory of a later one.
_CASES_PER_PROCESS = 500

_GRAPHS = range(12)
"""Seeds of random graphs in the corpus."""
_LONGEST = 12_000

_TESTS = Path(__file__).resolve().parent.parent / "tests"
_LOOPS = _TESTS.parent / "examples" / "loops"
_RUN = re.compile(r"^// RUN: (?:not )?(xgpu-opt|xgpu compile) (.*?)(?: 2?[|><&].*)?$", re.MULTILINE)
_PASSES = re.compile(r"(?:-p|--pass-pipeline)[ =]('[^']*'|\S+)")
_LEVEL = re.compile(r'xgpu\.level = "(\w+)"')
_SPLIT = "// -----\n"
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)|internal error")
_TRACEBACK_OF_PASS = re.compile(r"failed: \w*(?:Error|Exception)\b[^\n]*")
# What xgpu-opt is given need not be what a pass takes; a program of xgpu compile's must be.
_WRONG_PASS = re.compile(r"pass '[^\n]*' failed|while running pass '")
_MOST_ELEMENTS = 1 << 16
"""Elements of all arrays of a program that is run."""


@dataclass(frozen=True)
class Text:
    """A text to mutate, the suffix of its file, and the pass pipelines it is known to go with."""

    name: str
    text: str
    suffix: str
    pipelines: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A command line, with ``FILE`` for the input, and the input. ``python`` is no command but the Python interface."""

    command: tuple[str, ...]
    text: str
    suffix: str

    def __str__(self) -> str:
        return " ".join(f"'{word}'" if re.search(r"[^\w./,-]", word) else word for word in self.command)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a command."""

    code: int
    stderr: str


def corpus() -> list[Text]:
    """Return the texts to start from: the tests' inputs, programs of loops, and a few random programs."""
    texts = []
    for path in sorted((*_TESTS.glob("data/*.*"), *_TESTS.glob("lit/**/*.mlir"))):
        whole = path.read_text()
        pipelines = tuple(
            match.group(1).strip("'") for run in _RUN.finditer(whole) for match in _PASSES.finditer(run.group(2))
        )
        for i, part in enumerate(whole.split(_SPLIT)):
            texts.append(Text(f"{path.name}:{i}", part, path.suffix, pipelines))
    for path in sorted(_TESTS.glob("lit/emit/**/*.mlir")):
        texts += [Text(f"{path.name} at level {level}", text, ".mlir", ()) for level, text in _plans(path)]
    for path in sorted(_LOOPS.glob("*.te")):
        texts += _levels_of_loops(path)
    for seed in _GRAPHS:
        texts += _levels_of(seed)
    return [text for text in texts if len(text.text) < _LONGEST]


def _plans(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the program of a test of the emitters, of which there are some for each, at level ``fusions``.

    And its kernels at levels that few have: random programs are not at them.
    """
    compiled = compile_to(None, path, (), device(DEFAULT_DEVICE), Options())
    yield "fusions", compiled.ir("fusions")
    for level in (each.name for each in pipeline.GRAPH.levels if each.is_of_some):
        for kernel in compiled.kernels:
            if level in kernel.modules:
                yield level, kernel.text(level)


def _levels_of_loops(path: Path) -> Iterator[Text]:
    """Yield a program of the loop language, and at the levels that it has alone."""
    yield Text(path.name, path.read_text(), path.suffix, ())
    compiled = compile_program(path)
    for level in ("loops", "mapped"):
        yield Text(f"{path.name} at level {level}", compiled.ir(level), ".mlir", ())


def _levels_of(seed: int) -> Iterator[Text]:
    """Yield a random graph's program at all levels that are accepted back: at one alone, if it has no kernels."""
    program = generate(seed).text()
    yield Text(f"graph {seed}", program, ".mlir", ())
    compiled = compile_program(program)
    if not compiled.kernels:
        return
    for level in pipeline.MLIR_LEVELS[1:]:
        if pipeline.GRAPH.level(level).is_of_some:
            continue
        for kernel in compiled.ir(level).split(_SPLIT):
            yield Text(f"graph {seed} at level {level}", kernel, ".mlir", ())


_OF_PROGRAMS = (
    *(("xgpu", "compile", "FILE", "--emit", level) for level in ("ptx", "ptx", "emitted", "llvm")),
    *(("python", "compile", "FILE"), ("python", "run", "FILE"), ("xgpu", "explain", "FILE")),
)


def case_of_seed(seed: int, texts: Sequence[Text]) -> Case:
    """Return the case of a seed: always the same for the same corpus."""
    generator = random.Random(f"inputs {seed}")
    chosen = _any_of(generator, texts)
    text = mutate(generator, chosen.text, [other.text for other in texts])
    is_program = chosen.suffix in (".hlo", ".te") or "stablehlo." in chosen.text or "xgpu.level" in chosen.text
    if is_program or generator.random() < 0.3:
        return Case(generator.choice(_OF_PROGRAMS), text, chosen.suffix)
    return Case(("xgpu-opt", "FILE", "-p", _pipeline(generator, chosen)), text, chosen.suffix)


def _any_of(generator: random.Random, texts: Sequence[Text]) -> Text:
    """Return any text, or in half of the cases one of any level: all levels are as frequent."""
    levels = {match.group(1): None for text in texts if (match := _LEVEL.search(text.text))}
    if not levels or generator.random() < 0.5:
        return generator.choice(texts)
    level = generator.choice(list(levels))
    return generator.choice([text for text in texts if f'xgpu.level = "{level}"' in text.text])


def _pipeline(generator: random.Random, text: Text) -> str:
    chance = generator.random()
    if text.pipelines and chance < 0.7:
        return generator.choice(text.pipelines)
    machine, gpu = generator.choice((NVVM, HOST)), device(generator.choice(list(DEVICES)))
    with ir.make_context():
        stages = (
            pipeline.prepare(gpu, Options(deterministic=generator.random() < 0.5)),
            pipeline.optimize(gpu),
            pipeline.lower(),
            pipeline.to_llvm(machine, gpu),
        )
    first = 0 if "stablehlo." in text.text else generator.randrange(1, len(stages))
    passes = [step for stage in (stages[:1] if first == 0 else stages[first:]) for step in stage]
    return ",".join(str(step) for step in passes[: generator.randint(1, 2 * len(passes))])


def run_case(case: Case) -> Outcome:
    """Run a case's command in this process; what it writes goes to files."""
    with tempfile.TemporaryDirectory() as folder, _redirected(Path(folder)) as stderr:
        path = Path(folder, f"input{case.suffix}")
        path.write_bytes(case.text.encode(errors="surrogatepass"))
        arguments = [str(path) if word == "FILE" else word for word in case.command[1:]]
        code = _MAINS[case.command[0]](arguments)
        return Outcome(code, stderr.read_text(errors="replace"))


def _call_python(arguments: Sequence[str]) -> int:
    """Do what ``compile`` or ``run`` in ``arguments`` says with a file; returns 1 after an error, which is reported."""

    def body() -> int:
        what, path = arguments
        program = compile_program(Path(path))
        arrays = (*program.arguments, *program.results)
        # Kernels of later levels may have become ones that write anywhere, and loops ones without end.
        is_harmless = program.has_program and "while" not in program.ir("stablehlo")
        if what == "run" and is_harmless and sum(math.prod(spec.shape) for spec in arrays) <= _MOST_ELEMENTS:
            program.run(*program.random_inputs())
        return 0

    return exit_code("python", body)


_MAINS: dict[str, Callable[[Sequence[str]], int]] = {
    "xgpu": xgpu_main,
    "xgpu-opt": xgpu_opt_main,
    "python": _call_python,
}


@contextlib.contextmanager
def _redirected(folder: Path) -> Iterator[Path]:
    """Send stdout and stderr, also those of native code, to files in ``folder`` meanwhile; yields that of stderr."""
    saved = [os.dup(number) for number in (1, 2)]
    paths = [folder / "stdout", folder / "stderr"]
    for number, path in zip((1, 2), paths, strict=True):
        file = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    try:
        yield paths[1]
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def complaint(case: Case, outcome: Outcome) -> str | None:
    """Return what is wrong with how a command ended, or None."""
    if outcome.code not in (0, 1, 2):
        return f"exit code {outcome.code}"
    if match := _TRACEBACK.search(outcome.stderr):
        return f"{match.group()}: {outcome.stderr[match.start() :].strip()[-300:]}"
    if outcome.code == 1 and not outcome.stderr.strip():
        return "exit code 1 without a diagnostic"
    if match := _TRACEBACK_OF_PASS.search(outcome.stderr):
        return f"an internal error in a pass: {match.group()[-300:]}"
    if case.command[0] != "xgpu-opt" and _WRONG_PASS.search(outcome.stderr):
        return f"a pass made invalid IR: {outcome.stderr.strip()[:300]}"
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the cases of consecutive seeds; print a line per failure and keep its input. Returns 1 if there was one."""
    parser = argparse.ArgumentParser("fuzz_inputs", description=__doc__)
    parser.add_argument("--cases", type=int, default=200, metavar="N", help="how many inputs to try; 200 if left out")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the first input; the next has S + 1")
    parser.add_argument("--suffix", default="", help="only inputs from texts of such files: .te, say")
    parser.add_argument("--seconds", type=float, default=_SECONDS_PER_CASE, help="that a case may take")
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="folder of the inputs that fail")
    arguments = parser.parse_args(argv)
    start, failures = time.perf_counter(), 0
    texts = [text for text in corpus() if text.suffix.endswith(arguments.suffix)]
    for first in range(0, arguments.cases, _CASES_PER_PROCESS):
        with Worker(arguments.seconds, _MEMORY) as worker:
            for number in range(first, min(first + _CASES_PER_PROCESS, arguments.cases)):
                seed = arguments.seed + number
                case = case_of_seed(seed, texts)
                wrong = _wrong(worker, case)
                if wrong:
                    failures += 1
                    print(f"FAIL seed {seed}: {case} < {_keep(arguments.keep, seed, case)}: {wrong}", flush=True)
    seconds = time.perf_counter() - start
    print(f"{arguments.cases - failures} of {arguments.cases} inputs end well, {seconds:.0f} s")
    return 1 if failures else 0


def _wrong(worker: Worker, case: Case) -> str | None:
    try:
        return complaint(case, worker.call(run_case, case))
    except WorkerDied as death:
        return str(death)


def _keep(folder: Path, seed: int, case: Case) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"input_{seed}{case.suffix}"
    path.write_bytes(case.text.encode(errors="surrogatepass"))
    return path


if __name__ == "__main__":
    sys.exit(main())
