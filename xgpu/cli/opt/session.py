"""One run of ``xgpu-opt``: its input parsed, verified, put through the passes and printed, part by part."""

import argparse
import re
import shlex
import time
from collections.abc import Iterator
from typing import Literal, cast

from xgpu import ir
from xgpu.cli import diagnostics
from xgpu.cli.diagnostics import Diagnostic, Sources
from xgpu.cli.opt.expectations import disagreements
from xgpu.cli.opt.list_passes import pass_list
from xgpu.cli.process import DONE, WRONG_INPUT, UsageError, doing, doing_step, report, report_cause
from xgpu.cli.text import name_of_file, read_text, write_text
from xgpu.cli.timing import timing_table
from xgpu.dialects.input_checks import input_problems
from xgpu.errors import CompilerError, InvalidInput, XgpuError
from xgpu.frontend.mlir_text import check_mlir_text
from xgpu.hlo.source_location import source_of
from xgpu.passes.framework import manager, registry
from xgpu.passes.framework.manager import MlirPass, Step
from xgpu.passes.framework.remarks import Remark

PROGRAM = "xgpu-opt"
_OTHER_LANGUAGES = re.compile(r".*\.(py(:\w*)?|te|hlo)", re.DOTALL)
_SEPARATOR = "// -----\n"
_SEPARATOR_LINE = re.compile(r"^// -----[ \t\r]*(?:\n|\Z)", re.MULTILINE)
_MAX_PIPELINE_DEPTH = 50
_REFUSED = {"inline": "MLIR's crashes on operations with regions that it does not know; xgpu's 'inline' does not"}
"""Passes of MLIR's that crash the process on ordinary input, and why. Passes of xgpu go before MLIR's of that name."""


class _Stop(Exception):
    """A part of the input cannot go on; its diagnostics are out."""


class Session:
    """The options of the command line, for every part of the input."""

    def __init__(self, options: argparse.Namespace):
        self._options = options
        self._name = name_of_file(options.file)
        self._times: dict[str, float] = {}
        self._sources = Sources(self._name)
        self._diagnostics: list[Diagnostic] = []

    def run(self) -> int:
        """Do what the options say and return the exit code."""
        manager.announce_to(doing_step)
        if self._options.list_passes:
            write_text(self._options.output, pass_list())
            return DONE
        with ir.make_context():
            _parse_pipeline(self._options.pipeline)
            for names in (self._options.print_ir_before, self._options.print_ir_after):
                _check_pass_names(names)
        _check_language(self._options.file)
        text = read_text(self._options.file)
        self._sources = Sources.of_text(self._name, text)
        outputs = [self._output_of(part, line) for part, line in self._parts(text)]
        succeeded = self._verify_expectations() if self._options.verify_diagnostics else None not in outputs
        if succeeded or self._options.output == "-":
            write_text(self._options.output, _SEPARATOR.join(output for output in outputs if output is not None))
        if self._options.mlir_timing:
            report(timing_table(list(self._times.items())))
        return DONE if succeeded else WRONG_INPUT

    def _parts(self, text: str) -> Iterator[tuple[str, int]]:
        """The inputs in ``text``, each with the number of lines before it."""
        start = 0
        if self._options.split_input_file:
            for match in _SEPARATOR_LINE.finditer(text):
                yield text[start : match.start()], text.count("\n", 0, start)
                start = match.end()
        yield text[start:], text.count("\n", 0, start)

    def _output_of(self, text: str, lines_before: int) -> str | None:
        """Return the result for one part of the input, or None if there is none; diagnostics are emitted."""
        context = ir.make_context()
        handler = cast(ir.DiagnosticHandler, context.attach_diagnostic_handler(self._handle))
        try:
            with context, ir.Location.unknown():
                doing(f"reading {self._name}")
                with _Timer(self._times, "Parser"):
                    module = self._parse("\n" * lines_before + text)
                self._run_passes(module)
                doing(f"printing the result for {self._name}")
                with _Timer(self._times, "Output"):
                    return self._print(module) + "\n"
        except _Stop:
            return None
        except XgpuError as error:
            self._emit(diagnostics.from_error(error, self._sources))
            report_cause(error)
            return None
        finally:
            handler.detach()

    def _parse(self, text: str) -> ir.Module:
        check_mlir_text(text, self._name)
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError as error:
            self._emit_all(error)
            raise _Stop from None
        found = input_problems(module)
        for problem in found:
            self._emit(Diagnostic("error", problem.message, self._sources.named(source_of(problem.op))))
        if found:
            raise _Stop
        return module

    def _run_passes(self, module: ir.Module) -> None:
        current: list[Step] = []
        options = self._options

        def before(step: Step, module: ir.Module) -> None:
            current[:] = [step]
            if options.print_ir_before_all or _is_named(step, options.print_ir_before):
                self._dump("Before", step, module)

        def after(step: Step, module: ir.Module) -> None:
            if options.print_ir_after_all or _is_named(step, options.print_ir_after):
                self._dump("After", step, module)

        verify: Literal["each", "never"] = "each" if options.verify_each in ("true", "1") else "never"
        split = " --split-input-file" if options.split_input_file else ""
        remark = self._remark if options.remarks else None
        instrumentation = manager.Instrumentation(before, after, verify, f"xgpu-opt {options.file}{split}", remark)
        try:
            manager.run(module, _parse_pipeline(options.pipeline), instrumentation)
        except CompilerError as error:
            if not isinstance(error.__cause__, ir.MLIRError):
                raise
            *_, repeat = str(error).splitlines()
            self._emit_all(error.__cause__, f"while running pass '{current[0]}'; {repeat}")
            raise _Stop from None
        finally:
            for name, seconds in instrumentation.times:
                self._times[name] = self._times.get(name, 0.0) + seconds

    def _print(self, module: ir.Module) -> str:
        debug_info = self._options.mlir_print_debuginfo
        generic = self._options.mlir_print_op_generic
        asm = module.operation.get_asm(enable_debug_info=debug_info, print_generic_op_form=generic)
        text = str(asm).rstrip("\n")
        return self._sources.in_text(text) if debug_info else text

    def _dump(self, when: str, step: Step, module: ir.Module) -> None:
        report(f"// -----// IR Dump {when} {step} //----- //\n{self._print(module)}\n")

    def _remark(self, made: Remark) -> None:
        self._emit(diagnostics.from_remark(made, self._sources))

    def _handle(self, info: ir.Diagnostic) -> bool:
        self._emit(diagnostics.from_mlir(info, self._sources))
        return True

    def _emit_all(self, error: ir.MLIRError, note: str | None = None) -> None:
        found = [diagnostics.from_mlir(info, self._sources) for info in error.error_diagnostics]
        if not found:
            found = [Diagnostic("error", str(error))]
        for diagnostic in found:
            self._emit(diagnostic.with_note(note) if note else diagnostic)

    def _emit(self, diagnostic: Diagnostic) -> None:
        self._diagnostics.append(diagnostic)
        if not self._options.verify_diagnostics:
            report(diagnostics.render(diagnostic, self._sources, PROGRAM))

    def _verify_expectations(self) -> bool:
        lines = self._sources.texts[self._name]
        wrong = disagreements(lines, self._name, self._diagnostics)
        for diagnostic in wrong:
            report(diagnostics.render(diagnostic, self._sources, PROGRAM))
        return not wrong


class _Timer:
    """Adds the time that its block takes to ``times[name]``."""

    def __init__(self, times: dict[str, float], name: str):
        self._times, self._name = times, name

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *exception: object) -> None:
        self._times[self._name] = self._times.get(self._name, 0.0) + time.perf_counter() - self._start


def _check_language(file: str) -> None:
    """Raise InvalidInput for a program that is no MLIR text yet, by the ending of its file's name."""
    if _OTHER_LANGUAGES.fullmatch(file):
        raise InvalidInput(
            f"'{file}' is no MLIR text; xgpu compile makes such of it:"
            f" xgpu compile {shlex.quote(file)} --emit LEVEL | {PROGRAM} -p PASSES"
        )


def _parse_pipeline(text: str | None) -> list[Step]:
    """Return the steps of a pipeline given on the command line."""
    text = text or ""
    depth = 0
    for character in text:
        depth += (character in "({") - (character in ")}")
        if depth > _MAX_PIPELINE_DEPTH:
            raise UsageError(f"the pipeline's brackets nest deeper than {_MAX_PIPELINE_DEPTH}")
    try:
        steps = registry.parse_pipeline(text)
    except InvalidInput as error:
        raise UsageError(error.message) from None
    for step in steps:
        for name in _names(step) if isinstance(step, MlirPass) else ():
            if name in _REFUSED:
                raise UsageError(f"pass '{name}' cannot be run: {_REFUSED[name]}")
    return steps


def _names(step: Step) -> list[str]:
    """The names in a step: its pass, or those of a nested pipeline."""
    return re.findall(r"[\w.-]+", step.text) if isinstance(step, MlirPass) else [step.NAME]


def _is_named(step: Step, names: str) -> bool:
    return any(name.strip() in _names(step) for name in names.split(","))


def _check_pass_names(names: str) -> None:
    for name in filter(None, (name.strip() for name in names.split(","))):
        if registry.pass_class(name) is None and not manager.is_mlir_pass(name):
            raise UsageError(registry.unknown_pass(name))
