"""xgpu-opt's messages, exit codes and files; what it prints for right input is tested in tests/lit/pipeline."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xgpu.frontend.mlir_text import MAX_NESTING

EMPTY = "module {\n}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--no-such"], "unrecognized arguments: --no-such; see xgpu-opt --help"),
        (["--split"], "unrecognized arguments: --split; see xgpu-opt --help"),
        (["-p"], "argument -p: expected one argument; see xgpu-opt --help"),
        (["-p", "cse", "--pass-pipeline=cse"], "argument --pass-pipeline: not allowed with argument -p"),
        (["--verify-each=maybe"], "argument --verify-each: invalid choice: 'maybe' (choose from"),
        (["a.mlir", "b.mlir"], "unrecognized arguments: b.mlir"),
        (["-p", "no-such"], "unknown pass 'no-such'; xgpu-opt --list-passes lists all"),
        (["-p", "set-lvel"], "unknown pass 'set-lvel' (did you mean 'set-level'?); xgpu-opt --list-passes lists all"),
        (["-p", "set-level{depth=3}"], "pass 'set-level' has no option 'depth'; its options: level"),
        (["-p", "lower-to-llvm{target=x}"], "pass 'lower-to-llvm', option 'target': expected nvvm|host, got 'x'"),
        (["-p", "split-reductions{target=x}"], "pass 'split-reductions', option 'target': expected sm_80|sm_86|"),
        (["-p", "select-branches{target=x}"], "pass 'select-branches', option 'target': expected sm_80|sm_86|"),
        (["-p", "set-level{level=a level=b}"], "pass 'set-level': option 'level' is given twice"),
        (["-p", "cse,,cse"], "pipeline 'cse,,cse': expected a pass name between the commas"),
        (["-p", "cse)"], "pipeline 'cse)': unbalanced ')' at column 4"),
        (["--pass-pipeline=builtin.module(cse"], "pipeline 'builtin.module(cse': a bracket is not closed"),
        (["-p", "func.func(" * 1000 + ")" * 1000], "the pipeline's brackets nest deeper than 50"),
        (["-p", "func.fun(cse)"], "pipeline 'func.fun(cse)': there is no operation 'func.fun' to run passes in"),
        (["-p", "any(inline)"], "pass 'inline' cannot be run: MLIR's crashes"),
        (["-p", "cannonicalize"], "unknown pass 'cannonicalize' (did you mean 'canonicalize'?)"),
        (["-p", "mark-products{target=sm_9}"], "pass 'mark-products', option 'target': expected sm_80|"),
        (["-p", "cse", "--print-ir-after=no-such"], "unknown pass 'no-such'"),
        (["-p", "cse", "--print-ir-before=no-such"], "unknown pass 'no-such'"),
    ],
)
def test_wrong_usage(opt: Callable[..., Any], arguments: list[str], message: str) -> None:
    outcome = opt(*arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith(f"xgpu-opt: error: {message}")
    assert outcome.err.count("\n") == 1


def test_help_is_no_error(opt: Callable[..., Any]) -> None:
    outcome = opt("--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert "--verify-diagnostics" in outcome.out


@pytest.mark.parametrize("file", ["program.py:function", "program.py", "program.py:", "a program.te", "program.hlo"])
def test_programs_of_other_languages(opt: Callable[..., Any], file: str) -> None:
    outcome = opt(file, "-p", "cse")
    assert (outcome.code, outcome.out) == (1, "")
    quoted = f"'{file}'" if " " in file else file
    assert outcome.err == (
        f"xgpu-opt: error: '{file}' is no MLIR text; xgpu compile makes such of it:"
        f" xgpu compile {quoted} --emit LEVEL | xgpu-opt -p PASSES\n"
    )


def test_files_that_cannot_be_read(opt: Callable[..., Any], tmp_path: Path) -> None:
    missing = tmp_path / "missing.mlir"
    assert opt(missing) == (1, "", f"xgpu-opt: error: cannot read '{missing}': No such file or directory\n")
    assert opt(tmp_path) == (1, "", f"xgpu-opt: error: cannot read '{tmp_path}': Is a directory\n")
    assert opt("nul\0") == (1, "", "xgpu-opt: error: cannot read 'nul\0': embedded null byte\n")


def test_files_that_cannot_be_written(opt: Callable[..., Any], tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "out.mlir"
    assert opt("-o", missing) == (1, "", f"xgpu-opt: error: cannot write '{missing}': No such file or directory\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"module {\n  \xff", "<stdin>:2:3: error: expected UTF-8 text\n"),
        (b"ML\xefR\0\1", "<stdin>: error: expected MLIR text, got MLIR bytecode\n"),
        ("func.func @f(", "<stdin>:1:13: error: expected non-function type"),
        ("module {\n\tnonsense }", "<stdin>:2:2: error: custom op 'nonsense' is unknown"),
        ("module{" * 257, f"<stdin>:1:{7 * 257}: error: brackets nest deeper than 256\n"),
        ('"x"() : () -> ()', "<stdin>:1:1: error: unknown operation 'x'"),
        ('"xgpu.qq"() : () -> ()', "<stdin>:1:1: error: 'xgpu.qq' is not an operation of the xgpu dialect; it has"),
        ('"xgpu.lop"() : () -> ()', "<stdin>:1:1: error: 'xgpu.lop' is not an operation of the xgpu dialect (did you"),
    ],
)
def test_input_that_is_no_program(opt: Callable[..., Any], text: str | bytes, message: str) -> None:
    outcome = opt(stdin=text)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(message)


def test_the_caret_is_below_its_character(opt: Callable[..., Any]) -> None:
    assert opt(stdin="\tnonsense").err.splitlines()[1:] == ["\tnonsense", "\t^"]
    source, caret = opt(stdin=" " * 1000 + "nonsense" + " " * 1000).err.splitlines()[1:]
    assert len(source) < 200
    assert source[caret.index("^") :].startswith("nonsense")


def test_depth_counts_brackets_not_strings_comments_and_arrows(opt: Callable[..., Any]) -> None:
    many = "({[<" * MAX_NESTING
    text = f'// {many}\nmodule attributes {{x.a = "{many}\\""}} {{\n'
    text += "".join(f"func.func private @f{i}(tensor<1xf32>) -> tensor<1xf32>\n" for i in range(MAX_NESTING + 1))
    outcome = opt(stdin=text + "}")
    assert (outcome.code, outcome.err) == (0, "")


@pytest.mark.parametrize(("line", "column"), [(2, 4_000_000_000), (4_000_000_000, 2)])
def test_a_place_that_the_text_does_not_have_is_named_as_it_is(opt: Callable[..., Any], line: int, column: int) -> None:
    outcome = opt(stdin=f'module {{\n  "a.b"() : () -> () loc("-":{line}:{column})\n}}\n')
    excerpt = '  "a.b"() : () -> () loc("-":2:4000000000)\n' if line == 2 else ""
    assert outcome.err == f"<stdin>:{line}:{column}: error: unknown operation 'a.b': no dialect 'a' is known\n{excerpt}"


def test_depth_within_the_limit_is_printed(opt: Callable[..., Any]) -> None:
    outcome = opt("-p", "cse", stdin="module {" * MAX_NESTING + "}" * MAX_NESTING)
    assert (outcome.code, outcome.err) == (0, "")


def test_every_problem_of_the_input_is_reported(opt: Callable[..., Any]) -> None:
    outcome = opt(stdin='"a.b"() : () -> ()\n"c.d"() : () -> ()')
    assert re.findall(r"<stdin>:(\d):1: error", outcome.err) == ["1", "2"]


def test_a_failing_pass_of_mlirs_is_named_with_how_to_repeat_it(
    opt: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    file = tmp_path / "functions.mlir"
    file.write_text("module {\nfunc.func @a() {return} func.func @b() {return}}")
    outcome = opt(str(file), "-p", "cse,stablehlo-refine-shapes,cse")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"{file}:1:1: error: 'builtin.module' op must have no more than one function")
    repeat = f"xgpu-opt {file} -p 'cse,stablehlo-refine-shapes'"
    note = f"xgpu-opt: note: while running pass 'stablehlo-refine-shapes'; to repeat: {repeat}"
    assert outcome.err.splitlines()[-1] == note
    assert not list((tmp_path / "temporary").iterdir())


def test_a_pass_of_ours_that_cannot_handle_the_input(opt: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from xgpu.errors import SourceLocation, Unsupported
    from xgpu.passes.set_level import SetLevel

    def refuse(self: object, module: object) -> None:
        raise Unsupported("this is too much", SourceLocation("-", 2, 3))

    monkeypatch.setattr(SetLevel, "apply", refuse)
    outcome = opt("-p", "set-level", stdin="module {\n  func.func private @f() }")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "<stdin>:2:3: error: this is too much\n  func.func private @f() }\n  ^\n"


def test_what_a_pass_of_ours_refuses_is_pointed_at_in_the_whole_file(opt: Callable[..., Any], tmp_path: Path) -> None:
    text = f"{EMPTY}// -----\nfunc.func @f(%x: f32) -> f32 {{\n  %0 = math.exp %x : f32\n  return %0 : f32\n}}\n"
    line = text[: text.index("math.exp")].count("\n") + 1
    message = f":{line}:8: error: pass 'lower-to-llvm': 'math.exp': has no lowering"
    options = ("-p", "lower-to-llvm", "--split-input-file")
    assert opt(*options, stdin=text).err.startswith(f"<stdin>{message}")
    file = tmp_path / "f.mlir"
    file.write_text(text)
    assert opt(*options, file).err.startswith(f"{file}{message}")


def test_what_a_pass_of_ours_made_wrong_is_pointed_at(opt: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from xgpu import ir
    from xgpu.passes.set_level import SetLevel

    def spoil(self: object, module: Any) -> None:
        function = module.body.operations[0]
        with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), function.location:
            ir.Operation.create("xgpu.no")

    monkeypatch.setattr(SetLevel, "apply", spoil)
    outcome = opt("-p", "set-level", stdin="module {\n func.func @f() { return } }")
    assert outcome.err.startswith("<stdin>:2:2: error: pass 'set-level' failed: 'xgpu.no' is not an operation of")
    assert "\nto repeat: xgpu-opt - -p 'set-level'\n" in outcome.err


@pytest.mark.parametrize("verify", ["true", "false"])
def test_verification_after_each_pass(opt: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, verify: str) -> None:
    from xgpu.passes.set_level import SetLevel

    def spoil(self: object, module: Any) -> None:
        first, second = (op.operation.attributes for op in module.body.operations)
        first["sym_name"] = second["sym_name"]

    monkeypatch.setattr(SetLevel, "apply", spoil)
    text = "module {\nfunc.func private @f()\nfunc.func private @g()\n}"
    outcome = opt("-p", "set-level", f"--verify-each={verify}", stdin=text)
    if verify == "false":
        assert (outcome.code, outcome.err) == (0, "")
        return
    assert (outcome.code, outcome.out) == (1, "")
    assert "<stdin>:3:1: error: redefinition of symbol named 'g'" in outcome.err
    assert "while running pass 'set-level'" in outcome.err


def test_an_internal_error_is_one_line_and_its_traceback_can_be_had(
    opt: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object) -> int:
        raise KeyError("lost")

    monkeypatch.setattr("xgpu.cli.opt.session.Session.run", fail)
    outcome = opt()
    assert outcome.code == 1
    assert outcome.err == "xgpu-opt: internal error: KeyError: 'lost'\nXGPU_TRACEBACK=1 shows where\n"
    monkeypatch.setenv("XGPU_TRACEBACK", "1")
    with pytest.raises(KeyError):
        opt()


def test_a_failure_in_a_pass_shows_where(opt: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from xgpu.passes.set_level import SetLevel

    def fail(self: object, module: Any) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(SetLevel, "apply", fail)
    outcome = opt("-p", "cse,set-level", stdin=EMPTY)
    assert outcome.code == 1
    line = fail.__code__.co_firstlineno + 1
    assert f"error: pass 'set-level' failed: KeyError: 'lost' at {__file__}:{line} in fail\n" in outcome.err
    assert "to repeat: xgpu-opt - -p 'cse,set-level'" in outcome.err
    assert "Traceback" not in outcome.err
    monkeypatch.setenv("XGPU_TRACEBACK", "1")
    traced = opt("-p", "cse,set-level", stdin=EMPTY).err
    assert traced.startswith(f"{outcome.err}Traceback (most recent call last):\n")
    assert traced.endswith("KeyError: 'lost'\n")


@pytest.mark.parametrize(("class_name", "name"), [("SetLevel", "set-levl"), ("SetLevels", "set-level")])
def test_a_misnamed_pass(opt: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, class_name: str, name: str) -> None:
    from xgpu.passes import set_level
    from xgpu.passes.framework.base import Pass

    monkeypatch.delattr(set_level, "SetLevel")
    written = type(class_name, (Pass,), {"NAME": name, "__module__": set_level.__name__})
    monkeypatch.setattr(set_level, class_name, written, raising=False)
    expected = "passes/set_level.py: expected the class SetLevel with NAME 'set-level'"
    outcome = opt("-p", "set-level", stdin=EMPTY)
    assert (outcome.code, outcome.err) == (2, f"xgpu-opt: error: {expected}, got {class_name} with NAME '{name}'\n")


def test_a_helper_is_no_pass(opt: Callable[..., Any]) -> None:
    assert opt("-p", "ranges").err == "xgpu-opt: error: unknown pass 'ranges'; xgpu-opt --list-passes lists all\n"


def test_a_mark_at_the_start_of_a_file_is_no_text(opt: Callable[..., Any]) -> None:
    assert opt(stdin=b"\xef\xbb\xbf" + EMPTY.encode()).out == EMPTY


def test_numbers_below_zero_are_no_options(opt: Callable[..., Any]) -> None:
    outcome = opt("-p", "unroll-loops{max-trip=-1}")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "xgpu-opt: error: pass 'unroll-loops', option 'max-trip': expected a number of at least 0, got '-1'\n"
    )


def test_no_file_is_written_for_wrong_input(opt: Callable[..., Any], tmp_path: Path) -> None:
    output = tmp_path / "out.mlir"
    assert opt("-o", output, "--split-input-file", stdin=f"{EMPTY}// -----\nwrong").code == 1
    assert not output.exists()
    assert opt("-o", output, "--split-input-file", stdin=f"{EMPTY}// -----\n{EMPTY}").code == 0
    assert output.read_text() == f"{EMPTY}// -----\n{EMPTY}"


def test_only_whole_separator_lines_separate(opt: Callable[..., Any]) -> None:
    text = f"// ------\n// ----- //\n  // -----\n{EMPTY}// -----  \n"
    assert opt("--split-input-file", stdin=text).out == f"{EMPTY}// -----\n{EMPTY}"


def test_list_passes_names_every_pass_with_its_options(opt: Callable[..., Any]) -> None:
    from xgpu.passes.framework.registry import all_passes

    outcome = opt("--list-passes")
    assert (outcome.code, outcome.err) == (0, "")
    for cls in all_passes():
        assert re.search(rf"^  {cls.NAME}\s", outcome.out, re.MULTILINE)
        for option in cls.options():
            assert re.search(rf"^    {option.name.replace('_', '-')}=", outcome.out, re.MULTILINE)
    assert "lower-to-llvm" in outcome.out
    assert re.search(r"target=nvvm\|host +The machine to lower for", outcome.out)
    assert "(default nvvm)" in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 120


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"a.b"() : () -> ()', "<stdin>:1:1: error: unexpected error: unknown operation 'a.b'"),
        ("// expected-error {{never}}", '<stdin>:1:4: error: expected error "never" was not produced'),
        ('"a.b"() : () -> () // expected-warning {{a.b}}', "<stdin>:1:1: error: unexpected error: unknown operation"),
        ('"a.b"() : () -> () // expected-error {{a.c}}', '<stdin>:1:23: error: expected error "a.c" was not produced'),
        ('// expected-error@+2 {{a.b}}\n"a.b"() : () -> ()', "<stdin>:2:1: error: unexpected error: unknown operation"),
        ("// expected-error: never", "<stdin>:1:4: error: expected 'expected-error @+N {{message}}'"),
        ("// expected-error-re {{ {{(}} }}", "<stdin>:1:4: error: malformed regular expression: missing )"),
        ('"a.b"() : () -> () "a.b"() : () -> () // expected-error {{a.b}}', "<stdin>:1:20: error: unexpected error"),
    ],
)
def test_diagnostics_other_than_expected(opt: Callable[..., Any], text: str, message: str) -> None:
    outcome = opt("--verify-diagnostics", stdin=text)
    assert outcome.code == 1
    assert message in outcome.err


def test_notes_need_not_be_expected_if_they_have_no_place_of_their_own(opt: Callable[..., Any]) -> None:
    text = "module { // expected-error {{must have no more than one function}}\n"
    text += "func.func @a() {return} func.func @b() {return}}"
    outcome = opt("--verify-diagnostics", "-p", "stablehlo-refine-shapes", stdin=text)
    assert (outcome.code, outcome.err) == (0, "")
